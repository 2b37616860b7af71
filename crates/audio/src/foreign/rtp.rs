//! Audio over RTP: L16 and G.711 (RFC 3551), L24 (RFC 3190), Opus (RFC 7587), as [AES67](crate::sdp) uses it.
//!
//! A packet carries consecutive frames; its time stamp is the number of the first, from a random one on. The receiver
//! goes by time stamps alone: packets may be of any length, come in any order, twice or not at all. The marker bit stands
//! for the end of a silence that was not sent, which these streams do not have (RFC 3551 section 4.1), so it is never set
//! and not looked at.

use trunkline_core::Time;
use trunkline_core::rtp::{HEADER_LENGTH, RtpHeader, RtpPacket, is_rtcp};

use super::{Output, extend};
use crate::pipeline::{Block, Packer, Stream, UnpackCounters, UnpackError, Unpacker};
use crate::seen::{Seen, Sight};

/// With what a sender begins; all but the payload type should be random (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpStart {
    /// What names the codec in every packet, 0 to 127.
    pub payload_type: u8,
    /// Who sends.
    pub ssrc: u32,
    /// The first packet's number.
    pub sequence: u16,
    /// The time stamp of the first frame of block 0.
    pub timestamp: u32,
}

/// Makes RTP packets of blocks.
#[derive(Clone, Debug)]
pub struct RtpPacker {
    stream: Stream,
    start: RtpStart,
    sequence: u16,
    /// The most frames of a packet.
    frames: usize,
    packet: Vec<u8>,
    payload: Vec<u8>,
}

impl RtpPacker {
    /// Packets of this stream's codec, a block in each. A block that would exceed
    /// [`most_packet`](crate::pipeline::Packing::most_packet) is divided evenly.
    pub fn new(stream: &Stream, start: RtpStart) -> RtpPacker {
        let frames = packet_frames(stream);
        let bytes = stream.codec.bytes(usize::from(stream.channels), frames);
        RtpPacker {
            stream: *stream,
            start,
            sequence: start.sequence,
            frames,
            packet: Vec::with_capacity(HEADER_LENGTH + bytes),
            payload: Vec::with_capacity(bytes),
        }
    }
}

/// Frames of a packet: those of a block, or of an even part of it where that would exceed the packing's bound.
pub(crate) fn packet_frames(stream: &Stream) -> usize {
    let block = stream.block_frames as usize;
    let room = stream.packing.most_packet.saturating_sub(HEADER_LENGTH);
    match room.checked_div(stream.codec.bytes(usize::from(stream.channels), 1)) {
        Some(most) => block.div_ceil(block.div_ceil(most.max(1)).max(1)).max(1),
        // A block of Opus is a frame of its own.
        None => block,
    }
}

impl Packer for RtpPacker {
    /// A block becomes packets of all channels; parts of blocks have no place in them and are left out.
    fn pack(&mut self, block: &Block<'_>, emit: &mut dyn FnMut(&[u8])) {
        let (channels, frames) = (usize::from(self.stream.channels), self.stream.block_frames);
        if block.samples.len() != channels * frames as usize {
            return;
        }
        let mut timestamp = self.start.timestamp.wrapping_add(block.sequence.wrapping_mul(frames));
        for samples in block.samples.chunks(self.frames * channels) {
            self.payload.clear();
            self.stream.codec.encode(samples, &mut self.payload);
            let header = RtpHeader {
                marker: false,
                payload_type: self.start.payload_type,
                sequence: self.sequence,
                timestamp,
                ssrc: self.start.ssrc,
            };
            self.packet.clear();
            RtpPacket::new(header, &self.payload).encode(&mut self.packet);
            emit(&self.packet);
            self.sequence = self.sequence.wrapping_add(1);
            timestamp = timestamp.wrapping_add((samples.len() / channels) as u32);
        }
    }
}

/// Makes blocks of RTP packets.
#[derive(Clone, Debug)]
pub struct RtpUnpacker {
    output: Output,
    payload_type: u8,
    source: Option<Source>,
    /// Another sender's identifier, and the number by which it is believed (RFC 3550 section A.1).
    probation: Option<(u32, u16)>,
    samples: Vec<f32>,
}

/// The sender that is heard, and its last packet.
#[derive(Clone, Debug)]
struct Source {
    ssrc: u32,
    seen: Seen,
    number: i64,
    timestamp: u32,
    /// The frame of the stream that the time stamp stands for.
    position: i64,
}

impl RtpUnpacker {
    /// Blocks of this stream from packets of this payload type.
    pub fn new(stream: &Stream, payload_type: u8) -> RtpUnpacker {
        let samples = usize::from(stream.channels) * stream.block_frames as usize;
        RtpUnpacker {
            output: Output::new(stream),
            payload_type,
            source: None,
            probation: None,
            samples: Vec::with_capacity(samples),
        }
    }

    fn read(&mut self, packet: &[u8], deliver: &mut dyn FnMut(Block<'_>)) -> Result<(), UnpackError> {
        let RtpPacket { header, payload, .. } = RtpPacket::decode(packet).ok_or(UnpackError::Damaged)?;
        if header.payload_type != self.payload_type {
            return Err(UnpackError::OtherStream("payload type"));
        }
        let Output { stream, assembler, .. } = &mut self.output;
        let frame = stream.codec.bytes(usize::from(stream.channels), 1);
        if frame == 0 || !payload.len().is_multiple_of(frame) {
            return Err(UnpackError::OtherStream("number of channels"));
        }
        if self.source.as_ref().is_some_and(|source| source.ssrc != header.ssrc) {
            let next = (header.ssrc, header.sequence.wrapping_add(1));
            if self.probation.replace(next) != Some((header.ssrc, header.sequence)) {
                return Err(UnpackError::OtherStream("sender"));
            }
            self.source = None;
        }
        self.probation = None;
        let source = self.source.get_or_insert_with(|| {
            let position = assembler.far_ahead();
            assembler.restart();
            let number = header.sequence.into();
            Source { ssrc: header.ssrc, seen: Seen::default(), number, timestamp: header.timestamp, position }
        });
        if source.follow(&header) == Sight::Again {
            return Ok(());
        }
        self.samples.clear();
        stream.codec.decode(payload, &mut self.samples);
        let position = source.position;
        self.output.put(position, &self.samples, deliver);
        Ok(())
    }
}

impl Source {
    /// Makes this packet the last.
    fn follow(&mut self, header: &RtpHeader) -> Sight {
        self.number = extend(self.number, header.sequence);
        self.position += i64::from(header.timestamp.wrapping_sub(self.timestamp) as i32);
        self.timestamp = header.timestamp;
        self.seen.note(self.number as u32)
    }
}

impl Unpacker for RtpUnpacker {
    /// Reports of the sender (RTCP) that come to the same port have no blocks. Of a sender that begins anew with another
    /// identifier, two packets must come in sequence before it is heard; its first is refused.
    fn unpack(
        &mut self,
        _now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let read = if is_rtcp(packet) { Ok(()) } else { self.read(packet, deliver) };
        self.output.counted(read)
    }

    fn counters(&self) -> UnpackCounters {
        self.output.counters
    }
}

#[cfg(test)]
mod tests;

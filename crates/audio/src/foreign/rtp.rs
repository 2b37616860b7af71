//! Audio over RTP: L16 and G.711 (RFC 3551), L24 (RFC 3190), Opus (RFC 7587), as [AES67](crate::sdp) uses it.
//!
//! A packet carries consecutive frames; its time stamp is the number of the first, from a random one on. The receiver
//! goes by time stamps alone: packets may be of any length, come in any order, twice or not at all. The marker bit stands
//! for the end of a silence that was not sent, which these streams do not have (RFC 3551 section 4.1), so it is never set
//! and not looked at.

use trunkline_core::Time;
use trunkline_core::rtp::{HEADER_LENGTH, RtpHeader, RtpPacket, is_rtcp};

use super::{Output, extend};
use crate::codec::{Decoder, Encoder, Frame, LENGTH_FIELD, data_bytes};
use crate::pipeline::{Block, Codec, Packer, Stream, StreamError, UnpackCounters, UnpackError, Unpacker};
use crate::playout::Origin;
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
pub struct RtpPacker {
    stream: Stream,
    encoder: Encoder,
    start: RtpStart,
    sequence: u16,
    /// The most frames of a packet.
    frames: usize,
    packet: Vec<u8>,
    data: Vec<u8>,
}

impl RtpPacker {
    /// Packets of this stream's codec, a block in each. A block that would exceed
    /// [`most_packet`](crate::pipeline::Packing::most_packet) is divided evenly. Opus is of at most two channels and
    /// 48 kHz.
    ///
    /// # Errors
    /// The stream is out of bounds.
    pub fn new(stream: &Stream, start: RtpStart) -> Result<RtpPacker, StreamError> {
        stream.check()?;
        let channels = usize::from(stream.channels);
        let most = data_bytes(stream, channels);
        Ok(RtpPacker {
            stream: *stream,
            encoder: Encoder::new(stream, channels)?,
            start,
            sequence: start.sequence,
            frames: packet_frames(stream),
            packet: Vec::with_capacity(HEADER_LENGTH + most),
            data: Vec::with_capacity(most),
        })
    }
}

/// Frames of a packet: those of a block, or of an even part of it where that would exceed the packing's bound.
pub(crate) fn packet_frames(stream: &Stream) -> usize {
    let block = stream.block_frames as usize;
    let room = stream.packing.most_packet.saturating_sub(HEADER_LENGTH);
    match room.checked_div(stream.codec.bytes(usize::from(stream.channels), 1)) {
        Some(most) => block.div_ceil(block.div_ceil(most.max(1)).max(1)).max(1),
        // A block of Opus cannot be divided.
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
            self.data.clear();
            self.encoder.encode(samples, &mut self.data);
            let header = RtpHeader {
                marker: false,
                payload_type: self.start.payload_type,
                sequence: self.sequence,
                timestamp,
                ssrc: self.start.ssrc,
            };
            self.packet.clear();
            let payload = if is_opus(&self.stream) { &self.data[LENGTH_FIELD..] } else { &self.data };
            RtpPacket::new(header, payload).encode(&mut self.packet);
            emit(&self.packet);
            self.sequence = self.sequence.wrapping_add(1);
            timestamp = timestamp.wrapping_add((samples.len() / channels) as u32);
        }
    }
}

fn is_opus(stream: &Stream) -> bool {
    matches!(stream.codec, Codec::Opus { .. })
}

/// Makes blocks of RTP packets.
pub struct RtpUnpacker {
    output: Output,
    decoder: Decoder,
    payload_type: u8,
    source: Option<Source>,
    /// The block of Opus that came last, and its first frame.
    last: (u32, i64),
    /// Another sender's identifier, and the number by which it is believed (RFC 3550 section A.1).
    probation: Option<(u32, u16)>,
    /// A frame of Opus behind its length.
    framed: Vec<u8>,
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
    /// Blocks of this stream from packets of this payload type. With Opus, a packet has to be as long as a block.
    ///
    /// # Errors
    /// The stream is out of bounds.
    pub fn new(stream: &Stream, payload_type: u8) -> Result<RtpUnpacker, StreamError> {
        stream.check()?;
        let channels = usize::from(stream.channels);
        Ok(RtpUnpacker {
            output: Output::new(stream),
            decoder: Decoder::new(stream, channels)?,
            payload_type,
            source: None,
            last: (0, 0),
            probation: None,
            framed: Vec::with_capacity(data_bytes(stream, channels)),
            samples: Vec::with_capacity(channels * stream.block_frames as usize),
        })
    }

    fn read(
        &mut self,
        now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let RtpPacket { header, payload, .. } = RtpPacket::decode(packet).ok_or(UnpackError::Damaged)?;
        if header.payload_type != self.payload_type {
            return Err(UnpackError::OtherStream("payload type"));
        }
        let stream = self.output.stream;
        let frame = stream.codec.bytes(usize::from(stream.channels), 1);
        if is_opus(&stream) && opus_frames(payload) != Some(stream.block_frames) {
            return Err(UnpackError::OtherStream("length of Opus packets"));
        } else if frame > 0 && !payload.len().is_multiple_of(frame) {
            return Err(UnpackError::OtherStream("number of channels"));
        }
        let Some(position) = self.place(&header)? else { return Ok(()) };
        let block = i64::from(stream.block_frames);
        // Encoders count the silence that they begin with or do not (GStreamer's first packet is short by it); packets of
        // Opus are whole blocks all the same.
        let position = match is_opus(&stream) {
            true => (position + block / 2).div_euclid(block) * block,
            false => position,
        };
        let sequence = position.div_euclid(block) as u32;
        let data = if is_opus(&stream) {
            self.framed.clear();
            // A datagram is no longer than that.
            self.framed.extend((payload.len() as u16).to_be_bytes());
            self.framed.extend_from_slice(payload);
            &self.framed
        } else {
            payload
        };
        self.last = (sequence, position);
        let RtpUnpacker { output, decoder, samples, .. } = self;
        let frame = Frame { sequence, captured: Time::ZERO, arrived: now, origin: Origin::Sent };
        decoder.take(frame, data, samples, |frame, samples| {
            let at = place_of(&frame, (sequence, position), block);
            output.put(at, samples, (frame.arrived, frame.origin), deliver);
        });
        Ok(())
    }

    /// Where in the stream a packet belongs; `None` if it came before.
    fn place(&mut self, header: &RtpHeader) -> Result<Option<i64>, UnpackError> {
        if self.source.as_ref().is_some_and(|source| source.ssrc != header.ssrc) {
            let next = (header.ssrc, header.sequence.wrapping_add(1));
            if self.probation.replace(next) != Some((header.ssrc, header.sequence)) {
                return Err(UnpackError::OtherStream("sender"));
            }
            self.source = None;
        }
        self.probation = None;
        let assembler = &mut self.output.assembler;
        let source = self.source.get_or_insert_with(|| {
            let position = assembler.far_ahead();
            assembler.restart();
            let number = header.sequence.into();
            Source { ssrc: header.ssrc, seen: Seen::default(), number, timestamp: header.timestamp, position }
        });
        source.number = extend(source.number, header.sequence);
        source.position += i64::from(header.timestamp.wrapping_sub(source.timestamp) as i32);
        source.timestamp = header.timestamp;
        Ok((source.seen.note(source.number as u32) == Sight::New).then_some(source.position))
    }
}

/// The first frame of a block, of which another begins elsewhere.
fn place_of(frame: &Frame, (sequence, position): (u32, i64), block: i64) -> i64 {
    position + i64::from(frame.sequence.wrapping_sub(sequence) as i32) * block
}

/// Frames at 48 kHz in a packet of Opus (RFC 6716 section 3.1).
fn opus_frames(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let of_one = match toc >> 3 {
        speech @ 0..12 => [480, 960, 1920, 2880][usize::from(speech % 4)],
        hybrid @ 12..16 => [480, 960][usize::from(hybrid % 2)],
        music => [120, 240, 480, 960][usize::from(music % 4)],
    };
    let count = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(*packet.get(1)? & 0x3F),
    };
    Some(of_one * count)
}

impl Unpacker for RtpUnpacker {
    /// Reports of the sender (RTCP) that come to the same port have no blocks. Of a sender that begins anew with another
    /// identifier, two packets must come in sequence before it is heard; its first is refused.
    fn unpack(
        &mut self,
        now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let read = if is_rtcp(packet) { Ok(()) } else { self.read(now, packet, deliver) };
        self.output.counted(read)
    }

    fn missing(&self) -> Option<u32> {
        self.decoder.missing()
    }

    fn release(&mut self, before: u32, deliver: &mut dyn FnMut(Block<'_>)) {
        let RtpUnpacker { output, decoder, last, .. } = self;
        let block = i64::from(output.stream.block_frames);
        decoder.release(before, |frame, samples| {
            output.put(place_of(&frame, *last, block), samples, (frame.arrived, frame.origin), deliver);
        });
    }

    fn counters(&self) -> UnpackCounters {
        let UnpackCounters { late, duplicate, reordered, .. } = self.decoder.counters();
        UnpackCounters { late, duplicate, reordered, ..self.output.counters }
    }
}

#[cfg(test)]
mod tests;

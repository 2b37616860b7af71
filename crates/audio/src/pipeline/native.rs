//! Our own packets: blocks in parts, each with its header ([`crate::packet`]), protected ([`crate::fec`]), and in pieces
//! if they are too long or were asked for.

use core::ops::Range;

use trunkline_core::Time;

use super::guard::{Guard, Unguard};
use super::{Block, Codec, Packer, Stream, StreamError, UnpackCounters, UnpackError, Unpacker};
use crate::codec::{Decoder, Encoder, Frame, data_bytes};
use crate::fec::Delivered;
use crate::packet::{Finder, Header};
use crate::playout::Origin;

/// Makes packets of our own format.
pub struct NativePacker {
    stream: Stream,
    part_channels: usize,
    pieces: Option<usize>,
    guard: Guard,
    /// One for each part.
    encoders: Vec<Encoder>,
    /// The samples of a part.
    samples: Vec<f32>,
    /// A packet, or those of a block one behind the other.
    bytes: Vec<u8>,
}

impl NativePacker {
    /// For blocks of this stream.
    ///
    /// # Errors
    /// The stream is out of bounds.
    pub fn new(stream: &Stream) -> Result<NativePacker, StreamError> {
        stream.check()?;
        let (channels, frames) = (usize::from(stream.channels), stream.block_frames as usize);
        let layout = stream.layout();
        let parts = channels.div_ceil(layout.part_channels);
        let bytes = parts * (data_bytes(stream, layout.part_channels) + Header::BYTES);
        Ok(NativePacker {
            stream: *stream,
            part_channels: layout.part_channels,
            pieces: layout.pieces,
            guard: Guard::new(stream.protection, layout)?,
            encoders: layout
                .parts(stream)
                .map(|part| Encoder::new(stream, part))
                .collect::<Result<_, _>>()?,
            samples: Vec::with_capacity(layout.part_channels * frames),
            bytes: Vec::with_capacity(bytes),
        })
    }
}

impl Packer for NativePacker {
    fn pack(&mut self, block: &Block<'_>, emit: &mut dyn FnMut(&[u8])) {
        let channels = usize::from(self.stream.channels);
        let frames = self.stream.block_frames as usize;
        if block.channels != self.stream.channels || block.samples.len() != channels * frames {
            return;
        }
        self.bytes.clear();
        for (n, encoder) in self.encoders.iter_mut().enumerate() {
            let first = n * self.part_channels;
            let count = self.part_channels.min(channels - first);
            self.samples.clear();
            self.samples
                .extend(block.samples.chunks_exact(channels).flat_map(|frame| &frame[first..first + count]));
            let header = Header {
                sequence: block.sequence,
                captured: block.captured,
                first_channel: first as u16,
                channels: count as u16,
                frames: frames as u16,
                codec: self.stream.codec.id(),
            };
            header.append(&mut self.bytes, |bytes| encoder.encode(&self.samples, bytes));
            if self.pieces.is_none() {
                self.guard.send(&self.bytes, emit);
                self.bytes.clear();
            }
        }
        // The last piece of a block is a short one: it does not wait for the next block.
        for piece in self.pieces.iter().flat_map(|&size| self.bytes.chunks(size)) {
            self.guard.send(piece, emit);
        }
    }
}

/// Reads packets of our own format.
pub struct NativeUnpacker {
    guard: Unguard,
    parts: Parts,
}

impl NativeUnpacker {
    /// For blocks of this stream.
    ///
    /// # Errors
    /// The stream is out of bounds.
    pub fn new(stream: &Stream) -> Result<NativeUnpacker, StreamError> {
        stream.check()?;
        let layout = stream.layout();
        let frames = stream.block_frames as usize;
        let most_data = data_bytes(stream, layout.part_channels);
        Ok(NativeUnpacker {
            guard: Unguard::new(stream.protection, layout)?,
            parts: Parts {
                stream: *stream,
                part_channels: layout.part_channels,
                decoders: layout
                    .parts(stream)
                    .map(|part| Decoder::new(stream, part))
                    .collect::<Result<_, _>>()?,
                finder: layout.pieces.map(|_| Finder::new(most_data)),
                samples: Vec::with_capacity(layout.part_channels * frames),
                mended: false,
                counters: UnpackCounters::default(),
            },
        })
    }
}

impl Unpacker for NativeUnpacker {
    fn unpack(
        &mut self,
        now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let NativeUnpacker { guard, parts } = self;
        parts.counters.packets += 1;
        let mut result = Ok(());
        let received = guard.receive(packet, |delivered| {
            let taken = parts.take(now, delivered, deliver);
            result = result.and(taken);
        });
        if received.is_err() {
            result = Err(UnpackError::Damaged);
        }
        match result {
            Ok(()) => {}
            Err(UnpackError::Damaged) => parts.counters.damaged += 1,
            Err(UnpackError::OtherStream(_)) => parts.counters.other += 1,
        }
        result
    }

    fn missing(&self) -> Option<u32> {
        let missing = self.parts.decoders.iter().filter_map(Decoder::missing);
        missing.reduce(|a, b| if (b.wrapping_sub(a) as i32) < 0 { b } else { a })
    }

    fn release(&mut self, before: u32, deliver: &mut dyn FnMut(Block<'_>)) {
        let Parts { stream, part_channels, decoders, counters, .. } = &mut self.parts;
        for (n, decoder) in decoders.iter_mut().enumerate() {
            let first = n * *part_channels;
            let channels = first..usize::from(stream.channels).min(first + *part_channels);
            decoder.release(before, |frame, samples| {
                deliver(counted(counters, channels.clone(), frame, samples))
            });
        }
    }

    fn counters(&self) -> UnpackCounters {
        let Parts { finder, decoders, counters, .. } = &self.parts;
        let of_decoders = |count: fn(UnpackCounters) -> u64| -> u64 {
            decoders.iter().map(|decoder| count(decoder.counters())).sum()
        };
        UnpackCounters {
            damaged: counters.damaged + finder.as_ref().map_or(0, Finder::damaged),
            skipped_bytes: finder.as_ref().map_or(0, Finder::skipped),
            late: of_decoders(|counters| counters.late),
            duplicate: of_decoders(|counters| counters.duplicate),
            reordered: of_decoders(|counters| counters.reordered),
            ..*counters
        }
    }
}

/// Packets in, parts of blocks out.
struct Parts {
    stream: Stream,
    part_channels: usize,
    /// One for each part.
    decoders: Vec<Decoder>,
    finder: Option<Finder>,
    samples: Vec<f32>,
    /// Whether something of what the finder holds was recovered.
    mended: bool,
    counters: UnpackCounters,
}

impl Parts {
    fn take(
        &mut self,
        now: Time,
        delivered: Delivered<'_>,
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let Parts { stream, part_channels, decoders, finder, samples, mended, counters } = self;
        *mended = delivered.recovered || *mended && finder.is_some();
        let mut decoded = |header: Header, data: &[u8]| {
            let decoder = &mut decoders[usize::from(header.first_channel) / *part_channels];
            let origin = if *mended { Origin::Recovered } else { Origin::Sent };
            let Header { sequence, captured, first_channel, channels, .. } = header;
            let channels = usize::from(first_channel)..usize::from(first_channel + channels);
            let frame = Frame { sequence, captured, arrived: now, origin };
            decoder.take(frame, data, samples, |frame, samples| {
                deliver(counted(counters, channels.clone(), frame, samples));
            });
            *mended = delivered.recovered;
        };
        let fits = |header: &Header, size| fits(stream, *part_channels, header, size);
        if let Some(finder) = finder {
            finder.push(delivered.payload, |header, size| fits(header, size).is_ok(), decoded);
            return Ok(());
        }
        let (header, data) = Header::read_packet(delivered.payload).ok_or(UnpackError::Damaged)?;
        fits(&header, data.len())?;
        decoded(header, data);
        Ok(())
    }
}

/// Counts a part of a block that is delivered.
fn counted<'a>(
    counters: &mut UnpackCounters,
    channels: Range<usize>,
    frame: Frame,
    samples: &'a [f32],
) -> Block<'a> {
    let Frame { sequence, captured, arrived, origin } = frame;
    counters.delivered += 1;
    counters.recovered += u64::from(origin == Origin::Recovered);
    counters.concealed += u64::from(origin == Origin::Concealed);
    let (first_channel, channels) = (channels.start as u16, channels.len() as u16);
    Block { sequence, captured, arrived, first_channel, channels, samples, origin }
}

/// Whether a packet can be one of this stream.
fn fits(stream: &Stream, part_channels: usize, header: &Header, size: usize) -> Result<(), UnpackError> {
    let (first, count) = (usize::from(header.first_channel), usize::from(header.channels));
    let expected = part_channels.min(usize::from(stream.channels).saturating_sub(first));
    if header.codec != stream.codec.id() {
        Err(UnpackError::OtherStream("another codec"))
    } else if u32::from(header.frames) != stream.block_frames {
        Err(UnpackError::OtherStream("blocks of another length"))
    } else if !first.is_multiple_of(part_channels) || count != expected || count == 0 {
        Err(UnpackError::OtherStream("other channels"))
    } else if size != data_bytes(stream, count) && !matches!(stream.codec, Codec::Opus { .. }) {
        Err(UnpackError::OtherStream("more or less data than its frames have"))
    } else {
        Ok(())
    }
}

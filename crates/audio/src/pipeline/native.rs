//! Our own packets: blocks in parts, each with its header ([`crate::packet`]), protected ([`crate::fec`]), and in pieces
//! if they are too long or were asked for.

use trunkline_core::Time;

use super::guard::{Guard, Unguard};
use super::{Block, Codec, Packer, Stream, StreamError, UnpackCounters, UnpackError, Unpacker};
use crate::codec::{Decoder, Encoder, data_bytes};
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
        _now: Time,
        packet: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let NativeUnpacker { guard, parts } = self;
        parts.counters.packets += 1;
        let mut result = Ok(());
        let received = guard.receive(packet, |delivered| {
            let taken = parts.take(delivered, deliver);
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

    fn counters(&self) -> UnpackCounters {
        let finder = self.parts.finder.as_ref();
        UnpackCounters {
            damaged: self.parts.counters.damaged + finder.map_or(0, Finder::damaged),
            skipped_bytes: finder.map_or(0, Finder::skipped),
            ..self.parts.counters
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
        delivered: Delivered<'_>,
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let Parts { stream, part_channels, decoders, finder, samples, mended, counters } = self;
        *mended = delivered.recovered || *mended && finder.is_some();
        let mut decoded = |header: Header, data: &[u8]| {
            let decoder = &mut decoders[usize::from(header.first_channel) / *part_channels];
            let in_time = decoder.decode(header.sequence, data, samples, |sequence, samples, origin| {
                counters.delivered += 1;
                let origin = if origin == Origin::Sent && *mended { Origin::Recovered } else { origin };
                counters.recovered += u64::from(origin == Origin::Recovered);
                counters.concealed += u64::from(origin == Origin::Concealed);
                let before = stream.duration_of(
                    u64::from(header.sequence.wrapping_sub(sequence)) * u64::from(stream.block_frames),
                );
                deliver(Block {
                    sequence,
                    captured: Time::ZERO + header.captured.since(Time::ZERO + before),
                    first_channel: header.first_channel,
                    channels: header.channels,
                    samples,
                    origin,
                });
            });
            counters.late += u64::from(!in_time);
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

//! JackTrip's datagrams, as versions 1.2 to 2.7 exchange them between two peers.
//!
//! A packet is a header of 16 bytes and the samples of a block, all of the first channel before all of the second. A
//! datagram is a packet and, with redundancy, those before it, newest first. Numbers are in the byte order of the machine
//! that sends, which everywhere that matters is little-endian:
//!
//! | bytes | |
//! | --- | --- |
//! | 0 to 7 | when it was sent, in microseconds since 1970 |
//! | 8, 9 | sequence number of the packet |
//! | 10, 11 | frames |
//! | 12 | sample rate: an index into 22.05, 32, 44.1, 48, 88.2, 96 and 192 kHz |
//! | 13 | bits of a sample: 8, 16, 24 or 32 |
//! | 14 | channels that the sender wants to receive |
//! | 15 | channels that it sends: 0 for as many as it wants to receive, 255 for none |
//!
//! A peer that leaves says so with a datagram of 63 bytes 0xFF. JackTrip refuses a peer with another sample rate or
//! another resolution; frames and channels may differ.

use trunkline_core::Time;

use super::{Output, extend};
use crate::format::{Encoding, Endian, Format};
use crate::pipeline::{Block, Packer, Stream, UnpackCounters, UnpackError, Unpacker};
use crate::playout::Origin;
use crate::seen::{Seen, Sight};

/// The UDP port of a peer, and the TCP port of a hub.
pub const PORT: u16 = 4464;

/// What a peer that leaves sends, more than once.
pub const EXIT: [u8; 63] = [0xFF; 63];

/// Bytes of a packet's header.
pub const HEADER_LENGTH: usize = 16;

/// The sample rates in Hz that a header can name.
pub const SAMPLE_RATES: [u32; 7] = [22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000];

/// How a sample is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// A signed byte, of which full scale is 128.
    Bits8,
    /// Two's complement, little-endian.
    Bits16,
    /// The upper 16 bits little-endian, and behind them the lowest 8.
    Bits24,
    /// IEEE 754 single precision, little-endian.
    Bits32,
}

/// What stands before the samples of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, in microseconds since 1970.
    pub timestamp: u64,
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// Frames in the packet.
    pub frames: u16,
    /// In Hz: one of [`SAMPLE_RATES`].
    pub sample_rate: u32,
    /// How samples are written.
    pub resolution: Resolution,
    /// Channels that the sender wants to receive.
    pub wanted: u8,
    /// Channels in the packet, at most 254.
    pub channels: u8,
}

/// Why audio cannot be sent or received as JackTrip does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JackTripError {
    /// A header cannot name it.
    #[error(
        "JackTrip does not support a sample rate of {0} Hz; expected 22050, 32000, 44100, 48000, 88200, 96000 \
        or 192000"
    )]
    SampleRate(u32),
    /// A header cannot name them.
    #[error("JackTrip does not send {0} channels; expected 1 to 254")]
    Channels(u16),
    /// A header cannot name them, or there are none.
    #[error("JackTrip does not support packets of {0} frames; expected 1 to 65535")]
    Frames(u32),
    /// No datagram is that long.
    #[error(
        "a datagram of {packets} packets of {bytes} bytes each; expected at least 1 packet and at most 65507 bytes"
    )]
    Datagram {
        /// Packets in it.
        packets: usize,
        /// The bytes of each.
        bytes: usize,
    },
}

/// Whether a datagram says that the peer leaves.
pub fn is_exit(datagram: &[u8]) -> bool {
    datagram == EXIT
}

impl Resolution {
    /// Every resolution.
    pub const ALL: [Resolution; 4] =
        [Resolution::Bits8, Resolution::Bits16, Resolution::Bits24, Resolution::Bits32];

    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        1 + self as usize
    }

    /// Appends samples, rounded and clipped. Integers are scaled so that what JackTrip makes of them is what they were.
    fn encode(self, samples: &[f32], bytes: &mut Vec<u8>) {
        match self {
            Resolution::Bits8 => {
                bytes.extend(samples.iter().map(|sample| (sample * 128.0).round_ties_even() as i8 as u8));
            }
            Resolution::Bits16 => LITTLE_16.encode(samples, bytes),
            Resolution::Bits24 => {
                let from = bytes.len();
                LITTLE_24.encode(samples, bytes);
                bytes[from..]
                    .as_chunks_mut()
                    .0
                    .iter_mut()
                    .for_each(|sample: &mut [u8; 3]| sample.rotate_left(1));
            }
            Resolution::Bits32 => LITTLE_32.encode(samples, bytes),
        }
    }

    /// Appends the samples of `bytes`.
    fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        match self {
            Resolution::Bits8 => samples.extend(bytes.iter().map(|&byte| f32::from(byte as i8) / 128.0)),
            Resolution::Bits16 => LITTLE_16.decode(bytes, samples),
            Resolution::Bits24 => {
                for &[middle, high, low] in bytes.as_chunks().0 {
                    LITTLE_24.decode(&[low, middle, high], samples);
                }
            }
            Resolution::Bits32 => LITTLE_32.decode(bytes, samples),
        }
    }
}

const LITTLE_16: Format = Format { encoding: Encoding::I16, endian: Endian::Little };
const LITTLE_24: Format = Format { encoding: Encoding::I24, endian: Endian::Little };
const LITTLE_32: Format = Format { encoding: Encoding::F32, endian: Endian::Little };

impl Header {
    /// Appends the header to `into`. A rate that is none of [`SAMPLE_RATES`] is written as JackTrip writes an unknown one.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let rate = SAMPLE_RATES.iter().position(|&rate| rate == self.sample_rate);
        into.extend(self.timestamp.to_le_bytes());
        into.extend(self.sequence.to_le_bytes());
        into.extend(self.frames.to_le_bytes());
        into.push(rate.unwrap_or(SAMPLE_RATES.len()) as u8);
        into.push(8 * self.resolution.bytes() as u8);
        into.push(self.wanted);
        into.push(match self.channels {
            0 => NO_CHANNELS,
            channels if channels == self.wanted => AS_WANTED,
            channels => channels,
        });
    }

    /// Reads the header of a packet, or of a datagram's newest; `None` if it is none.
    pub fn decode(packet: &[u8]) -> Option<Header> {
        let (&timestamp, rest) = packet.split_first_chunk()?;
        let &[s0, s1, f0, f1, rate, bits, wanted, channels] = rest.first_chunk()?;
        Some(Header {
            timestamp: u64::from_le_bytes(timestamp),
            sequence: u16::from_le_bytes([s0, s1]),
            frames: u16::from_le_bytes([f0, f1]),
            sample_rate: *SAMPLE_RATES.get(usize::from(rate))?,
            resolution: Resolution::ALL.into_iter().find(|r| 8 * r.bytes() == usize::from(bits))?,
            wanted,
            channels: match channels {
                AS_WANTED => wanted,
                NO_CHANNELS => 0,
                channels => channels,
            },
        })
    }

    /// Bytes of the packet.
    pub fn packet_bytes(&self) -> usize {
        HEADER_LENGTH + usize::from(self.frames) * usize::from(self.channels) * self.resolution.bytes()
    }

    /// Whether a packet like this may stand with another in a datagram.
    fn is_like(&self, other: &Header) -> bool {
        Header { timestamp: 0, sequence: 0, ..*self } == Header { timestamp: 0, sequence: 0, ..*other }
    }
}

const AS_WANTED: u8 = 0;
const NO_CHANNELS: u8 = 255;

/// Makes JackTrip's datagrams of blocks.
#[derive(Clone, Debug)]
pub struct JackTripPacker {
    header: Header,
    epoch: u64,
    datagram: Vec<u8>,
    /// The block, channel after channel.
    planes: Vec<f32>,
    packet: Vec<u8>,
}

impl JackTripPacker {
    /// The stream's blocks, with `redundancy` packets in each datagram: 1 for the newest alone. The header says that
    /// `wanted` channels are wanted back; `epoch` is [`Time::ZERO`] in microseconds since 1970, for its time stamps.
    ///
    /// # Errors
    /// What JackTrip's format has no room for.
    pub fn new(
        stream: &Stream,
        resolution: Resolution,
        wanted: u8,
        redundancy: usize,
        epoch: u64,
    ) -> Result<JackTripPacker, JackTripError> {
        let Stream { channels, sample_rate, block_frames, .. } = *stream;
        if !SAMPLE_RATES.contains(&sample_rate) {
            return Err(JackTripError::SampleRate(sample_rate));
        }
        let header = Header {
            timestamp: 0,
            sequence: 0,
            frames: match u16::try_from(block_frames) {
                Ok(frames) if frames > 0 => frames,
                _ => return Err(JackTripError::Frames(block_frames)),
            },
            sample_rate,
            resolution,
            wanted,
            channels: match u8::try_from(channels) {
                Ok(channels) if (1..NO_CHANNELS).contains(&channels) => channels,
                _ => return Err(JackTripError::Channels(channels)),
            },
        };
        let bytes = header.packet_bytes();
        if !(1..=MOST_DATAGRAM / bytes).contains(&redundancy) {
            return Err(JackTripError::Datagram { packets: redundancy, bytes });
        }
        Ok(JackTripPacker {
            header,
            epoch,
            // Like JackTrip, which looks for old packets without asking how long the datagram is.
            datagram: vec![0; redundancy * bytes],
            planes: Vec::with_capacity(usize::from(header.frames) * usize::from(header.channels)),
            packet: Vec::with_capacity(bytes),
        })
    }

    /// Numbers block 0 so, and those that follow accordingly: for one that has sent something before its blocks begin.
    pub fn count_from(&mut self, sequence: u16) {
        self.header.sequence = sequence;
    }
}

/// What UDP carries over IPv4.
const MOST_DATAGRAM: usize = 65_507;

impl Packer for JackTripPacker {
    /// A whole block becomes one datagram; parts of blocks have no place in it and are left out.
    fn pack(&mut self, block: &Block<'_>, emit: &mut dyn FnMut(&[u8])) {
        let (channels, frames) = (usize::from(self.header.channels), usize::from(self.header.frames));
        if block.samples.len() != channels * frames {
            return;
        }
        self.planes.clear();
        for channel in 0..channels {
            self.planes.extend(block.samples[channel..].iter().step_by(channels));
        }
        let timestamp = self.epoch.wrapping_add(block.captured.as_nanos() / 1000);
        self.packet.clear();
        let sequence = self.header.sequence.wrapping_add(block.sequence as u16);
        Header { timestamp, sequence, ..self.header }.encode(&mut self.packet);
        self.header.resolution.encode(&self.planes, &mut self.packet);

        let (packet, all) = (self.packet.len(), self.datagram.len());
        self.datagram.copy_within(..all - packet, packet);
        self.datagram[..packet].copy_from_slice(&self.packet);
        emit(&self.datagram);
    }
}

/// Makes blocks of JackTrip's datagrams, whatever their length, resolution and redundancy.
#[derive(Clone, Debug)]
pub struct JackTripUnpacker {
    output: Output,
    seen: Seen,
    /// The number of the last datagram's newest packet.
    newest: Option<i64>,
    /// A packet, channel after channel, and its frames.
    planes: Vec<f32>,
    samples: Vec<f32>,
}

impl JackTripUnpacker {
    /// Blocks of this stream, whose channels and sample rate the peer's packets must have.
    pub fn new(stream: &Stream) -> JackTripUnpacker {
        let samples = usize::from(stream.channels) * stream.block_frames as usize;
        JackTripUnpacker {
            output: Output::new(stream),
            seen: Seen::default(),
            newest: None,
            planes: Vec::with_capacity(samples),
            samples: Vec::with_capacity(samples),
        }
    }

    /// Takes the packets of a datagram, oldest first.
    fn read(
        &mut self,
        now: Time,
        datagram: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let header = Header::decode(datagram).ok_or(UnpackError::Damaged)?;
        if u16::from(header.channels) != self.output.stream.channels {
            return Err(UnpackError::OtherStream("number of channels"));
        }
        if header.sample_rate != self.output.stream.sample_rate {
            return Err(UnpackError::OtherStream("sample rate"));
        }
        let length = header.packet_bytes();
        if header.frames == 0 || !datagram.len().is_multiple_of(length) {
            return Err(UnpackError::Damaged);
        }
        let newest = extend(self.newest.unwrap_or(header.sequence.into()), header.sequence);
        self.newest = Some(newest);
        for (older, packet) in datagram.chunks_exact(length).enumerate().rev() {
            let number = newest - older as i64;
            // Where there is no older packet yet, there are zeros.
            let is_next = Header::decode(packet)
                .is_some_and(|found| found.is_like(&header) && found.sequence == number as u16);
            if is_next && self.seen.note(number as u32) == Sight::New {
                let origin = if older > 0 { Origin::Recovered } else { Origin::Sent };
                self.take(number, &packet[HEADER_LENGTH..], &header, (now, origin), deliver);
            }
        }
        Ok(())
    }

    /// Takes the samples of one packet.
    fn take(
        &mut self,
        number: i64,
        payload: &[u8],
        header: &Header,
        origin: (Time, Origin),
        deliver: &mut dyn FnMut(Block<'_>),
    ) {
        let frames = usize::from(header.frames);
        self.planes.clear();
        header.resolution.decode(payload, &mut self.planes);
        self.samples.clear();
        for frame in 0..frames {
            self.samples.extend(self.planes[frame..].iter().step_by(frames));
        }
        self.output.put(number * frames as i64, &self.samples, origin, deliver);
    }
}

impl Unpacker for JackTripUnpacker {
    /// The datagram by which a peer leaves ([`is_exit`]) has no blocks.
    fn unpack(
        &mut self,
        now: Time,
        datagram: &[u8],
        deliver: &mut dyn FnMut(Block<'_>),
    ) -> Result<(), UnpackError> {
        let read = if is_exit(datagram) { Ok(()) } else { self.read(now, datagram, deliver) };
        self.output.counted(read)
    }

    fn counters(&self) -> UnpackCounters {
        self.output.counters
    }
}

#[cfg(test)]
mod tests;

//! Samples of some channels of a block as bytes, and back, whatever the codec.
//!
//! PCM and G.711 are interleaved. Opus codes channels in pairs, the last alone if they are odd, and with forward error
//! correction each alone: a frame stands behind its length in two bytes.

use crate::format::{Encoding, Endian, Format};
use crate::g711;
use crate::opus::{self, OpusError};
use crate::pipeline::{Codec, Stream};
use crate::playout::Origin;

impl Codec {
    /// What stands for it in our packets.
    pub(crate) fn id(self) -> u8 {
        match self {
            Codec::Pcm(Encoding::I16) => 0,
            Codec::Pcm(Encoding::I24) => 1,
            Codec::Pcm(Encoding::F32) => 2,
            Codec::Pcmu => 3,
            Codec::Pcma => 4,
            Codec::Opus { .. } => 5,
        }
    }

    /// Bytes of so many samples of PCM or G.711; none of Opus.
    pub fn bytes(self, channels: usize, frames: usize) -> usize {
        match self {
            Codec::Pcm(encoding) => channels * frames * big_endian(encoding).sample_bytes(),
            Codec::Pcmu | Codec::Pcma => channels * frames,
            Codec::Opus { .. } => 0,
        }
    }

    /// Appends samples to `bytes`, each for itself; with Opus, nothing.
    pub(crate) fn encode(self, samples: &[f32], bytes: &mut Vec<u8>) {
        let i16s = samples.iter().map(|&sample| to_i16(sample));
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).encode(samples, bytes),
            Codec::Pcmu => bytes.extend(i16s.map(g711::encode_mu_law)),
            Codec::Pcma => bytes.extend(i16s.map(g711::encode_a_law)),
            Codec::Opus { .. } => {}
        }
    }

    /// Appends the samples of `bytes` to `samples`; with Opus, nothing.
    pub(crate) fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        let from_i16 = |sample: i16| f32::from(sample) / FULL_SCALE;
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).decode(bytes, samples),
            Codec::Pcmu => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_mu_law(code)))),
            Codec::Pcma => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_a_law(code)))),
            Codec::Opus { .. } => {}
        }
    }
}

/// Bytes of so many channels of a block; of Opus, the most.
pub(crate) fn data_bytes(stream: &Stream, channels: usize) -> usize {
    match stream.codec {
        Codec::Opus { bitrate, fec } => pairs(channels, fec)
            .map(|pair| LENGTH_FIELD + opus_settings(stream, bitrate, fec, pair).bytes())
            .sum(),
        codec => codec.bytes(channels, stream.block_frames as usize),
    }
}

/// What Opus is asked for, for one or two channels of a stream.
pub(crate) fn opus_settings(stream: &Stream, bitrate: u32, fec: bool, channels: usize) -> opus::Settings {
    let (sample_rate, frames) = (stream.sample_rate, stream.block_frames as usize);
    opus::Settings { sample_rate, channels, frames, bitrate, fec }
}

/// Encodes one part after the other of some channels.
pub(crate) enum Encoder {
    /// Each sample for itself.
    Samples(Codec),
    /// With the number of channels of each.
    Opus(Vec<(opus::Encoder, usize)>, Vec<f32>),
}

impl Encoder {
    /// For so many channels of a stream.
    pub(crate) fn new(stream: &Stream, channels: usize) -> Result<Encoder, OpusError> {
        let Codec::Opus { bitrate, fec } = stream.codec else { return Ok(Encoder::Samples(stream.codec)) };
        let encoder = |pair| Ok((opus::Encoder::new(opus_settings(stream, bitrate, fec, pair))?, pair));
        let encoders = pairs(channels, fec).map(encoder).collect::<Result<_, OpusError>>()?;
        Ok(Encoder::Opus(encoders, Vec::with_capacity(2 * stream.block_frames as usize)))
    }

    /// Appends interleaved samples to `bytes`.
    pub(crate) fn encode(&mut self, samples: &[f32], bytes: &mut Vec<u8>) {
        match self {
            Encoder::Samples(codec) => codec.encode(samples, bytes),
            Encoder::Opus(encoders, of_pair) => {
                let channels: usize = encoders.iter().map(|(_, pair)| pair).sum();
                let mut first = 0;
                for (encoder, pair) in encoders {
                    of_pair.clear();
                    let frames = samples.chunks_exact(channels);
                    of_pair.extend(frames.flat_map(|frame| &frame[first..first + *pair]));
                    let start = bytes.len();
                    bytes.extend([0; LENGTH_FIELD]);
                    encoder.encode(of_pair, bytes);
                    // A frame has 1275 bytes at most.
                    let length = (bytes.len() - start - LENGTH_FIELD) as u16;
                    bytes[start..start + LENGTH_FIELD].copy_from_slice(&length.to_be_bytes());
                    first += *pair;
                }
            }
        }
    }
}

/// Decodes one part after the other of some channels.
pub(crate) enum Decoder {
    /// Each sample for itself.
    Samples(Codec),
    Opus(OpusDecoders),
}

impl Decoder {
    /// For so many channels of a stream.
    pub(crate) fn new(stream: &Stream, channels: usize) -> Result<Decoder, OpusError> {
        let Codec::Opus { bitrate, fec } = stream.codec else { return Ok(Decoder::Samples(stream.codec)) };
        let frames = stream.block_frames as usize;
        let decoder = |pair| Ok((opus::Decoder::new(opus_settings(stream, bitrate, fec, pair))?, pair));
        Ok(Decoder::Opus(OpusDecoders {
            decoders: pairs(channels, fec).map(decoder).collect::<Result<_, OpusError>>()?,
            next: None,
            longest_gap: (stream.sample_rate / LONGEST_GAP_PER_SECOND / stream.block_frames).max(1) as i32,
            samples: vec![0.0; channels * frames],
            of_pair: vec![0.0; 2 * frames],
        }))
    }

    /// Hands the samples of `data`, of the block numbered `sequence`, to `deliver`; before them those of lost blocks
    /// that the codec can make up. `samples` is room to work in. Returns whether it was in time: blocks that were made up
    /// already are not delivered again.
    pub(crate) fn decode(
        &mut self,
        sequence: u32,
        data: &[u8],
        samples: &mut Vec<f32>,
        mut deliver: impl FnMut(u32, &[f32], Origin),
    ) -> bool {
        match self {
            Decoder::Opus(decoders) => decoders.decode(sequence, data, deliver),
            Decoder::Samples(codec) => {
                samples.clear();
                codec.decode(data, samples);
                deliver(sequence, samples, Origin::Sent);
                true
            }
        }
    }
}

/// Decoders of pairs of channels, which have to see every block once and in order.
pub(crate) struct OpusDecoders {
    decoders: Vec<(opus::Decoder, usize)>,
    /// The block that comes next.
    next: Option<u32>,
    /// Blocks that are made up: what is missing for longer is the playout buffer's.
    longest_gap: i32,
    samples: Vec<f32>,
    of_pair: Vec<f32>,
}

/// Concealment has faded after 60 ms ([`crate::conceal`]).
const LONGEST_GAP_PER_SECOND: u32 = 1000 / 60;

/// Blocks further behind than this are of a sender that starts again, as in [`crate::playout`].
const MISORDER: i32 = 100;

impl OpusDecoders {
    fn decode(&mut self, sequence: u32, data: &[u8], mut deliver: impl FnMut(u32, &[f32], Origin)) -> bool {
        let gap = self.next.map_or(0, |next| sequence.wrapping_sub(next) as i32);
        if (-MISORDER..0).contains(&gap) {
            return false;
        }
        if gap <= self.longest_gap {
            for behind in (1..=gap).rev() {
                let origin = self.fill(data, if behind == 1 { Wanted::CopyOfLast } else { Wanted::Nothing });
                deliver(sequence.wrapping_sub(behind as u32), &self.samples, origin);
            }
        }
        let origin = self.fill(data, Wanted::Frames);
        deliver(sequence, &self.samples, origin);
        self.next = Some(sequence.wrapping_add(1));
        true
    }

    /// Makes the next block with all pairs. What concerns one pair alone concerns the block.
    fn fill(&mut self, mut data: &[u8], wanted: Wanted) -> Origin {
        let channels: usize = self.decoders.iter().map(|(_, pair)| pair).sum();
        let frames = self.samples.len() / channels;
        let (mut first, mut origin) =
            (0, if wanted == Wanted::Frames { Origin::Sent } else { Origin::Recovered });
        for (decoder, pair) in &mut self.decoders {
            let (frame, rest) = split_frame(data);
            data = rest;
            let of_pair = &mut self.of_pair[..frames * *pair];
            let is_true = match wanted {
                Wanted::Frames => decoder.decode(frame, of_pair),
                Wanted::CopyOfLast => decoder.recover(frame, of_pair),
                Wanted::Nothing => {
                    decoder.conceal(of_pair);
                    false
                }
            };
            if !is_true {
                origin = Origin::Concealed;
            }
            for (all, part) in self.samples.chunks_exact_mut(channels).zip(of_pair.chunks_exact(*pair)) {
                all[first..first + *pair].copy_from_slice(part);
            }
            first += *pair;
        }
        origin
    }
}

/// What is taken from a packet's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Its frames.
    Frames,
    /// The copies of those before.
    CopyOfLast,
    /// Nothing: a block is made up.
    Nothing,
}

/// Bytes before each frame of Opus.
pub(crate) const LENGTH_FIELD: usize = 2;

/// The first frame of `data`, as far as there is one, and what follows.
fn split_frame(data: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return (&[], &[]) };
    rest.split_at(rest.len().min(usize::from(u16::from_be_bytes(*length))))
}

/// The channels of each frame of Opus. Two channels of speech are two talkers.
fn pairs(channels: usize, fec: bool) -> impl Iterator<Item = usize> {
    let most = if fec { 1 } else { 2 };
    (0..channels).step_by(most).map(move |first| (channels - first).min(most))
}

fn big_endian(encoding: Encoding) -> Format {
    Format { encoding, endian: Endian::Big }
}

const FULL_SCALE: f32 = 32_768.0;

/// A float-to-integer `as` saturates and maps NaN to zero.
fn to_i16(sample: f32) -> i16 {
    (sample * FULL_SCALE).round_ties_even() as i16
}

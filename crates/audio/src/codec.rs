//! Samples of some channels of a block as bytes, and back.

use crate::format::{Encoding, Endian, Format};
use crate::g711;
use crate::pipeline::Codec;

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

    /// Bytes of so many channels of a block, with the codecs whose bytes the number of samples decides.
    pub(crate) fn bytes(self, channels: usize, frames: usize) -> usize {
        match self {
            Codec::Pcm(encoding) => channels * frames * big_endian(encoding).sample_bytes(),
            Codec::Pcmu | Codec::Pcma => channels * frames,
            Codec::Opus { .. } => 0,
        }
    }

    /// Appends samples to `bytes`.
    pub(crate) fn encode(self, samples: &[f32], bytes: &mut Vec<u8>) {
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).encode(samples, bytes),
            Codec::Pcmu => bytes.extend(samples.iter().map(|&sample| g711::encode_mu_law(to_i16(sample)))),
            Codec::Pcma => bytes.extend(samples.iter().map(|&sample| g711::encode_a_law(to_i16(sample)))),
            Codec::Opus { .. } => {}
        }
    }

    /// Appends the samples of `bytes` to `samples`.
    pub(crate) fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        let from_i16 = |sample: i16| f32::from(sample) / 32_768.0;
        match self {
            Codec::Pcm(encoding) => big_endian(encoding).decode(bytes, samples),
            Codec::Pcmu => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_mu_law(code)))),
            Codec::Pcma => samples.extend(bytes.iter().map(|&code| from_i16(g711::decode_a_law(code)))),
            Codec::Opus { .. } => {}
        }
    }
}

fn big_endian(encoding: Encoding) -> Format {
    Format { encoding, endian: Endian::Big }
}

/// A float-to-integer `as` saturates and maps NaN to zero.
fn to_i16(sample: f32) -> i16 {
    (sample * 32_768.0).round_ties_even() as i16
}

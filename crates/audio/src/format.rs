//! Sample formats: the bytes of interleaved PCM as numbers, and back.
//!
//! Numbers are 32-bit floating point, -1 to 1 at full scale, as JACK has them. Integers are exact in them, up to 24 bits:
//! bytes that were decoded come out of encoding as they went in.

use serde::{Deserialize, Serialize};

/// How a sample is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 16-bit integer, two's complement: `L16` of RFC 3551 if big-endian, that of WAV files if little-endian.
    I16,
    /// 24-bit integer in three bytes, two's complement: `L24` of RFC 3190 if big-endian.
    I24,
    /// IEEE 754 single precision.
    F32,
}

/// Which byte comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// The most significant: the network's order.
    Big,
    /// The least significant: that of most processors and of WAV files.
    Little,
}

/// A sample format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// How a sample is written.
    pub encoding: Encoding,
    /// Which of its bytes comes first.
    pub endian: Endian,
}

/// The loudest sample that floating point brings in, 24 dB above full scale. There is headroom for a mixer, but what
/// a broken or hostile sender writes there cannot make later arithmetic overflow.
pub const LOUDEST: f32 = 16.0;

impl Format {
    /// Bytes of a sample.
    pub fn sample_bytes(self) -> usize {
        match self.encoding {
            Encoding::I16 => 2,
            Encoding::I24 => 3,
            Encoding::F32 => 4,
        }
    }

    /// Appends the samples of `bytes` to `samples`. Bytes behind the last whole sample are left out; floating-point
    /// samples are limited to [`LOUDEST`], and those that are no numbers become silence.
    pub fn decode(self, bytes: &[u8], samples: &mut Vec<f32>) {
        match (self.encoding, self.endian) {
            (Encoding::I16, Endian::Big) => each(bytes, samples, |b| from_i16(i16::from_be_bytes(b))),
            (Encoding::I16, Endian::Little) => each(bytes, samples, |b| from_i16(i16::from_le_bytes(b))),
            (Encoding::I24, Endian::Big) => each(bytes, samples, |[a, b, c]| from_i24([a, b, c, 0])),
            (Encoding::I24, Endian::Little) => each(bytes, samples, |[a, b, c]| from_i24([c, b, a, 0])),
            (Encoding::F32, Endian::Big) => each(bytes, samples, |b| limited(f32::from_be_bytes(b))),
            (Encoding::F32, Endian::Little) => each(bytes, samples, |b| limited(f32::from_le_bytes(b))),
        }
    }

    /// Appends `samples` to `bytes`. Integers are rounded to the nearest, halves to the even one, and clipped at full
    /// scale; what is no number becomes silence as an integer.
    pub fn encode(self, samples: &[f32], bytes: &mut Vec<u8>) {
        let samples = samples.iter().copied();
        match (self.encoding, self.endian) {
            (Encoding::I16, Endian::Big) => bytes.extend(samples.flat_map(|s| to_i16(s).to_be_bytes())),
            (Encoding::I16, Endian::Little) => bytes.extend(samples.flat_map(|s| to_i16(s).to_le_bytes())),
            (Encoding::I24, Endian::Big) => bytes.extend(samples.flat_map(to_i24)),
            (Encoding::I24, Endian::Little) => bytes.extend(samples.flat_map(|s| {
                let [a, b, c] = to_i24(s);
                [c, b, a]
            })),
            (Encoding::F32, Endian::Big) => bytes.extend(samples.flat_map(f32::to_be_bytes)),
            (Encoding::F32, Endian::Little) => bytes.extend(samples.flat_map(f32::to_le_bytes)),
        }
    }
}

fn each<const BYTES: usize>(bytes: &[u8], samples: &mut Vec<f32>, sample: impl Fn([u8; BYTES]) -> f32) {
    samples.extend(bytes.as_chunks().0.iter().map(|&bytes| sample(bytes)));
}

/// 2^15 and 2^23: the same scale both ways, so that integers survive; 1.0 itself clips.
const FULL_SCALE_16: f32 = 32_768.0;
const FULL_SCALE_24: f32 = 8_388_608.0;

fn from_i16(sample: i16) -> f32 {
    f32::from(sample) / FULL_SCALE_16
}

/// From the upper three of four bytes, so that the sign is where it belongs.
fn from_i24(bytes: [u8; 4]) -> f32 {
    (i32::from_be_bytes(bytes) >> 8) as f32 / FULL_SCALE_24
}

/// What is no number becomes silence, what is too loud [`LOUDEST`].
pub(crate) fn limited(sample: f32) -> f32 {
    if sample.is_nan() { 0.0 } else { sample.clamp(-LOUDEST, LOUDEST) }
}

// A float-to-integer `as` saturates and maps NaN to zero.
fn to_i16(sample: f32) -> i16 {
    (sample * FULL_SCALE_16).round_ties_even() as i16
}

fn to_i24(sample: f32) -> [u8; 3] {
    let value = (sample * FULL_SCALE_24).round_ties_even() as i32;
    let [_, a, b, c] = value.clamp(-0x80_0000, 0x7F_FFFF).to_be_bytes();
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::I16, Encoding::I24, Encoding::F32];
    const ENDIANS: [Endian; 2] = [Endian::Big, Endian::Little];

    fn formats() -> impl Iterator<Item = Format> {
        ENCODINGS.into_iter().flat_map(|encoding| ENDIANS.map(|endian| Format { encoding, endian }))
    }

    fn decoded(format: Format, bytes: &[u8]) -> Vec<f32> {
        let mut samples = Vec::new();
        format.decode(bytes, &mut samples);
        samples
    }

    fn encoded(encoding: Encoding, endian: Endian, samples: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Format { encoding, endian }.encode(samples, &mut bytes);
        bytes
    }

    #[test]
    fn bytes_are_where_they_belong() {
        let half = [0.5, -0.5];
        assert_eq!(encoded(Encoding::I16, Endian::Big, &half), [0x40, 0, 0xC0, 0]);
        assert_eq!(encoded(Encoding::I16, Endian::Little, &half), [0, 0x40, 0, 0xC0]);
        assert_eq!(encoded(Encoding::I24, Endian::Big, &half), [0x40, 0, 0, 0xC0, 0, 0]);
        assert_eq!(encoded(Encoding::I24, Endian::Little, &half), [0, 0, 0x40, 0, 0, 0xC0]);
        assert_eq!(encoded(Encoding::F32, Endian::Big, &half), [0x3F, 0, 0, 0, 0xBF, 0, 0, 0]);
        assert_eq!(encoded(Encoding::F32, Endian::Little, &half), [0, 0, 0, 0x3F, 0, 0, 0, 0xBF]);
    }

    #[test]
    fn full_scale_clips_and_halves_go_to_the_even() {
        let samples = [1.0, -1.0, 7.0, -7.0, f32::NAN, 0.5 / 32_768.0, 1.5 / 32_768.0];
        let words: Vec<i16> = encoded(Encoding::I16, Endian::Big, &samples)
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| i16::from_be_bytes(bytes))
            .collect();
        assert_eq!(words, [32_767, -32_768, 32_767, -32_768, 0, 0, 2]);
        assert_eq!(encoded(Encoding::I24, Endian::Big, &[1.0, -7.0]), [0x7F, 0xFF, 0xFF, 0x80, 0, 0]);
    }

    #[test]
    fn every_integer_survives() {
        let all_16: Vec<u8> = (i16::MIN..=i16::MAX).flat_map(i16::to_be_bytes).collect();
        let some_24: Vec<u8> =
            (0..0x100_0000u32).step_by(997).flat_map(|n| n.to_be_bytes()[1..].to_vec()).collect();
        for endian in ENDIANS {
            for (encoding, bytes) in [(Encoding::I16, &all_16), (Encoding::I24, &some_24)] {
                let samples = decoded(Format { encoding, endian }, bytes);
                assert!(samples.iter().all(|sample| (-1.0..1.0).contains(sample)));
                assert_eq!(encoded(encoding, endian, &samples), *bytes);
            }
        }
    }

    proptest! {
        /// No more than half a step is lost.
        #[test]
        fn rounding_is_to_the_nearest(samples in prop::collection::vec(-1.0..0.9999f32, 1..50)) {
            for format in formats() {
                let back = decoded(format, &encoded(format.encoding, format.endian, &samples));
                let half_step = match format.encoding {
                    Encoding::I16 => 0.5 / FULL_SCALE_16,
                    Encoding::I24 => 0.5 / FULL_SCALE_24,
                    Encoding::F32 => 0.0,
                };
                prop_assert_eq!(back.len(), samples.len());
                for (back, sample) in back.iter().zip(&samples) {
                    prop_assert!((back - sample).abs() <= half_step, "{} became {}", sample, back);
                }
            }
        }

        #[test]
        fn any_bytes_are_bounded_samples(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for format in formats() {
                let samples = decoded(format, &bytes);
                prop_assert_eq!(samples.len(), bytes.len() / format.sample_bytes());
                prop_assert!(samples.iter().all(|sample| sample.abs() <= LOUDEST));
            }
        }
    }
}

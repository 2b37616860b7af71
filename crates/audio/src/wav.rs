//! WAV files: reading integer PCM from bytes, and laying out the file into which received audio is written.
//!
//! The reader walks the RIFF chunks itself (Microsoft and IBM, "Multimedia Programming Interface and Data
//! Specifications 1.0", 1991, and `WAVEFORMATEXTENSIBLE`), because its main work is to say precisely what is wrong with
//! a file that somebody put into an experiment. It takes what other programs write: chunks of odd length with their pad
//! byte, extra bytes behind the format, a valid-bits field that is zero.

mod chunks;
mod header;
mod received;
#[cfg(test)]
mod tests;

use crate::g711::{self, encode_mu_law};
use chunks::{Format, chunks};

pub use header::{HEADER_LENGTH, header_of};
pub use received::ReceivedWav;

/// The audio of a WAV file, as 16-bit samples whatever their width in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcm {
    /// Samples per second of each channel.
    pub sample_rate: u32,
    /// One entry per channel, at least one; all of the same length, at least one sample.
    pub channels: Vec<Vec<i16>>,
}

/// Why a file cannot be used as audio. Each text is one clause that reads on after the file's name and a colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WavError {
    /// It does not begin as a WAV file does.
    #[error("is not a WAV file (it does not begin with `RIFF` and `WAVE`)")]
    NotWav,
    /// A chunk is missing, or cut before what it must hold.
    #[error("is not a complete WAV file: its `{0}` chunk is missing or too short")]
    MissingChunk(&'static str),
    /// Its samples are compressed or are floating-point numbers.
    #[error("is not PCM but {0}; convert it with `sox in.wav -e signed-integer -b 16 out.wav`")]
    NotPcm(String),
    /// Integer PCM of a width that nobody writes.
    #[error(
        "has samples of {bits} bits in {bytes} bytes; expected 8, 16, 24 or 32 bits in as many whole bytes"
    )]
    SampleWidth {
        /// Bits of a sample.
        bits: u16,
        /// Bytes of one sample of one channel.
        bytes: u16,
    },
    /// Its format says 0 channels.
    #[error("has no channels")]
    NoChannels,
    /// Its format says 0 samples per second.
    #[error("has a sample rate of 0 Hz")]
    NoSampleRate,
    /// Its data chunk is empty.
    #[error("has no samples")]
    NoSamples,
    /// Its data chunk is longer than the file.
    #[error(
        "is truncated: its data chunk announces {announced} bytes, but the file has only {present} of them \
         ({} are missing)", announced - present
    )]
    Truncated {
        /// Bytes of audio that the data chunk's header announces.
        announced: u64,
        /// Bytes of audio that are there; fewer.
        present: u64,
    },
    /// Its data chunk ends between two channels' samples of one moment.
    #[error(
        "is cut inside a sample: its data chunk has {length} bytes, which is no multiple of the {frame} bytes of one \
         sample of all channels"
    )]
    PartialFrame {
        /// Bytes of the data chunk.
        length: u64,
        /// Bytes of one sample of all channels together.
        frame: u16,
    },
    /// Telephone speech needs 8000 samples per second.
    #[error(
        "has a sample rate of {0} Hz; expected 8000 Hz: convert it with `sox in.wav -r 8000 -b 16 out.wav`"
    )]
    SampleRate(u32),
}

/// Reads a WAV file of integer PCM with 8, 16, 24 or 32 bits. Wider samples lose their lower bits, without dither.
///
/// Never panics, whatever the bytes; memory is bounded by a small multiple of their number.
///
/// # Errors
/// Says in one clause what is wrong with the file.
pub fn read_pcm(bytes: &[u8]) -> Result<Pcm, WavError> {
    let mut format = None;
    for chunk in chunks(bytes)? {
        match &chunk.id {
            b"fmt " => format = Some(Format::parse(chunk.body)?),
            b"data" => {
                let format: Format = format.ok_or(WavError::MissingChunk("fmt "))?;
                let (announced, present) = (chunk.announced, chunk.body.len() as u64);
                if present < announced {
                    return Err(WavError::Truncated { announced, present });
                }
                return samples(&format, chunk.body);
            }
            _ => {}
        }
    }
    Err(WavError::MissingChunk(if format.is_some() { "data" } else { "fmt " }))
}

impl Pcm {
    /// The audio as G.711 mu-law, one byte per sample, for each channel.
    ///
    /// # Errors
    /// [`WavError::SampleRate`] if the sample rate is not 8000 Hz: nothing is resampled here.
    pub fn to_mulaw_8k(&self) -> Result<Vec<Vec<u8>>, WavError> {
        if self.sample_rate != g711::SAMPLE_RATE {
            return Err(WavError::SampleRate(self.sample_rate));
        }
        let encoded = |samples: &Vec<i16>| samples.iter().copied().map(encode_mu_law).collect();
        Ok(self.channels.iter().map(encoded).collect())
    }
}

/// Sorts the interleaved samples of a data chunk into channels.
fn samples(format: &Format, data: &[u8]) -> Result<Pcm, WavError> {
    let (width, frame) = (usize::from(format.width), usize::from(format.frame));
    if data.is_empty() {
        return Err(WavError::NoSamples);
    }
    if !data.len().is_multiple_of(frame) {
        return Err(WavError::PartialFrame { length: data.len() as u64, frame: format.frame });
    }
    let channel = |channel: usize| {
        let of_channel = data.chunks_exact(frame).map(|frame| &frame[channel * width..(channel + 1) * width]);
        of_channel.map(upper_16_bits).collect()
    };
    let channels = (0..frame / width).map(channel).collect();
    Ok(Pcm { sample_rate: format.sample_rate, channels })
}

/// A sample of one to four bytes as 16 bits. One byte is unsigned with silence at 128; more are little-endian and
/// signed, so that the last two bytes are the upper ones.
fn upper_16_bits(sample: &[u8]) -> i16 {
    match *sample {
        [unsigned] => (i16::from(unsigned) - 128) << 8,
        [.., low, high] => i16::from_le_bytes([low, high]),
        [] => 0,
    }
}

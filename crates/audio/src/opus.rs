//! Opus (RFC 6716): one or two channels in frames of 2.5, 5, 10 or 20 ms, of constant size.
//!
//! The codec is `opus-pure`, a port of libopus in Rust. Audio is coded for the lowest delay, music and all: CELT only. With
//! forward error correction it is coded as speech, each frame of 10 or 20 ms with a coarse copy of the one before.
//!
//! Decoding allocates nothing. Encoding takes a few short blocks of memory for each frame, and concealing too: they are work
//! for the thread of the socket, not for that of the sound card. The last bits of samples depend on the processor's
//! instructions: not for results that are compared between machines.

#[cfg(test)]
mod tests;

use opus_pure::{Application, OpusDecoder, OpusEncoder, RateControl, Signal};
use trunkline_core::Duration;

use crate::format::limited;

/// What an [`Encoder`] and a [`Decoder`] are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// 8000, 12000, 16000, 24000 or 48000 Hz.
    pub sample_rate: u32,
    /// 1 or 2.
    pub channels: usize,
    /// Frames of audio in one of Opus: 2.5, 5, 10 or 20 ms.
    pub frames: usize,
    /// Bits per second of each channel, 6000 to 255000, and at least 8 bytes in a frame.
    pub bitrate: u32,
    /// Whether frames of speech carry a coarse copy of the one before: one channel only, 10 or 20 ms, at most 64000 bit/s.
    pub fec: bool,
}

/// Why there can be no Opus of such settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpusError {
    /// Opus has five rates.
    #[error("Opus cannot code {0} Hz; expected 8000, 12000, 16000, 24000 or 48000 Hz")]
    SampleRate(u32),
    /// Opus has nine lengths, of which four are short enough for conversation.
    #[error(
        "Opus cannot code blocks of {frames} frames at {sample_rate} Hz; expected {}, {}, {} or {} frames (2.5, 5, 10 or 20 ms)",
        .expected[0], .expected[1], .expected[2], .expected[3]
    )]
    Frames {
        /// Frames of a block.
        frames: usize,
        /// Frames per second.
        sample_rate: u32,
        /// What would do.
        expected: [u32; 4],
    },
    /// More than two channels are several streams of Opus.
    #[error("Opus cannot code {0} channels in one frame; expected 1 or 2")]
    Channels(usize),
    /// Too few bits to code anything, or more than Opus can use.
    #[error("Opus cannot code a channel at {bitrate} bit/s; expected {least} to {most} bit/s", most = MOST_BITRATE)]
    Bitrate {
        /// Bits per second.
        bitrate: u32,
        /// What frames of this length need.
        least: u32,
    },
    /// What is not coded as speech has no copy of the frame before.
    #[error(
        "Opus supports forward error correction only in blocks of 10 or 20 ms, at up to {MOST_BITRATE_OF_SPEECH} \
         bit/s for each channel; change them, or use no error correction"
    )]
    Fec,
}

/// What the recommendation of RFC 6716, section 2.1.1, begins with.
const LEAST_BITRATE: u32 = 6_000;

/// What a frame of 20 ms can hold: 1275 bytes for two channels.
const MOST_BITRATE: u32 = 255_000;

/// From about here the encoder prefers its code for music, which has no copies.
const MOST_BITRATE_OF_SPEECH: u32 = 64_000;

/// Bytes of a frame below which hardly anything is coded.
const LEAST_BYTES: u64 = 8;

/// What the encoder is told to expect: it spends bits on copies only if frames are lost.
const EXPECTED_LOSS_PERCENT: i32 = 10;

/// Content analysis costs memory for every frame, begins at 7, and decides nothing here.
const COMPLEXITY: i32 = 6;

impl Settings {
    /// Bytes of a frame.
    pub fn bytes(&self) -> usize {
        self.bits(self.bitrate) as usize / 8
    }

    /// By how much what is decoded lags behind what was encoded: 2.5 ms, and 4 ms more for speech.
    pub fn delay(&self) -> Duration {
        if self.fec { Duration::from_micros(6_500) } else { Duration::from_micros(2_500) }
    }

    /// Whether there can be such an encoder.
    ///
    /// # Errors
    /// The first setting that is out of bounds.
    pub fn check(&self) -> Result<(), OpusError> {
        let Settings { sample_rate, channels, frames, bitrate, fec } = *self;
        let speech =
            channels == 1 && bitrate <= MOST_BITRATE_OF_SPEECH && frames >= sample_rate as usize / 100;
        if ![8_000, 12_000, 16_000, 24_000, 48_000].contains(&sample_rate) {
            return Err(OpusError::SampleRate(sample_rate));
        }
        if !(1..=2).contains(&channels) {
            return Err(OpusError::Channels(channels));
        }
        let expected = [sample_rate / 400, sample_rate / 200, sample_rate / 100, sample_rate / 50];
        if !expected.iter().any(|&expected| expected as usize == frames) {
            return Err(OpusError::Frames { frames, sample_rate, expected });
        }
        let least = (8 * LEAST_BYTES * u64::from(sample_rate)).div_ceil(frames as u64) as u32;
        let least = least.max(LEAST_BITRATE);
        if !(least..=MOST_BITRATE).contains(&bitrate) {
            return Err(OpusError::Bitrate { bitrate, least });
        }
        if fec && !speech { Err(OpusError::Fec) } else { Ok(()) }
    }

    fn bits(&self, bitrate: u32) -> u64 {
        u64::from(bitrate) * self.channels as u64 * self.frames as u64 / u64::from(self.sample_rate.max(1))
    }
}

/// Makes frames.
pub struct Encoder {
    settings: Settings,
    inner: Box<OpusEncoder>,
}

impl Encoder {
    /// An encoder that has heard nothing.
    ///
    /// # Errors
    /// The settings are out of bounds.
    pub fn new(settings: Settings) -> Result<Encoder, OpusError> {
        settings.check()?;
        let Settings { sample_rate, channels, bitrate, fec, .. } = settings;
        let application = if fec { Application::Voip } else { Application::RestrictedLowDelay };
        let inner = OpusEncoder::new(sample_rate as i32, channels, application);
        let mut inner = Box::new(inner.map_err(|_| OpusError::SampleRate(sample_rate))?);
        inner.bitrate_bps = bitrate as i32 * channels as i32;
        inner.complexity = COMPLEXITY;
        inner.rate_control = RateControl::Cbr;
        inner.signal_type = Some(if fec { Signal::Voice } else { Signal::Music });
        inner.use_inband_fec = fec;
        inner.packet_loss_perc = if fec { EXPECTED_LOSS_PERCENT } else { 0 };
        Ok(Encoder { settings, inner })
    }

    /// Appends the frame of these interleaved samples to `bytes`: at most [`Settings::bytes`], and none if there are not
    /// as many samples as a frame has.
    pub fn encode(&mut self, samples: &[f32], bytes: &mut Vec<u8>) {
        let start = bytes.len();
        if samples.len() != self.settings.frames * self.settings.channels {
            return;
        }
        bytes.resize(start + self.settings.bytes(), 0);
        let length = self.inner.encode(samples, self.settings.frames, &mut bytes[start..]).unwrap_or(0);
        bytes.truncate(start + length);
    }
}

/// Reads frames in order, and makes up those that are lost.
pub struct Decoder {
    settings: Settings,
    inner: Box<OpusDecoder>,
}

impl Decoder {
    /// A decoder that has heard nothing.
    ///
    /// # Errors
    /// The settings are out of bounds.
    pub fn new(settings: Settings) -> Result<Decoder, OpusError> {
        settings.check()?;
        let inner = OpusDecoder::new(settings.sample_rate as i32, settings.channels);
        let inner = Box::new(inner.map_err(|_| OpusError::SampleRate(settings.sample_rate))?);
        Ok(Decoder { settings, inner })
    }

    /// Fills `samples`, interleaved, with the next frame. A frame that is none, or of another length, is concealed.
    /// Returns whether it was one.
    pub fn decode(&mut self, frame: &[u8], samples: &mut [f32]) -> bool {
        let frames = self.settings.frames;
        let decoded = !frame.is_empty()
            && self.inner.decode(frame, frames, samples).is_ok_and(|decoded| decoded == frames);
        if !decoded {
            self.conceal(samples);
        }
        samples.iter_mut().for_each(|sample| *sample = limited(*sample));
        decoded
    }

    /// Fills `samples` with what stands in for the next frame, which is lost.
    pub fn conceal(&mut self, samples: &mut [f32]) {
        let concealed = self.inner.decode(&[], self.settings.frames, samples);
        self.finish(concealed.is_ok(), samples);
    }

    /// Fills `samples` with the next frame, which is lost, as far as the one after it has a copy. Returns whether it
    /// may have one; otherwise this is [`conceal`](Decoder::conceal).
    pub fn recover(&mut self, after: &[u8], samples: &mut [f32]) -> bool {
        // The first 16 configurations are those with speech (RFC 6716, table 2).
        let has_copy = self.settings.fec && after.first().is_some_and(|toc| toc >> 3 < 16);
        if !has_copy {
            self.conceal(samples);
            return false;
        }
        let recovered = self.inner.decode_fec(after, self.settings.frames, samples);
        self.finish(recovered.is_ok(), samples);
        recovered.is_ok()
    }

    fn finish(&self, filled: bool, samples: &mut [f32]) {
        match filled {
            true => samples.iter_mut().for_each(|sample| *sample = limited(*sample)),
            false => samples.fill(0.0),
        }
    }
}

//! The resampler: rubato's, at a ratio that may be steered.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Adjustable, Async, FixedAsync, PolynomialDegree, Resampler as _, SincInterpolationParameters,
    WindowFunction,
};

use super::MOST_CORRECTION;

/// How a [`Resampler`] interpolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// Band-limited, with 128 taps: flat within 0.1 dB up to 20 kHz at 48 kHz, for 64 frames of delay. Its last bits
    /// depend on the processor's instructions: not for results that are compared between machines.
    Sinc,
    /// The same with 64 taps: flat within 0.1 dB up to 18 kHz at 48 kHz, for 32 frames of delay. Only for rates that are
    /// nominally equal.
    ShortSinc,
    /// A polynomial through 8 frames: 4 frames of delay, but 0.5 dB less treble at 15 kHz and 2.4 dB at 20 kHz, at
    /// 48 kHz. Only for rates that are nominally equal, since nothing is filtered.
    Polynomial,
}

/// Why a [`Resampler`] cannot be made or a block not be resampled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResamplerError {
    /// No channels, no frames or no rate, or more than a block of audio should take.
    #[error(
        "cannot resample blocks of {frames} frames of {channels} channels from {from} to {to} Hz; expected none of them \
         zero and at most {} samples for a block",
        MOST_SAMPLES
    )]
    Settings {
        /// Channels.
        channels: usize,
        /// Frames of a block.
        frames: usize,
        /// Hz of the input.
        from: u32,
        /// Hz of the output.
        to: u32,
    },
    /// The slices are not as long as the block.
    #[error("a block needs {needed} samples in and {made} out; there are {input} and {output}")]
    Length {
        /// Samples that the block needs.
        needed: usize,
        /// Samples that it makes.
        made: usize,
        /// Samples that were given.
        input: usize,
        /// Samples that there is room for.
        output: usize,
    },
}

impl Quality {
    fn taps(self) -> usize {
        match self {
            Quality::Sinc => 128,
            Quality::ShortSinc => 64,
            Quality::Polynomial => 8,
        }
    }
}

/// Samples of a block of input, of all channels.
const MOST_SAMPLES: usize = 1 << 22;

/// Makes blocks of constant length from blocks whose length follows the steering. Allocates nothing once made.
#[derive(Debug)]
pub struct Resampler {
    inner: Async<f32>,
    channels: usize,
    delay: f64,
}

impl Resampler {
    /// For blocks of `frames` frames of output at `to` Hz, from input at `from` Hz; interleaved.
    ///
    /// # Errors
    /// [`ResamplerError::Settings`].
    pub fn new(
        quality: Quality,
        channels: usize,
        frames: usize,
        from: u32,
        to: u32,
    ) -> Result<Resampler, ResamplerError> {
        let refused = ResamplerError::Settings { channels, frames, from, to };
        let input = (frames as u128 * u128::from(from)).checked_div(u128::from(to));
        let samples = input.and_then(|input| input.max(frames as u128).checked_mul(channels as u128));
        let bounded = samples.is_some_and(|samples| (1..=MOST_SAMPLES as u128).contains(&samples));
        if !bounded || from == 0 {
            return Err(refused);
        }
        let ratio = f64::from(to) / f64::from(from);
        // A little room, since 1 / 0.999 is more than 1.001.
        let range = 1.0 + 1.1 * MOST_CORRECTION;
        let output = FixedAsync::Output;
        let taps = quality.taps();
        let sinc = |window| {
            let filter = SincInterpolationParameters::new(taps, window);
            Async::new_sinc(ratio, range, &filter, frames, channels, output)
        };
        let inner = match quality {
            Quality::Sinc => sinc(WindowFunction::BlackmanHarris2),
            // Half the taps keep the treble under a window that falls faster and attenuates less.
            Quality::ShortSinc => sinc(WindowFunction::Blackman),
            Quality::Polynomial => {
                Async::new_poly(ratio, range, PolynomialDegree::Septic, frames, channels, output)
            }
        };
        let inner = inner.map_err(|_| refused)?;
        Ok(Resampler { inner, channels, delay: taps as f64 / 2.0 * ratio - 1.0 })
    }

    /// Takes input faster than nominally by this share, [`MOST_CORRECTION`] at most. The speed glides there during the
    /// next block.
    pub fn steer(&mut self, correction: f64) {
        let correction = correction.clamp(-MOST_CORRECTION, MOST_CORRECTION);
        // Only a correction that is not a number is refused: then the speed stays.
        let _ = self.inner.set_resample_ratio_relative(1.0 / (1.0 + correction), true);
    }

    /// Frames that the next block needs; may change with [`steer`](Resampler::steer).
    pub fn needed(&self) -> usize {
        self.inner.input_frames_next()
    }

    /// The most frames that a block may ever need.
    pub fn most_needed(&self) -> usize {
        self.inner.input_frames_max()
    }

    /// Frames of output by which the output is behind the input: half the taps, less the frame that is stepped over
    /// before the first one is made.
    pub fn delay(&self) -> f64 {
        self.delay
    }

    /// Makes one block.
    ///
    /// # Errors
    /// [`ResamplerError::Length`] unless `input` has exactly [`needed`](Resampler::needed) frames and `output` a block.
    pub fn resample(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), ResamplerError> {
        let (needed, made) = (self.needed(), self.inner.output_frames_next());
        let refused = ResamplerError::Length {
            needed: needed * self.channels,
            made: made * self.channels,
            input: input.len(),
            output: output.len(),
        };
        if input.len() != needed * self.channels || output.len() != made * self.channels {
            return Err(refused);
        }
        let input = InterleavedSlice::new(input, self.channels, needed);
        let output = InterleavedSlice::new_mut(output, self.channels, made);
        let (Ok(input), Ok(mut output)) = (input, output) else { return Err(refused) };
        self.inner.process_into_buffer(&input, &mut output, None).map_err(|_| refused)?;
        Ok(())
    }
}

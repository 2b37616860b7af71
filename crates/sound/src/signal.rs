//! Sound from nowhere: tones and noise, sample by sample the same at each start.

use core::f64::consts::TAU;

/// Peak of a tone: half of full scale.
pub(crate) const TONE_PEAK: f32 = 0.5;
/// Peak of the noise: a quarter of full scale.
pub(crate) const NOISE_PEAK: f32 = 0.25;

/// A sine for each channel, whose phase is exact at any age: it is counted, not summed up.
#[derive(Clone, Debug)]
pub(crate) struct Tone {
    /// For each channel: microcycles per second, and how many of them (modulo one cycle, in units of 1/rate) have passed.
    channels: Vec<Oscillator>,
    sample_rate: u64,
}

#[derive(Clone, Copy, Debug)]
struct Oscillator {
    /// Frequency in millionths of a hertz.
    microhertz: u64,
    /// Phase in units of 1 / (1,000,000 * sample rate) of a cycle: always below 1,000,000 * sample rate.
    phase: u64,
}

impl Tone {
    /// A tone per channel; frequencies repeat if there are fewer. Those above half the sample rate alias, as they would
    /// anywhere.
    pub(crate) fn new(hertz: &[f64], channels: u16, sample_rate: u32) -> Tone {
        let cycle = cycle(sample_rate.into());
        let frequencies = hertz.iter().cycle().take(channels.into());
        // Whole turns per sample do not show.
        let oscillator =
            |&hertz: &f64| Oscillator { microhertz: (hertz * 1e6).round() as u64 % cycle, phase: 0 };
        Tone { channels: frequencies.map(oscillator).collect(), sample_rate: sample_rate.into() }
    }

    /// The next frames.
    pub(crate) fn fill(&mut self, frames: &mut [f32]) {
        let cycle = cycle(self.sample_rate);
        for frame in frames.chunks_mut(self.channels.len().max(1)) {
            for (sample, oscillator) in frame.iter_mut().zip(&mut self.channels) {
                *sample = TONE_PEAK * libm::sin(TAU * oscillator.phase as f64 / cycle as f64) as f32;
                oscillator.phase = (oscillator.phase + oscillator.microhertz) % cycle;
            }
        }
    }
}

fn cycle(sample_rate: u64) -> u64 {
    1_000_000 * sample_rate
}

/// White noise, independent in each channel.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    draws: trunkline_core::Stream,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise { draws: trunkline_core::Seed::new(seed, 0).stream("sound/noise") }
    }

    /// The next frames.
    pub(crate) fn fill(&mut self, frames: &mut [f32]) {
        frames.fill_with(|| (2.0 * self.draws.unit() - 1.0) as f32 * NOISE_PEAK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the frames are asked for, and however late.
    #[test]
    fn a_tone_is_exact_at_any_age() {
        let (mut tone, mut frames) = (Tone::new(&[440.0, 997.3], 3, 44_100), vec![0.0; 3 * 441]);
        for second in 0..20 {
            for block in 0..100 {
                tone.fill(&mut frames);
                for (index, frame) in frames.chunks(3).enumerate() {
                    let age = (second * 100 + block) * 441 + index;
                    let exact = |hertz: f64| 0.5 * (TAU * (hertz * age as f64 / 44_100.0).fract()).sin();
                    assert!((f64::from(frame[0]) - exact(440.0)).abs() < 1e-6, "frame {age}: {frame:?}");
                    assert!((f64::from(frame[1]) - exact(997.3)).abs() < 1e-6, "frame {age}: {frame:?}");
                    assert_eq!(frame[2], frame[0], "the third channel has the first frequency again");
                }
            }
        }
    }

    #[test]
    fn noise_is_the_same_for_a_seed_and_white() {
        let noise = |seed| {
            let mut frames = vec![0.0; 48_000];
            Noise::new(seed).fill(&mut frames);
            frames
        };
        let (first, again, other) = (noise(1), noise(1), noise(2));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let power: f32 = first.iter().map(|sample| sample * sample).sum::<f32>() / 48_000.0;
        let next: f32 = first.windows(2).map(|pair| pair[0] * pair[1]).sum::<f32>() / 48_000.0;
        assert!((power / (NOISE_PEAK * NOISE_PEAK / 3.0) - 1.0).abs() < 0.03, "{power}");
        assert!((next / power).abs() < 0.03, "{next}");
        assert!(first.iter().all(|sample| sample.abs() <= NOISE_PEAK));
    }
}

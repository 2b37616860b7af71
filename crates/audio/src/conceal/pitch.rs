//! The pitch period: the lag at which the last 20 ms resemble most what was before them (ITU-T G.711 Appendix I),
//! searched coarsely and then finely as there.

use super::history::History;

/// The longest period in frames: 25 ms, the lowest string of a bass. The Appendix, for speech, ends at 15 ms.
pub(super) fn longest(sample_rate: u32) -> usize {
    frames(sample_rate, 25).max(shortest(sample_rate))
}

/// Frames that are compared: 20 ms.
pub(super) fn window(sample_rate: u32) -> usize {
    frames(sample_rate, 20).max(1)
}

/// Whole frames within a time.
pub(super) fn frames(sample_rate: u32, milliseconds: u64) -> usize {
    (u64::from(sample_rate) * milliseconds / 1000) as usize
}

/// Frames that a search looks at.
pub(super) fn span(sample_rate: u32) -> usize {
    longest(sample_rate) + window(sample_rate)
}

/// The period of the loudest channel, in frames. A higher pitch than 200 Hz is found as a multiple of its period.
/// `samples` has room for the [`span`].
pub(super) fn search(history: &History, sample_rate: u32, samples: &mut [f32]) -> usize {
    history.copy_last(loudest(history, window(sample_rate)), samples);
    let (shortest, longest) = (shortest(sample_rate), longest(sample_rate));
    // The Appendix takes every second of 8000 samples per second: 4000 are enough for the first look.
    let stride = (sample_rate / 4000).max(1) as usize;
    let coarse = best(samples, longest, stride, (shortest..=longest).step_by(stride));
    let near = coarse.saturating_sub(stride - 1).max(shortest)..=(coarse + stride - 1).min(longest);
    best(samples, longest, 1, near)
}

/// The shortest period in frames: 5 ms, so that what is repeated does not buzz.
fn shortest(sample_rate: u32) -> usize {
    frames(sample_rate, 5).max(1)
}

/// The channel with the most energy in the last frames.
fn loudest(history: &History, frames: usize) -> usize {
    let mut loudest = (0, 0.0);
    for channel in 0..history.channels() {
        let energy = (1..=frames).map(|back| square(history.back(back, channel))).sum::<f64>();
        if energy > loudest.1 {
            loudest = (channel, energy);
        }
    }
    loudest.0
}

/// The lag at which what follows the first `longest` samples resembles most what was before, by the normalised
/// correlation of every `stride`-th sample; the shortest of equals.
fn best(samples: &[f32], longest: usize, stride: usize, lags: impl Iterator<Item = usize> + Clone) -> usize {
    let recent = &samples[longest..];
    let mut best = (lags.clone().next().unwrap_or(1), f64::NEG_INFINITY);
    for lag in lags {
        let before = &samples[longest - lag..];
        let (mut product, mut energy) = (0.0, f64::MIN_POSITIVE);
        for (&recent, &before) in recent.iter().zip(before).step_by(stride) {
            product += f64::from(recent) * f64::from(before);
            energy += square(before);
        }
        // The square of the normalised correlation with its sign: the same order without a root.
        let likeness = product * product.abs() / energy;
        if likeness > best.1 {
            best = (lag, likeness);
        }
    }
    best.0
}

fn square(sample: f32) -> f64 {
    f64::from(sample) * f64::from(sample)
}

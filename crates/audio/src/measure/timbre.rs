//! A sound as it is through a narrow band: without what the received audio does not have.
//!
//! Most of the energy of a drum lies below 300 Hz. A telephone line takes that away, and what is left of the drum is hardly like it.
//! It is like the drum without what the line has taken away.

use super::spectrum::{Correlator, Pair};

/// The length of a frame, in seconds.
const FRAME: f64 = 0.03;
/// A line that is softer than this share of the loudest has no level: 60 dB.
const FLOOR: f64 = 1e-6;

/// The sent audio with the long-term spectrum of the received, as far as it is to be made softer for that. The filter has no delay.
pub(super) fn matched(sample_rate: u32, sent: &[f32], heard: &[f32]) -> Vec<f32> {
    let frame = ((f64::from(sample_rate) * FRAME) as usize).next_power_of_two().max(64);
    let (own, there) = (powers(frame, sent), powers(frame, heard));
    let loudest = |powers: &[f64]| powers.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let floor = loudest(&own) * FLOOR;
    // As loud as where most of the received audio is.
    let unchanged = own
        .iter()
        .zip(&there)
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map_or(1.0, |(own, there)| there / (own + floor));
    let softer = |(own, there): (&f64, &f64)| libm::sqrt((there / (own + floor) / unchanged).min(1.0));
    let gains: Vec<f64> = own.iter().zip(&there).map(softer).collect();
    filtered(sent, &kernel(&gains))
}

/// The mean power at each line of the spectrum.
fn powers(frame: usize, samples: &[f32]) -> Vec<f64> {
    let mut pair = Pair::new(frame);
    let mut sums = vec![0.0; frame / 2 + 1];
    let padded: Vec<f32>;
    let samples = match samples.len() < frame {
        true => {
            padded = samples.iter().copied().chain(core::iter::repeat(0.0)).take(frame).collect();
            &padded
        }
        false => samples,
    };
    for part in samples.windows(frame).step_by(frame / 2) {
        pair.magnitudes(part, part, |line, magnitude, _| sums[line] += magnitude * magnitude);
    }
    sums
}

/// The response, symmetric about its middle, of a filter with these gains from 0 Hz to half the sample rate.
fn kernel(gains: &[f64]) -> Vec<f32> {
    let length = 2 * (gains.len() - 1);
    let turn = core::f64::consts::TAU / length as f64;
    let cosines: Vec<f64> = (0..length).map(|n| libm::cos(turn * n as f64)).collect();
    let half = length as i64 / 2;
    let at = |n: i64| {
        let of = |(line, gain): (usize, &f64)| {
            let weight = if line == 0 || line == gains.len() - 1 { 1.0 } else { 2.0 };
            weight * gain * cosines[line * n.unsigned_abs() as usize % length]
        };
        let response: f64 = gains.iter().enumerate().map(of).sum();
        let window = 0.5 + 0.5 * libm::cos(core::f64::consts::PI * n as f64 / half as f64);
        (response / length as f64 * window) as f32
    };
    (1 - half..half).map(at).collect()
}

fn filtered(samples: &[f32], kernel: &[f32]) -> Vec<f32> {
    let mut correlator = Correlator::<f32>::new(samples.len() + kernel.len());
    let (middle, scale) = (kernel.len() as i64 / 2, correlator.scale());
    let all = correlator.correlate(kernel, samples).filter(|(lag, _)| *lag >= -middle);
    all.take(samples.len()).map(|(_, value)| (f64::from(value) * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_received_is_taken_away_and_nothing_is_moved() {
        let tone = |hertz: f64, n: usize| libm::sin(core::f64::consts::TAU * hertz * n as f64 / 16_000.0);
        let sent: Vec<f32> =
            (0..16_000).map(|n| (0.5 * tone(100.0, n) + 0.1 * tone(1_100.0, n)) as f32).collect();
        let heard: Vec<f32> = (0..9_000).map(|n| (0.03 * tone(1_100.0, n + 77)) as f32).collect();
        let matched = matched(16_000, &sent, &heard);
        assert_eq!(matched.len(), sent.len());
        for (n, sample) in matched.iter().enumerate().take(15_000).skip(1_000) {
            let off = f64::from(*sample) - 0.1 * tone(1_100.0, n);
            assert!(off.abs() < 0.002, "{off} at {n}");
        }
    }
}

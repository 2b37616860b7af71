//! Signal-to-noise ratios and the log-spectral distance.

use super::Measures;
use super::spectrum::Pair;

/// The differences between two signals.
pub(super) struct Differences {
    pub(super) snr: f64,
    pub(super) segmental_snr: f64,
    pub(super) log_spectral_distance: f64,
    pub(super) altered: f64,
}

/// The limits of the SNR of a segment in dB.
const LIMITS: (f64, f64) = (-10.0, 35.0);

/// A segment is altered if its SNR is lower than this, and by as much lower than the median.
const ALTERED: f64 = 10.0;

/// Segments so much softer than the loudest are pauses: 40 dB.
const PAUSE: f64 = 1e-4;

/// The floor of power spectra, below their highest peak: 50 dB.
const FLOOR: f64 = 1e-5;

pub(super) fn measure(sample_rate: u32, sent: &[f32], received: &[f32]) -> Differences {
    let of_segments = segments(sample_rate / 50, sent, received);
    let limited: Vec<f64> = of_segments.iter().map(|snr| snr.clamp(LIMITS.0, LIMITS.1)).collect();
    Differences {
        snr: snr(sent, received),
        segmental_snr: mean(&limited).unwrap_or(LIMITS.1),
        log_spectral_distance: log_spectral_distance(sample_rate, sent, received),
        altered: altered(segments(sample_rate / 200, sent, received)),
    }
}

/// What was sent over the difference, in dB.
fn snr(sent: &[f32], received: &[f32]) -> f64 {
    let difference = |(s, r): (&f32, &f32)| f64::from(*s) - f64::from(*r);
    let noise: f64 = sent.iter().zip(received).map(difference).map(|d| d * d).sum();
    if noise == 0.0 {
        return Measures::MOST_SNR;
    }
    decibels(energy(sent), noise).clamp(-Measures::MOST_SNR, Measures::MOST_SNR)
}

/// The SNR of each segment of so many samples that is no pause.
fn segments(length: u32, sent: &[f32], received: &[f32]) -> Vec<f64> {
    let length = (length as usize).max(1);
    let loudest = sent.chunks_exact(length).map(energy).fold(0.0, f64::max);
    sent.chunks_exact(length)
        .zip(received.chunks_exact(length))
        .filter(|(sent, _)| energy(sent) > loudest * PAUSE)
        .map(|(sent, received)| snr(sent, received))
        .collect()
}

fn altered(mut snrs: Vec<f64>) -> f64 {
    snrs.sort_by(f64::total_cmp);
    let Some(median) = snrs.get(snrs.len() / 2) else { return 0.0 };
    let bound = ALTERED.min(median - ALTERED);
    snrs.partition_point(|snr| *snr < bound) as f64 / snrs.len() as f64
}

/// Over frames of about 32 ms that overlap by half.
fn log_spectral_distance(sample_rate: u32, sent: &[f32], received: &[f32]) -> f64 {
    let length = (sample_rate as usize / 32).next_power_of_two();
    let frames =
        || sent.windows(length).step_by(length / 2).zip(received.windows(length).step_by(length / 2));
    let mut pair = Pair::new(length);
    let mut highest = 0.0f64;
    for (sent, received) in frames() {
        pair.magnitudes(sent, received, |_, sent, _| highest = highest.max(sent * sent));
    }
    let floor = (highest * FLOOR).max(f64::MIN_POSITIVE);
    let mut distances = Vec::new();
    for (sent, received) in frames() {
        let (mut sum, mut is_pause) = (0.0, true);
        pair.magnitudes(sent, received, |_, sent, received| {
            is_pause &= sent * sent <= floor && received * received <= floor;
            let difference = decibels((sent * sent).max(floor), (received * received).max(floor));
            sum += difference * difference;
        });
        if !is_pause {
            distances.push(libm::sqrt(sum / (length / 2 + 1) as f64));
        }
    }
    mean(&distances).unwrap_or(0.0)
}

fn energy(samples: &[f32]) -> f64 {
    samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum()
}

fn decibels(power: f64, over: f64) -> f64 {
    10.0 * libm::log10(power.max(f64::MIN_POSITIVE) / over.max(f64::MIN_POSITIVE))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

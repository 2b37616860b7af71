//! Signal-to-noise ratios and the log-spectral distance.

use super::Measures;
use super::spectrum::Pair;

/// The differences between two signals.
pub(super) struct Differences {
    pub(super) snr: f64,
    pub(super) segmental_snr: f64,
    pub(super) log_spectral_distance: f64,
}

/// The limits of the SNR of a segment in dB.
const LIMITS: (f64, f64) = (-10.0, 35.0);

/// Segments so much softer than the loudest are pauses: 40 dB.
const PAUSE: f64 = 1e-4;

/// The floor of power spectra, below their highest peak: 50 dB.
const FLOOR: f64 = 1e-5;

pub(super) fn measure(sample_rate: u32, sent: &[f32], received: &[f32]) -> Differences {
    let noise = |sent: &[f32], received: &[f32]| -> f64 {
        let difference = |(s, r): (&f32, &f32)| f64::from(*s) - f64::from(*r);
        sent.iter().zip(received).map(difference).map(|d| d * d).sum()
    };
    let energy = |samples: &[f32]| samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum::<f64>();
    let segment = (sample_rate as usize / 50).max(1);
    let segments = || sent.chunks_exact(segment).zip(received.chunks_exact(segment));
    let loudest = segments().map(|(sent, _)| energy(sent)).fold(0.0, f64::max);
    let snrs: Vec<f64> = segments()
        .filter(|(sent, _)| energy(sent) > loudest * PAUSE)
        .map(|(sent, received)| decibels(energy(sent), noise(sent, received)).clamp(LIMITS.0, LIMITS.1))
        .collect();
    Differences {
        snr: match noise(sent, received) {
            0.0 => Measures::MOST_SNR,
            noise => decibels(energy(sent), noise).clamp(-Measures::MOST_SNR, Measures::MOST_SNR),
        },
        segmental_snr: mean(&snrs).unwrap_or(LIMITS.1),
        log_spectral_distance: log_spectral_distance(sample_rate, sent, received),
    }
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

fn decibels(power: f64, over: f64) -> f64 {
    10.0 * libm::log10(power.max(f64::MIN_POSITIVE) / over.max(f64::MIN_POSITIVE))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

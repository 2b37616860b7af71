//! Samples between samples.

use std::sync::OnceLock;

/// Zero crossings of the kernel on either side.
const HALF: usize = 32;

/// Places of the kernel that are tabulated between two zero crossings; between these it is a straight line, which is 105 dB
/// from the truth.
const STEPS: usize = 512;

/// Window parameter: what passes beyond half the sample rate is 90 dB down.
const BETA: f64 = 9.0;

/// Reads a signal at any place: a sinc function under a Kaiser window (Smith and Gossett, "A flexible sampling-rate
/// conversion method", ICASSP 1984).
pub(super) struct Interpolator {
    kernel: Vec<f64>,
    /// The same values, those of all zero crossings together for each place between two: they are read together.
    rows: Vec<[f64; HALF]>,
    /// The share of the signal's band that passes.
    cutoff: f64,
}

impl Interpolator {
    /// For signals that are read at so many samples a step: what would alias is filtered out.
    pub(super) fn new(step: f64) -> Interpolator {
        let bessel = |x: f64| {
            // Abramowitz and Stegun, 9.6.12; the terms shrink faster than any power.
            let mut term = 1.0;
            (1..40).fold(1.0, |sum, n| {
                term *= (x / 2.0 / f64::from(n)) * (x / 2.0 / f64::from(n));
                sum + term
            })
        };
        let at = |place: usize| {
            let x = place as f64 / STEPS as f64;
            let angle = core::f64::consts::PI * x;
            let sinc = if place == 0 { 1.0 } else { libm::sin(angle) / angle };
            let edge = x / HALF as f64;
            sinc * bessel(BETA * libm::sqrt((1.0 - edge * edge).max(0.0))) / bessel(BETA)
        };
        let mut kernel: Vec<f64> = (0..=HALF * STEPS).map(at).collect();
        kernel.extend([0.0, 0.0]);
        let row = |step: usize| core::array::from_fn(|tap| kernel[step + tap * STEPS]);
        let rows = (0..=STEPS).map(row).collect();
        Interpolator { kernel, rows, cutoff: (1.0 / step).min(1.0) }
    }

    /// For signals that are read at their own rate; the kernel is computed once.
    pub(super) fn same_rate() -> &'static Interpolator {
        static SAME_RATE: OnceLock<Interpolator> = OnceLock::new();
        SAME_RATE.get_or_init(|| Interpolator::new(1.0))
    }

    /// The signal at this place, which may lie between samples; beyond its ends it is silent.
    pub(super) fn at(&self, signal: &[f32], place: f64) -> f32 {
        let nearest = libm::round(place);
        if nearest == place && self.cutoff == 1.0 {
            return if place < 0.0 { 0.0 } else { signal.get(place as usize).copied().unwrap_or(0.0) };
        }
        if self.cutoff == 1.0 {
            return self.at_same_rate(signal, place);
        }
        let reach = HALF as f64 / self.cutoff;
        let first = libm::ceil(place - reach).max(0.0) as usize;
        let end = (libm::floor(place + reach).max(-1.0) + 1.0) as usize;
        let mut sum = 0.0;
        for (n, sample) in signal.iter().enumerate().take(end).skip(first) {
            let x = (place - n as f64).abs() * self.cutoff * STEPS as f64;
            let (step, part) = (x as usize, x - libm::floor(x));
            if let Some([before, after]) = self.kernel.get(step..step + 2) {
                sum += f64::from(*sample) * (before + part * (after - before));
            }
        }
        (sum * self.cutoff) as f32
    }

    /// As above, where all samples on one side are equally far from places of the kernel that are tabulated.
    fn at_same_rate(&self, signal: &[f32], place: f64) -> f32 {
        let whole = libm::floor(place);
        let first = whole as i64 - (HALF as i64 - 1);
        let mut padded = [0.0; 2 * HALF];
        let around = match usize::try_from(first).ok().and_then(|first| signal.get(first..first + 2 * HALF)) {
            Some(around) => around,
            None => {
                for (n, sample) in (first..).zip(&mut padded) {
                    *sample = usize::try_from(n).ok().and_then(|n| signal.get(n)).copied().unwrap_or(0.0);
                }
                &padded
            }
        };
        let part = place - whole;
        let before = core::array::from_fn(|tap| f64::from(around[HALF - 1 - tap]));
        let after = core::array::from_fn(|tap| f64::from(around[HALF + tap]));
        (self.side(&before, part) + self.side(&after, 1.0 - part)) as f32
    }

    /// The sum over the samples on one side, the first of which is so far away.
    fn side(&self, samples: &[f64; HALF], distance: f64) -> f64 {
        let x = distance * STEPS as f64;
        let tabulated = (x as usize).min(STEPS - 1);
        let part = x - tabulated as f64;
        let (near, far) = (&self.rows[tabulated], &self.rows[tabulated + 1]);
        let mut sums = [0.0; 4];
        for first in (0..HALF).step_by(4) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let tap = first + lane;
                *sum += samples[tap] * (near[tap] + part * (far[tap] - near[tap]));
            }
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }
}

//! Fourier transforms. Always by the same instructions, so that results do not depend on the processor.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlannerScalar};

/// The power spectra of two real signals at once: one is the real part of a complex one, the other the imaginary.
pub(super) struct Pair {
    fft: Arc<dyn Fft<f64>>,
    window: Vec<f64>,
    buffer: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Pair {
    /// Frames of so many samples, weighted with a Hann window.
    pub(super) fn new(length: usize) -> Pair {
        let fft = FftPlannerScalar::new().plan_fft_forward(length);
        let turn = core::f64::consts::TAU / (length - 1) as f64;
        Pair {
            window: (0..length).map(|n| 0.5 - 0.5 * libm::cos(turn * n as f64)).collect(),
            buffer: vec![Complex::default(); length],
            scratch: vec![Complex::default(); fft.get_inplace_scratch_len()],
            fft,
        }
    }

    /// Hands the magnitudes of both signals at each line to `take`, from 0 Hz to half the sample rate.
    pub(super) fn magnitudes(&mut self, a: &[f32], b: &[f32], mut take: impl FnMut(usize, f64, f64)) {
        for ((place, window), (a, b)) in self.buffer.iter_mut().zip(&self.window).zip(a.iter().zip(b)) {
            *place = Complex::new(f64::from(*a) * window, f64::from(*b) * window);
        }
        self.fft.process_with_scratch(&mut self.buffer, &mut self.scratch);
        let length = self.buffer.len();
        for line in 0..=length / 2 {
            // The spectrum of a real signal is symmetric, that of an imaginary one antisymmetric.
            let (here, mirrored) = (self.buffer[line], self.buffer[(length - line) % length].conj());
            let (a, b) = (here + mirrored, here - mirrored);
            take(line, libm::sqrt(a.norm_sqr()) / 2.0, libm::sqrt(b.norm_sqr()) / 2.0);
        }
    }
}

/// The cross-correlation of two signals: at lag `l`, from `-(a.len() - 1)` on, the sum of `a[n] * b[n + l]`.
pub(super) struct Correlator<T: FftNum> {
    forward: Arc<dyn Fft<T>>,
    inverse: Arc<dyn Fft<T>>,
    a: Vec<Complex<T>>,
    b: Vec<Complex<T>>,
}

impl<T: FftNum> Correlator<T> {
    /// For signals that have so many samples together.
    pub(super) fn new(samples: usize) -> Correlator<T> {
        let length = samples.next_power_of_two();
        let mut planner = FftPlannerScalar::new();
        let zeros = vec![Complex::new(T::zero(), T::zero()); length];
        Correlator {
            forward: planner.plan_fft_forward(length),
            inverse: planner.plan_fft_inverse(length),
            a: zeros.clone(),
            b: zeros,
        }
    }

    /// By what [`correlate`](Self::correlate) has to be multiplied.
    pub(super) fn scale(&self) -> f64 {
        1.0 / self.a.len() as f64
    }

    /// Correlates; the values are too large by a factor, of which [`scale`](Self::scale) is the inverse.
    pub(super) fn correlate(&mut self, a: &[T], b: &[T]) -> impl Iterator<Item = (i64, T)> {
        for (place, samples) in [(&mut self.a, a), (&mut self.b, b)] {
            place.fill(Complex::new(T::zero(), T::zero()));
            place.iter_mut().zip(samples).for_each(|(place, sample)| place.re = *sample);
            self.forward.process(place);
        }
        for (b, a) in self.b.iter_mut().zip(&self.a) {
            *b = *b * a.conj();
        }
        self.inverse.process(&mut self.b);
        let (length, before) = (self.b.len(), a.len().saturating_sub(1) as i64);
        let place = move |lag: i64| if lag < 0 { length - lag.unsigned_abs() as usize } else { lag as usize };
        (-before..b.len() as i64).map(move |lag| (lag, self.b[place(lag)].re))
    }
}

//! Tones as evidence: a sinusoid that arrives as one has lost, gained and changed nothing.

use std::f64::consts::TAU;

/// A tone of full scale / 2 from frame `from` on.
pub fn tone(hz: f64, sample_rate: u32, from: u64, frames: usize) -> Vec<f32> {
    let step = TAU * hz / f64::from(sample_rate);
    (from..from + frames as u64).map(|n| (0.5 * (n as f64 * step).sin()) as f32).collect()
}

/// How much of these samples is no tone of this frequency: the largest deviation from the tone that fits best, in parts of
/// its amplitude. 1 or more if there is none.
pub fn deviation(samples: &[f32], hz: f64, sample_rate: u32) -> f64 {
    let step = TAU * hz / f64::from(sample_rate);
    // Whole periods, so that sine and cosine are orthogonal.
    let periods = (samples.len() as f64 * hz / f64::from(sample_rate)).floor();
    let samples = &samples[..(periods * f64::from(sample_rate) / hz).round() as usize];
    let scale = 2.0 / samples.len().max(1) as f64;
    let turns = || samples.iter().enumerate().map(|(n, &sample)| (n as f64 * step, f64::from(sample)));
    let sine: f64 = scale * turns().map(|(turn, sample)| turn.sin() * sample).sum::<f64>();
    let cosine: f64 = scale * turns().map(|(turn, sample)| turn.cos() * sample).sum::<f64>();
    let amplitude = sine.hypot(cosine);
    if amplitude < 0.01 {
        return 1.0;
    }
    let off = turns().map(|(turn, sample)| (sample - sine * turn.sin() - cosine * turn.cos()).abs());
    off.fold(0.0, f64::max) / amplitude
}

/// In how many of the consecutive windows of `length` samples nothing but this tone is heard, with a deviation below
/// `most`; and how many there are.
pub fn windows_of_tone(
    samples: &[f32],
    length: usize,
    hz: f64,
    sample_rate: u32,
    most: f64,
) -> (usize, usize) {
    let windows = samples.chunks_exact(length);
    (windows.clone().filter(|window| deviation(window, hz, sample_rate) < most).count(), windows.len())
}

/// Counts windows in which nothing but a tone is heard, while more and more is heard.
#[derive(Clone, Copy, Debug)]
pub struct ToneWindows {
    length: usize,
    hz: f64,
    sample_rate: u32,
    most: f64,
    /// Windows that have been looked at.
    seen: usize,
    tones: usize,
}

impl ToneWindows {
    /// Windows of `length` samples, in which this tone deviates by less than `most` of its amplitude.
    pub fn new(length: usize, hz: f64, sample_rate: u32, most: f64) -> ToneWindows {
        ToneWindows { length, hz, sample_rate, most, seen: 0, tones: 0 }
    }

    /// Looks at the new ones of all samples, and returns in how many windows the tone was heard so far and how many there
    /// were.
    pub fn count(&mut self, samples: &[f32]) -> (usize, usize) {
        let new = samples.get(self.seen * self.length..).unwrap_or_default();
        let (tones, windows) = windows_of_tone(new, self.length, self.hz, self.sample_rate, self.most);
        self.seen += windows;
        self.tones += tones;
        (self.tones, self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_told_from_one_with_a_gap_and_from_another() {
        let mut samples = tone(480.0, 48_000, 37, 48_000);
        assert!(deviation(&samples, 480.0, 48_000) < 1e-4);
        assert!(deviation(&samples, 490.0, 48_000) > 0.9);
        samples.drain(20_000..20_010);
        assert!(deviation(&samples, 480.0, 48_000) > 0.1);
        assert_eq!(windows_of_tone(&samples, 4_800, 480.0, 48_000, 0.1), (8, 9));
        assert_eq!(deviation(&[0.0; 4_800], 480.0, 48_000), 1.0);

        let mut windows = ToneWindows::new(4_800, 480.0, 48_000, 0.1);
        assert_eq!(
            [5_000, 5_000, 20_000, 47_990].map(|heard| windows.count(&samples[..heard])),
            [(1, 1), (1, 1), (4, 4), (8, 9)]
        );
    }
}

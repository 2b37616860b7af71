//! How much of a difference the ear notices beside the sound itself: the noise-to-mask ratio.
//!
//! The FFT-based ear model and two of the output variables of ITU-R BS.1387-1 (PEAQ), basic version, with the symbols and
//! the reading of Kabal, "An examination and interpretation of ITU-R BS.1387: Perceptual evaluation of audio quality",
//! McGill University, 2002. The recommendation goes on and joins these and nine others to a grade, by a neural network that
//! was trained with codecs; it was not made for gaps, so the grade is left out here.

use libm::{asinh, exp, log10, pow};

use super::Measures;
use super::interpolate::Interpolator;
use super::spectrum::Pair;

/// What of a difference is heard.
pub(super) struct Audible {
    pub(super) noise_to_mask: f64,
    pub(super) disturbed: f64,
}

/// The model's sample rate in Hz.
const SAMPLE_RATE: f64 = 48_000.0;
/// Samples of a frame.
const FRAME: usize = 2048;
/// From the beginning of a frame to that of the next: half of it.
const STEP: usize = FRAME / 2;

/// A sine of full scale and 1019.5 Hz is played at 92 dB SPL.
const FULL_SCALE: f64 = 92.0;

/// The width of a band in Bark.
const WIDTH: f64 = 0.25;
/// Where the lowest band begins, in Hz.
const LOWEST: f64 = 80.0;
/// Where the highest band ends, in Hz.
const HIGHEST: f64 = 18_000.0;

/// A frame is disturbed if a band of it has this noise-to-mask ratio: 1.5 dB.
const DISTURBED: f64 = 1.412_537_544_622_754_4;

/// Frames with less energy in their second half, in both signals, are pauses; in units of 16-bit samples, squared.
const PAUSE: f64 = 8_000.0 / (32_768.0 * 32_768.0);

/// The exponent with which the excitations of bands add up.
const ADDING: f64 = 0.4;

pub(super) fn measure(sample_rate: u32, sent: &[f32], received: &[f32]) -> Audible {
    let (sent, received) = (at_48_khz(sample_rate, sent), at_48_khz(sample_rate, received));
    let mut ear = Ear::new();
    let (mut frames, mut disturbed, mut ratios) = (0u64, 0u64, 0.0);
    for (sent, received) in sent.windows(FRAME).step_by(STEP).zip(received.windows(FRAME).step_by(STEP)) {
        let ratio = ear.listen(sent, received);
        let is_pause =
            |frame: &[f32]| frame[STEP..].iter().map(|s| f64::from(*s) * f64::from(*s)).sum::<f64>() < PAUSE;
        if is_pause(sent) && is_pause(received) {
            continue;
        }
        frames += 1;
        disturbed += u64::from(ratio.most >= DISTURBED);
        ratios += ratio.mean;
    }
    let mean = ratios / frames.max(1) as f64;
    Audible {
        noise_to_mask: (10.0 * log10(mean.max(f64::MIN_POSITIVE))).max(Measures::LEAST_NMR),
        disturbed: disturbed as f64 / frames.max(1) as f64,
    }
}

/// At the model's rate, with a frame of silence at either end, so that every sample counts.
fn at_48_khz(sample_rate: u32, signal: &[f32]) -> Vec<f32> {
    let step = f64::from(sample_rate) / SAMPLE_RATE;
    let interpolator = Interpolator::new(step);
    let samples = (signal.len() as f64 / step) as usize;
    let resampled = (0..samples).map(|n| interpolator.at(signal, n as f64 * step));
    let silence = || std::iter::repeat_n(0.0, FRAME);
    silence().chain(resampled).chain(silence()).collect()
}

/// The noise-to-mask ratio of a frame: over its bands.
struct Ratio {
    mean: f64,
    most: f64,
}

struct Ear {
    spectra: Pair,
    /// The weight of each line: listening level, outer and middle ear.
    weights: Vec<f64>,
    bands: Vec<Band>,
    /// Excitation of the bands by what was sent, with what is left of earlier frames.
    excited: Vec<f64>,
    /// Of the frame: what was sent, the difference, and the spread excitation.
    sent: Vec<f64>,
    noise: Vec<f64>,
    spread: Vec<f64>,
}

/// A part of a Bark.
struct Band {
    /// The share of each line from `first` on that belongs to it.
    first: usize,
    shares: Vec<f64>,
    /// Centre frequency in Hz.
    centre: f64,
    /// What the ear itself has as noise.
    internal: f64,
    /// How fast its excitation is forgotten, from frame to frame.
    forgets: f64,
    /// What excitation of 0 dB in all bands has here, by spreading.
    normal: f64,
    /// How far below the excitation something is masked.
    offset: f64,
}

impl Ear {
    fn new() -> Ear {
        let bark = |frequency: f64| 7.0 * asinh(frequency / 650.0);
        let frequency = |bark: f64| 650.0 * libm::sinh(bark / 7.0);
        let (begin, end) = (bark(LOWEST), bark(HIGHEST));
        let count = libm::ceil((end - begin) / WIDTH) as usize;
        let mut bands = Vec::with_capacity(count);
        for number in 0..count {
            let lower = begin + WIDTH * number as f64;
            let upper = (lower + WIDTH).min(end);
            let centre = frequency((lower + upper) / 2.0);
            let (first, shares) = shares(frequency(lower), frequency(upper));
            // From 30 ms at 100 Hz towards 8 ms.
            let lasts = 0.008 + 100.0 / centre * (0.030 - 0.008);
            let z = WIDTH * number as f64;
            bands.push(Band {
                first,
                shares,
                centre,
                internal: pow(10.0, 0.1456 * pow(centre / 1000.0, -0.8)),
                forgets: exp(-(STEP as f64) / (SAMPLE_RATE * lasts)),
                normal: 1.0,
                offset: pow(10.0, -if z <= 12.0 { 3.0 } else { 0.25 * z } / 10.0),
            });
        }
        let zeros = vec![0.0; count];
        let mut ear = Ear {
            spectra: Pair::new(FRAME),
            weights: (0..=FRAME / 2).map(weight).collect(),
            bands,
            excited: zeros.clone(),
            sent: vec![1.0; count],
            noise: zeros.clone(),
            spread: zeros,
        };
        ear.spread();
        for (band, spread) in ear.bands.iter_mut().zip(&ear.spread) {
            band.normal = *spread;
        }
        ear
    }

    fn listen(&mut self, sent: &[f32], received: &[f32]) -> Ratio {
        let Ear { spectra, weights, .. } = self;
        let (mut of_sent, mut of_noise) = ([0.0; FRAME / 2 + 1], [0.0; FRAME / 2 + 1]);
        spectra.magnitudes(sent, received, |line, sent, received| {
            let (sent, received) = (sent * weights[line], received * weights[line]);
            of_sent[line] = sent * sent;
            of_noise[line] = (sent - received) * (sent - received);
        });
        for ((band, sent), noise) in self.bands.iter().zip(&mut self.sent).zip(&mut self.noise) {
            *sent = band.sum(&of_sent).max(1e-12) + band.internal;
            *noise = band.sum(&of_noise);
        }
        self.spread();
        let (mut sum, mut most) = (0.0, 0.0f64);
        let bands = self.bands.iter().zip(&self.spread).zip(&mut self.excited).zip(&self.noise);
        for (((band, spread), excited), noise) in bands {
            let spread = spread / band.normal;
            *excited = band.forgets * *excited + (1.0 - band.forgets) * spread;
            let ratio = noise / (excited.max(spread) * band.offset);
            sum += ratio;
            most = most.max(ratio);
        }
        Ratio { mean: sum / self.bands.len() as f64, most }
    }

    /// Spreads `sent` over the neighbouring bands: 27 dB per Bark downwards, and upwards the less the louder it is.
    fn spread(&mut self) {
        self.spread.fill(0.0);
        let down = pow(10.0, -2.7 * WIDTH);
        for (number, (band, energy)) in self.bands.iter().zip(&self.sent).enumerate() {
            let slope = -24.0 - 230.0 / band.centre + 2.0 * log10(*energy);
            let up = pow(10.0, slope / 10.0 * WIDTH);
            // What it gives to all bands together is itself: the sums of two geometric series.
            let above = series(up, self.bands.len() - number);
            let all = above + series(down, number + 1) - 1.0;
            let own = pow(energy / all, ADDING);
            let (down, up) = (pow(down, ADDING), pow(up, ADDING));
            let mut share = own;
            for spread in self.spread[..number].iter_mut().rev() {
                share *= down;
                *spread += share;
            }
            share = own;
            for spread in &mut self.spread[number..] {
                *spread += share;
                share *= up;
            }
        }
        for spread in &mut self.spread {
            *spread = pow(*spread, 1.0 / ADDING);
        }
    }
}

impl Band {
    fn sum(&self, lines: &[f64]) -> f64 {
        self.shares.iter().zip(&lines[self.first..]).map(|(share, line)| share * line).sum()
    }
}

/// The lines between two frequencies, each a bin wide, and how much of each lies there.
fn shares(lower: f64, upper: f64) -> (usize, Vec<f64>) {
    let bin = SAMPLE_RATE / FRAME as f64;
    let (lower, upper) = (lower / bin, upper / bin);
    let first = libm::round(lower) as usize;
    let last = libm::round(upper) as usize;
    let share = |line: usize| {
        let (begin, end) = (line as f64 - 0.5, line as f64 + 0.5);
        (upper.min(end) - lower.max(begin)).max(0.0)
    };
    (first, (first..=last).map(share).collect())
}

/// The listening level, and what outer and middle ear let through at a line (Terhardt 1979).
fn weight(line: usize) -> f64 {
    // The highest magnitude of a sine of full scale that is 1019.5 Hz high, half way between two lines, under a Hann window.
    const SCALLOP: f64 = 0.849_71;
    let level = pow(10.0, FULL_SCALE / 20.0) / (SCALLOP * (FRAME - 1) as f64 / 4.0);
    let khz = (line as f64 * SAMPLE_RATE / FRAME as f64 / 1000.0).max(1e-3);
    let ear = -2.184 * pow(khz, -0.8) + 6.5 * exp(-0.6 * (khz - 3.3) * (khz - 3.3)) - 0.001 * pow(khz, 3.6);
    level * pow(10.0, ear / 20.0)
}

/// 1 + x + x² + ..., of so many terms.
fn series(x: f64, terms: usize) -> f64 {
    if (1.0 - x).abs() < 1e-12 { terms as f64 } else { (1.0 - pow(x, terms as f64)) / (1.0 - x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(frequency: f64, level: f64) -> impl Fn(usize) -> f64 {
        let scale = pow(10.0, level / 20.0);
        move |n| scale * libm::sin(core::f64::consts::TAU * frequency * n as f64 / SAMPLE_RATE)
    }

    /// The share of the time in which a soft tone is noticed beside one of 1 kHz.
    fn noticed(frequency: f64, level: f64) -> f64 {
        let (loud, soft) = (tone(1_000.0, -20.0), tone(frequency, level));
        let sent: Vec<f32> = (0..48_000).map(|n| loud(n) as f32).collect();
        let received: Vec<f32> = (0..48_000).map(|n| (loud(n) + soft(n)) as f32).collect();
        measure(48_000, &sent, &received).disturbed
    }

    #[test]
    fn the_ear_has_the_bands_of_the_recommendation() {
        // BS.1387-1, table 6: 109 bands, the first around 91.708 Hz and the last around 17690.045 Hz.
        let ear = Ear::new();
        assert_eq!(ear.bands.len(), 109);
        let centre = |band: usize| ear.bands[band].centre;
        assert!((centre(0) - 91.708).abs() < 0.01, "{}", centre(0));
        assert!((centre(108) - 17_690.045).abs() < 0.01, "{}", centre(108));
    }

    #[test]
    fn a_tone_hides_what_is_near_it_and_above_it() {
        assert!(noticed(1_050.0, -60.0) < 0.1, "near");
        assert!(noticed(6_000.0, -60.0) > 0.9, "far above");
        assert!(noticed(300.0, -60.0) > 0.9, "far below");
        // Masking reaches farther upwards than downwards.
        assert!(
            noticed(1_300.0, -60.0) < noticed(750.0, -60.0),
            "{} {}",
            noticed(1_300.0, -60.0),
            noticed(750.0, -60.0)
        );
        assert!(noticed(6_000.0, -110.0) < 0.1, "softer than the ear's own noise");
    }
}

//! Whether a recording is one tone without a gap or a click.

use std::f64::consts::TAU;

/// What a recording of a tone is like, from where the tone begins to where it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Its frequency in hertz.
    pub frequency: f64,
    /// How long it lasts, in seconds.
    pub lasting: f64,
    /// The loudest sample.
    pub peak: f32,
    /// Frames at which it does not go on as a tone does.
    pub breaks: Vec<usize>,
}

/// What is louder than this is the tone.
const LOUD: f32 = 0.1;

/// Rounding to 16 bits is up to 0.00006 of this. A tone of 440 Hz at half of full scale whose phase jumps by a tenth of a
/// sample, too little to hear, is as much.
const BREAK: f64 = 0.003;

/// Listens to the samples of one channel, but for `margin` seconds at either end of the tone: a resampler's ringing where it
/// begins, and the concealment where it stops.
///
/// Three samples in a row of a tone fulfil `x[n-1] + x[n+1] = 2 cos(w) x[n]`, whatever its phase and loudness: where they do
/// not, something is missing, was put in or made up.
///
/// # Panics
/// If there is no tone, or it is not longer than the margins.
pub fn listen(samples: &[f32], sample_rate: u32, margin: f64) -> Heard {
    let rate = f64::from(sample_rate);
    let loud = |sample: &f32| sample.abs() > LOUD;
    let begin = samples.iter().position(loud).expect("there is a tone");
    let end = samples.iter().rposition(loud).expect("there is a tone");
    let first = begin + (margin * rate) as usize;
    let tone = &samples[first..end - (margin * rate) as usize];
    let triples = || tone.windows(3).map(|s| (f64::from(s[0]) + f64::from(s[2]), f64::from(s[1])));
    let both: f64 = triples().map(|(sides, middle)| sides * middle).sum();
    let cosine = both / triples().map(|(_, middle)| 2.0 * middle * middle).sum::<f64>();
    let breaks = triples()
        .enumerate()
        .filter(|(_, (sides, middle))| (sides - 2.0 * cosine * middle).abs() > BREAK)
        .map(|(frame, _)| first + frame + 1);
    Heard {
        frequency: cosine.acos() / TAU * rate,
        lasting: (end - begin) as f64 / rate,
        peak: tone.iter().fold(0.0, |peak, sample| peak.max(sample.abs())),
        breaks: breaks.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_is_heard_and_every_break_in_it() {
        let sample = |n: f64| ((TAU * 440.0 * n / 48_000.0).sin() * 16_384.0).round() as f32 / 32_768.0;
        let mut tone: Vec<f32> = (0..48_000).map(|n| sample(f64::from(n))).collect();
        let heard = listen(&tone, 48_000, 0.1);
        assert!((heard.frequency - 440.0).abs() < 0.01, "{heard:?}");
        assert!((heard.lasting - 1.0).abs() < 0.001 && (heard.peak - 0.5).abs() < 0.001, "{heard:?}");
        assert!(heard.breaks.is_empty(), "{heard:?}");
        tone.remove(10_000);
        let breaks = listen(&tone, 48_000, 0.1).breaks;
        assert!(
            !breaks.is_empty() && breaks.iter().all(|frame| (9_999..=10_000).contains(frame)),
            "{breaks:?}"
        );
    }
}

//! Whether a recording is one tone without a gap or a click.

use std::path::Path;

/// What a recording of a tone is like, from where the tone begins to where it ends.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Its frequency in hertz.
    pub(crate) frequency: f64,
    /// How long it lasts, in seconds.
    pub(crate) lasting: f64,
    /// The loudest sample.
    pub(crate) peak: f32,
    /// Frames at which it does not go on as a tone does.
    pub(crate) breaks: Vec<usize>,
}

/// Listens to the first channel of a file, but for `margin` seconds at either end of the tone: the resampler's ringing where it
/// begins and the concealment where it stops.
pub(crate) fn listen(path: &Path, margin: f64) -> Heard {
    let mut reader =
        hound::WavReader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let spec = reader.spec();
    let full = f64::powi(2.0, i32::from(spec.bits_per_sample) - 1) as f32;
    let samples = reader.samples::<i32>().step_by(spec.channels.into());
    let samples: Vec<f32> = samples.map(|sample| sample.expect("it is whole") as f32 / full).collect();
    let loud = |sample: &f32| sample.abs() > 0.1;
    let begin = samples.iter().position(loud).expect("there is a tone");
    let end = samples.iter().rposition(loud).expect("there is a tone");
    let margin = (margin * f64::from(spec.sample_rate)) as usize;
    let tone = &samples[begin + margin..end - margin];
    let (frequency, breaks) = listen_to(tone, f64::from(spec.sample_rate));
    Heard {
        frequency,
        lasting: (end - begin) as f64 / f64::from(spec.sample_rate),
        peak: tone.iter().fold(0.0, |peak, sample| peak.max(sample.abs())),
        breaks: breaks.into_iter().map(|frame| begin + margin + frame).collect(),
    }
}

/// Three samples in a row of a tone fulfil `x[n-1] + x[n+1] = 2 cos(w) x[n]`, whatever its phase and loudness: where they do
/// not, something is missing, was put in or made up.
fn listen_to(tone: &[f32], sample_rate: f64) -> (f64, Vec<usize>) {
    let triples = || tone.windows(3).map(|s| (f64::from(s[0]) + f64::from(s[2]), f64::from(s[1])));
    let cosine = triples().map(|(sides, middle)| sides * middle).sum::<f64>()
        / triples().map(|(_, middle)| 2.0 * middle * middle).sum::<f64>();
    let breaks =
        triples().enumerate().filter(|(_, (sides, middle))| (sides - 2.0 * cosine * middle).abs() > BREAK);
    (cosine.acos() / std::f64::consts::TAU * sample_rate, breaks.map(|(frame, _)| frame + 1).collect())
}

/// Rounding to 16 bits is up to 0.00006 of this. A tone of 440 Hz at half of full scale whose phase jumps by a tenth of a sample, too little to
/// hear, is as much.
const BREAK: f64 = 0.003;

#[test]
fn a_tone_is_heard_and_every_break_in_it() {
    let wave = |n: f64| (0.5 * (std::f64::consts::TAU * 440.0 * n / 48_000.0).sin()) as f32;
    let mut tone: Vec<f32> =
        (0..48_000).map(|n| (wave(f64::from(n)) * 32_768.0).round() / 32_768.0).collect();
    let (frequency, breaks) = listen_to(&tone, 48_000.0);
    assert!((frequency - 440.0).abs() < 0.01, "{frequency}");
    assert!(breaks.is_empty(), "{breaks:?}");
    tone.drain(10_000..10_001);
    let (_, breaks) = listen_to(&tone, 48_000.0);
    assert!(breaks.iter().all(|frame| (9_999..=10_000).contains(frame)) && !breaks.is_empty(), "{breaks:?}");
}

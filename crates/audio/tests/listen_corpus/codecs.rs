//! Pairs of which one went through a codec, a narrow band, or concealment.

use std::f64::consts::{FRAC_PI_2, PI};

use libm::{cos, log10, pow, round, sin};
use trunkline_audio::conceal::{Concealer, Method};
use trunkline_audio::g711;
use trunkline_audio::opus::{Decoder, Encoder, Settings};

use super::{Case, RATE, SAME, Truth, at, levelled, moved, random};

/// Packets of 20 ms that are lost.
const LOST: [usize; 8] = [9, 23, 40, 54, 71, 88, 103, 117];

/// A codec's noise is no clean copy.
const CODED: Truth = Truth { is_clean: false, is_coded: true, ..SAME };
/// A narrow band is softer by what it does not carry, of which may be most.
const NARROW: Truth = Truth { gain: None, is_narrow: true, ..CODED };

pub(crate) fn cases(sound: &'static str, sent: Vec<f64>) -> Vec<Case> {
    let sent = levelled(sound, &sent);
    let mut cases = Vec::new();
    let mut add = |what: &str, received: Vec<f64>, truth: Truth| {
        cases.push(Case { sound, what: what.to_owned(), sent: sent.clone(), received, truth });
    };
    let a_law = |s: &f64| f64::from(g711::decode_a_law(g711::encode_a_law((s * 32768.0) as i16))) / 32768.0;
    add("A-law", sent.iter().map(a_law).collect(), CODED);
    for (what, bitrate) in [("Opus at 64 kbit/s", 64_000), ("Opus at 24 kbit/s", 24_000)] {
        let (received, delay) = opus(&sent, bitrate, false, &[]);
        add(what, received, Truth { delay, ..CODED });
    }
    // Its code for speech moves the phases of strings, drums and tones, of each note by itself: they have no one delay behind it,
    // and the error that is said must cover that. It does not keep levels.
    let (received, delay) = opus(&sent, 24_000, true, &[]);
    add("Opus as speech", received, Truth { delay, gain: None, is_moved: sound != "noise", ..CODED });
    let (received, delay) = opus(&moved(&sent, |n| 160.0 + 100e-6 * n), 64_000, false, &[]);
    add("Opus, 100 ppm", received, Truth { delay: 160.0 + delay, drift: Some(100.0), ..CODED });
    let (received, delay) = opus(&sent, 64_000, false, &LOST);
    // What it makes up bends the line by more than is said of its drift: by 15.5 ppm of drums where 15.3 are said.
    add("Opus that conceals", received, Truth { delay, drift: None, gaps: None, ..CODED });
    add("3.4 kHz", in_band(&sent, 300.0, 3_400.0), NARROW);
    add("7 kHz", in_band(&sent, 50.0, 7_000.0), NARROW);
    add("transform", quantised(&sent), CODED);
    add("concealed by its waveform", concealed(&sent), Truth { gaps: None, ..CODED });
    if ["speech", "drums"].contains(&sound) {
        add("comfort noise", comforted(&sent), CODED);
    }
    cases
}

/// What comes out of Opus, with packets that do not arrive, and how many samples later it is.
pub(crate) fn opus(sent: &[f64], bitrate: u32, fec: bool, lost: &[usize]) -> (Vec<f64>, f64) {
    let frames = at(0.02);
    let settings = Settings { sample_rate: RATE, channels: 1, frames, bitrate, fec };
    let mut encoder = Encoder::new(settings).expect("the settings are within bounds");
    let mut decoder = Decoder::new(settings).expect("the settings are within bounds");
    let (mut received, mut bytes, mut out) = (Vec::new(), Vec::new(), vec![0.0f32; frames]);
    for (number, packet) in sent.chunks_exact(frames).enumerate() {
        let samples: Vec<f32> = packet.iter().map(|s| *s as f32).collect();
        bytes.clear();
        encoder.encode(&samples, &mut bytes);
        match lost.contains(&number) {
            true => decoder.conceal(&mut out),
            false => assert!(decoder.decode(&bytes, &mut out)),
        }
        received.extend(out.iter().map(|s| f64::from(*s)));
    }
    (received, settings.delay().as_secs_f64() * f64::from(RATE))
}

/// Only what lies between two frequencies, by a filter of linear phase whose delay is taken out.
pub(crate) fn in_band(sent: &[f64], from: f64, to: f64) -> Vec<f64> {
    const HALF: i64 = 160;
    let low_pass = |frequency: f64, k: i64| {
        let turn = 2.0 * PI * frequency / f64::from(RATE);
        if k == 0 { turn / PI } else { sin(turn * k as f64) / (PI * k as f64) }
    };
    let window = |k: i64| 0.54 + 0.46 * cos(PI * k as f64 / HALF as f64);
    let taps: Vec<f64> = (-HALF..=HALF).map(|k| window(k) * (low_pass(to, k) - low_pass(from, k))).collect();
    let get = |n: i64| usize::try_from(n).ok().and_then(|n| sent.get(n)).copied().unwrap_or(0.0);
    let filtered = |n: usize| (-HALF..=HALF).zip(&taps).map(|(k, tap)| tap * get(n as i64 + k)).sum();
    (0..sent.len()).map(filtered).collect()
}

/// What is left of the lines of a modified discrete cosine transform (Princen and Bradley 1986) if each is rounded to a
/// step of the level of those around it, as codecs do.
fn quantised(sent: &[f64]) -> Vec<f64> {
    const LINES: usize = 160;
    const BAND: usize = 8;
    let window: Vec<f64> = (0..2 * LINES).map(|n| sin(FRAC_PI_2 * (n as f64 + 0.5) / LINES as f64)).collect();
    // The angle repeats itself after eight times as many steps as there are lines.
    let wave: Vec<f64> = (0..8 * LINES).map(|n| cos(PI * n as f64 / (4 * LINES) as f64)).collect();
    let turn = |n: usize, line: usize| wave[(2 * n + 1 + LINES) * (2 * line + 1) % (8 * LINES)];
    // Each sample is in two blocks, the first and the last too.
    let silence = vec![0.0; 2 * LINES];
    let padded = [&silence, sent, &silence].concat();
    let mut received = vec![0.0; padded.len()];
    for begin in (0..padded.len() - 2 * LINES).step_by(LINES) {
        let block = &padded[begin..begin + 2 * LINES];
        let line = |line: usize| (0..2 * LINES).map(|n| window[n] * block[n] * turn(n, line)).sum();
        let mut lines: Vec<f64> = (0..LINES).map(line).collect();
        for band in lines.chunks_mut(BAND) {
            let power = band.iter().map(|line| line * line).sum::<f64>() / BAND as f64;
            // A sixth of its level, in steps of 1.5 dB: 20 dB below the sound.
            let level = 10.0 * log10(power.max(1e-12)) - 12.0;
            let step = pow(10.0, round(level / 1.5) * 1.5 / 20.0);
            band.iter_mut().for_each(|line| *line = round(*line / step) * step);
        }
        for (n, sample) in received[begin..begin + 2 * LINES].iter_mut().enumerate() {
            let sum: f64 = lines.iter().enumerate().map(|(line, value)| value * turn(n, line)).sum();
            *sample += 2.0 * window[n] * sum / LINES as f64;
        }
    }
    received[2 * LINES..][..sent.len()].to_vec()
}

/// Packets are lost, and their place is taken by periods of the sound before them.
pub(crate) fn concealed(sent: &[f64]) -> Vec<f64> {
    let frames = at(0.02);
    let mut concealer = Concealer::new(Method::Waveform, 1, RATE, frames);
    let play = |(number, packet): (usize, &[f64])| {
        let mut samples: Vec<f32> = packet.iter().map(|s| *s as f32).collect();
        match LOST.contains(&number) {
            true => concealer.lost(&mut samples),
            false => concealer.received(&mut samples),
        }
        samples
    };
    sent.chunks_exact(frames).enumerate().flat_map(play).map(f64::from).collect()
}

/// Instead of what is 40 dB below the loudest packet there is noise, 55 dB below full scale.
fn comforted(sent: &[f64]) -> Vec<f64> {
    let (frames, mut noise) = (at(0.02), random(501));
    let power = |packet: &[f64]| packet.iter().map(|s| s * s).sum::<f64>();
    let loudest = sent.chunks_exact(frames).map(power).fold(0.0, f64::max);
    let mut play = |packet: &[f64]| -> Vec<f64> {
        match power(packet) < loudest * 1e-4 {
            true => packet.iter().map(|_| 0.003 * noise()).collect(),
            false => packet.to_vec(),
        }
    };
    sent.chunks(frames).flat_map(&mut play).collect()
}

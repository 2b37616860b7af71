use proptest::prelude::*;

use super::*;
use crate::conceal::Method;
use crate::playout::{Depth, Playout, Settings};

/// A sine of amplitude 0.5 at this many turns per frame.
fn sine(turns_per_frame: f64, frame: u64) -> f32 {
    (0.5 * libm::sin(core::f64::consts::TAU * libm::fmod(turns_per_frame * frame as f64, 1.0))) as f32
}

/// How far three samples in a row are from lying on a sine: its second difference is a multiple of the sample itself.
/// A dropped or doubled frame shows as about the sine's own step, 0.16 for the one used here.
fn click(samples: &[f32], turns_per_frame: f64) -> f32 {
    let twice_cosine = 2.0 * libm::cos(core::f64::consts::TAU * turns_per_frame) as f32;
    let off_the_sine = |three: &[f32]| (three[0] + three[2] - twice_cosine * three[1]).abs();
    samples.windows(3).map(off_the_sine).fold(0.0, f32::max)
}

struct Heard {
    fill: f64,
    drift: f64,
    missing: u64,
    click: f32,
    /// Lowest and highest fill after the first five minutes.
    range: (f64, f64),
}

#[test]
fn drift_is_told_once_it_was_followed_for_a_minute() {
    let mut controller = Controller::new(48_000, 0.0);
    let mut fill = 0.0;
    for second in 0..=70 {
        // 50 ppm of 48 kHz in a second, less what the controller takes off.
        fill += 48_000.0 * (50e-6 - controller.observe(Time::from_nanos(second * 1_000_000_000), fill));
        assert_eq!(controller.drift().is_some(), second >= 60, "after {second} s");
    }
    assert!((controller.drift().unwrap() - 50e-6).abs() < 5e-6, "{:?}", controller.drift());
}

/// Plays a tone from a card that is fast by `drift` over a network with jitter, for a time, through buffer, controller
/// and resampler. The rate is low for the test's sake: all that matters are frames.
fn session(quality: Quality, drift: f64, steered: bool, seconds: u64) -> Heard {
    const RATE: u32 = 1000;
    const PACKET: usize = 10;
    const BLOCK: usize = 16;
    const TONE: f64 = 0.05;
    const SECOND: u64 = 1_000_000_000;
    let depth = Duration::from_millis(30);
    let target = 30.0 + PACKET as f64;
    let settings = Settings {
        channels: 1,
        sample_rate: RATE,
        packet_frames: PACKET,
        part_channels: 1,
        depth: Depth::Fixed(depth),
        ahead: Duration::ZERO,
        conceal: Method::Waveform,
    };
    let mut playout = Playout::new(settings).unwrap();
    let mut controller = Controller::new(RATE, target);
    let mut resampler = Resampler::new(quality, 1, BLOCK, RATE, RATE).unwrap();
    let mut input = vec![0.0; resampler.most_needed()];
    let (mut packet, mut block) = ([0.0; PACKET], [0.0; BLOCK]);
    let mut heard = Heard { fill: 0.0, drift: 0.0, missing: 0, click: 0.0, range: (f64::MAX, f64::MIN) };
    let (mut fills, mut count) = (0.0, 0.0);
    let mut tail: Vec<f32> = Vec::new();
    let mut sequence = 0u32;
    let mut noise = 12_345u32;
    let mut arrival = Time::ZERO;
    let blocks = seconds * u64::from(RATE) / BLOCK as u64;
    for n in 0..blocks {
        let now = Time::from_nanos(n * BLOCK as u64 * SECOND / u64::from(RATE));
        while arrival <= now {
            for (frame, sample) in packet.iter_mut().enumerate() {
                *sample = sine(TONE, u64::from(sequence) * PACKET as u64 + frame as u64);
            }
            playout.insert(arrival, sequence, &packet);
            if let Some(fill) = playout.fill(arrival) {
                controller.observe(arrival, fill);
                if now > Time::from_nanos(300 * SECOND) {
                    heard.range = (heard.range.0.min(fill), heard.range.1.max(fill));
                }
                if n > blocks - 4000 {
                    (fills, count) = (fills + fill, count + 1.0);
                }
            }
            sequence += 1;
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let jitter = 8e-3 * f64::from(noise >> 16) / 65_536.0;
            let sent = f64::from(sequence) * PACKET as f64 / f64::from(RATE) / (1.0 + drift);
            arrival = (Time::ZERO + Duration::from_secs_f64(sent + jitter)).max(arrival);
        }
        if steered {
            resampler.steer(controller.correction());
        }
        let input = &mut input[..resampler.needed()];
        playout.pull(now, input);
        resampler.resample(input, &mut block).unwrap();
        // The first second has the beginning of the tone in it, which is a step.
        if now > Time::from_nanos(SECOND) {
            tail.extend(block);
            heard.click = heard.click.max(click(&tail, TONE));
            tail.drain(..tail.len() - 2);
        }
    }
    heard.fill = fills / count - target;
    heard.drift = controller.drift().expect("it was followed for long enough");
    heard.missing = playout.counters().missing;
    heard
}

#[test]
fn an_hour_of_drift_ends_at_the_target_without_a_click() {
    for drift in [-200e-6, 200e-6] {
        let heard = session(Quality::Polynomial, drift, true, 3600);
        assert_eq!(heard.missing, 0);
        // The controller's mean is one over time, in which late packets, with their low fill, count for more.
        assert!(heard.fill.abs() < 1.0, "{} frames off the target", heard.fill);
        assert!((heard.drift - drift).abs() < 30e-6, "{} for {drift}", heard.drift);
        assert!(heard.click < 1e-3, "{}", heard.click);
        // The jitter is 8 frames wide, the drift would have moved 720: the loop adds next to nothing.
        assert!(heard.range.1 - heard.range.0 < 12.0, "{:?}", heard.range);
    }
}

#[test]
fn the_sinc_resamplers_do_not_click_either() {
    for quality in [Quality::Sinc, Quality::ShortSinc] {
        let heard = session(quality, 150e-6, true, 120);
        assert_eq!(heard.missing, 0);
        assert!(heard.click < 1e-3, "{quality:?}: {}", heard.click);
    }
}

#[test]
fn a_click_would_be_found() {
    let tone: Vec<f32> = (0..1000).map(|n| sine(0.05, n)).collect();
    assert!(click(&tone, 0.05) < 1e-4);
    let mut dropped = tone.clone();
    dropped.remove(500);
    assert!(click(&dropped, 0.05) > 0.1);
}

#[test]
fn without_correction_the_same_drift_is_heard() {
    for drift in [-200e-6, 200e-6] {
        let heard = session(Quality::Polynomial, drift, false, 600);
        assert!(heard.range.1 - heard.range.0 > 50.0, "{:?}", heard.range);
        // Too slow a sender leaves the buffer dry; too fast a one lets it grow.
        assert_eq!(heard.missing > 0, drift < 0.0);
    }
}

#[test]
fn sample_rates_are_converted() {
    for (quality, from, to) in [(Quality::Sinc, 44_100, 48_000), (Quality::Polynomial, 48_000, 48_000)] {
        let mut resampler = Resampler::new(quality, 2, 480, from, to).unwrap();
        let (mut output, mut heard, mut frame) = (vec![0.0; 960], Vec::new(), 0);
        for _ in 0..20 {
            let tone = |n: u64| [sine(1000.0 / f64::from(from), n), -sine(1000.0 / f64::from(from), n)];
            let input: Vec<f32> = (frame..frame + resampler.needed() as u64).flat_map(tone).collect();
            frame += resampler.needed() as u64;
            resampler.resample(&input, &mut output).unwrap();
            heard.extend(output.chunks_exact(2).map(|frame| {
                assert_eq!(frame[0], -frame[1]);
                frame[0]
            }));
        }
        assert!(click(&heard[1000..], 1000.0 / f64::from(to)) < 1e-5);
        let loudest = heard[1000..].iter().fold(0.0f32, |most, s| most.max(s.abs()));
        assert!((0.499..0.501).contains(&loudest), "{quality:?}: {loudest}");
    }
}

/// The treble of each quality is as documented.
#[test]
fn treble_survives() {
    let cases = [
        (Quality::Sinc, 20_000.0, -0.1..0.1),
        (Quality::ShortSinc, 18_000.0, -0.1..0.1),
        (Quality::Polynomial, 15_000.0, -0.6..-0.4),
    ];
    for (quality, tone, expected) in cases {
        let mut resampler = Resampler::new(quality, 1, 480, 48_000, 48_000).unwrap();
        resampler.steer(100e-6);
        let (mut output, mut heard, mut frame) = (vec![0.0; 480], Vec::new(), 0);
        for _ in 0..200 {
            let needed = resampler.needed() as u64;
            let input: Vec<f32> = (frame..frame + needed).map(|n| sine(tone / 48_000.0, n)).collect();
            frame += needed;
            resampler.resample(&input, &mut output).unwrap();
            heard.extend_from_slice(&output);
        }
        let heard = &heard[9600..];
        let power = heard.iter().map(|&s| f64::from(s) * f64::from(s)).sum::<f64>() / heard.len() as f64;
        let gain = 10.0 * libm::log10(power / 0.125);
        assert!(expected.contains(&gain), "{quality:?}: {gain} dB");
    }
}

#[test]
fn blocks_of_other_lengths_are_refused() {
    for (channels, frames, from, to) in [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)] {
        assert!(Resampler::new(Quality::Sinc, channels, frames, from, to).is_err());
    }
    assert!(Resampler::new(Quality::Sinc, 256, 65_536, u32::MAX, 1).is_err());
    assert!(Resampler::new(Quality::Sinc, usize::MAX, usize::MAX, u32::MAX, 1).is_err());
    let mut resampler = Resampler::new(Quality::Polynomial, 1, 16, 48_000, 48_000).unwrap();
    let needed = resampler.needed();
    assert!(resampler.resample(&vec![0.0; needed + 1], &mut [0.0; 16]).is_err());
    assert!(resampler.resample(&vec![0.0; needed], &mut [0.0; 15]).is_err());
    resampler.steer(f64::NAN);
    assert_eq!(resampler.needed(), needed);
    resampler.resample(&vec![0.0; needed], &mut [0.0; 16]).unwrap();
}

/// 200 ms too much, for which the correction is at its limit for minutes: nothing winds up meanwhile.
#[test]
fn a_long_correction_at_the_limit_does_not_overshoot() {
    let mut controller = Controller::new(48_000, 960.0);
    let (mut fill, mut least) = (960.0 + 0.2 * 48_000.0, f64::MAX);
    for n in 0..60_000 {
        fill -= controller.observe(Time::from_nanos(n * 10_000_000), fill) * 480.0;
        least = fill.min(least);
    }
    assert!(least > 960.0 - 0.002 * 48_000.0, "{least}");
    assert!((fill - 960.0).abs() < 0.5, "{fill}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A buffer whose writer is off by any drift that can be corrected, measured at any interval: the fill comes to the
    /// target, and the correction keeps its bounds on the way.
    #[test]
    fn the_fill_comes_to_the_target(
        drift in -800e-6..800e-6f64,
        start in -0.01..0.01f64,
        interval_ms in 1..50u64,
    ) {
        let (rate, target) = (48_000.0, 960.0);
        let mut controller = Controller::new(48_000, target);
        let mut fill = target + start * rate;
        let interval = interval_ms as f64 / 1e3;
        let mut before = 0.0;
        for n in 0..(600.0 / interval) as u64 {
            let correction = controller.observe(Time::from_nanos(n * interval_ms * 1_000_000), fill);
            prop_assert!(correction.abs() <= MOST_CORRECTION);
            prop_assert!((correction - before).abs() <= SLEW * interval * 1.001);
            before = correction;
            fill += (drift - correction) * rate * interval;
        }
        prop_assert!((fill - target).abs() < 0.5, "{fill}");
        prop_assert!((controller.drift().unwrap() - drift).abs() < 1e-6);
    }

    #[test]
    fn no_measurement_breaks_it(fills in prop::collection::vec((any::<u64>(), any::<f64>()), 1..100)) {
        let mut controller = Controller::new(0, f64::NAN);
        for (nanos, fill) in fills {
            prop_assert!(controller.observe(Time::from_nanos(nanos), fill).abs() <= MOST_CORRECTION);
        }
    }
}

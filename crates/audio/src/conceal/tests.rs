use proptest::prelude::*;

use super::*;

const METHODS: [Method; 3] = [Method::Silence, Method::Repetition, Method::Waveform];

/// A sine of amplitude 0.5, from `frame` on, the same in every channel but for its sign.
fn sine(frequency: f64, sample_rate: u32, channels: usize, frame: usize, frames: usize) -> Vec<f32> {
    let sample = |n: usize| {
        let turns = frequency * (frame + n) as f64 / f64::from(sample_rate);
        (0.5 * libm::sin(turns * core::f64::consts::TAU)) as f32
    };
    (0..frames)
        .flat_map(|n| (0..channels).map(move |c| if c % 2 == 0 { sample(n) } else { -sample(n) }))
        .collect()
}

/// What is heard of a sine in packets of 10 ms when those in `lost` are.
fn heard(method: Method, frequency: f64, sample_rate: u32, packets: usize, lost: &[usize]) -> Vec<f32> {
    let frames = sample_rate as usize / 100;
    let mut concealer = Concealer::new(method, 1, sample_rate, frames);
    let mut heard = Vec::new();
    for packet in 0..packets {
        let mut samples = sine(frequency, sample_rate, 1, packet * frames, frames);
        if lost.contains(&packet) {
            concealer.lost(&mut samples);
        } else {
            concealer.received(&mut samples);
        }
        heard.extend(samples);
    }
    heard
}

fn largest_step(samples: &[f32]) -> f32 {
    samples.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max)
}

fn energy(samples: &[f32]) -> f64 {
    samples.iter().map(|&s| f64::from(s) * f64::from(s)).sum()
}

/// The frequency of a tone by where it first and last rises through zero, between samples.
fn frequency(samples: &[f32], sample_rate: u32) -> f64 {
    let rises = samples.windows(2).enumerate().filter(|(_, pair)| pair[0] <= 0.0 && pair[1] > 0.0);
    let at: Vec<f64> = rises.map(|(n, pair)| n as f64 + f64::from(-pair[0] / (pair[1] - pair[0]))).collect();
    (at.len() - 1) as f64 * f64::from(sample_rate) / (at[at.len() - 1] - at[0])
}

#[test]
fn without_loss_nothing_is_changed() {
    for method in METHODS {
        assert_eq!(heard(method, 440.0, 48_000, 20, &[]), sine(440.0, 48_000, 1, 0, 20 * 480));
    }
}

#[test]
fn waveform_substitution_keeps_the_frequency_of_a_tone() {
    for sample_rate in [8_000, 44_100, 48_000] {
        for tone in [45.0, 82.4, 110.0, 261.6, 440.0, 997.0, 1500.0] {
            // Five packets: the first 50 ms of what is made, of which 10 ms are at full level.
            let heard = heard(Method::Waveform, tone, sample_rate, 15, &[8, 9, 10, 11, 12]);
            let packet = sample_rate as usize / 100;
            let made = frequency(&heard[8 * packet..13 * packet], sample_rate);
            assert!((made / tone - 1.0).abs() < 0.02, "{tone} Hz at {sample_rate} Hz became {made} Hz");
        }
    }
}

#[test]
fn one_lost_packet_of_a_tone_is_hardly_missed() {
    for tone in [110.0, 440.0, 997.0] {
        let original = sine(tone, 48_000, 1, 0, 20 * 480);
        let heard = heard(Method::Waveform, tone, 48_000, 20, &[10]);
        let error: Vec<f32> = heard.iter().zip(&original).map(|(h, o)| h - o).collect();
        let of_packet = 480.0 / original.len() as f64;
        let signal_to_noise = energy(&original) * of_packet / energy(&error);
        assert!(signal_to_noise > 100.0, "{tone} Hz: {signal_to_noise}"); // 20 dB within the gap
    }
}

#[test]
fn a_long_loss_fades_to_silence_in_60_ms() {
    for method in METHODS {
        let lost: Vec<usize> = (10..30).collect();
        let heard = heard(method, 440.0, 48_000, 31, &lost);
        let energies: Vec<f64> = heard.chunks(480).map(energy).collect();
        assert!(
            energies[10..16].windows(2).all(|pair| pair[1] <= pair[0] * 1.05),
            "{method:?}: {energies:?}"
        );
        assert!(energies[16..30].iter().all(|&energy| energy == 0.0), "{method:?}");
        assert!(energies[30] > 0.0, "it comes back");
    }
}

/// A click is a step that the signal itself does not make.
#[test]
fn a_loss_makes_no_click() {
    for method in METHODS {
        for tone in [110.0, 440.0, 1500.0] {
            let own = largest_step(&sine(tone, 48_000, 1, 0, 4800));
            let heard = heard(method, tone, 48_000, 40, &[7, 9, 10, 11, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
            // A step of twice the amplitude spread over the shortest seam, 1 ms.
            let bound = own + 2.0 * 0.5 / 48.0;
            let largest = largest_step(&heard);
            assert!(largest <= bound * 1.01, "{method:?}, {tone} Hz: {largest}, the bound is {bound}");
        }
    }
}

/// The sound comes back over up to 10 ms, however short the packets are.
#[test]
fn a_loss_among_short_packets_makes_no_click() {
    // A short packet that is repeated has a seam as short.
    for method in [Method::Silence, Method::Waveform] {
        for (tone, frames) in [(60.0, 8), (60.0, 64), (110.0, 32), (440.0, 16)] {
            let original = sine(tone, 48_000, 1, 0, 48_000);
            let mut concealer = Concealer::new(method, 1, 48_000, frames);
            let mut heard = original.clone();
            for (packet, samples) in heard.chunks_exact_mut(frames).enumerate() {
                // 20 ms of every 100.
                match packet * frames % 4800 {
                    2400..3360 => concealer.lost(samples),
                    _ => concealer.received(samples),
                }
            }
            let bound = largest_step(&original) + 2.0 * 0.5 / 48.0;
            let largest = largest_step(&heard);
            assert!(largest <= bound * 1.01, "{method:?}, {tone} Hz, {frames}: {largest} of {bound}");
            assert!(
                heard[47_500..] == original[47_500..],
                "{method:?}, {tone} Hz, {frames}: it comes back whole"
            );
        }
    }
}

#[test]
fn channels_keep_their_phases() {
    let mut concealer = Concealer::new(Method::Waveform, 2, 48_000, 480);
    for packet in 0..10 {
        let mut samples = sine(300.0, 48_000, 2, packet * 480, 480);
        if packet == 8 {
            concealer.lost(&mut samples)
        } else {
            concealer.received(&mut samples)
        }
        for frame in samples.chunks_exact(2) {
            assert_eq!(frame[0], -frame[1]);
        }
    }
}

#[test]
fn a_splice_makes_no_click() {
    let mut concealer = Concealer::new(Method::Waveform, 1, 48_000, 480);
    let mut heard = Vec::new();
    for packet in 0..20 {
        let skipped = if packet < 10 { 0 } else { 137 };
        let mut samples = sine(440.0, 48_000, 1, packet * 480 + skipped, 480);
        if packet == 10 {
            concealer.spliced(&mut samples)
        } else {
            concealer.received(&mut samples)
        }
        heard.extend(samples);
    }
    let own = largest_step(&sine(440.0, 48_000, 1, 0, 4800));
    assert!(largest_step(&heard) < 1.5 * own, "{} against {own}", largest_step(&heard));
}

proptest! {
    /// Whatever was played, and whichever packets are missing: never louder than it was, and no step larger than the
    /// signal's own and what a seam spreads.
    #[test]
    fn what_is_made_is_bounded(
        method in prop::sample::select(&METHODS),
        channels in 1..4usize,
        packet in 1..200usize,
        sample_rate in prop::sample::select(&[1, 999, 8_000, 48_000][..]),
        packets in prop::collection::vec((any::<bool>(), -1.0f32..1.0), 1..40),
    ) {
        let mut concealer = Concealer::new(method, channels, sample_rate, packet);
        let mut seed = 1u32;
        let mut loudest = 0.0f32;
        for (arrived, level) in packets {
            let mut samples = vec![0.0; packet * channels];
            if arrived {
                for sample in &mut samples {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *sample = level * (seed >> 16) as f32 / 65_536.0;
                    loudest = loudest.max(sample.abs());
                }
                concealer.received(&mut samples);
            } else {
                concealer.lost(&mut samples);
            }
            prop_assert!(samples.iter().all(|sample| sample.abs() <= loudest));
        }
    }

    /// The first sample that is made differs from the last that was played by no more than the signal's own step there.
    #[test]
    fn a_loss_begins_where_the_signal_ended(played in prop::collection::vec(-1.0f32..1.0, 3_000)) {
        for method in METHODS {
            let mut concealer = Concealer::new(method, 1, 48_000, 480);
            concealer.received(&mut played.clone());
            let mut made = [0.0; 1];
            concealer.lost(&mut made);
            let step = (made[0] - played[played.len() - 1]).abs();
            prop_assert!(step <= largest_step(&played) + 1e-6, "{method:?}: {step}");
        }
    }
}

use super::*;

const RATE: u32 = 48_000;

/// Numbers from -1 to 1 that are the same each time.
fn noise(seed: u32) -> impl FnMut() -> f32 {
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

/// Something like music: chords of decaying harmonics, a few a second.
fn music(rate: u32, seconds: f64, seed: u32) -> Vec<f32> {
    let mut random = noise(seed);
    let mut samples = vec![0.0f64; (f64::from(rate) * seconds) as usize];
    let beat = rate as usize * 2 / 5;
    for begin in (0..samples.len()).step_by(beat) {
        for _ in 0..3 {
            let pitch = 110.0 * libm::exp2(f64::from((random() + 1.0) * 1.5));
            for harmonic in 1..8 {
                let (frequency, level) = (pitch * f64::from(harmonic), 0.08 / f64::from(harmonic));
                if frequency > f64::from(rate) * 0.4 {
                    break;
                }
                // A sine that decays to a twentieth within a second turns and shrinks with every sample.
                let angle = core::f64::consts::TAU * frequency / f64::from(rate);
                let shrinks = libm::exp(-3.0 / f64::from(rate));
                let (cos, sin) = (shrinks * libm::cos(angle), shrinks * libm::sin(angle));
                let (mut x, mut y) = (level, 0.0);
                for (n, sample) in samples[begin..].iter_mut().take(2 * beat).enumerate() {
                    let attack = (n as f64 * 200.0 / f64::from(rate)).min(1.0);
                    *sample += attack * y;
                    (x, y) = (x * cos - y * sin, x * sin + y * cos);
                }
            }
        }
    }
    samples.into_iter().map(|sample| sample as f32).collect()
}

fn mono(samples: &[f32]) -> Recording {
    Recording { sample_rate: RATE, channels: vec![samples.to_vec()] }
}

fn compared(sent: &[f32], received: &[f32]) -> Comparison {
    compare(&mono(sent), &mono(received)).unwrap()
}

fn measured(sent: &[f32], received: &[f32]) -> Measures {
    compared(sent, received).channels[0].measures
}

/// `sent` with white noise so many dB below full scale.
fn noisy(sent: &[f32], level: f64) -> Vec<f32> {
    let mut random = noise(99);
    // Uniform noise has a third of the power of full scale.
    let scale = (libm::pow(10.0, level / 20.0) * libm::sqrt(3.0)) as f32;
    sent.iter().map(|sample| sample + scale * random()).collect()
}

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
}

#[test]
fn a_copy_is_perfect_wherever_and_however_loud_it_is() {
    let sent = music(RATE, 2.0, 1);
    let cut = |from: usize| sent[from..].to_vec();
    let later = |by: usize| [vec![0.0; by], sent.clone(), vec![0.0; 777]].concat();
    for (received, delay, gain) in [
        (sent.clone(), 0.0, 1.0),
        (later(12_345), 12_345.0, 1.0),
        (cut(4_321), 0.0, 1.0),
        (later(480).iter().map(|s| s * 0.25).collect(), 480.0, 0.25),
        (later(480).iter().map(|s| s * -2.0).collect(), 480.0, -2.0),
    ] {
        let found = compared(&sent, &received);
        let channel = &found.channels[0];
        // What is cut off at the front was earlier than it can be: the rest begins at once.
        if received.len() > sent.len() || received.len() == sent.len() {
            assert_near(found.channels[0].alignment.delay * f64::from(RATE), delay, 1e-6);
        } else {
            assert_near(found.channels[0].alignment.delay * f64::from(RATE), -4_321.0, 1e-6);
        }
        assert_eq!((found.channels[0].alignment.drift, channel.inverted), (0.0, gain < 0.0));
        assert_near(channel.gain, 20.0 * libm::log10(f64::abs(gain)), 1e-4);
        let measures = channel.measures;
        assert!(measures.snr > 140.0 && measures.segmental_snr == 35.0, "{measures:?}");
        assert!(measures.log_spectral_distance < 1e-3 && measures.noise_to_mask <= -90.0, "{measures:?}");
        assert_eq!((measures.disturbed, measures.altered, measures.gaps, measures.clicks), (0.0, 0.0, 0, 0));
    }
}

#[test]
fn parts_of_samples_and_drifting_clocks_are_undone() {
    let sent = music(RATE, 4.0, 2);
    for (delay, drift) in [(100.25, 0.0), (-0.5, 0.0), (2_000.7, 50e-6), (31.0, -120e-6)] {
        let interpolator = interpolate::Interpolator::new(1.0);
        let received: Vec<f32> = (0..sent.len() + 3_000)
            .map(|n| interpolator.at(&sent, (n as f64 - delay) / (1.0 + drift)))
            .collect();
        let found = compared(&sent, &received);
        let first = f64::max(0.0, -delay).ceil();
        assert_near(found.channels[0].alignment.delay * f64::from(RATE), delay + drift * first, 0.02);
        assert_near(found.channels[0].alignment.drift, drift * 1e6, 0.2);
        assert!(found.channels[0].alignment.wander * f64::from(RATE) < 1.0, "{found:?}");
        let measures = found.channels[0].measures;
        assert!(measures.snr > 50.0 && measures.noise_to_mask < -20.0, "{delay} {drift} {measures:?}");
        assert_eq!((measures.disturbed, measures.gaps, measures.clicks), (0.0, 0, 0));
    }
}

#[test]
fn every_measure_falls_with_the_level_of_noise() {
    let sent = music(RATE, 2.0, 3);
    let levels = [-90.0, -75.0, -60.0, -45.0, -30.0, -20.0];
    let results: Vec<Measures> = levels.iter().map(|&level| measured(&sent, &noisy(&sent, level))).collect();
    for pair in results.windows(2) {
        assert!(pair[1].snr < pair[0].snr, "{pair:?}");
        assert!(pair[1].segmental_snr < pair[0].segmental_snr || pair[0].segmental_snr == 35.0, "{pair:?}");
        assert!(pair[1].log_spectral_distance > pair[0].log_spectral_distance, "{pair:?}");
        assert!(pair[1].noise_to_mask > pair[0].noise_to_mask, "{pair:?}");
        assert!(pair[1].disturbed >= pair[0].disturbed, "{pair:?}");
    }
    let power = sent.iter().map(|s| f64::from(s * s)).sum::<f64>() / sent.len() as f64;
    for (level, result) in levels.iter().zip(&results) {
        assert_near(result.snr, 10.0 * libm::log10(power) - level, 0.3);
    }
    // Noise at the end of 15 bits is not heard, and at -30 dB it is all the time.
    assert!(results[0].disturbed == 0.0 && results[0].noise_to_mask < 0.0, "{:?}", results[0]);
    assert!(results[4].disturbed > 0.9 && results[4].noise_to_mask > 5.0, "{:?}", results[4]);
    assert!(results.iter().all(|result| result.gaps == 0));
}

/// Silences of 10 ms, so many of a hundred packets.
fn with_gaps(sent: &[f32], percent: usize) -> (Vec<f32>, u32) {
    let packet = RATE as usize / 100;
    let (mut received, mut gaps) = (sent.to_vec(), 0);
    for (number, packet) in received.chunks_exact_mut(packet).enumerate() {
        // Spread out, never two in a row.
        if percent > 0 && number % 100 > 10 && number * percent % 100 < percent {
            packet.fill(0.0);
            gaps += 1;
        }
    }
    (received, gaps)
}

#[test]
fn gaps_are_counted_and_heard_the_more_there_are() {
    let sent = music(RATE, 3.0, 4);
    let mut before: Option<Measures> = None;
    for percent in [0, 2, 5, 10, 25] {
        let (received, gaps) = with_gaps(&sent, percent);
        let measures = measured(&sent, &received);
        assert_eq!(measures.gaps, gaps, "{percent} % {measures:?}");
        assert_near(measures.gap_time, f64::from(gaps) * 0.01, 0.002 * f64::from(gaps));
        assert!(measures.clicks >= gaps, "{percent} % {measures:?}");
        assert_near(measures.altered, f64::from(gaps) * 0.01 / 3.0, 0.01);
        if let Some(before) = before {
            assert!(measures.disturbed > before.disturbed, "{percent} %: {measures:?} {before:?}");
            assert!(measures.noise_to_mask > before.noise_to_mask, "{percent} %");
            assert!(
                measures.snr < before.snr && measures.segmental_snr < before.segmental_snr,
                "{percent} %"
            );
            assert!(measures.log_spectral_distance > before.log_spectral_distance, "{percent} %");
        }
        before = Some(measures);
    }
}

/// A sender that ends before its file does: the receiver records silence.
#[test]
fn silence_after_the_senders_end_is_not_a_gap() {
    let sent = music(RATE, 4.0, 11);
    let mut received = vec![0.0; 4_800];
    received.extend(&sent[..3 * RATE as usize]);
    received.extend([0.0; 24_000]);
    let channel = &compared(&sent, &received).channels[0];
    let Channel { alignment, measures, silent_end, .. } = channel;
    assert_eq!((measures.gaps, measures.altered, measures.disturbed), (0, 0.0, 0.0), "{channel:?}");
    assert!(measures.snr > 60.0, "{channel:?}");
    assert_near(alignment.compared, 3.0, 0.002);
    assert_near(*silent_end, 0.5, 0.002);
    // Silence where nothing was sent is not one.
    let quiet = [sent.as_slice(), &[0.0; 24_000]].concat();
    assert_eq!(compared(&quiet, &quiet).channels[0].silent_end, 0.0);
    // And what comes back was a gap.
    received.extend(&sent[3 * RATE as usize + 24_000..]);
    let channel = &compared(&sent, &received).channels[0];
    assert_eq!((channel.measures.gaps, channel.silent_end), (1, 0.0), "{channel:?}");
}

#[test]
fn the_time_disturbed_is_that_of_the_disturbance() {
    let sent = music(RATE, 4.0, 5);
    // One second of four has noise.
    let mut received = sent.clone();
    let second = RATE as usize..2 * RATE as usize;
    received[second.clone()].copy_from_slice(&noisy(&sent[second], -35.0));
    assert_near(measured(&sent, &received).disturbed, 0.25, 0.02);
}

#[test]
fn a_click_is_a_click_and_a_soft_sound_is_none() {
    let sent = music(RATE, 2.0, 6);
    for at in [30_000, 50_001, 71_234] {
        let mut received = sent.clone();
        received[at] += 0.5;
        let measures = measured(&sent, &received);
        assert_eq!((measures.clicks, measures.gaps), (1, 0), "at {at}");
        assert_near(measures.click_time, 3.0 / f64::from(RATE), 1e-9);
    }
    let added: Vec<f32> = sent.iter().zip(music(RATE, 2.0, 7)).map(|(a, b)| a + 0.3 * b).collect();
    assert_eq!(measured(&sent, &added).clicks, 0);
}

#[test]
fn channels_are_found_wherever_they_went() {
    let parts: Vec<Vec<f32>> = (10..13).map(|seed| music(RATE, 2.0, seed)).collect();
    let sent = Recording { sample_rate: RATE, channels: parts.clone() };
    let softer = |channel: &[f32]| channel.iter().map(|s| s * 0.5).collect::<Vec<_>>();
    let channels = vec![parts[2].clone(), softer(&parts[0]), parts[1].clone()];
    let found = compare(&sent, &Recording { sample_rate: RATE, channels }).unwrap();
    let of: Vec<usize> = found.channels.iter().map(|channel| channel.received).collect();
    assert_eq!(of, [1, 2, 0]);
    assert_near(found.channels[0].gain, -6.02, 0.01);
    assert!(found.channels.iter().all(|channel| channel.measures.snr > 100.0));
    // A channel that nobody sang into is what is left.
    let silent = vec![parts[0].clone(), vec![0.0; parts[0].len()]];
    let silent = Recording { sample_rate: RATE, channels: silent };
    let found = compare(&silent, &silent).unwrap();
    assert_eq!(found.channels.iter().map(|channel| channel.received).collect::<Vec<_>>(), [0, 1]);
    assert!(found.channels.iter().all(|channel| channel.measures.snr > 100.0), "{found:?}");
}

#[test]
fn another_sample_rate_is_no_difference_below_what_it_can_carry() {
    let sent = Recording { sample_rate: 8_000, channels: vec![music(8_000, 3.0, 8)] };
    let interpolator = interpolate::Interpolator::new(1.0 / 6.0);
    let received = (0..sent.frames() * 6).map(|n| interpolator.at(&sent.channels[0], n as f64 / 6.0));
    let received = Recording { sample_rate: 48_000, channels: vec![received.collect()] };
    let found = compare(&sent, &received).unwrap();
    let measures = found.channels[0].measures;
    assert!(measures.snr > 40.0 && measures.disturbed == 0.0, "{found:?}");
    assert_near(found.channels[0].alignment.drift, 0.0, 0.5);
}

#[test]
fn a_part_that_moved_is_told_of() {
    let sent = music(RATE, 4.0, 9);
    // The playout buffer becomes 5 ms deeper near the end.
    let at = 7 * RATE as usize / 2;
    let received = [sent[..at].to_vec(), vec![0.0; 240], sent[at..].to_vec()].concat();
    let found = compared(&sent, &received);
    assert_near(found.channels[0].alignment.delay, 0.0, 1e-6);
    assert_near(found.channels[0].alignment.wander, 0.005, 1e-4);
}

#[test]
fn what_moved_several_times_is_as_far_away_as_all_together() {
    let sent = music(RATE, 8.0, 9);
    let (mut received, mut from) = (Vec::new(), 0);
    for (second, ms) in [(1, 10), (4, 20), (6, 10), (8, 0)] {
        let until = second * RATE as usize;
        received.extend_from_slice(&sent[from..until]);
        received.resize(received.len() + ms * RATE as usize / 1000, 0.0);
        from = until;
    }
    let alignment = compared(&sent, &received).channels[0].alignment;
    assert_near(alignment.delay, 0.0, 1e-6);
    assert_near(alignment.wander, 0.040, 1e-4);
}

/// What a receiver does that leaves out 15 ms once: its clock is right.
#[test]
fn a_jump_is_no_drift_wherever_it_is() {
    let sent = music(RATE, 8.0, 3);
    let left_out = RATE as usize * 15 / 1000;
    for (second, drift) in [(2.5, 0.0), (4.0, 0.0), (4.0, 60e-6), (5.0, 0.0)] {
        let cut = (second * f64::from(RATE)) as usize;
        let joined = [&sent[..cut], &sent[cut + left_out..]].concat();
        let interpolator = interpolate::Interpolator::new(1.0);
        let received: Vec<f32> =
            (0..joined.len()).map(|n| interpolator.at(&joined, n as f64 / (1.0 + drift))).collect();
        let found = compared(&sent, &received);
        let (alignment, jumps) = (found.channels[0].alignment, &found.channels[0].jumps);
        let off = (alignment.drift - drift * 1e6).abs();
        assert!(off <= alignment.drift_error.max(0.1) && off < 5.0, "{second} s, {drift}: {alignment:?}");
        assert_eq!(jumps.len(), 1, "{jumps:?}");
        assert_near(jumps[0].by, -0.015, 1e-4);
    }
}

#[test]
fn an_exact_place_wins_over_one_of_a_sound_that_nearly_repeats_itself() {
    // A Weyl sequence is nearly alike after every Fibonacci number of samples, the more so the larger that is.
    let sent: Vec<f32> =
        (0..RATE).map(|n| f64::from(n.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 - 0.5).collect();
    let received = [vec![0.0; 100], sent.iter().map(|s| s / 2.0).collect()].concat();
    let alignment = compared(&sent, &received).channels[0].alignment;
    assert_eq!(libm::round(alignment.delay * f64::from(RATE)), 100.0, "{alignment:?}");
    assert_eq!(alignment.doubt, None, "{alignment:?}");
}

#[test]
fn a_long_tone_is_found_where_it_is() {
    let tone: Vec<f32> = (0..2 * RATE)
        .map(|n| libm::sin(f64::from(n) * core::f64::consts::TAU * 440.0 / 48_000.0) as f32)
        .collect();
    let received = [vec![0.0; 5_000], tone.clone()].concat();
    let found = compared(&tone, &received);
    assert_near(found.channels[0].alignment.delay * f64::from(RATE), 5_000.0, 0.01);
    assert!(found.channels[0].measures.snr > 60.0, "{found:?}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let good = music(RATE, 1.0, 1);
    let told = |sent: &Recording, received: &Recording| compare(sent, received).unwrap_err().to_string();
    let stereo = Recording { sample_rate: RATE, channels: vec![good.clone(); 2] };
    assert!(told(&mono(&good), &stereo).contains("has 1 channel(s) and the received one 2"));
    assert_eq!(told(&mono(&[0.0; 48_000]), &mono(&good)), "the sent recording is silent");
    assert_eq!(told(&mono(&good), &mono(&[0.0; 48_000])), "the received recording is silent");
    assert!(told(&mono(&good), &mono(&good[..1_000])).contains("received recording is too short"));
    let slow = Recording { sample_rate: 10, channels: vec![good.clone()] };
    assert!(told(&slow, &mono(&good)).contains("a sample rate of 10 Hz"));
    let mut random = noise(7);
    let other: Vec<f32> = (0..RATE).map(|_| random()).collect();
    assert!(told(&mono(&good), &mono(&other)).contains("is not the sent one"));
    let nothing = Recording { sample_rate: RATE, channels: Vec::new() };
    assert!(told(&nothing, &nothing).contains("0 channel(s)"));
}

#[test]
fn what_is_no_audio_is_refused() {
    let good = music(RATE, 1.0, 1);
    for sample in [f32::NAN, f32::INFINITY, f32::MAX, -17.0] {
        let mut broken = good.clone();
        broken[1_234] = sample;
        let refused = |sent: &[f32], received: &[f32]| compare(&mono(sent), &mono(received)).unwrap_err();
        assert_eq!(refused(&good, &broken), CompareError::NotAudio(Which::Received));
        assert_eq!(refused(&broken, &good), CompareError::NotAudio(Which::Sent));
    }
}

#[test]
fn the_ear_hears_a_tone_of_full_scale_at_92_db() {
    // Kabal 2002, section 2.1: what the model's scale means. The excitation of a band is the energy of its lines.
    let tone: Vec<f32> = (0..2048)
        .map(|n| libm::sin(f64::from(n) * core::f64::consts::TAU * 1019.5 / 48_000.0) as f32)
        .collect();
    let mut pair = spectrum::Pair::new(2048);
    let mut highest = 0.0f64;
    pair.magnitudes(&tone, &tone, |_, a, b| {
        assert!((a - b).abs() < 1e-9);
        highest = highest.max(a);
    });
    // 0.84971 is what is left of the highest line half way between two.
    assert_near(highest, 0.849_71 * 2047.0 / 4.0, 0.5);
}

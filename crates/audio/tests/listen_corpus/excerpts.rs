//! Parts of a sound: a receiver that began late, or ended early. And sounds that something was inserted into.

use trunkline_audio::measure::{Alignment, Channel, CompareError, Doubt, compare};

use super::{
    RATE, at, drums, in_parallel, length, levelled, mono, moved, noise, random, recorded, speech, strings,
    tone,
};

/// As samples of 16 bits, as files have them.
fn stored(samples: &[f64]) -> Vec<f64> {
    samples.iter().map(|s| libm::round(s * 32_768.0) / 32_768.0).collect()
}

fn sounds() -> Vec<(&'static str, Vec<f64>)> {
    let sounds = [
        ("speech", speech(90_001)),
        ("somebody's speech", recorded()),
        ("strings", strings(90_002, [83, 57])),
        ("drums", drums(90_003)),
        ("noise", noise(90_004)),
    ];
    sounds.into_iter().map(|(name, sound)| (name, stored(&levelled(name, &sound)))).collect()
}

fn samples(alignment: Alignment) -> f64 {
    alignment.delay * f64::from(RATE)
}

/// Compares a sound with what was received of it.
fn found(sent: &[f64], received: &[f64]) -> Result<Channel, CompareError> {
    compare(&mono(sent), &mono(received)).map(|mut found| found.channels.remove(0))
}

/// Parts of each sound, by their first and their last second.
const PARTS: [(f64, f64); 5] = [(0.0, 1.25), (0.0, 0.8), (1.1, 1.75), (0.6, 1.6), (0.5, 2.5)];

#[test]
fn an_exact_excerpt_is_identical_where_it_was_sent() {
    let mut cases = Vec::new();
    for (name, sent) in sounds() {
        for (n, (from, to)) in PARTS.into_iter().enumerate() {
            let part = &sent[at(from)..at(to)];
            let silence = vec![0.0; length()];
            if n % 2 == 0 {
                cases.push((format!("{name}, {from} to {to} s"), sent.clone(), part.to_vec(), at(from), 0));
                continue;
            }
            // A receiver that goes on when nothing comes any more.
            let late = [&silence[..500], part, &silence].concat();
            cases.push((
                format!("{name}, {from} to {to} s, then silence"),
                sent.clone(),
                late,
                at(from),
                500,
            ));
        }
    }
    let wrong = in_parallel(&cases, |(what, sent, received, from, later)| {
        // Where nothing was received, something is missing; but what was received is the sent.
        let ends = *later == 0;
        let channel = match found(sent, received) {
            Ok(channel) => channel,
            Err(error) => return Some(format!("{what}: {error}")),
        };
        let off = samples(channel.alignment) - (*later as f64 - *from as f64);
        let is_right = off == 0.0
            && channel.alignment.doubt.is_none()
            && channel.alignment.drift_error == 0.0
            && channel.gain == 0.0
            && (channel.identical && channel.measures.snr == 150.0 && channel.measures.gaps == 0) == ends;
        (!is_right).then(|| format!("{what}, off by {off}: {channel:?}"))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn an_excerpt_is_found_that_is_softer_later_and_by_another_clock() {
    let mut cases = Vec::new();
    for (name, sent) in sounds() {
        for (from, to) in [(0.6, 1.6), (1.5, 2.5)] {
            let drifting: Vec<f64> = moved(&sent, |n| 200.5 + 150e-6 * n).iter().map(|s| s * -0.3).collect();
            cases.push((
                format!("{name}, {from} to {to} s"),
                sent.clone(),
                drifting[at(from)..at(to)].to_vec(),
                at(from),
            ));
        }
    }
    let wrong = in_parallel(&cases, |(what, sent, received, from)| {
        let channel = match found(sent, received) {
            Ok(channel) => channel,
            Err(error) => return Some(format!("{what}: {error}")),
        };
        let alignment = channel.alignment;
        // The delay is that of the first sample that is compared.
        let first = (*from as f64 - 200.5).max(0.0);
        let off = samples(alignment) - (200.5 + 150e-6 * first - *from as f64);
        let is_strings = what.starts_with("strings");
        let is_right = match alignment.doubt {
            None => {
                off.abs() <= (alignment.delay_error * f64::from(RATE) + 0.05).min(1.0)
                    && channel.inverted
                    && (alignment.drift - 150.0).abs() <= alignment.drift_error + 1.0
                    && channel.measures.snr >= 30.0
            }
            Some(Doubt::Periodic { .. }) => is_strings,
            Some(_) => false,
        };
        (!is_right || channel.identical).then(|| format!("{what}, off by {off}: {channel:?}"))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// It fits at every period, exactly: its samples are known to be the sent ones, its delay is not.
#[test]
fn an_excerpt_of_a_tone_is_identical_and_its_delay_is_doubted() {
    let sent = stored(&levelled("tone", &tone(440.0)));
    let channel = found(&sent, &sent[at(1.0)..at(2.0)]).expect("it is found");
    assert!(channel.identical && channel.measures.snr == 150.0, "{channel:?}");
    // 440 Hz is the same after 400 samples at 16 kHz.
    let Some(Doubt::Periodic { later, flips: false }) = channel.alignment.doubt else {
        panic!("no doubt: {channel:?}");
    };
    assert!((later.abs() * f64::from(RATE) - 400.0).abs() < 1e-6, "{channel:?}");
    let steps = (samples(channel.alignment) + at(1.0) as f64) / 400.0;
    assert_eq!(steps, libm::round(steps), "{channel:?}");
}

/// Silence that is inserted, and sound that is left out, wherever and however much: noise does not repeat itself.
#[test]
fn noise_with_a_jump_does_not_repeat_itself() {
    let mut cases = Vec::new();
    for seed in [90_012] {
        let mut white = random(seed);
        let sent: Vec<f64> = (0..length()).map(|_| 0.3 * white()).collect();
        for middle in [0.9, 1.25, 1.6] {
            for by in [80usize, 333] {
                let inserted = [&sent[..at(middle)], &vec![0.0; by], &sent[at(middle)..]].concat();
                let cut = [&sent[..at(middle)], &sent[at(middle) + by..]].concat();
                cases.push((format!("{seed}: {by} samples more at {middle} s"), sent.clone(), inserted, by));
                cases.push((format!("{seed}: {by} samples less at {middle} s"), sent.clone(), cut, by));
            }
        }
    }
    let wrong = in_parallel(&cases, |(what, sent, received, by)| {
        let channel = match found(sent, received) {
            Ok(channel) => channel,
            Err(error) => return Some(format!("{what}: {error}")),
        };
        let alignment = channel.alignment;
        let jumped = channel.jumps.iter().map(|jump| jump.by.abs()).sum::<f64>() * f64::from(RATE);
        let is_right = alignment.doubt.is_none()
            && channel.jumps.len() == 1
            && (jumped - *by as f64).abs() < 0.1
            && samples(alignment).abs() < 0.1;
        (!is_right).then(|| format!("{what}: {channel:?}"))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

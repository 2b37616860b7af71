//! Something that was inserted into a recording, or left out of it: where, how much, and that the rest is what was sent.

use std::f64::consts::TAU;

use libm::sin;
use trunkline_audio::measure::{Channel, Doubt, compare};

use super::{RATE, at, drums, in_parallel, length, levelled, mono, noise, random, speech, tone};

/// Inserted, or left out if less than 0; in samples.
const LENGTHS: [i64; 6] = [60, 240, 480, -60, -240, -480];

/// A place may be this far from the truth, in samples.
const OFF: usize = 8;

/// What is softer than this is silent beside a sound with a peak of 0.6: there the place of a jump cannot be heard.
const SILENT: f64 = 1e-3;

/// Notes of pure tones that follow each other.
fn melody(seed: u32) -> Vec<f64> {
    let (mut random, mut phase, mut pitch) = (random(seed), 0.0, 0.0);
    let of = |n: usize| {
        if n.is_multiple_of(at(0.13)) {
            pitch = 400.0 * libm::exp2(random());
        }
        phase += pitch / f64::from(RATE);
        sin(TAU * phase)
    };
    (0..length()).map(of).collect()
}

struct Pair {
    what: String,
    sound: &'static str,
    sent: Vec<f64>,
    received: Vec<f64>,
    /// Where, in samples of what was sent.
    place: usize,
    by: i64,
}

fn pairs() -> Vec<Pair> {
    let sounds = [
        ("speech", speech(97_001)),
        ("other speech", speech(97_002)),
        ("drums", drums(97_003)),
        ("melody", melody(97_005)),
        ("tone", tone(523.3)),
        ("noise", noise(97_006)),
        ("other noise", noise(97_007)),
    ];
    let mut pairs = Vec::new();
    for (n, (name, sound)) in sounds.into_iter().enumerate() {
        let sent = levelled(name, &sound);
        for (k, by) in LENGTHS.into_iter().enumerate() {
            let place = at(0.71) + 1_733 * k + 311 * n;
            let (before, after) = sent.split_at(place);
            let length = by.unsigned_abs() as usize;
            let mut add = |what: &str, received: Vec<f64>| {
                let what = format!("{name}: {length} {what} at {place}");
                pairs.push(Pair { what, sound: name, sent: sent.clone(), received, place, by });
            };
            if by < 0 {
                add("left out", [before, &after[length..]].concat());
                let soft: Vec<f64> = [before, &after[length..]].concat().iter().map(|s| -0.3 * s).collect();
                add("left out, inverted and softer", soft);
            } else {
                add("of silence", [before, &vec![0.0; length], after].concat());
                add("repeated", [before, &before[place - length..], after].concat());
                let softer = [before, &vec![0.0; length], after].concat().iter().map(|s| 0.25 * s).collect();
                add("of silence, softer", softer);
            }
        }
    }
    pairs
}

fn is_right(pair: &Pair, found: &Channel) -> bool {
    let rate = f64::from(RATE);
    let doubt = found.alignment.doubt;
    match (pair.sound, doubt) {
        // Known up to its periods, and said to be so.
        ("tone", _) => return matches!(doubt, Some(Doubt::Periodic { .. })),
        // A note begins a little sooner or later: which is not always known.
        ("melody", Some(_)) => return true,
        _ => {}
    }
    let [jump] = found.jumps[..] else { return false };
    let place = libm::round(jump.at * rate) as usize;
    // What is repeated after itself may as well have been inserted before itself.
    let first = if pair.what.contains("repeated") { pair.place - pair.by as usize } else { pair.place };
    let between = &pair.sent[place.min(first)..place.max(pair.place)];
    let is_there = (first..=pair.place).any(|truth| place.abs_diff(truth) <= OFF)
        || between.iter().all(|sample| sample.abs() < SILENT);
    let is_as_long = (jump.by * rate - pair.by as f64).abs() <= 1.0;
    // All that was sent is there, unless it was left out.
    let is_whole = pair.by < 0 || found.measures.snr >= 60.0 && found.measures.gaps == 0;
    doubt.is_none() && !found.identical && is_there && is_as_long && is_whole
}

#[test]
fn what_was_inserted_or_left_out_is_found_where_it_is() {
    let pairs = pairs();
    let said = in_parallel(&pairs, |pair| {
        let found =
            compare(&mono(&pair.sent), &mono(&pair.received)).map(|mut found| found.channels.remove(0));
        let right = found.as_ref().is_ok_and(|found| is_right(pair, found));
        (!right).then(|| format!("{}: {found:?}", pair.what))
    });
    let wrong: Vec<String> = said.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
}

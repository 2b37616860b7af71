//! Sounds of which a narrow band has taken away most, and sounds that have nothing to do with each other.

use trunkline_audio::measure::{Channel, CompareError, Doubt, compare};

use super::codecs::in_band;
use super::{RATE, at, drums, in_parallel, levelled, mono, moved, noise, recorded, speech, strings, tone};

fn found(sent: &[f64], received: &[f64]) -> Result<Channel, CompareError> {
    compare(&mono(sent), &mono(received)).map(|mut found| found.channels.remove(0))
}

/// Found at the right place; with a doubt if it is hardly like what was sent.
#[test]
fn what_lost_most_of_its_band_is_found_where_it_is() {
    let sounds = [
        ("strings", strings(91_001, [77, 101])),
        ("strings", strings(91_002, [119, 64])),
        ("drums", drums(91_003)),
        ("drums", drums(91_004)),
        ("speech", speech(91_005)),
    ];
    let mut cases = Vec::new();
    for (name, sound) in sounds {
        let sent = levelled(name, &sound);
        for (from, to, ppm) in [(300.0, 3_400.0, 0.0), (400.0, 2_500.0, 60.0), (120.0, 5_000.0, 0.0)] {
            let received = in_band(&moved(&sent, |n| 75.0 + ppm * 1e-6 * n), from, to);
            cases.push((name, format!("{from} to {to} Hz, {ppm} ppm"), sent.clone(), received, ppm));
        }
    }
    let wrong = in_parallel(&cases, |(name, what, sent, received, ppm)| {
        let channel = match found(sent, received) {
            Ok(channel) => channel,
            Err(error) => return Some(format!("{name}, {what}: {error}")),
        };
        let alignment = channel.alignment;
        let off = alignment.delay * f64::from(RATE) - 75.0;
        let is_there = off.abs() <= 4.0 && !channel.inverted;
        let is_right = match alignment.doubt {
            None => is_there && (alignment.drift - ppm).abs() <= alignment.drift_error + 0.5,
            Some(Doubt::Faint) => is_there,
            // From 120 Hz on hardly anything is left of drums of 90 Hz but the ringing of the filter.
            Some(Doubt::Periodic { .. }) => *name == "strings" || what.starts_with("120") && *name == "drums",
            Some(Doubt::Unrelated) => false,
        };
        (!is_right).then(|| format!("{name}, {what}, off by {off}: {channel:?}"))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Alike in kind or not, whole, short or narrow.
#[test]
fn sounds_that_have_nothing_to_do_with_each_other_are_refused_or_doubted() {
    let sounds = [
        ("speech", speech(92_001)),
        ("strings", strings(92_002, [83, 57])),
        ("drums", drums(92_003)),
        ("noise", noise(92_004)),
        ("other speech", speech(92_005)),
        ("other strings", strings(92_006, [71, 95])),
        ("other drums", drums(92_007)),
        ("somebody's speech", recorded()),
        ("tone", tone(440.0)),
        ("other tone", tone(613.0)),
    ];
    let sounds = sounds.map(|(name, sound)| (name, levelled(name, &sound)));
    let mut cases = Vec::new();
    for (a, (sent_name, sent)) in sounds.iter().enumerate() {
        for (b, (name, other)) in sounds.iter().enumerate().filter(|(b, _)| *b != a) {
            // Each with one other, which is of the same kind if there is one.
            if (b + 10 - a) % 10 != 4 {
                continue;
            }
            let (what, received) = match (a + b) % 3 {
                0 => ("whole", other.clone()),
                1 => ("short", other[at(0.9)..at(1.9)].to_vec()),
                _ => ("narrow", in_band(other, 300.0, 3_400.0)),
            };
            cases.push((format!("{sent_name} and {name}, {what}"), sent.clone(), received));
        }
    }
    let said = in_parallel(&cases, |(what, sent, received)| match found(sent, received) {
        Ok(channel) if channel.alignment.doubt.is_none() => Some(format!("{what}: {channel:?}")),
        Ok(_) => None,
        Err(CompareError::Unrelated) => None,
        Err(error) => Some(format!("{what}: {error}")),
    });
    let wrong: Vec<String> = said.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

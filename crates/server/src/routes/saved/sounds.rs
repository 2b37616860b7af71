//! The audio of a saved run: the first channel of each flow, whole or a part of it, as far as there is room.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde::Serialize;
use trunkline_core::{Duration, Time};
use trunkline_experiment::Experiment;
use trunkline_metrics::Fate;
use trunkline_report::{EmbeddedSound, EmbeddedSounds};
use trunkline_runner::ChannelSound;
use trunkline_store::{StoreError, StoredRun};

use super::{Table, repetition};
use crate::api::Pieces;
use crate::routes::runs::audible;
use crate::routes::sound::{Asked, found, playout_of, sound_of, wav};
use crate::routes::traces::{Which, trace};

/// Maximum length of the audio inside, in bytes: 50 s of a call at 8 kHz.
const SOUND: usize = 1_800_000;
/// Minimum length of a part, in seconds, and maximum length of a message in [`Moments`], in bytes.
const MIN_PART: usize = 10;
const MOMENT: usize = 50;
/// Other playout delays of which the file has the sound, as multiples of the flow's own, and maximum length of the samples that
/// they change in all sounds, in bytes.
const PLAYOUTS: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0];
const CHANGED: usize = 600_000;

/// The audio in the file.
pub(super) struct Sounds {
    /// The audio that the report plays.
    pub(super) embedded: EmbeddedSounds,
    /// Addresses of the traces whose sound this is.
    pub(super) inside: Vec<String>,
    /// True if some are parts of longer channels.
    pub(super) has_parts: bool,
    /// True if some of them can be heard with other playout delays.
    pub(super) has_playouts: bool,
}

/// The messages of a sound, by which the page finds the place of a dot of the latency chart.
#[derive(Default, Serialize)]
struct Moments {
    /// Their places in the sound, in seconds.
    position: Vec<f64>,
    /// Times at which they were sent, or due if lost, in seconds since the start of the run.
    sent: Vec<f64>,
    /// Their latencies in seconds; null if lost.
    latency: Vec<Option<f64>>,
}

/// The first channel of each flow with sound, in the first repetition of each point. The report plays what is heard; the rest is in
/// the table.
pub(super) fn sounds(run: &StoredRun, experiment: Option<&Experiment>, table: &mut Table) -> Sounds {
    let audible = experiment.map(audible).unwrap_or_default();
    let has_sound = |name: &str| audible.iter().any(|(flow, _)| flow == name);
    let first = run.points.iter().filter_map(|point| Some((point.index, point.repetitions.first()?)));
    let wanted: Vec<_> = first
        .flat_map(|(point, one)| one.traces.iter().map(move |(flow, _)| (point, one, flow)))
        .filter(|(_, _, flow)| has_sound(flow))
        .collect();
    let mut sounds = Sounds {
        embedded: EmbeddedSounds::default(),
        inside: Vec::new(),
        has_parts: false,
        has_playouts: false,
    };
    let (mut length, mut changed, mut is_full) = (0, 0, false);
    // The parts of a flow start at the same place at all points, so that they can be compared.
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, (point, one, flow)) in wanted.iter().enumerate() {
        let which = Which { id: run.info.id, point: *point, repetition: one.index, flow: (*flow).clone() };
        let room = SOUND - length;
        let experiment = experiment.filter(|_| !is_full);
        let whole =
            experiment.and_then(|experiment| sound_of(run, experiment, &which, Asked::default()).ok());
        let part = whole.and_then(|sound| {
            let messages = fitting(&sound, room, room / (wanted.len() - place));
            is_full = messages.is_none();
            let messages = messages?;
            let start = *starts.entry(flow).or_insert_with(|| worst(&sound.fates, messages));
            Some(Part::of(sound, start, messages))
        });
        let added = part.and_then(|part| {
            let [sent, heard] =
                [&part.sound.sent, &part.sound.heard].map(|samples| wav(part.sound.sample_rate, samples));
            let at = format!("{}/flows/{flow}", repetition(run.info.id, *point, one.index));
            let address = |what: &str| format!("{at}/{what}?member=0&channel=0");
            let (mut with, before) = (table.clone(), table.bodies.len());
            with.add(&format!("{}&of=sent", address("sound.wav")), &sent);
            let own = playout_of(experiment?, flow);
            with.json(&address("pieces"), &part.pieces(&part.sound, own));
            with.json(&format!("{at}/moments"), &part.moments(run, &which).ok()?);
            let longer = heard.len() + with.bodies.len() - before;
            (longer <= room).then(|| {
                length += longer;
                *table = with;
                sounds.has_parts |= part.is_shorter();
                if let Some(own) = own {
                    let room = (CHANGED - changed) / (wanted.len() - place);
                    let (delays, bytes) = part.playouts(own, &sent, address, table, room);
                    changed += bytes;
                    if !delays.is_empty() {
                        sounds.has_playouts = true;
                        table.json(&format!("{at}/playouts"), &delays);
                    }
                }
                sounds.embedded.sounds.push(EmbeddedSound {
                    point: *point,
                    name: format!("{flow}, channel 1{}", part.in_words()),
                    address: format!("data:audio/wav;base64,{}", BASE64.encode(&heard)),
                    path: format!("{}&of=heard", address("sound.wav")),
                });
                sounds.inside.push(at.clone());
            })
        });
        sounds.embedded.left_out += usize::from(added.is_none());
    }
    sounds
}

/// Number of messages of a sound that get into the file: all, or those of its share of the room, or of the shortest part. `None` if
/// there is no room for that.
fn fitting(sound: &ChannelSound, room: usize, share: usize) -> Option<usize> {
    let (all, samples) = (sound.places.len(), sound.sent.len());
    // Sent and heard samples have two bytes each.
    let bytes = 4 * samples + MOMENT * all;
    let least = (MIN_PART * sound.sample_rate as usize * all).div_ceil(samples.max(1));
    let messages = (share * all / bytes.max(1)).max(least).min(all);
    (messages * bytes <= room * all).then_some(messages)
}

/// The start of the part with the most missing messages, the middle one of several; the beginning if none is missing.
fn worst(fates: &[Fate], messages: usize) -> usize {
    let is_missing = |fate: &Fate| usize::from(*fate != Fate::Received);
    let mut missing = fates[..messages].iter().map(is_missing).sum::<usize>();
    let (mut most, mut first, mut last) = (missing, 0, 0);
    for start in 1..=fates.len() - messages {
        missing = missing + is_missing(&fates[start + messages - 1]) - is_missing(&fates[start - 1]);
        if missing > most {
            (most, first, last) = (missing, start, start);
        } else if missing == most && last + 1 == start {
            last = start;
        }
    }
    if most == 0 { 0 } else { first.midpoint(last) }
}

/// A sound, or a part of one.
struct Part {
    whole: ChannelSound,
    /// Index of its first message.
    start: usize,
    sound: ChannelSound,
}

impl Part {
    fn of(whole: ChannelSound, start: usize, messages: usize) -> Part {
        let start = start.min(whole.fates.len() - messages);
        Part { sound: whole.part(start..start + messages), start, whole }
    }

    fn is_shorter(&self) -> bool {
        self.sound.fates.len() < self.whole.fates.len()
    }

    fn seconds(&self, samples: usize) -> f64 {
        samples as f64 / f64::from(self.sound.sample_rate)
    }

    /// Its start and its end in the whole sound.
    fn ends(&self) -> [f64; 2] {
        let start = self.whole.places.get(self.start).map_or(0, |samples| samples.start);
        [start, start + self.sound.sent.len()].map(|samples| self.seconds(samples))
    }

    fn pieces(&self, sound: &ChannelSound, playout: Option<Duration>) -> Pieces {
        let playout = playout.map(|playout| playout.as_secs_f64());
        Pieces { part: self.is_shorter().then(|| self.ends()), playout, ..found(sound) }
    }

    /// Adds the sound with other playout delays to the table, as differences from what was `sent`, as far as there is `room`.
    /// Returns the delays in milliseconds, and how many bytes they change.
    fn playouts(
        &self,
        own: Duration,
        sent: &[u8],
        address: impl Fn(&str) -> String,
        table: &mut Table,
        room: usize,
    ) -> (Vec<u64>, usize) {
        let ms = |times: f64| (own.as_secs_f64() * times * 1e3).round() as u64;
        let mut delays: Vec<u64> = PLAYOUTS.into_iter().map(ms).filter(|delay| *delay != ms(1.0)).collect();
        delays.dedup();
        let mut bytes = 0;
        // The longer the delay, the less it changes.
        for at in (0..delays.len()).rev() {
            let delay = delays[at];
            let playout = Duration::from_millis(delay);
            let messages = self.start..self.start + self.sound.fates.len();
            let sound = self.whole.with_playout(playout).part(messages);
            let heard = wav(sound.sample_rate, &sound.heard);
            let changed = heard.iter().zip(sent).filter(|(heard, sent)| heard != sent).count();
            if bytes + changed > room {
                delays.drain(..=at);
                break;
            }
            bytes += changed;
            let of = |what: &str, end: &str| format!("{}&playout_ms={delay}{end}", address(what));
            table.add(&of("sound.wav", "&of=sent"), sent);
            table.add_difference(
                &of("sound.wav", "&of=heard"),
                &heard,
                &format!("{}&of=sent", address("sound.wav")),
            );
            table.json(&of("pieces", ""), &self.pieces(&sound, Some(playout)));
        }
        (delays, bytes)
    }

    /// `, 12.0 s to 62.0 s of 120.0 s` if it is a part.
    fn in_words(&self) -> String {
        let [from, to] = self.ends();
        let of = |whole| format!(", {from:.1} s to {to:.1} s of {:.1} s", self.seconds(whole));
        if self.is_shorter() { of(self.whole.sent.len()) } else { String::new() }
    }

    fn moments(&self, run: &StoredRun, which: &Which) -> Result<Moments, StoreError> {
        let Ok(trace) = trace(run, which) else { return Ok(Moments::default()) };
        let count = self.sound.fates.len();
        // A message without a record has no time; JSON has null for that.
        let (mut sent, mut latency) = (vec![f64::NAN; count], vec![None; count]);
        let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
        trunkline_store::read_trace(&trace, &mut |record| {
            let place = (record.sequence as usize).checked_sub(self.start).filter(|place| *place < count);
            let is_it = (record.member, record.channel) == (0, 0) && record.fate != Fate::Duplicate;
            let Some(place) = place.filter(|_| is_it) else { return };
            let both = record.sent.zip(record.received);
            sent[place] = seconds(both.map_or(record.due, |(sent, _)| sent));
            latency[place] = both.map(|(sent, received)| received.since(sent).as_secs_f64());
        })?;
        let position = self.sound.places.iter().map(|samples| self.seconds(samples.start)).collect();
        Ok(Moments { position, sent, latency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(fates: Vec<Fate>) -> ChannelSound {
        let samples: Vec<f32> = (0..fates.len()).map(|place| place as f32 / 1000.0).collect();
        let places: Vec<_> = (0..fates.len()).map(|place| place..place + 1).collect();
        let of = |wanted: Fate| {
            let pieces = places.iter().zip(&fates).filter(|(_, fate)| **fate == wanted);
            pieces.map(|(samples, _)| samples.clone()).collect()
        };
        let (lost, late) = (of(Fate::Lost), of(Fate::Late));
        let (sent, heard) = (samples.clone(), samples);
        ChannelSound { sample_rate: 1, sent, heard, places, fates, lost, late, ..ChannelSound::default() }
    }

    #[test]
    fn a_part_has_the_most_missing_messages_in_its_middle() {
        use Fate::{Late, Lost, Received};
        let fates = |missing: &[usize]| {
            let fate = |place: usize| if missing.contains(&place) { Lost } else { Received };
            (0..100).map(fate).collect::<Vec<_>>()
        };
        assert_eq!(worst(&fates(&[]), 10), 0);
        assert_eq!(worst(&fates(&[50]), 11), 45);
        assert_eq!(worst(&fates(&[3, 70, 72]), 10), 66);
        assert_eq!(worst(&fates(&[99]), 10), 90);
        assert_eq!(worst(&fates(&[50]), 100), 0);
        let part = Part::of(sound(vec![Received, Late, Lost, Received, Received]), 1, 2);
        assert_eq!(
            (part.sound.fates.as_slice(), part.sound.sent.as_slice()),
            (&[Late, Lost][..], &[0.001, 0.002][..])
        );
        assert_eq!(part.in_words(), ", 1.0 s to 3.0 s of 5.0 s");
        let pieces = part.pieces(&part.sound, None);
        assert_eq!(
            (pieces.part, pieces.lost, pieces.late),
            (Some([1.0, 3.0]), vec![[1.0, 2.0]], vec![[0.0, 1.0]])
        );
        let whole = Part::of(sound(vec![Received; 3]), 1, 3);
        assert_eq!((whole.in_words().as_str(), whole.pieces(&whole.sound, None).part), ("", None));
    }

    #[test]
    fn long_sounds_share_the_room_and_short_ones_are_whole() {
        let of = |seconds: usize| sound(vec![Fate::Received; seconds]);
        // 54 bytes a second.
        assert_eq!(fitting(&of(8), 540, 100), Some(8));
        assert_eq!(fitting(&of(60), 5400, 1080), Some(20));
        assert_eq!(fitting(&of(60), 540, 100), Some(10));
        assert_eq!(fitting(&of(60), 530, 530), None);
        assert_eq!(fitting(&of(0), 540, 540), Some(0));
    }
}

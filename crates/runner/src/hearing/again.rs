//! The sound of a channel, reconstructed after its run from its source and its records.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use trunkline_audio::conceal::{Concealer, Method};
use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{Fate, FlowMeta, Measured, PlaybackFifo, Record, VoicePath};
use trunkline_store::{StoreError, read_trace};
use trunkline_traffic::AudioFormat;

use super::payloads::Payloads;
use super::replay::{Capture, Replay, SentAudio};
use super::request::{audio_of, method_of};
use super::track::{Playing, Track};

/// Length of the reconstructed sound, in seconds: an hour would take hundreds of megabytes.
const LONGEST: u64 = 600;

/// The sent and the heard audio of a channel, aligned with each other: without the delay of the first message.
#[derive(Clone, Debug, Default)]
pub struct ChannelSound {
    /// Samples per second.
    pub sample_rate: u32,
    /// Sent samples, from -1 to 1. A speaker's pauses are left out, but for a flow with a `playback`, whose FIFO makes some of
    /// them longer or shorter.
    pub sent: Vec<f32>,
    /// The same as `--hear` plays it: with missing messages concealed, or through the D/A FIFO.
    pub heard: Vec<f32>,
    /// The sent samples of each message.
    pub places: Vec<Range<usize>>,
    /// The fate of each message; duplicates are left out.
    pub fates: Vec<Fate>,
    /// Pieces that are not heard: lost messages, and samples that found no room in a FIFO.
    pub lost: Vec<Range<usize>>,
    /// Pieces that came too late: late messages, or the time in which a D/A FIFO was empty.
    pub late: Vec<Range<usize>>,
    /// Its listener.
    pub listener: Listener,
}

/// A listener of a channel.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    method: Method,
    arrivals: Arrivals,
    not_captured: Vec<Range<usize>>,
    fifo: Option<Box<Fifo>>,
}

/// A D/A FIFO, and what comes to it.
#[derive(Clone, Debug)]
struct Fifo {
    path: VoicePath,
    fifo: PlaybackFifo,
    format: AudioFormat,
    /// As they were recorded.
    records: Vec<Record>,
    payloads: Payloads,
}

/// True if the sound of the channels of a flow can be reconstructed.
pub fn has_sound(flow: &Flow) -> bool {
    audio_of(flow).is_some_and(|format| !format.is_silent) && flow.meta.measured != Measured::Nothing
}

/// The wait of a flow's first message before it is played: its playout delay, or the time that the `fill` of its `playback`
/// lasts. `None` if it has neither.
pub fn playout_of(flow: &FlowMeta) -> Option<Duration> {
    let fifo = flow.voice_path.and_then(|path| path.playback);
    flow.playout.or(fifo.map(PlaybackFifo::delay))
}

impl ChannelSound {
    /// The same sound, heard with another [playout delay](playout_of).
    pub fn with_playout(&self, playout: Duration) -> ChannelSound {
        let mut other = self.clone();
        match &mut other.listener.fifo {
            Some(heard) => heard.fifo = heard.fifo.with_delay(playout),
            None => self.listener.arrivals.judge(playout, &mut other.fates),
        }
        other.played()
    }

    /// The sound of some of its messages.
    pub fn part(&self, messages: Range<usize>) -> ChannelSound {
        let of = |place: usize| self.places.get(place).map_or(self.sent.len(), |samples| samples.start);
        let (begin, end) = (of(messages.start), of(messages.end));
        let cut = |at: usize| at.clamp(begin, end) - begin;
        let within = |pieces: &[Range<usize>]| -> Vec<Range<usize>> {
            let cut = pieces.iter().map(|piece| cut(piece.start)..cut(piece.end));
            cut.filter(|piece| !piece.is_empty()).collect()
        };
        let places = self.places[messages.clone()].iter();
        ChannelSound {
            sample_rate: self.sample_rate,
            sent: self.sent[begin..end].to_vec(),
            heard: self.heard[begin..end].to_vec(),
            places: places.map(|piece| cut(piece.start)..cut(piece.end)).collect(),
            fates: self.fates[messages].to_vec(),
            lost: within(&self.lost),
            late: within(&self.late),
            listener: Listener::default(),
        }
    }

    /// The heard audio made from the sent one.
    fn played(mut self) -> ChannelSound {
        self.lost = self.pieces(|fate| !matches!(fate, Fate::Received | Fate::Late));
        self.lost.extend_from_slice(&self.listener.not_captured);
        match self.listener.fifo.take() {
            Some(fifo) => {
                self.through(&fifo);
                self.listener.fifo = Some(fifo);
            }
            None => self.by_deadline(),
        }
        self.lost.sort_unstable_by_key(|piece| piece.start);
        self
    }

    fn by_deadline(&mut self) {
        self.late = self.pieces(|fate| fate == Fate::Late);
        self.heard.clone_from(&self.sent);
        let mut concealer = Concealer::new(self.listener.method, 1, self.sample_rate, longest(&self.places));
        for (samples, fate) in self.places.iter().zip(&self.fates) {
            let piece = &mut self.heard[samples.clone()];
            match fate {
                Fate::Received => concealer.received(piece),
                _ => concealer.lost(piece),
            }
        }
    }

    fn through(&mut self, Fifo { path, fifo, format, records, payloads }: &Fifo) {
        let mut track = Track::new(*format, self.listener.method, longest(&self.places));
        let playing = Playing { playout: None, path: Some((*path, *fifo)), pauses: path.pauses };
        track.play(playing, records, payloads);
        let (first, begins) = track.begins.unwrap_or((0, track.samples.len()));
        // So much later than it was sent would it be heard without any gap.
        let delay = begins.saturating_sub(self.places.get(first as usize).map_or(0, |samples| samples.start));
        self.heard = track.samples.split_off(delay.min(track.samples.len()));
        self.heard.resize(self.sent.len(), 0.0);
        let on_time = |at: usize| at.saturating_sub(delay).min(self.sent.len());
        let underflows = track.underflows.iter().map(|gap| on_time(gap.start)..on_time(gap.end));
        self.late = underflows.filter(|gap| !gap.is_empty()).collect();
        let dropped = track.dropped.iter().filter_map(|(message, samples)| {
            let end = self.places.get(*message as usize)?.end;
            Some(end - samples..end)
        });
        self.lost.extend(dropped);
    }

    /// The longest pieces of messages that are like this.
    fn pieces(&self, is_it: fn(Fate) -> bool) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let alike = self.places.iter().zip(&self.fates).filter(|(_, fate)| is_it(**fate));
        for (samples, _) in alike {
            match pieces.last_mut().filter(|last| last.end == samples.start) {
                Some(last) => last.end = samples.end,
                None => pieces.push(samples.clone()),
            }
        }
        pieces
    }
}

fn longest(places: &[Range<usize>]) -> usize {
    places.iter().map(Range::len).max().unwrap_or(1)
}

/// Makes the sound of a channel of a repetition with this seed and trace, with its own playout delay or another one. `None` if the
/// flow carries no audio, or has no such member or channel. Only the first ten minutes are reconstructed.
///
/// # Errors
/// If the trace cannot be read.
pub fn channel_sound(
    scenario: &Scenario,
    flow: usize,
    (member, channel): (u32, u16),
    seed: Seed,
    trace: &Path,
    playout: Option<Duration>,
) -> Result<Option<ChannelSound>, StoreError> {
    let Some(of) = scenario.flows.get(flow).filter(|of| member < of.meta.ids() && channel < of.meta.channels)
    else {
        return Ok(None);
    };
    let (kind, values) = (&trunkline_traffic::KINDS[of.source.kind], &of.source.values);
    let (Some(format), Some(interval)) = (audio_of(of).filter(|_| has_sound(of)), (kind.interval)(values))
    else {
        return Ok(None);
    };
    // A flow that is made for several hosts is several flows, each with members of its own.
    let (singles, id) = (scenario.singles(), of.meta.first.0 + member);
    let is_of_it = |one: &Flow| (one.meta.first.0..one.meta.first.0 + one.meta.ids()).contains(&id);
    let Some(single) = singles.flows.iter().position(is_of_it) else { return Ok(None) };
    let meta = &singles.flows[single].meta;
    let path = of.meta.voice_path;
    let playback = path.and_then(|path| Some((path, path.playback?)));
    let depth = (kind.packetiser)(values).and_then(|packetiser| packetiser.fifo);

    let most = (Duration::from_secs(LONGEST).as_nanos() / interval.as_nanos().max(1)) as usize;
    let (mut fates, mut arrivals, mut records) = (Vec::new(), Arrivals::default(), Vec::new());
    let mut captured = HashMap::new();
    read_trace(trace, &mut |record| {
        let place = record.sequence as usize;
        if record.member != member || place >= most || record.fate == Fate::Duplicate {
            return;
        }
        if depth.is_some() {
            captured.insert((record.channel, record.sequence), *record);
        }
        if record.channel != channel {
            return;
        }
        if fates.len() <= place {
            fates.resize(place + 1, Fate::Lost);
        }
        fates[place] = record.fate;
        match playback {
            Some(_) => records.push(*record),
            None => arrivals.add(place, record),
        }
    })?;

    let replay = Replay {
        scenario: &singles,
        flow: single,
        // Members at further sinks hear the same sources.
        member: (id - meta.first.0) % meta.members,
        channel,
        seed,
        format,
        pauses: playback.map(|(path, _)| path).filter(|path| path.pauses),
        capture: depth.map(|depth| Capture { depth: usize::from(depth), records: captured }),
    };
    let longest = LONGEST as usize * format.sample_rate as usize;
    let Some(SentAudio { samples, places, payloads, not_captured }) = replay.sent(fates.len(), longest)
    else {
        return Ok(None);
    };
    fates.truncate(places.len());
    let fifo = playback.map(|(path, fifo)| {
        records.retain(|record| (record.sequence as usize) < places.len());
        Box::new(Fifo { path, fifo, format, records, payloads })
    });
    let sound = ChannelSound {
        sample_rate: format.sample_rate,
        sent: samples,
        places,
        fates,
        listener: Listener { method: method_of(&of.meta), arrivals, not_captured, fifo },
        ..ChannelSound::default()
    };
    Ok(Some(match playout {
        Some(playout) => sound.with_playout(playout),
        None => sound.played(),
    }))
}

/// When the messages of a channel arrived.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// The first arrival of all, and when that message was due.
    first: Option<(Time, Time)>,
    /// The place of each message, when it arrived, and when it was due.
    all: Vec<(usize, Time, Time)>,
}

impl Arrivals {
    fn add(&mut self, place: usize, record: &Record) {
        let Some(received) = record.received else { return };
        if self.first.is_none_or(|(first, _)| received < first) {
            self.first = Some((received, record.due));
        }
        self.all.push((place, received, record.due));
    }

    /// Judges which messages are late with this playout delay: as [`FlowMeta::playout`](trunkline_metrics::FlowMeta::playout) says.
    fn judge(&self, playout: Duration, fates: &mut [Fate]) {
        let Some((first, first_due)) = self.first else { return };
        for (place, received, due) in &self.all {
            let deadline = (first + playout).as_nanos() + due.as_nanos();
            let is_late = received.as_nanos() + first_due.as_nanos() > deadline;
            if let Some(fate) = fates.get_mut(*place) {
                *fate = if is_late { Fate::Late } else { Fate::Received };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_playout_delay_judges_each_arrival_anew() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let record = |due: u64, received: Option<u64>| Record {
            member: 0,
            channel: 0,
            sequence: 0,
            due: at(due),
            sent: Some(at(due)),
            received: received.map(at),
            reflected: None,
            payload: 80,
            fate: Fate::Received,
        };
        let mut arrivals = Arrivals::default();
        let records = [record(0, Some(50)), record(10, Some(90)), record(20, None), record(30, Some(80))];
        records.iter().enumerate().for_each(|(place, record)| arrivals.add(place, record));
        let mut fates = [Fate::Late, Fate::Received, Fate::Lost, Fate::Late];
        // The second took 30 ms longer than the first one.
        arrivals.judge(Duration::from_millis(29), &mut fates);
        assert_eq!(fates, [Fate::Received, Fate::Late, Fate::Lost, Fate::Received]);
        arrivals.judge(Duration::from_millis(30), &mut fates);
        assert_eq!(fates, [Fate::Received, Fate::Received, Fate::Lost, Fate::Received]);
    }
    #[test]
    fn missing_messages_side_by_side_are_one_piece() {
        use Fate::{Late, Lost, Received, Refused};
        let fates = vec![Lost, Refused, Received, Late, Late, Lost, Received];
        let places: Vec<_> = (0..fates.len()).map(|place| place * 80..place * 80 + 80).collect();
        let sent = vec![0.25; 80 * fates.len()];
        let sound =
            ChannelSound { sample_rate: 8000, places, fates, sent, ..ChannelSound::default() }.played();
        let ends =
            |pieces: &[Range<usize>]| pieces.iter().map(|one| (one.start, one.end)).collect::<Vec<_>>();
        assert_eq!((ends(&sound.lost), ends(&sound.late)), (vec![(0, 160), (400, 480)], vec![(240, 400)]));
        let part = sound.part(1..4);
        assert_eq!((part.sent.len(), part.places[2].clone(), part.fates[2]), (240, 160..240, Late));
        assert_eq!((ends(&part.lost), ends(&part.late)), (vec![(0, 80)], vec![(160, 240)]));
    }
}

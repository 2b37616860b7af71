//! One channel as it is played: received messages, concealment, silence.

use std::ops::Range;

use trunkline_audio::conceal::{Concealer, Method};
use trunkline_core::{Duration, Time};
use trunkline_metrics::{Fate, Playback, PlaybackFifo, Record, TalkSpurts, VoicePath};
use trunkline_traffic::AudioFormat;

use super::frame;
use super::payloads::Payloads;

/// What is played of a channel, from the start of the run.
#[derive(Clone, Debug)]
pub(super) struct Track {
    format: AudioFormat,
    concealer: Concealer,
    pub(super) samples: Vec<f32>,
    /// How many of them are received audio, and how many are made up; the rest is silence.
    pub(super) received: usize,
    pub(super) concealed: usize,
    /// When its D/A FIFO was empty: the concealed samples.
    pub(super) underflows: Vec<Range<usize>>,
    /// How many samples of which message found no room in the D/A FIFO.
    pub(super) dropped: Vec<(u32, usize)>,
    /// The message with which the D/A FIFO first began to play, and at which sample.
    pub(super) begins: Option<(u32, usize)>,
}

/// How a flow is played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Playing {
    /// Its `playout`.
    pub(super) playout: Option<Duration>,
    /// Its `playback`.
    pub(super) path: Option<(VoicePath, PlaybackFifo)>,
    /// Whether a gap between messages is the speaker's silence.
    pub(super) pauses: bool,
}

impl Track {
    pub(super) fn new(format: AudioFormat, method: Method, packet_frames: usize) -> Track {
        Track {
            format,
            concealer: Concealer::new(method, 1, format.sample_rate, packet_frames),
            samples: Vec::new(),
            received: 0,
            concealed: 0,
            underflows: Vec::new(),
            dropped: Vec::new(),
            begins: None,
        }
    }

    /// Plays the messages of a channel, given in the order in which they were recorded.
    pub(super) fn play(&mut self, playing: Playing, records: &[Record], payloads: &Payloads) {
        match playing.path {
            Some((path, fifo)) => self.by_fifo(path, fifo, records, payloads),
            None => self.by_deadline(playing, records, payloads),
        }
    }

    /// Every message has a place: as long after it was due as the first to arrive was played.
    fn by_deadline(&mut self, playing: Playing, records: &[Record], payloads: &Payloads) {
        let mut messages: Vec<Record> =
            records.iter().filter(|record| record.fate != Fate::Duplicate).copied().collect();
        // Of two records of one message the later one counts: the sort is stable, and the last is kept.
        messages.sort_by_key(|record| record.sequence);
        messages.reverse();
        messages.dedup_by_key(|record| record.sequence);
        messages.reverse();
        let from_due = |record: &Record| Some(record.received?.since(record.due));
        let arrivals = || records.iter().filter(|record| record.fate != Fate::Duplicate).filter_map(from_due);
        let delay = match playing.playout {
            Some(playout) => arrivals().next().unwrap_or_default() + playout,
            None => arrivals().max().unwrap_or_default(),
        };
        for record in messages {
            let length = self.format.samples(record.payload as usize);
            let place = self.frame(record.due + delay);
            // Times are whole nanoseconds, and so a message may seem to begin a sample beside the end of another.
            if place > self.samples.len() + length / 2 {
                self.gap(place, playing.pauses);
            }
            match payloads.of(record.sequence).filter(|_| record.fate == Fate::Received) {
                Some(payload) => self.receive(payload),
                None => self.conceal(length),
            }
        }
    }

    /// Messages are played in the order in which they arrive, as soon as everything before them was.
    fn by_fifo(&mut self, path: VoicePath, fifo: PlaybackFifo, records: &[Record], payloads: &Payloads) {
        let (mut playback, mut spurts) = (Playback::default(), TalkSpurts::default());
        let (mut held, mut first) = (Vec::new(), None);
        for record in records {
            let (Some(received), true) = (record.received, record.fate != Fate::Duplicate) else { continue };
            first.get_or_insert(record.sequence);
            let is_first = spurts.begins(path, record.sequence, record.due, record.payload);
            let arrived = playback.arrival(fifo, received, record.payload, is_first);
            if let Some((since, length)) = arrived.underflow {
                let (begin, end) = (self.samples.len(), self.frame(since + length));
                self.conceal(end.saturating_sub(begin));
                self.underflows.push(begin..self.samples.len());
            }
            if let Some(begins) = arrived.begins {
                self.gap(self.frame(begins), true);
                self.begins = self.begins.or(first.map(|first| (first, self.samples.len())));
            }
            if arrived.lost > 0 {
                self.dropped.push((record.sequence, arrived.lost as usize));
            }
            let taken = record.payload.saturating_sub(arrived.lost) as usize;
            let payload = payloads.of(record.sequence).unwrap_or_default();
            held.extend_from_slice(&payload[..taken.min(payload.len())]);
            // Until enough is there, it waits.
            if arrived.begins.is_some() || arrived.margin.is_some() {
                self.receive(&held);
                held.clear();
            }
        }
    }

    /// Nothing is due until then: silence, or what no message tells of.
    fn gap(&mut self, until: usize, is_silence: bool) {
        let before = self.samples.len();
        if is_silence || before == 0 {
            self.samples.resize(before.max(until), 0.0);
            self.concealer.received(&mut self.samples[before..]);
        } else {
            self.conceal(until.saturating_sub(before));
        }
    }

    fn receive(&mut self, payload: &[u8]) {
        let before = self.samples.len();
        self.format.decode(payload, &mut self.samples);
        self.concealer.received(&mut self.samples[before..]);
        self.received += self.samples.len() - before;
    }

    fn conceal(&mut self, frames: usize) {
        let before = self.samples.len();
        self.samples.resize(before + frames, 0.0);
        self.concealer.lost(&mut self.samples[before..]);
        self.concealed += frames;
    }

    /// The sample that is played at this time.
    fn frame(&self, at: Time) -> usize {
        frame(self.format, at)
    }
}

//! The audio that a channel sent, reconstructed from its source.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::{Record, TalkSpurts, VoicePath};
use trunkline_traffic::{AudioFormat, MessageBuffer, Source};

use super::frame;
use super::payloads::Payloads;

/// The source of a channel.
pub(super) struct Replay<'a> {
    pub(super) scenario: &'a Scenario,
    /// Index of the flow in the scenario.
    pub(super) flow: usize,
    /// The member that sends.
    pub(super) member: u32,
    pub(super) channel: u16,
    pub(super) seed: Seed,
    pub(super) format: AudioFormat,
    /// The voice path of a speaker whose pauses are kept.
    pub(super) pauses: Option<VoicePath>,
    pub(super) capture: Option<Capture>,
}

/// The A/D FIFO of a channel. Its samples become a message when the transport takes them.
#[derive(Debug, Default)]
pub(super) struct Capture {
    /// In samples.
    pub(super) depth: usize,
    /// The messages of all channels of the member, by channel and number.
    pub(super) records: HashMap<(u16, u32), Record>,
}

/// The audio that a channel sent.
#[derive(Debug, Default)]
pub(super) struct SentAudio {
    pub(super) samples: Vec<f32>,
    /// The samples of each message.
    pub(super) places: Vec<Range<usize>>,
    pub(super) payloads: Payloads,
    /// Samples that found no room in the A/D FIFO: silence here.
    pub(super) not_captured: Vec<Range<usize>>,
}

impl Replay<'_> {
    /// The channel's first messages, up to `most` samples. Of a channel with an A/D FIFO, the audio ends where records and
    /// source disagree, as they may on a machine that was late. `None` without a source.
    pub(super) fn sent(&self, messages: usize, most: usize) -> Option<SentAudio> {
        let mut source = self.source()?;
        let mut growing = Growing {
            replay: self,
            sent: SentAudio::default(),
            spurts: TalkSpurts::default(),
            began: None,
            captured: 0,
            gaps: VecDeque::new(),
        };
        let mut numbers: HashMap<u16, u32> = HashMap::new();
        let (mut buffer, mut free) = (MessageBuffer::default(), Time::ZERO);
        while let Some(due) = source.next_due() {
            let now = due.max(free);
            source.produce(now, &mut buffer);
            for overflow in buffer.take_overflows().filter(|overflow| overflow.channel == self.channel) {
                // The FIFO was full of samples that came before.
                let depth = self.capture.as_ref().map_or(0, |capture| capture.depth);
                growing.gaps.push_back((growing.captured + depth, overflow.samples as usize));
            }
            for (place, message) in buffer.messages().iter().enumerate() {
                let number = numbers.entry(message.channel).or_default();
                if let Some(capture) = &self.capture {
                    let record = capture.records.get(&(message.channel, *number));
                    let is_it = |record: &&Record| {
                        (record.due, record.payload as usize) == (message.due, message.range.len())
                    };
                    let Some(record) = record.filter(is_it) else { return Some(growing.sent) };
                    free = free.max(record.sent.unwrap_or(now));
                }
                if message.channel == self.channel {
                    let end = growing.sent.samples.len() + self.format.samples(message.range.len());
                    if *number as usize >= messages || end > most {
                        return Some(growing.sent);
                    }
                    growing.add(*number, message.due, buffer.bytes(place));
                }
                *number += 1;
            }
            if buffer.messages().is_empty() {
                break;
            }
            buffer.clear();
        }
        Some(growing.sent)
    }

    /// The source. One that was told when its connection stood started then, which its first message tells.
    fn source(&self) -> Option<Box<dyn Source>> {
        let source = self.scenario.build_source(self.flow, self.member, self.seed).ok()?;
        let first = self.capture.as_ref().and_then(|c| c.records.values().map(|record| record.due).min());
        match first.map(|first| first.since(source.next_due().unwrap_or(first))) {
            None | Some(Duration::ZERO) => Some(source),
            Some(later) => {
                let connected = Time::ZERO + self.scenario.flows[self.flow].start + later;
                self.scenario.build_connected_source(self.flow, self.member, self.seed, connected).ok()
            }
        }
    }
}

/// The audio of the messages so far.
struct Growing<'a> {
    replay: &'a Replay<'a>,
    sent: SentAudio,
    spurts: TalkSpurts,
    /// When the first message was due.
    began: Option<Time>,
    /// Number of samples of these messages.
    captured: usize,
    /// Samples that found no room in the A/D FIFO: after how many captured ones, and how many.
    gaps: VecDeque<(usize, usize)>,
}

impl Growing<'_> {
    fn add(&mut self, number: u32, due: Time, payload: &[u8]) {
        let (format, began) = (self.replay.format, *self.began.get_or_insert(due));
        let SentAudio { samples, places, payloads, not_captured } = &mut self.sent;
        if let Some(path) = self.replay.pauses
            && self.spurts.begins(path, number, due, payload.len() as u32)
        {
            let begins = frame(format, Time::ZERO + due.since(began));
            samples.resize(samples.len().max(begins), 0.0);
        }
        let begin = samples.len();
        format.decode(payload, samples);
        self.captured += samples.len() - begin;
        while let Some((after, count)) = self.gaps.pop_front_if(|(after, _)| *after < self.captured) {
            let at = samples.len() - (self.captured - after);
            samples.splice(at..at, std::iter::repeat_n(0.0, count));
            not_captured.push(at..at + count);
        }
        places.push(begin..samples.len());
        payloads.keep(number, payload);
    }
}

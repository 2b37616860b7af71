//! When a person talks and when not.

use trunkline_core::distribution::Sampler;
use trunkline_core::{Distribution, Duration, Time};

use crate::source::SourceContext;

/// The shortest talk spurt; a shorter draw counts as this long, so that finding the next one takes a bounded time.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// Talk spurts and silences in turn, of independently drawn lengths (an on-off process).
///
/// It runs in continuous time: a packet is sent if the person talks at its due time. So the share of packets sent is
/// the share of time talked, whatever the packet's length.
#[derive(Debug)]
pub(super) struct TalkSpurts {
    talk: Sampler,
    silence: Sampler,
    starts: Time,
    ends: Time,
    stop: Time,
}

impl TalkSpurts {
    /// At the start, a person talks with the probability with which one would talk at any time; for exponential lengths
    /// the process is stationary from there on.
    pub(super) fn new(
        talk: &Distribution,
        silence: &Distribution,
        context: &SourceContext,
        channel: u16,
    ) -> TalkSpurts {
        let stream = |what| context.seed.stream(&format!("{}/{channel}/{what}", context.place));
        let (talks, pauses) = (talk.mean(), silence.mean());
        let talks_at_first = stream("first").chance(talks / (talks + pauses).max(1.0));
        let mut spurts = TalkSpurts {
            talk: talk.sampler(stream("talk")),
            silence: silence.sampler(stream("silence")),
            starts: context.start,
            ends: context.start,
            stop: context.stop,
        };
        if talks_at_first {
            spurts.ends = spurts.starts + spurts.draw_talk();
        }
        spurts
    }

    /// The first of `slot`, `slot + interval`, ... at which the person talks; at or after the stop if there is none
    /// before.
    pub(super) fn next_slot(&mut self, mut slot: Time, interval: Duration) -> Time {
        while slot >= self.ends && slot < self.stop {
            self.starts = self.ends + Duration::from_nanos(self.silence.draw());
            self.ends = self.starts + self.draw_talk();
            let ahead = self.starts.since(slot).as_nanos().div_ceil(interval.as_nanos());
            slot += interval * ahead;
        }
        slot
    }

    fn draw_talk(&mut self) -> Duration {
        Duration::from_nanos(self.talk.draw()).max(SHORTEST)
    }
}

//! Bytes delivered within the measured time.

use core::ops::Range;

use trunkline_core::{Bytes, Duration, Rate, Time};

use crate::record::{FlowMeta, Lasting};
use crate::throughput::VOICE_CHANNEL;

/// The time in which arrivals count in throughput.
///
/// Of a source that goes on to the end of the run those count that arrive by then. Nothing can arrive sooner than the
/// propagation delay of its path allows, so that the window at the sink lies later by that: it is as long as the time in
/// which messages were offered, and no two flows have more bytes in it than a link of theirs carries in that time. Where
/// the propagation delay is not known, the smallest latency stands for it.
#[derive(Clone, Debug)]
pub(super) struct Window {
    lasting: Lasting,
    ends: Time,
    propagation: Vec<Duration>,
    wander: Duration,
    /// When it was to end.
    planned: Time,
    /// Time that sinks listen after that, if it is known.
    drain: Option<Duration>,
}

/// Deliveries of a flow or of one of its sinks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// All of it.
    all: Bytes,
    /// Payload that counts in throughput.
    measured: Bytes,
    last: Time,
    /// The smallest latency, and the payload of the first message that had it.
    fastest: Option<(Duration, Bytes)>,
    /// The smallest latency of the messages sent in each of [`PARTS`] parts of the run; [`Duration::MAX`] of none.
    fastest_of_part: [Duration; PARTS],
}

/// Parts of the run.
const PARTS: usize = 32;

impl Default for Delivery {
    fn default() -> Delivery {
        Delivery {
            all: Bytes::ZERO,
            measured: Bytes::ZERO,
            last: Time::ZERO,
            fastest: None,
            fastest_of_part: [Duration::MAX; PARTS],
        }
    }
}

impl Window {
    pub(super) fn new(meta: &FlowMeta) -> Window {
        Window {
            lasting: meta.lasting,
            ends: meta.ends,
            propagation: meta.propagation.clone(),
            wander: meta.wander,
            planned: meta.ends,
            drain: None,
        }
    }

    /// Sinks listen for so long after the end.
    pub(super) fn listen(&mut self, drain: Duration) {
        self.drain = Some(drain);
    }

    /// The time for which sinks listen after the end; none if it is not known.
    pub(super) fn drain(&self) -> Duration {
        self.drain.unwrap_or_default()
    }

    /// The part of the window that lies after the time in which sinks listen, because the path is longer.
    pub(super) fn unheard(&self) -> Duration {
        let longest = self.propagation.iter().max().copied().unwrap_or_default();
        match (self.lasting, self.drain) {
            (Lasting::Run, Some(drain)) => longest.saturating_sub(drain),
            _ => Duration::ZERO,
        }
    }

    /// The window of the sink with this number, which is there for a part of the run only: it never receives messages that are under
    /// way when it leaves.
    pub(super) fn within(&self, sink: usize, presence: &Range<Time>) -> Window {
        let ends = self.ends.min(presence.end);
        Window {
            ends,
            propagation: self.propagation.get(sink).copied().into_iter().collect(),
            drain: Some(self.drain.unwrap_or(Duration::MAX).min(presence.end.since(ends))),
            ..self.clone()
        }
    }

    /// The part of the run that a moment belongs to.
    #[inline]
    fn part(&self, at: Time) -> usize {
        let part = self.planned.as_nanos() / PARTS as u64 + 1;
        ((at.as_nanos() / part) as usize).min(PARTS - 1)
    }

    /// The measurement ends at `at`, if it was not to end before.
    pub(super) fn end(&mut self, at: Time) {
        self.ends = self.ends.min(at);
    }
}

impl Delivery {
    /// Takes the first arrival of a message at the sink with this number, and says whether it counts in throughput.
    #[inline]
    pub(super) fn arrived(
        &mut self,
        window: &Window,
        sink: usize,
        received: Time,
        latency: Duration,
        payload: Bytes,
    ) -> bool {
        if self.fastest.is_none_or(|(fastest, _)| latency < fastest) {
            self.fastest = Some((latency, payload));
        }
        let of_part = &mut self.fastest_of_part
            [window.part(Time::from_nanos(received.as_nanos().saturating_sub(latency.as_nanos())))];
        *of_part = latency.min(*of_part);
        self.last = self.last.max(received);
        self.all += payload;
        let delay = window.propagation.get(sink).copied().or(self.fastest()).unwrap_or(latency);
        // In real time a run may end a little after its drain time.
        let delay = window.drain.map_or(delay, |drain| delay.min(drain));
        let counts = window.lasting == Lasting::Volume || received <= window.ends + delay;
        if counts {
            self.measured += payload;
        }
        counts
    }

    /// The smallest latency, if anything was delivered.
    #[inline]
    pub(super) fn fastest(&self) -> Option<Duration> {
        self.fastest.map(|(latency, _)| latency)
    }

    /// The payload of the message with the smallest latency.
    pub(super) fn fastest_payload(&self) -> Bytes {
        self.fastest.map_or(Bytes::ZERO, |(_, payload)| payload)
    }

    /// Payload that counts in throughput.
    pub(super) fn measured(&self) -> Bytes {
        self.measured
    }

    pub(super) fn all(&self) -> Bytes {
        self.all
    }

    /// The rate over a flow's active time, from `begin` to `end`. One that begins as the run ends has only its arrivals,
    /// and is measured over them.
    pub(super) fn rate(&self, window: &Window, active: Option<(Time, Time)>) -> Rate {
        let Some((begin, end)) = active else { return Rate::ZERO };
        let bytes = if begin >= window.ends { self.all } else { self.measured };
        Rate::of(bytes, end.since(begin).saturating_sub(window.unheard()))
    }

    /// Number of telephone channels delivered, rounded down. What is under way when the active time ends is delivered as
    /// well. Where a queue has grown until then, so that it takes longer than the fastest message did, so does the time over
    /// which the channels are counted.
    pub(super) fn voice_channels(&self, window: &Window, active: Option<(Time, Time)>) -> u64 {
        let Some((begin, end)) = active else { return 0 };
        // A message that has not arrived whole has not arrived.
        let message = VOICE_CHANNEL.time_for(self.fastest_payload()).max(Duration::from_nanos(1));
        let unheard = message * window.unheard().as_nanos().div_ceil(message.as_nanos());
        let mut over = end.since(begin).saturating_sub(unheard);
        if self.has_backlog(window, begin, end) {
            over = over.max(self.last.since(begin).saturating_sub(self.fastest().unwrap_or_default()));
        }
        Rate::of(self.all, over).bits_per_second() / VOICE_CHANNEL.bits_per_second()
    }

    /// True if messages still waited in a queue when the active time ended: none of its last eighth was as fast as the
    /// fastest of all, but for the time of a message of its own and for what the path's delay may have changed. Jitter delays some
    /// of them, and a backlog all.
    fn has_backlog(&self, window: &Window, begin: Time, end: Time) -> bool {
        let from = window.part(begin + end.since(begin) * 7 / 8);
        let late = self.fastest_of_part[from..=window.part(end).max(from)].iter().min();
        let message = VOICE_CHANNEL.time_for(self.fastest_payload());
        let fastest = self.fastest().unwrap_or_default();
        late.is_none_or(|late| *late > fastest + message + window.wander)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Time {
        Time::ZERO + MS(ms)
    }

    fn window(propagation: Vec<Duration>) -> Window {
        Window {
            lasting: Lasting::Run,
            ends: at(1000),
            propagation,
            wander: Duration::ZERO,
            planned: at(1000),
            drain: None,
        }
    }

    /// 160 bytes every 20 ms from 0 on, for a second, with this latency.
    fn voice(window: &Window, latency: fn(u64) -> u64) -> Delivery {
        let mut delivery = Delivery::default();
        for n in 0..50 {
            let took = latency(n);
            delivery.arrived(window, 0, at(20 * n + took), MS(took), Bytes(160));
        }
        delivery
    }

    #[test]
    fn voice_that_is_only_delayed_keeps_its_rate() {
        for propagation in [vec![MS(300)], Vec::new()] {
            let window = window(propagation);
            let voice = voice(&window, |_| 300);
            let active = Some((at(0), at(1000)));
            assert_eq!(voice.rate(&window, active), Rate::from_bits_per_second(64_000));
            assert_eq!(voice.voice_channels(&window, active), 1);
        }
    }

    #[test]
    fn what_waits_at_the_end_was_not_delivered_in_time() {
        // Half of it arrives in the second, the rest in another: a line of 32 kbit/s.
        let window = window(vec![MS(10)]);
        let voice = voice(&window, |n| 10 + 20 * n + 20);
        let active = Some((at(0), at(1000)));
        assert_eq!(voice.rate(&window, active), Rate::from_bits_per_second(32_000));
        assert_eq!((voice.voice_channels(&window, active), voice.all()), (0, Bytes(8000)));
    }

    #[test]
    fn jitter_takes_no_channel_away() {
        // Every other message takes up to 45 ms longer, the last one too.
        let window = window(vec![MS(10)]);
        let voice = voice(&window, |n| 10 + 45 * (n % 2));
        assert_eq!(voice.voice_channels(&window, Some((at(0), at(1000)))), 1);
    }

    #[test]
    fn a_path_that_grows_longer_takes_no_channel_away() {
        let longer = |n| if n < 25 { 10 } else { 400 };
        let window = Window { wander: MS(390), ..window(vec![MS(10)]) };
        let active = Some((at(0), at(1000)));
        let voice = voice(&window, longer);
        assert_eq!(voice.voice_channels(&window, active), 1);
        // What is still under way then is not yet delivered.
        assert_eq!(voice.rate(&window, active), Rate::of(Bytes(31 * 160), MS(1000)));
    }

    /// In real time a run ends a little later than its drain time.
    #[test]
    fn what_arrives_after_the_drain_time_does_not_count() {
        let window = Window { drain: Some(MS(200)), ..window(vec![MS(500)]) };
        let mut voice = Delivery::default();
        for n in 0..38 {
            voice.arrived(&window, 0, at(20 * n + 500), MS(500), Bytes(160));
        }
        let active = Some((at(0), at(1000)));
        // 36 messages arrive by 1200 ms, in the 700 ms of the window that sinks see.
        assert_eq!(voice.rate(&window, active), Rate::of(Bytes(36 * 160), MS(700)));
        assert_eq!(voice.voice_channels(&window, active), 1);
        let mut many = Delivery::default();
        for n in 0..30 * 38 {
            many.arrived(&window, 0, at(20 * (n / 30) + 500), MS(500), Bytes(160));
        }
        assert_eq!(many.voice_channels(&window, active), 30);
    }

    #[test]
    fn an_early_end_moves_the_window() {
        let mut window = window(vec![MS(10)]);
        window.end(at(500));
        window.end(at(2000));
        let voice = voice(&window, |_| 10);
        assert_eq!(voice.rate(&window, Some((at(0), at(500)))), Rate::of(Bytes(26 * 160), MS(500)));
    }

    #[test]
    fn a_volume_counts_whole() {
        let mut window = window(vec![MS(10)]);
        window.lasting = Lasting::Volume;
        let voice = voice(&window, |n| 10 + 20 * n);
        assert_eq!(voice.rate(&window, Some((at(0), at(2000)))), Rate::of(Bytes(8000), MS(2000)));
    }
}

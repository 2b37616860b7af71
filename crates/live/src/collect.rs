//! Brings what the threads observed into an order that a recorder understands, and counts what is outstanding.

use std::collections::VecDeque;

use trunkline_core::{FlowId, Time};
use trunkline_metrics::{Observation, Recorder};

use crate::events::{Batch, Pool, unpack};

/// Between the threads and the recorder: what was sent is recorded before its arrival, although the two come from
/// different threads and processes.
pub(crate) struct Collector<'r> {
    recorder: &'r mut dyn Recorder,
    pool: Pool,
    senders: Vec<Sender>,
    /// By flow id.
    tallies: Vec<Tally>,
}

#[derive(Default)]
struct Sender {
    /// All that was sent before this has been recorded.
    until: Time,
    /// Arrivals that are ahead of their departures.
    held: VecDeque<Batch>,
}

/// What is outstanding of one flow's member. A sum of hashes beside each count tells the same messages from as many
/// others: a duplicate never makes up for a loss. After a duplicate the count is one less than none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    messages: u64,
    sum: u64,
}

impl Tally {
    fn add(&mut self, channel: u16, sequence: u32) {
        self.messages = self.messages.wrapping_add(1);
        self.sum = self.sum.wrapping_add(mix(u64::from(channel) << 32 | u64::from(sequence)));
    }

    fn take(&mut self, channel: u16, sequence: u32) {
        self.messages = self.messages.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(mix(u64::from(channel) << 32 | u64::from(sequence)));
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood 2014): distinct inputs, unrelated outputs.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl<'r> Collector<'r> {
    pub(crate) fn new(
        recorder: &'r mut dyn Recorder,
        pool: Pool,
        senders: usize,
        members: usize,
    ) -> Collector<'r> {
        let senders = (0..senders).map(|_| Sender::default()).collect();
        Collector { recorder, pool, senders, tallies: vec![Tally::default(); members] }
    }

    /// Takes what a sender observed; it has left out nothing that it sent before `until`.
    pub(crate) fn departures(&mut self, sender: usize, until: Time, batch: Batch) {
        self.record(batch);
        let Some(sender) = self.senders.get_mut(sender) else { return };
        sender.until = sender.until.max(until);
        let ready = sender.held.iter().take_while(|batch| batch.latest_sent < sender.until).count();
        let ready: Vec<Batch> = sender.held.drain(..ready).collect();
        ready.into_iter().for_each(|batch| self.record(batch));
    }

    /// Takes what was observed of messages of that sender on arrival.
    pub(crate) fn arrivals(&mut self, sender: usize, batch: Batch) {
        let Some(sender) = self.senders.get_mut(sender) else { return };
        if sender.held.is_empty() && batch.latest_sent < sender.until {
            self.record(batch);
        } else {
            sender.held.push_back(batch);
        }
    }

    /// Unpacks a report of the far end; `None` if it is damaged.
    pub(crate) fn unpacked(&self, report: &[u8]) -> Option<Batch> {
        let mut batch = self.pool.take();
        unpack(report, &mut batch)?;
        Some(batch)
    }

    /// Takes an unpacked report of the far end; `None` if it is of no flow.
    pub(crate) fn report(&mut self, batch: Batch, sender_of: &[usize]) -> Option<()> {
        let flow = batch.events.first().map_or(0, |event| event.flow.0 as usize);
        self.arrivals(*sender_of.get(flow)?, batch);
        Some(())
    }

    /// Whether every message that was sent has arrived. Means something once all senders are done.
    pub(crate) fn is_all_back(&self) -> bool {
        self.senders.iter().all(|sender| sender.held.is_empty())
            && self.tallies.iter().all(|tally| *tally == Tally::default())
    }

    /// The sources have stopped before the planned end.
    pub(crate) fn end_measurement(&mut self, at: Time) {
        self.recorder.end_measurement(at);
    }

    /// Records what is still held back: its senders say nothing more.
    pub(crate) fn finish(mut self) {
        for sender in 0..self.senders.len() {
            self.departures(sender, Time::MAX, Batch::default());
            let rest: Vec<Batch> = self.senders[sender].held.drain(..).collect();
            rest.into_iter().for_each(|batch| self.record(batch));
        }
    }

    fn record(&mut self, batch: Batch) {
        let mut payload = batch.payload.as_slice();
        for event in &batch.events {
            self.count(event.flow, &event.what);
            self.recorder.record(event.at, event.flow, event.what);
            if let Some(length) = event.payload
                && let Some(bytes) = payload.split_off(..length as usize)
                && let Observation::Received { channel, sequence, .. } = event.what
            {
                self.recorder.payload(event.flow, channel, sequence, bytes);
            }
        }
        self.pool.give_back(batch);
    }

    fn count(&mut self, flow: FlowId, what: &Observation) {
        let Some(tally) = self.tallies.get_mut(flow.0 as usize) else { return };
        match *what {
            Observation::Sent { channel, sequence, .. } => tally.add(channel, sequence),
            Observation::Received { channel, sequence, .. } => tally.take(channel, sequence),
            Observation::Refused { .. }
            | Observation::Transferred { .. }
            | Observation::Overflowed { .. }
            | Observation::Stray { .. }
            | Observation::SendCall { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Bytes;

    use super::*;

    #[derive(Default)]
    struct Log(Vec<(char, u32)>);

    impl Recorder for Log {
        fn record(&mut self, _: Time, _: FlowId, what: Observation) {
            match what {
                Observation::Sent { sequence, .. } => self.0.push(('s', sequence)),
                Observation::Received { sequence, .. } => self.0.push(('r', sequence)),
                _ => {}
            }
        }
    }

    fn at(n: u32) -> Time {
        Time::from_nanos(u64::from(n) * 10)
    }

    fn sent(sequences: impl IntoIterator<Item = u32>) -> Batch {
        let mut batch = Batch::default();
        for n in sequences {
            let what = Observation::Sent { channel: 0, sequence: n, due: at(n), payload: Bytes(1) };
            batch.push(at(n), FlowId(0), what, None);
        }
        batch
    }

    fn received(sequences: impl IntoIterator<Item = u32>) -> Batch {
        let mut batch = Batch::default();
        for n in sequences {
            let (sent, reflected) = (at(n), Time::ZERO);
            let what = Observation::Received { channel: 0, sequence: n, sent, reflected, payload: Bytes(1) };
            batch.push(at(n + 1), FlowId(0), what, None);
        }
        batch
    }

    #[test]
    fn arrivals_wait_for_their_departures() {
        let mut log = Log::default();
        let mut collector = Collector::new(&mut log, Pool::default(), 1, 1);
        collector.arrivals(0, received(1..=2));
        collector.arrivals(0, received(3..=3));
        collector.departures(0, at(3), sent(1..=2));
        assert!(!collector.is_all_back(), "one is held back");
        collector.departures(0, at(9), sent(3..=4));
        assert!(!collector.is_all_back(), "one has not arrived");
        collector.arrivals(0, received(4..=4));
        assert!(collector.is_all_back());
        collector.finish();
        let expected = [('s', 1), ('s', 2), ('r', 1), ('r', 2), ('s', 3), ('s', 4), ('r', 3), ('r', 4)];
        assert_eq!(log.0, expected);
    }

    #[test]
    fn a_duplicate_does_not_make_up_for_a_loss() {
        let mut log = Log::default();
        let mut collector = Collector::new(&mut log, Pool::default(), 1, 1);
        collector.departures(0, Time::MAX, sent(0..2));
        collector.arrivals(0, received([0, 0]));
        assert!(!collector.is_all_back());
    }

    #[test]
    fn more_can_be_sent_after_a_duplicate() {
        let mut log = Log::default();
        let mut collector = Collector::new(&mut log, Pool::default(), 1, 1);
        collector.departures(0, at(2), sent([0]));
        collector.arrivals(0, received([0, 0]));
        collector.departures(0, Time::MAX, sent([1]));
        collector.arrivals(0, received([1]));
        assert_eq!(log.0, [('s', 0), ('r', 0), ('r', 0), ('s', 1), ('r', 1)]);
    }

    #[test]
    fn nothing_that_is_held_back_is_forgotten() {
        let mut log = Log::default();
        let mut collector = Collector::new(&mut log, Pool::default(), 1, 1);
        collector.arrivals(0, received([5]));
        collector.finish();
        assert_eq!(log.0, [('r', 5)]);
    }
}

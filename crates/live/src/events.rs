//! Observations on their way to the recorder: in batches, with recycled memory.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_flows::Observer;
use trunkline_metrics::Observation;

use crate::protocol::FromFar;

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) flow: FlowId,
    pub(crate) what: Observation,
    /// How many bytes of the batch's payload belong to it, if it came with payload.
    pub(crate) payload: Option<u32>,
}

/// Observations of one thread, in the order in which it made them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    /// The payloads of its events, one behind the other.
    pub(crate) payload: Vec<u8>,
    /// The latest time of sending among its arrivals.
    pub(crate) latest_sent: Time,
}

impl Batch {
    pub(crate) fn push(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>) {
        if let Observation::Received { sent, .. } = what {
            self.latest_sent = self.latest_sent.max(sent);
        }
        if let Some(bytes) = payload {
            self.payload.extend_from_slice(bytes);
        }
        self.events.push(Event { at, flow, what, payload: payload.map(|bytes| bytes.len() as u32) });
    }

    fn clear(&mut self) {
        self.events.clear();
        self.payload.clear();
        self.latest_sent = Time::ZERO;
    }
}

/// What reaches the thread that records.
#[derive(Debug)]
pub(crate) enum Input {
    /// A sender's observations; all that it sent before `until` is in this batch or an earlier one.
    Departures { sender: usize, until: Time, batch: Batch },
    /// A receiver's observations, all of messages of one sender.
    Arrivals { sender: usize, batch: Batch },
    /// The far end says something, or its pipe ended, for the reason given if there is one; heard when the raw clock showed
    /// this.
    Far { heard: u64, said: Result<FromFar, Option<String>> },
}

/// Batches that wait to be used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Batch>>>);

impl Pool {
    pub(crate) fn take(&self) -> Batch {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&self, mut batch: Batch) {
        batch.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < 64 {
            spare.push(batch);
        }
    }
}

/// Where a thread puts what it observes.
#[derive(Debug)]
pub(crate) struct Outbox {
    to: SyncSender<Input>,
    pool: Pool,
    sender: usize,
    /// Whether it is the sender itself.
    departures: bool,
    batch: Batch,
    /// When the oldest event of the batch was put in.
    since: Time,
}

/// A batch is passed on when it has so many events, or when it is so old.
const FULL: usize = 512;
const OLD: Duration = Duration::from_millis(50);
/// Beyond so many events a thread waits for the recorder: memory is bounded, timing then suffers.
const TOO_MANY: usize = 1 << 18;

impl Outbox {
    /// For a thread that sends, or one that receives what `sender` has sent.
    pub(crate) fn new(to: SyncSender<Input>, pool: Pool, sender: usize, departures: bool) -> Outbox {
        let batch = pool.take();
        Outbox { to, pool, sender, departures, batch, since: Time::MAX }
    }

    pub(crate) fn push(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>) {
        if self.since == Time::MAX {
            self.since = at;
        }
        self.batch.push(at, flow, what, payload);
    }

    /// Passes the batch on if it is full or old. `now` must not be before anything that was put in.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.batch.events.len() >= FULL || self.since + OLD <= now {
            self.flush(now);
        }
    }

    /// Passes the batch on, unless the recorder is behind: then it goes on filling.
    pub(crate) fn flush(&mut self, now: Time) {
        if self.batch.events.is_empty() {
            return;
        }
        let waits = self.batch.events.len() >= TOO_MANY;
        let input = self.input(now);
        let back = if waits {
            self.to.send(input).map_err(|failed| failed.0)
        } else {
            self.to.try_send(input).map_err(|failed| match failed {
                TrySendError::Full(input) | TrySendError::Disconnected(input) => input,
            })
        };
        match back {
            Ok(()) => {
                self.batch = self.pool.take();
                self.since = Time::MAX;
            }
            Err(Input::Departures { batch, .. } | Input::Arrivals { batch, .. }) => self.batch = batch,
            Err(Input::Far { .. }) => {}
        }
    }

    fn input(&mut self, until: Time) -> Input {
        let (sender, batch) = (self.sender, core::mem::take(&mut self.batch));
        if self.departures {
            Input::Departures { sender, until, batch }
        } else {
            Input::Arrivals { sender, batch }
        }
    }
}

impl Observer for Outbox {
    fn observe(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>) {
        self.push(at, flow, what, payload);
    }

    /// Who sends through engines counts these.
    fn oversize(&mut self, _: usize) {}
}

/// The last batch goes through whatever it takes, and says that nothing follows.
impl Drop for Outbox {
    fn drop(&mut self) {
        let input = self.input(Time::MAX);
        // If nobody records any more, nobody misses it.
        let _ = self.to.send(input);
    }
}

/// Observations of the far end, packed for the pipe. All are of messages of one sender.
///
/// Every entry is a tag (0 stray, 1 received, 2 received and followed by the payload), the time, the flow and the
/// payload's or stray bytes' length; for received ones also channel, sequence and the time of sending; big-endian.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) bytes: Vec<u8>,
}

impl Report {
    /// Adds one; what sinks do not see (sending, refusing) is not for reports.
    pub(crate) fn push(&mut self, at: Time, flow: FlowId, what: &Observation, kept: Option<&[u8]>) {
        let mut head = |tag: u8, length: Bytes| {
            self.bytes.push(tag);
            self.bytes.extend_from_slice(&at.as_nanos().to_be_bytes());
            self.bytes.extend_from_slice(&flow.0.to_be_bytes());
            let length = u32::try_from(length.0).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(&length.to_be_bytes());
        };
        match *what {
            Observation::Stray { bytes } => head(0, bytes),
            Observation::Received { channel, sequence, sent, payload, .. } => {
                head(if kept.is_some() { 2 } else { 1 }, payload);
                self.bytes.extend_from_slice(&channel.to_be_bytes());
                self.bytes.extend_from_slice(&sequence.to_be_bytes());
                self.bytes.extend_from_slice(&sent.as_nanos().to_be_bytes());
                self.bytes.extend_from_slice(kept.unwrap_or_default());
            }
            Observation::Sent { .. }
            | Observation::Refused { .. }
            | Observation::Transferred { .. }
            | Observation::Overflowed { .. }
            | Observation::SendCall { .. } => {}
        }
    }
}

/// Unpacks a report into a batch; `None` if it is damaged.
pub(crate) fn unpack(mut report: &[u8], batch: &mut Batch) -> Option<()> {
    let from = &mut report;
    while let Some([tag]) = take::<1>(from) {
        let at = Time::from_nanos(u64::from_be_bytes(take(from)?));
        let flow = FlowId(u32::from_be_bytes(take(from)?));
        let length = u32::from_be_bytes(take(from)?);
        let bytes = Bytes(u64::from(length));
        if tag == 0 {
            batch.push(at, flow, Observation::Stray { bytes }, None);
            continue;
        }
        let channel = u16::from_be_bytes(take(from)?);
        let sequence = u32::from_be_bytes(take(from)?);
        let sent = Time::from_nanos(u64::from_be_bytes(take(from)?));
        let what = Observation::Received { channel, sequence, sent, reflected: Time::ZERO, payload: bytes };
        let payload = match tag {
            1 => None,
            2 => Some(from.split_off(..length as usize)?),
            _ => return None,
        };
        batch.push(at, flow, what, payload);
    }
    Some(())
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message that waits for room in the socket's buffer is in no batch yet, and can have arrived.
    #[test]
    fn a_report_is_unpacked_as_it_was_packed() {
        let received = |sequence, payload| Observation::Received {
            channel: 3,
            sequence,
            sent: Time::from_nanos(100 + u64::from(sequence)),
            reflected: Time::ZERO,
            payload: Bytes(payload),
        };
        let mut report = Report::default();
        let mut expected = Batch::default();
        for (what, kept) in [
            (received(1, 4), Some(&b"abcd"[..])),
            (received(2, 80), None),
            (Observation::Stray { bytes: Bytes(9) }, None),
            (received(3, 0), Some(&b""[..])),
        ] {
            report.push(Time::from_nanos(7), FlowId(5), &what, kept);
            expected.push(Time::from_nanos(7), FlowId(5), what, kept);
        }
        let mut batch = Batch::default();
        assert_eq!(unpack(&report.bytes, &mut batch), Some(()));
        assert_eq!(batch, expected);
        assert_eq!(batch.latest_sent, Time::from_nanos(103));
    }

    proptest! {
        #[test]
        fn no_report_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&bytes, &mut Batch::default());
        }
    }
}

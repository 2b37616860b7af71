//! Counting around any queue, so that disciplines contain none and cannot forget to.

use trunkline_core::{Bytes, Duration, Packet, Time};

use super::{Backlog, Dequeued, Queue, Sojourns};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

/// A queue with its counters.
///
/// After every call, what was received has left, was dropped or waits; debug builds compare that with the
/// discipline's own backlog (the identities of ns-3's queue discs).
pub struct Counted {
    queue: Box<dyn Queue>,
    waiting: Backlog,
    counters: QueueCounters,
}

/// What [`Counted`] counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets given to the queue.
    pub received: u64,
    /// Packets that left it for transmission.
    pub dequeued: u64,
    /// Packets dropped, by [`DropCause`] index.
    pub dropped: [u64; DropCause::COUNT],
    /// Packets marked, by [`MarkCause`] index.
    pub marked: [u64; MarkCause::COUNT],
    /// Sum of the sojourn times of packets that left.
    pub sojourn_total: Duration,
    /// All of them, by length.
    pub sojourns: Sojourns,
}

impl Counted {
    /// Counts from now on what an empty queue does.
    pub fn new(queue: Box<dyn Queue>) -> Counted {
        let waiting = queue.backlog();
        Counted { queue, waiting, counters: QueueCounters::default() }
    }

    /// Gives the queue a packet, whose time of arrival there is now.
    pub fn enqueue(&mut self, now: Time, mut packet: Packet, fates: &mut Fates) {
        packet.enqueued = now;
        self.counters.received += 1;
        self.waiting.packets += 1;
        self.waiting.bytes += packet.size;
        let before = fates.0.len();
        self.queue.enqueue(now, packet, fates);
        self.count(&fates.0[before..]);
        self.check();
    }

    /// Asks the queue which packet leaves now.
    pub fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        let before = fates.0.len();
        let dequeued = self.queue.dequeue(now, fates);
        self.count(&fates.0[before..]);
        match &dequeued {
            Dequeued::Packet(packet) => {
                let sojourn = now.since(packet.enqueued);
                self.counters.dequeued += 1;
                self.counters.sojourn_total += sojourn;
                self.counters.sojourns.record(sojourn);
                self.forget(packet.size);
            }
            Dequeued::Empty => debug_assert_eq!(self.waiting.packets, 0, "an empty queue holds packets"),
            Dequeued::NotBefore(time) => debug_assert!(*time > now, "{time} is not later than {now}"),
        }
        self.check();
        dequeued
    }

    /// Puts another queue, which is empty, in the place of this one. What waits goes over in the order in which it would
    /// have left, and keeps the time of its arrival; what the other has no room for is dropped.
    pub fn replace(&mut self, now: Time, queue: Box<dyn Queue>, fates: &mut Fates) {
        let before = fates.0.len();
        let mut old = core::mem::replace(&mut self.queue, queue);
        let mut asked = now;
        loop {
            match old.dequeue(asked, fates) {
                Dequeued::Packet(packet) => self.queue.enqueue(now, packet, fates),
                Dequeued::Empty => break,
                // Of the old queue's word only the order counts.
                Dequeued::NotBefore(time) => asked = time.max(asked + Duration::from_nanos(1)),
            }
        }
        self.count(&fates.0[before..]);
        self.check();
    }

    /// What waits.
    pub fn waiting(&self) -> Backlog {
        self.waiting
    }

    /// What was counted so far.
    pub fn counters(&self) -> &QueueCounters {
        &self.counters
    }

    fn count(&mut self, fates: &[Fate]) {
        for fate in fates {
            match fate {
                Fate::Dropped { packet, cause, .. } => {
                    self.counters.dropped[cause.index()] += 1;
                    self.forget(packet.size);
                }
                Fate::Marked { cause, .. } => self.counters.marked[cause.index()] += 1,
            }
        }
    }

    fn forget(&mut self, size: Bytes) {
        debug_assert!(
            self.waiting.packets > 0 && self.waiting.bytes >= size,
            "a queue handed out a packet that it was never given"
        );
        self.waiting.packets = self.waiting.packets.saturating_sub(1);
        self.waiting.bytes = Bytes(self.waiting.bytes.count().saturating_sub(size.count()));
    }

    fn check(&self) {
        debug_assert_eq!(self.waiting, self.queue.backlog(), "counted backlog against the queue's own");
        debug_assert_eq!(
            self.counters.received,
            self.counters.dequeued + self.counters.dropped.iter().sum::<u64>() + self.waiting.packets,
            "received = dequeued + dropped + waiting"
        );
    }
}

impl core::fmt::Debug for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Counted")
            .field("waiting", &self.waiting)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

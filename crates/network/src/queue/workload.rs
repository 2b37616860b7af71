//! A line behind a queue, and senders that react to loss and marks: what disciplines are tested with.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use trunkline_core::{Bytes, Duration, Ecn, FlowId, Packet, PacketId, Rate, Time};

use super::{Counted, Dequeued, Queue};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

/// A line of constant rate that takes the next packet from the queue when it is free.
pub(super) struct Line {
    pub(super) queue: Counted,
    rate: Rate,
    free: Time,
    next: u64,
    /// Every packet that left the queue, with the time, in order.
    pub(super) left: Vec<(Time, Packet)>,
    /// Every fate.
    pub(super) fates: Fates,
}

impl Line {
    pub(super) fn new(queue: impl Queue + 'static, bits_per_second: u64) -> Line {
        Line {
            queue: Counted::new(Box::new(queue)),
            rate: Rate::from_bits_per_second(bits_per_second),
            free: Time::ZERO,
            next: 0,
            left: Vec::new(),
            fates: Fates::default(),
        }
    }

    /// Transmits what leaves until `now`, then offers a packet; times never decrease.
    pub(super) fn offer(&mut self, now: Time, flow: u32, size: u64, ecn: Ecn) -> PacketId {
        self.run(now);
        let id = PacketId(self.next);
        self.next += 1;
        let packet = Packet { id, flow: FlowId(flow), size: Bytes(size), ecn, ..Packet::default() };
        self.queue.enqueue(now, packet, &mut self.fates);
        if self.free <= now {
            self.free = now;
            self.serve();
        }
        id
    }

    /// Offers packets of `size` from `start` until before `end` at `bits_per_second`.
    pub(super) fn flood(&mut self, (start, end): (Time, Time), bits_per_second: u64, size: u64, ecn: Ecn) {
        let gap = Rate::from_bits_per_second(bits_per_second).time_for(Bytes(size));
        let mut now = start;
        while now < end {
            self.offer(now, 0, size, ecn);
            now += gap;
        }
    }

    /// Transmits what leaves until `now`.
    pub(super) fn run(&mut self, now: Time) {
        while self.next_departure().is_some_and(|time| time <= now) {
            self.serve();
        }
    }

    /// When the next packet leaves the queue.
    fn next_departure(&self) -> Option<Time> {
        (self.queue.waiting().packets > 0).then_some(self.free)
    }

    fn serve(&mut self) {
        match self.queue.dequeue(self.free, &mut self.fates) {
            Dequeued::Packet(packet) => {
                let now = self.free;
                self.free += self.rate.time_for(packet.size);
                self.left.push((now, packet));
            }
            Dequeued::Empty => assert_eq!(self.queue.waiting().packets, 0),
            Dequeued::NotBefore(time) => panic!("nothing leaves before {time}"),
        }
    }

    /// When packets were dropped for this cause.
    pub(super) fn drops(&self, cause: DropCause) -> Vec<Time> {
        let drops = self.fates.0.iter().filter_map(|fate| match fate {
            Fate::Dropped { at, cause: c, .. } => (*c == cause).then_some(*at),
            Fate::Marked { .. } => None,
        });
        drops.collect()
    }

    /// When packets were marked for this cause.
    pub(super) fn marks(&self, cause: MarkCause) -> Vec<Time> {
        let marks = self.fates.0.iter().filter_map(|fate| match fate {
            Fate::Marked { at, cause: c, .. } => (*c == cause).then_some(*at),
            Fate::Dropped { .. } => None,
        });
        marks.collect()
    }

    /// The sojourn times, in milliseconds, of packets that `which` chooses, in the order in which they left.
    pub(super) fn sojourns(&self, which: impl Fn(Time, &Packet) -> bool) -> Vec<f64> {
        let chosen = self.left.iter().filter(|(time, packet)| which(*time, packet));
        chosen.map(|(time, packet)| time.since(packet.enqueued).as_millis_f64()).collect()
    }
}

/// The mean.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How a sender reacts to congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Halves its window, at most once per window, at a loss or a mark (RFC 5681).
    Reno,
    /// Gives up half a packet for every mark, so that the rate of marks does not depend on its rate (RFC 9331).
    Scalable,
}

/// Senders with unlimited data, whose packets pass a line and are acknowledged a round-trip time later.
pub(super) struct Loop {
    pub(super) line: Line,
    rtt: Duration,
    senders: Vec<Sender>,
    feedback: BinaryHeap<Reverse<(Time, PacketId, usize, bool)>>,
    seen: (usize, usize),
}

struct Sender {
    reaction: Reaction,
    ecn: Ecn,
    window: f64,
    in_flight: u64,
    /// The first packet sent after the last reaction.
    recovered: PacketId,
}

const SIZE: u64 = 1500;

impl Loop {
    pub(super) fn new(line: Line, rtt: Duration, senders: &[(Reaction, Ecn)]) -> Loop {
        let sender = |&(reaction, ecn): &(Reaction, Ecn)| Sender {
            reaction,
            ecn,
            window: 2.0,
            in_flight: 0,
            recovered: PacketId(0),
        };
        let senders = senders.iter().map(sender).collect();
        Loop { line, rtt, senders, feedback: BinaryHeap::new(), seen: (0, 0) }
    }

    /// Lets them all send from the start of time until `end`. Sender `i` sends flow `i`.
    pub(super) fn run(&mut self, end: Time) {
        for sender in 0..self.senders.len() {
            self.send(Time::ZERO, sender);
        }
        loop {
            let heard = self.feedback.peek().map_or(Time::MAX, |Reverse(event)| event.0);
            let departure = self.line.next_departure().unwrap_or(Time::MAX);
            if heard.min(departure) > end {
                return;
            }
            if departure <= heard {
                self.line.serve();
                self.collect();
            } else if let Some(Reverse((now, id, sender, congested))) = self.feedback.pop() {
                self.senders[sender].hear(id, congested, PacketId(self.line.next));
                self.send(now, sender);
            }
        }
    }

    fn send(&mut self, now: Time, index: usize) {
        while (self.senders[index].in_flight as f64) < self.senders[index].window.max(1.0) {
            self.senders[index].in_flight += 1;
            self.line.offer(now, index as u32, SIZE, self.senders[index].ecn);
            self.collect();
        }
    }

    /// Turns what the line did since the last time into feedback.
    fn collect(&mut self) {
        for (time, packet) in &self.line.left[self.seen.0..] {
            let marked = packet.ecn == Ecn::CongestionExperienced;
            self.feedback.push(Reverse((*time + self.rtt, packet.id, packet.flow.0 as usize, marked)));
        }
        for fate in &self.line.fates.0[self.seen.1..] {
            if let Fate::Dropped { at, packet, .. } = fate {
                self.feedback.push(Reverse((*at + self.rtt, packet.id, packet.flow.0 as usize, true)));
            }
        }
        self.seen = (self.line.left.len(), self.line.fates.0.len());
    }
}

impl Sender {
    fn hear(&mut self, id: PacketId, congested: bool, next: PacketId) {
        self.in_flight -= 1;
        match (congested, self.reaction) {
            (false, _) => self.window += 1.0 / self.window,
            (true, Reaction::Scalable) => self.window = (self.window - 0.5).max(1.0),
            (true, Reaction::Reno) if id >= self.recovered => {
                self.window = (self.window / 2.0).max(1.0);
                self.recovered = next;
            }
            (true, Reaction::Reno) => {}
        }
    }
}

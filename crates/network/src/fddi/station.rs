//! A station: its queue, and what it may send when it has the token.

use trunkline_core::{Bytes, Destination, Duration, Packet, PacketId, Port, Rate, Seed, Time};

use super::token::Ring;
use super::{Class, StationConfig, UNCOUNTED};
use crate::fate::{DropCause, Fate, Fates};
use crate::impairment::Stage;
use crate::medium::{Delivery, MediumCounters, Outcome};
use crate::queue::{Backlog, Counted, Dequeued};
use crate::serial::serialiser::Serialiser;

#[derive(Debug)]
pub(super) struct Station {
    class: Class,
    frames_per_token: u64,
    mtu: Bytes,
    /// What every packet takes on the ring beside its own bytes.
    framing: Bytes,
    queue: Counted,
    /// The packet that left the queue and did not fit into what was left of the allocation.
    head: Option<Packet>,
    /// Before this time the queue hands nothing out.
    not_before: Time,
    stage: Stage,
    /// Without what `queue` counts.
    counters: MediumCounters,
}

/// A station's stay with the token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) station: usize,
    /// When the frame that it sends ends.
    pub(super) until: Time,
    frames_sent: u64,
    allowance: Allowance,
}

/// A frame on the ring.
struct Sent<'r> {
    at: Time,
    end: Time,
    ring: &'r Ring,
    from: usize,
}

/// What the timers allow it.
#[derive(Clone, Copy, Debug)]
enum Allowance {
    Unlimited,
    /// To send for so long.
    Left(Duration),
    /// To begin frames before then: the token holding timer.
    BeginBefore(Time),
}

impl Hold {
    pub(super) fn has_sent(&self) -> bool {
        self.frames_sent > 0
    }
}

impl Station {
    pub(super) fn new(config: StationConfig, seed: Seed) -> Station {
        Station {
            class: config.class,
            frames_per_token: config.frames_per_token.unwrap_or(u64::MAX),
            mtu: config.mtu,
            framing: config.overhead + UNCOUNTED,
            stage: Stage::new(&config.impairments, &config.place, seed),
            queue: Counted::new(config.queue),
            head: None,
            not_before: Time::ZERO,
            counters: MediumCounters::default(),
        }
    }

    /// Takes a packet.
    pub(super) fn offer(&mut self, at: Time, packet: Packet, rate: Rate, fates: &mut Fates) {
        self.counters.offered += 1;
        if packet.size > self.mtu || !self.fits_an_allocation(packet.size, rate) {
            self.counters.dropped[DropCause::TooLarge.index()] += 1;
            fates.0.push(Fate::Dropped { at, packet, cause: DropCause::TooLarge });
            return;
        }
        self.queue.enqueue(at, packet, fates);
        // What came may leave before what is held back.
        self.not_before = Time::ZERO;
        let waiting = self.queue.waiting();
        self.counters.backlog_max = self.counters.backlog_max.max(waiting.bytes);
        self.counters.backlog_packets_max = self.counters.backlog_packets_max.max(waiting.packets);
        self.check();
    }

    /// Whether it has something to send.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.head.is_some() || self.queue.waiting().packets > 0
    }

    /// Before this time it sends nothing.
    #[inline]
    pub(super) fn not_before(&self) -> Time {
        self.not_before
    }

    /// What it may do with the token that comes at `now`: nothing if only an early token is of use to it.
    pub(super) fn hold(&self, index: usize, now: Time, early_until: Option<Time>) -> Option<Hold> {
        let allowance = match self.class {
            Class::Synchronous(None) => Allowance::Unlimited,
            Class::Synchronous(Some(allocation)) => Allowance::Left(allocation),
            Class::Asynchronous => Allowance::BeginBefore(early_until?),
        };
        Some(Hold { station: index, until: now, frames_sent: 0, allowance })
    }

    /// The packet that it sends next at `now`, while it holds the token.
    pub(super) fn next_packet(
        &mut self,
        now: Time,
        hold: &mut Hold,
        rate: Rate,
        fates: &mut Fates,
    ) -> Option<Packet> {
        let is_over = matches!(hold.allowance, Allowance::BeginBefore(end) if now >= end);
        if is_over || hold.frames_sent == self.frames_per_token || !self.is_waiting() {
            return None;
        }
        let packet = match self.head.take() {
            Some(packet) => packet,
            None => self.dequeue(now, fates)?,
        };
        if let Allowance::Left(left) = &mut hold.allowance {
            let time = rate.time_for(packet.size + self.framing);
            if time > *left {
                self.head = Some(packet);
                return None;
            }
            *left = left.saturating_sub(time);
        }
        hold.frames_sent += 1;
        Some(packet)
    }

    /// Sends a packet and returns when its frame ends. The station is at `index`.
    pub(super) fn transmit(
        &mut self,
        now: Time,
        mut packet: Packet,
        line: &mut Serialiser,
        ring: &Ring,
        index: usize,
        out: &mut Outcome,
    ) -> Time {
        let on_ring = packet.size + self.framing;
        let (end, busy) = line.transmit(now, on_ring);
        self.counters.transmitted += on_ring;
        self.counters.busy.add(end, busy);
        self.counters.busy.carries(packet.id, 1.0);
        packet.on_line = on_ring.saturating_sub(UNCOUNTED);
        let sent = Sent { at: now, end, ring, from: index };
        let stations = ring.stations();
        match packet.to {
            Destination::Port(Port(to)) if usize::from(to) < stations && usize::from(to) != index => {
                self.deliver(&sent, usize::from(to), packet, out);
            }
            Destination::Everyone if stations > 1 => {
                self.counters.copied += stations as u64 - 2;
                for hops in 1..stations - 1 {
                    self.deliver(&sent, (index + hops) % stations, packet.clone(), out);
                }
                // The last one gets the packet itself: on a ring of two nothing is copied.
                self.deliver(&sent, (index + stations - 1) % stations, packet, out);
            }
            _ => self.lose(now, packet, DropCause::NoStation, out),
        }
        self.check();
        end
    }

    /// Hands out what one receiver gets of a frame.
    fn deliver(&mut self, sent: &Sent<'_>, to: usize, mut packet: Packet, out: &mut Outcome) {
        let passage = self.stage.pass(sent.end, &mut packet);
        if passage.lost {
            return self.lose(sent.at, packet, DropCause::LinkLoss, out);
        }
        self.counters.delivered += 1;
        self.counters.corrupted += u64::from(passage.corrupted);
        self.counters.reordered += u64::from(passage.overtakes);
        let at = passage.arrival + sent.ring.between(sent.from, to);
        let delivery = Delivery { at, to: Port(to as u16), packet };
        if passage.duplicated {
            self.counters.duplicated += 1;
            out.deliveries.push(delivery.clone());
        }
        out.deliveries.push(delivery);
    }

    fn lose(&mut self, at: Time, packet: Packet, cause: DropCause, out: &mut Outcome) {
        self.counters.dropped[cause.index()] += 1;
        out.fates.0.push(Fate::Dropped { at, packet, cause });
    }

    pub(super) fn waiting(&self) -> Backlog {
        self.queue.waiting()
    }

    pub(super) fn counters(&self) -> MediumCounters {
        self.counters.clone().with_queue(self.queue.counters())
    }

    pub(super) fn is_synchronous(&self) -> bool {
        matches!(self.class, Class::Synchronous(_))
    }

    /// How long it was sending in a measurement of this length.
    pub(super) fn busy(&self, over: Duration) -> Duration {
        self.counters.busy.measured(over)
    }

    /// The packet that it is sending at `at`, and the share of it that is still to come.
    pub(super) fn under_way(&self, at: Time) -> Option<(PacketId, f64)> {
        self.counters.busy.under_way(at)
    }

    /// Sending does not count as busy any more.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.counters.busy.end(at);
    }

    /// Frames that it has sent.
    pub(super) fn frames(&self) -> u64 {
        self.queue.counters().dequeued - u64::from(self.head.is_some())
    }

    /// Bytes that it has sent, with all framing.
    pub(super) fn bytes(&self) -> u64 {
        self.counters.transmitted.count()
    }

    fn fits_an_allocation(&self, size: Bytes, rate: Rate) -> bool {
        match self.class {
            Class::Synchronous(Some(allocation)) => rate.time_for(size + self.framing) <= allocation,
            Class::Synchronous(None) | Class::Asynchronous => true,
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        match self.queue.dequeue(now, fates) {
            Dequeued::Packet(packet) => Some(packet),
            Dequeued::Empty => None,
            Dequeued::NotBefore(time) => {
                // A queue that breaks its word must not stop time.
                self.not_before = time.max(now + Duration::from_nanos(1));
                None
            }
        }
    }

    fn check(&self) {
        if cfg!(debug_assertions) {
            let (own, queue) = (&self.counters, self.queue.counters());
            let [lost, unclaimed, refused] = [DropCause::LinkLoss, DropCause::NoStation, DropCause::TooLarge]
                .map(|cause| own.dropped[cause.index()]);
            assert_eq!(own.offered, refused + queue.received, "offered = too large + queued");
            let received = own.delivered + lost + unclaimed;
            assert_eq!(self.frames() + own.copied, received, "sent + copied = delivered + lost + nobody's");
        }
    }
}

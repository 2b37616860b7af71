//! CoDel, controlled delay (RFC 8289).

use std::collections::VecDeque;

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter, Values};
use trunkline_core::{Bytes, Duration, Packet, Stream, Time};

use super::ecn;
use super::{Backlog, Dequeued, Queue, QueueKind};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

#[cfg(test)]
mod tests;

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "codel",
    doc: "CoDel, controlled delay (RFC 8289): first in, first out. When packets have waited longer than \
          `target` for a whole `interval`, a packet is dropped at the head. Further drops follow at \
          intervals that shrink with the square root of their number, until a packet has waited less. \
          Short bursts pass; a standing queue is drained.",
    parameters: &[
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("1000 packets"),
            doc: "Maximum backlog, in packets, or in bytes at the network layer; arrivals beyond it are \
                  dropped. RFC 8289 leaves it open; Linux uses 1000 packets.",
        },
        TARGET,
        INTERVAL,
        MTU,
        Parameter {
            name: "ecn",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether ECN-capable packets are marked instead of dropped (RFC 3168).",
        },
    ],
    build: |values, _: Stream| Box::new(Codel::new(values.limit("limit"), CodelConfig::from(values))),
};

/// CoDel's target, for every kind that uses it.
pub(super) const TARGET: Parameter = Parameter {
    name: "target",
    kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
    default: Preset::Text("5 ms"),
    doc: "Acceptable persistent sojourn time: 5 % to 10 % of `interval` (RFC 8289 section 4.4).",
};

/// CoDel's interval, for every kind that uses it.
pub(super) const INTERVAL: Parameter = Parameter {
    name: "interval",
    kind: Kind::Duration { min: Duration::from_micros(10), max: Duration::from_secs(100) },
    default: Preset::Text("100 ms"),
    doc: "Time for which sojourn times must stay above `target` before a packet is dropped: about the \
          longest round-trip time of connections through the link (RFC 8289 section 4.3).",
};

/// CoDel's largest packet, for every kind that uses it.
pub(super) const MTU: Parameter = Parameter {
    name: "mtu",
    kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(65_535) },
    default: Preset::Text("1500 B"),
    doc: "Largest packet of the link. Nothing is dropped while the backlog is no larger, so that a slow link \
          stays busy (MAXPACKET of RFC 8289 section 5).",
};

/// What CoDel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The acceptable sojourn time.
    pub target: Duration,
    /// How long it must be exceeded before a packet is dropped.
    pub interval: Duration,
    /// Nothing is dropped while no more than this waits.
    pub mtu: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl From<&Values> for CodelConfig {
    /// # Panics
    /// If the table that was read does not declare CoDel's parameters: a mistake in the program, never in a file.
    fn from(values: &Values) -> CodelConfig {
        CodelConfig {
            target: values.duration("target"),
            interval: values.duration("interval"),
            mtu: values.bytes("mtu"),
            ecn: values.flag("ecn"),
        }
    }
}

/// First in, first out, with CoDel at the head.
#[derive(Clone, Debug)]
pub struct Codel {
    limit: Limit,
    config: CodelConfig,
    control: Control,
    packets: VecDeque<Packet>,
    bytes: Bytes,
}

impl Codel {
    /// An empty queue.
    pub fn new(limit: Limit, config: CodelConfig) -> Codel {
        Codel { limit, config, control: Control::default(), packets: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl Queue for Codel {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        if self.limit.admits(self.packets.len() as u64, self.bytes, packet.size) {
            self.bytes += packet.size;
            self.packets.push_back(packet);
        } else {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        let (packets, bytes) = (&mut self.packets, &mut self.bytes);
        let take = || {
            let packet = packets.pop_front()?;
            *bytes = Bytes(bytes.count() - packet.size.count());
            Some(Taken { packet, behind: *bytes })
        };
        match self.control.dequeue(&self.config, now, take, fates) {
            Some(packet) => Dequeued::Packet(packet),
            None => Dequeued::Empty,
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}

/// The oldest packet of a queue, and how many bytes waited behind it.
pub(super) struct Taken {
    pub(super) packet: Packet,
    pub(super) behind: Bytes,
}

/// The state of CoDel for one queue, and its algorithm (RFC 8289 sections 5.4 to 5.6, whose names the fields have).
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When sojourn times will have been above the target for an interval; nothing while they are below.
    first_above_time: Option<Time>,
    /// Whether packets are being dropped.
    dropping: bool,
    /// When the next one is, or was.
    drop_next: Time,
    /// How many were since dropping began, on the scale of the control law.
    count: u64,
    /// What `count` was when dropping last began.
    last_count: u64,
}

impl Control {
    /// The packet that leaves at `now`, after those that are dropped on the way. `take` takes the oldest from the queue.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        config: &CodelConfig,
        now: Time,
        mut take: impl FnMut() -> Option<Taken>,
        fates: &mut Fates,
    ) -> Option<Packet> {
        let mut head = self.take(config, now, &mut take)?;
        if self.dropping {
            self.dropping = head.may_drop;
            // The rate of drops may be so high that several are due.
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if config.signal(now, &mut head.packet, fates) {
                    self.drop_next = self.control_law(config, self.drop_next);
                    break;
                }
                head = self.replace(config, now, head, &mut take, fates)?;
                self.dropping = head.may_drop;
                if self.dropping {
                    self.drop_next = self.control_law(config, self.drop_next);
                }
            }
        } else if head.may_drop {
            if !config.signal(now, &mut head.packet, fates) {
                head = self.replace(config, now, head, &mut take, fates)?;
            }
            self.dropping = true;
            // Shortly after it last ended, dropping begins again with the rate that controlled the queue then.
            let delta = self.count - self.last_count;
            let recently = now < self.drop_next + config.interval * 16;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.control_law(config, now);
        }
        Some(head.packet)
    }

    /// The oldest packet, judged (`dodequeue` in RFC 8289).
    #[inline]
    fn take(
        &mut self,
        config: &CodelConfig,
        now: Time,
        take: &mut impl FnMut() -> Option<Taken>,
    ) -> Option<Head> {
        let Some(Taken { packet, behind }) = take() else {
            self.first_above_time = None;
            self.dropping = false;
            return None;
        };
        let low = now.since(packet.enqueued) < config.target || behind <= config.mtu;
        let may_drop = match self.first_above_time {
            _ if low => {
                self.first_above_time = None;
                false
            }
            None => {
                self.first_above_time = Some(now + config.interval);
                false
            }
            Some(time) => now >= time,
        };
        Some(Head { packet, may_drop })
    }

    /// Drops `head` and takes the packet behind it.
    fn replace(
        &mut self,
        config: &CodelConfig,
        now: Time,
        head: Head,
        take: &mut impl FnMut() -> Option<Taken>,
        fates: &mut Fates,
    ) -> Option<Head> {
        fates.0.push(Fate::Dropped { at: now, packet: head.packet, cause: DropCause::Sojourn });
        self.take(config, now, take)
    }

    /// When the next drop is due after one at `time`. Division and square root are exact to the last digit by IEEE 754,
    /// so the times are the same on every machine.
    fn control_law(&self, config: &CodelConfig, time: Time) -> Time {
        let nanos = config.interval.as_nanos() as f64 / (self.count as f64).sqrt();
        time + Duration::from_nanos(nanos as u64)
    }
}

struct Head {
    packet: Packet,
    /// Whether sojourn times were above the target for long enough.
    may_drop: bool,
}

impl CodelConfig {
    /// Whether the packet carries the signal as a mark and need not be dropped.
    fn signal(&self, now: Time, packet: &mut Packet, fates: &mut Fates) -> bool {
        self.ecn && ecn::mark(now, packet, MarkCause::Sojourn, fates)
    }
}

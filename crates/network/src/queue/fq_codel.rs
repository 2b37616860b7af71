//! FQ-CoDel, flow queue CoDel (RFC 8290).

use std::collections::VecDeque;

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter, Values};
use trunkline_core::{Bytes, Duration, FlowId, Packet, Stream, Time};

use super::codel::{self, CodelConfig, Control, Taken};
use super::slab::{List, Slab};
use super::{Backlog, Dequeued, Queue, QueueKind, ecn};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

#[cfg(test)]
mod tests;

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "fq-codel",
    doc: "FQ-CoDel, flow queue CoDel (RFC 8290): flows are hashed into queues with CoDel, which are served \
          in turn, one `quantum` at a time. A flow that sends less than its share finds its queue empty \
          and is served first. When all queues together reach `limit`, packets of the longest queue are \
          dropped.",
    parameters: &[
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("10240 packets"),
            doc: "Maximum backlog of all queues together, in packets, or in bytes at the network layer (RFC \
                  8290 section 5.2.2).",
        },
        Parameter {
            name: "flows",
            kind: Kind::Integer { min: 1, max: 65_536 },
            default: Preset::Text("1024"),
            doc: "Number of queues (RFC 8290 section 5.2). Flows with the same hash share one: two of n \
                  flows do with a probability of about n^2 / (2 * flows).",
        },
        Parameter {
            name: "quantum",
            kind: Kind::Bytes { min: Bytes(256), max: Bytes(1_048_576) },
            default: Preset::Text("1500 B"),
            doc: "Bytes at the network layer that a queue sends per turn. The default is the largest packet on \
                   Ethernet: the 1514 B of RFC 8290 section 5.2 and of Linux count its header. 300 B is common \
                   on slow links, to favour small packets.",
        },
        codel::TARGET,
        codel::INTERVAL,
        codel::MTU,
        Parameter {
            name: "ecn",
            kind: Kind::Flag,
            default: Preset::Text("true"),
            doc: "Whether ECN-capable packets are marked instead of dropped (RFC 8290 section 5.2).",
        },
        Parameter {
            name: "ce-threshold",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            default: Preset::Absent,
            doc: "Sojourn time above which each ECN-capable packet is marked, in addition to CoDel's marks, \
                  for DCTCP-like senders (RFC 8290 section 5.2). Without this key, there is no such \
                  threshold.",
        },
        Parameter {
            name: "drop-batch",
            kind: Kind::Integer { min: 1, max: 65_536 },
            default: Preset::Text("64"),
            doc: "Maximum number of packets dropped when the limit is reached: half of the longest queue, up \
                  to this number (RFC 8290 section 4.1).",
        },
    ],
    build: |values, stream| Box::new(FqCodel::new(FqCodelConfig::from(values), stream)),
};

/// What FQ-CoDel is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// How much may wait in all queues together.
    pub limit: Limit,
    /// How many queues there are, at least 1.
    pub flows: u32,
    /// How many bytes a queue sends in a turn, at least 1.
    pub quantum: Bytes,
    /// What the CoDel of every queue is told.
    pub codel: CodelConfig,
    /// The sojourn time above which every ECN-capable packet is marked.
    pub ce_threshold: Option<Duration>,
    /// How many packets are dropped at most when the limit is reached, at least 1.
    pub drop_batch: u64,
}

impl From<&Values> for FqCodelConfig {
    /// # Panics
    /// If the table that was read does not declare FQ-CoDel's parameters: a mistake in the program, never in a file.
    fn from(values: &Values) -> FqCodelConfig {
        FqCodelConfig {
            limit: values.limit("limit"),
            flows: u32::try_from(values.integer("flows")).unwrap_or(u32::MAX),
            quantum: values.bytes("quantum"),
            codel: CodelConfig::from(values),
            ce_threshold: values.duration_if_given("ce-threshold"),
            drop_batch: values.integer("drop-batch"),
        }
    }
}

/// A queue with CoDel for each hash of a flow, served in turn.
#[derive(Clone, Debug)]
pub struct FqCodel {
    config: FqCodelConfig,
    /// Drawn once, so that which flows meet in a queue differs between repetitions (RFC 8290 section 4.1).
    perturbation: u64,
    slab: Slab,
    flows: Vec<Flow>,
    /// Queues that have become active and were not yet served for a whole quantum.
    new: VecDeque<u32>,
    /// The other active queues.
    old: VecDeque<u32>,
    backlog: Backlog,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: List,
    control: Control,
    /// Bytes it may still send in this turn; up to one packet below zero.
    credit: i64,
    /// Whether it stands in one of the lists.
    active: bool,
}

impl FqCodel {
    /// An empty queue; draws one number from `stream`.
    pub fn new(config: FqCodelConfig, mut stream: Stream) -> FqCodel {
        FqCodel {
            config,
            perturbation: stream.bits(),
            slab: Slab::default(),
            flows: vec![Flow::default(); config.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// The queue of a flow: a mixing function of which every bit of the result depends on every bit of the flow's number
    /// and the perturbation (the finaliser of SplitMix64), scaled to the number of queues.
    fn place(&self, flow: FlowId) -> u32 {
        let mut hash = self.perturbation ^ u64::from(flow.0);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as u32
    }

    /// An empty queue leaves its list only when it is looked at in turn. Nobody looks while nothing waits at all, so the
    /// first packet after that finds no queue active, as if the line had asked once more.
    fn forget_idle(&mut self) {
        for place in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[place as usize].active = false;
        }
    }

    /// Drops packets until the limit holds: half of the longest queue at once, so that the search for it does not cost
    /// every packet of an overload (RFC 8290 section 4.1).
    fn shrink(&mut self, now: Time, fates: &mut Fates) {
        while exceeds(self.backlog, self.config.limit) {
            let active = self.new.iter().chain(&self.old).copied();
            let Some(longest) = active.max_by_key(|&place| self.flows[place as usize].packets.bytes()) else {
                return;
            };
            let list = &mut self.flows[longest as usize].packets;
            let half = list.packets().div_ceil(2);
            for _ in 0..half.min(self.config.drop_batch.max(1)) {
                let Some(packet) = take(&mut self.slab, list, &mut self.backlog) else { break };
                fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::LongestQueue });
            }
        }
    }

    /// Puts the queue at the head of its list behind the last of the old ones.
    fn retire(&mut self, newly: bool) {
        let list = if newly { &mut self.new } else { &mut self.old };
        if let Some(place) = list.pop_front() {
            self.old.push_back(place);
        }
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        if !self.config.limit.admits(0, Bytes::ZERO, packet.size) {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
            return;
        }
        if self.backlog.packets == 0 {
            self.forget_idle();
        }
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
        let place = self.place(packet.flow);
        let flow = &mut self.flows[place as usize];
        self.slab.push_back(&mut flow.packets, packet);
        if !flow.active {
            flow.active = true;
            flow.credit = self.config.quantum.count() as i64;
            self.new.push_back(place);
        }
        self.shrink(now, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        loop {
            let (place, newly) = match (self.new.front(), self.old.front()) {
                (Some(&place), _) => (place, true),
                (None, Some(&place)) => (place, false),
                (None, None) => return Dequeued::Empty,
            };
            let Flow { packets, control, credit, active } = &mut self.flows[place as usize];
            if *credit <= 0 {
                *credit += self.config.quantum.count().max(1) as i64;
                self.retire(newly);
                continue;
            }
            let (slab, backlog) = (&mut self.slab, &mut self.backlog);
            let head = || {
                let packet = take(slab, packets, backlog)?;
                Some(Taken { packet, behind: packets.bytes() })
            };
            match control.dequeue(&self.config.codel, now, head, fates) {
                Some(mut packet) => {
                    *credit -= packet.size.count() as i64;
                    let sojourn = now.since(packet.enqueued);
                    if self.config.ce_threshold.is_some_and(|threshold| sojourn > threshold) {
                        ecn::mark(now, &mut packet, MarkCause::Threshold, fates);
                    }
                    return Dequeued::Packet(packet);
                }
                // A new queue that is empty must not become new again before the others had their turn: it could
                // otherwise starve them with a packet at a time (RFC 8290 section 4.2).
                None if newly => self.retire(newly),
                None => {
                    *active = false;
                    self.old.pop_front();
                }
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

/// Takes the oldest packet of `list`.
fn take(slab: &mut Slab, list: &mut List, backlog: &mut Backlog) -> Option<Packet> {
    let packet = slab.pop_front(list)?;
    backlog.packets -= 1;
    backlog.bytes = Bytes(backlog.bytes.count() - packet.size.count());
    Some(packet)
}

fn exceeds(backlog: Backlog, limit: Limit) -> bool {
    match limit {
        Limit::Packets(most) => backlog.packets > most,
        Limit::Bytes(most) => backlog.bytes > most,
    }
}

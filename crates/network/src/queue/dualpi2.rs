//! DualPI2, the dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332 appendix A).

use std::collections::VecDeque;

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter, Values};
use trunkline_core::{Bytes, Duration, Ecn, Packet, Stream, Time};

use super::periodic::{Outlook, Periodic};
use super::{Backlog, Dequeued, Queue, QueueKind, ecn};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

#[cfg(test)]
mod tests;

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "dualpi2",
    doc: "DualPI2 (RFC 9332 appendix A): a low-latency queue for packets marked ECT(1) or CE (L4S), and a \
          classic queue for all others. A controller keeps the delay of the classic queue near `target`: \
          classic packets are dropped or marked with the square of its probability, and L4S packets are \
          marked with `coupling` times the probability, so that both kinds of flows get about the same \
          rate. L4S packets are also marked when their own queue grows.",
    parameters: &[
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("10000 packets"),
            doc: "Maximum backlog of both queues together, in packets, or in bytes at the network layer; \
                  arrivals beyond it are dropped. RFC 9332 appendix A.1 uses 250 ms at the link's rate; \
                  Linux uses 10000 packets.",
        },
        Parameter {
            name: "target",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("15 ms"),
            doc: "Target delay of the classic queue (RFC 9332 appendix A.1).",
        },
        Parameter {
            name: "t-update",
            kind: Kind::Duration { min: Duration::from_micros(100), max: Duration::from_secs(10) },
            default: Preset::Text("16 ms"),
            doc: "Update interval of the probability. RFC 9332 appendix A.1 uses the smaller of `target` and \
                  a third of the longest round-trip time, 15 ms; the default is that of Linux.",
        },
        Parameter {
            name: "alpha",
            kind: Kind::Number { min: 0.001, max: 1_000_000.0 },
            default: Preset::Text("0.16"),
            doc: "Integral gain in Hz: the increase of the probability per update and second above the \
                  target, 0.1 `t-update` / R^2 for a longest round-trip time R of 100 ms (RFC 9332 \
                  appendix A.1).",
        },
        Parameter {
            name: "beta",
            kind: Kind::Number { min: 0.001, max: 1_000_000.0 },
            default: Preset::Text("3.2"),
            doc: "Proportional gain in Hz: the increase of the probability per update and second of growth \
                  since the last update, about 0.3 / R (RFC 9332 appendix A.1 uses 3; the default is that \
                  of Linux).",
        },
        Parameter {
            name: "coupling",
            kind: Kind::Number { min: 1.0, max: 1000.0 },
            default: Preset::Text("2"),
            doc: "Coupling factor k: the ratio of the marking probability of L4S packets to the square root \
                  of the drop probability of classic packets (RFC 9332 section 2.1).",
        },
        Parameter {
            name: "min-threshold",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            default: Preset::Text("800 us"),
            doc: "Delay of the L4S queue above which its packets are marked (minTh, RFC 9332 appendix A.1).",
        },
        Parameter {
            name: "range",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            default: Preset::Text("400 us"),
            doc: "Range above `min-threshold` over which the marking probability grows from 0 to 1. With a \
                  range of zero, all packets above the threshold are marked (RFC 9332 appendix A.1).",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(65_535) },
            default: Preset::Text("1500 B"),
            doc: "Packet size. Nothing is dropped, and no classic packet is marked, while the backlog is \
                  less than two packets, so that a slow link stays busy. RFC 9332 does not specify this; \
                  Linux does it.",
        },
        Parameter {
            name: "classic-share",
            kind: Kind::Ratio,
            default: Preset::Text("10 %"),
            doc: "Minimum share of the line for the classic queue while both queues have packets: a weighted \
                  round robin by bytes. RFC 9332 leaves the scheduler open; the default is that of Linux \
                  and DOCSIS.",
        },
    ],
    // Its marks are spread evenly, as in RFC 9332, and not drawn.
    build: |values, _: Stream| Box::new(DualPi2::new(DualPi2Config::from(values))),
};

/// What DualPI2 is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// How much may wait in both queues together.
    pub limit: Limit,
    /// The delay of the classic queue that the controller aims at.
    pub target: Duration,
    /// How often the probability is adjusted.
    pub t_update: Duration,
    /// The integral gain in Hz.
    pub alpha: f64,
    /// The proportional gain in Hz.
    pub beta: f64,
    /// The ratio of the L4S probability to the square root of the classic one.
    pub coupling: f64,
    /// The delay of the L4S queue above which its packets are marked.
    pub min_threshold: Duration,
    /// Over which range of delays the probability of these marks grows from 0 to 1.
    pub range: Duration,
    /// Nothing is dropped, and nothing classic marked, while less than twice this waits.
    pub mtu: Bytes,
    /// The share of the line that the classic queue gets at least.
    pub classic_share: f64,
}

impl From<&Values> for DualPi2Config {
    /// # Panics
    /// If the table that was read does not declare DualPI2's parameters: a mistake in the program, never in a file.
    fn from(values: &Values) -> DualPi2Config {
        DualPi2Config {
            limit: values.limit("limit"),
            target: values.duration("target"),
            t_update: values.duration("t-update"),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            coupling: values.number("coupling"),
            min_threshold: values.duration("min-threshold"),
            range: values.duration("range"),
            mtu: values.bytes("mtu"),
            classic_share: values.ratio("classic-share").value(),
        }
    }
}

/// A queue for L4S and a classic one, with coupled congestion signals.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    config: DualPi2Config,
    updates: Periodic,
    control: Control,
    low_latency: Lane,
    classic: Lane,
    scheduler: Scheduler,
    bytes: Bytes,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    packets: VecDeque<Packet>,
    signals: Spread,
}

impl DualPi2 {
    /// Two empty queues.
    pub fn new(config: DualPi2Config) -> DualPi2 {
        DualPi2 {
            updates: Periodic::new(config.t_update),
            control: Control::default(),
            low_latency: Lane::default(),
            classic: Lane::default(),
            scheduler: Scheduler::new(config.classic_share),
            bytes: Bytes::ZERO,
            config,
        }
    }

    /// Makes up for the updates that are due.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let (control, config) = (&mut self.control, &self.config);
        let (low_latency, classic) = (self.low_latency.packets.front(), self.classic.packets.front());
        let oldest = low_latency.into_iter().chain(classic).map(|packet| packet.enqueued).min();
        self.updates.catch_up(now, |at| control.update(config, at, oldest));
    }

    /// What happens to a packet that leaves the L4S queue (RFC 9332 appendix A.2).
    fn signal_low_latency(&mut self, now: Time, packet: &mut Packet, fates: &mut Fates) -> Verdict {
        let (coupled, signals) = (self.control.coupled(&self.config), &mut self.low_latency.signals);
        if coupled < 1.0 {
            // One packet is not a queue, however long a slow line takes for it (Th_len).
            let queue = self.low_latency.packets.len() > 1;
            let native = if queue { self.config.native(now.since(packet.enqueued)) } else { 0.0 };
            if signals.hit(native.max(coupled)) {
                let cause = if native > coupled { MarkCause::Threshold } else { MarkCause::Coupled };
                ecn::mark(now, packet, cause, fates);
            }
        } else if !self.config.is_short(self.bytes) && signals.hit(self.control.classic()) {
            return Verdict::Drop(DropCause::Overload);
        } else if signals.hit(coupled) {
            ecn::mark(now, packet, MarkCause::Coupled, fates);
        }
        Verdict::Send
    }

    /// What happens to a packet that leaves the classic queue (RFC 9332 appendix A.2).
    fn signal_classic(&mut self, now: Time, packet: &mut Packet, fates: &mut Fates) -> Verdict {
        let probability = self.control.classic();
        if self.config.is_short(self.bytes) || !self.classic.signals.hit(probability) {
            return Verdict::Send;
        }
        if packet.ecn == Ecn::NotCapable {
            return Verdict::Drop(DropCause::Probability);
        }
        // Above p_Cmax, where every packet of L4S is marked, marks no longer help.
        if probability >= 1.0 / (self.config.coupling * self.config.coupling) {
            return Verdict::Drop(DropCause::Overload);
        }
        ecn::mark(now, packet, MarkCause::Probability, fates);
        Verdict::Send
    }
}

enum Verdict {
    Send,
    Drop(DropCause),
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        self.catch_up(now);
        if !self.config.limit.admits(self.backlog().packets, self.bytes, packet.size) {
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
            return;
        }
        self.bytes += packet.size;
        let lane = match packet.ecn {
            Ecn::Ect1 | Ecn::CongestionExperienced => &mut self.low_latency,
            Ecn::NotCapable | Ecn::Ect0 => &mut self.classic,
        };
        lane.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        self.catch_up(now);
        loop {
            let waiting = [&self.low_latency, &self.classic].map(|lane| !lane.packets.is_empty());
            let choice = self.scheduler.choose(waiting);
            let lane = if choice.low_latency { &mut self.low_latency } else { &mut self.classic };
            let Some(mut packet) = lane.packets.pop_front() else {
                return Dequeued::Empty;
            };
            self.bytes = Bytes(self.bytes.count() - packet.size.count());
            let verdict = if choice.low_latency {
                self.signal_low_latency(now, &mut packet, fates)
            } else {
                self.signal_classic(now, &mut packet, fates)
            };
            match verdict {
                Verdict::Drop(cause) => fates.0.push(Fate::Dropped { at: now, packet, cause }),
                Verdict::Send => {
                    self.scheduler.sent(choice, packet.size);
                    return Dequeued::Packet(packet);
                }
            }
        }
    }

    fn backlog(&self) -> Backlog {
        let packets = self.low_latency.packets.len() + self.classic.packets.len();
        Backlog { packets: packets as u64, bytes: self.bytes }
    }
}

impl DualPi2Config {
    /// The probability of a mark because of the L4S queue's own delay (`laqm` in RFC 9332 appendix A.1).
    fn native(&self, delay: Duration) -> f64 {
        if delay <= self.min_threshold {
            return 0.0;
        }
        let above = delay - self.min_threshold;
        if above >= self.range { 1.0 } else { above.as_nanos() as f64 / self.range.as_nanos() as f64 }
    }

    /// Whether too little waits behind a packet to drop it.
    fn is_short(&self, behind: Bytes) -> bool {
        behind.count() < 2 * self.mtu.count()
    }
}

/// The controller of the classic queue (RFC 9332 appendix A).
#[derive(Clone, Debug, Default, PartialEq)]
struct Control {
    /// The base probability p', from 0 to 1.
    base: f64,
    /// The delay at the latest update.
    previous: Duration,
}

impl Control {
    /// One update at `at`, when the oldest packet came at `oldest`. Only sums, products and quotients, which are exact
    /// to the last digit by IEEE 754 on every machine.
    fn update(&mut self, config: &DualPi2Config, at: Time, oldest: Option<Time>) -> Outlook {
        // The greater of the two queues' delays: the classic one cannot be missed when L4S alone overloads the line.
        let now = oldest.map_or(Duration::ZERO, |oldest| at.since(oldest));
        let [delay, previous, target] = [now, self.previous, config.target].map(Duration::as_secs_f64);
        let step = config.alpha * (delay - target) + config.beta * (delay - previous);
        let base = (self.base + step).clamp(0.0, 1.0);
        let rests = base == self.base
            && match oldest {
                None => self.previous.is_zero(),
                // The packet only gets older.
                Some(_) => base == 1.0 && now >= config.target,
            };
        *self = Control { base, previous: now };
        if rests { Outlook::Settled } else { Outlook::Moving }
    }

    /// p_C: the probability that a classic packet is hit.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL: the probability that a packet of L4S is marked on account of the classic queue.
    fn coupled(&self, config: &DualPi2Config) -> f64 {
        (config.coupling * self.base).min(1.0)
    }
}

/// Hits a share of packets at even distances instead of at random (`recur` in RFC 9332 appendix A.1).
#[derive(Clone, Debug, Default)]
struct Spread {
    sum: f64,
}

impl Spread {
    fn hit(&mut self, probability: f64) -> bool {
        self.sum += probability;
        let hit = self.sum > 1.0;
        if hit {
            self.sum -= 1.0;
        }
        hit
    }
}

/// Weighted round robin by bytes. What the L4S queue sends while the classic one waits gives that one credit; with any
/// credit it goes first, so that it waits for one packet of the other kind, and not for a whole round of them.
#[derive(Clone, Debug)]
struct Scheduler {
    /// The weight of the classic queue, of [`WEIGHTS`].
    classic: i64,
    /// In bytes times [`WEIGHTS`]; its amount is never above one packet's.
    credit: i64,
}

/// The sum of the weights.
const WEIGHTS: i64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Choice {
    low_latency: bool,
    /// Whether the other queue waits.
    contested: bool,
}

impl Scheduler {
    fn new(classic_share: f64) -> Scheduler {
        Scheduler { classic: (classic_share * WEIGHTS as f64) as i64, credit: 0 }
    }

    /// The queue that sends next, of L4S and classic.
    fn choose(&self, waiting: [bool; 2]) -> Choice {
        match waiting {
            [true, true] => Choice { low_latency: self.credit <= 0, contested: true },
            [low_latency, _] => Choice { low_latency, contested: false },
        }
    }

    fn sent(&mut self, choice: Choice, size: Bytes) {
        if choice.contested {
            let weight = if choice.low_latency { self.classic } else { self.classic - WEIGHTS };
            self.credit += size.count() as i64 * weight;
        }
    }
}

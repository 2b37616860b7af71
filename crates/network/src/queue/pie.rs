//! PIE, proportional integral controller enhanced (RFC 8033).

use std::collections::VecDeque;

use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter, Values};
use trunkline_core::{Bytes, Duration, Packet, Stream, Time};

use super::periodic::{Outlook, Periodic};
use super::{Backlog, Dequeued, Queue, QueueKind, ecn};
use crate::fate::{DropCause, Fate, Fates, MarkCause};

#[cfg(test)]
mod tests;

/// The entry in the registry.
pub(super) const KIND: QueueKind = QueueKind {
    name: "pie",
    doc: "PIE, proportional integral controller enhanced (RFC 8033): first in, first out. An arriving packet \
          is dropped with a probability that a controller adjusts every `t-update` to keep the delay near \
          `target`. The delay is that of the packet that left last, measured by timestamps (an \
          alternative of RFC 8033 section 4.3 to estimating it from the departure rate).",
    parameters: &[
        Parameter {
            name: "limit",
            kind: Kind::Limit,
            default: Preset::Text("1000 packets"),
            doc: "Maximum backlog, in packets, or in bytes at the network layer; arrivals beyond it are \
                  dropped. RFC 8033 leaves it open; Linux uses 1000 packets.",
        },
        Parameter {
            name: "target",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("15 ms"),
            doc: "Target delay (QDELAY_REF, RFC 8033 section 4.2).",
        },
        Parameter {
            name: "t-update",
            kind: Kind::Duration { min: Duration::from_micros(100), max: Duration::from_secs(10) },
            default: Preset::Text("15 ms"),
            doc: "Update interval of the probability (T_UPDATE, RFC 8033 section 4.2).",
        },
        Parameter {
            name: "alpha",
            kind: Kind::Number { min: 0.0, max: 1000.0 },
            default: Preset::Text("0.125"),
            doc: "Integral gain in Hz: the increase of the probability per update and second above the \
                  target (RFC 8033 section 4.2).",
        },
        Parameter {
            name: "beta",
            kind: Kind::Number { min: 0.0, max: 1000.0 },
            default: Preset::Text("1.25"),
            doc: "Proportional gain in Hz: the increase of the probability per update and second of growth \
                  since the last update (RFC 8033 section 4.2).",
        },
        Parameter {
            name: "max-burst",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(100) },
            default: Preset::Text("150 ms"),
            doc: "Time for which a queue that was short may grow before packets are dropped early \
                  (MAX_BURST, RFC 8033 section 4.4).",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(65_535) },
            default: Preset::Text("1500 B"),
            doc: "Packet size. Nothing is dropped early while the backlog is at most two packets. RFC 8033 \
                  section 4.1 leaves its MEAN_PKTSIZE open; Linux uses the link's MTU.",
        },
        Parameter {
            name: "ecn",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether ECN-capable packets are marked instead of dropped, up to `ecn-threshold` (RFC 8033 section \
                  5.1, optional).",
        },
        Parameter {
            name: "ecn-threshold",
            kind: Kind::Ratio,
            default: Preset::Text("10 %"),
            doc: "Probability above which ECN-capable packets are dropped too (RFC 8033 section 5.1).",
        },
        Parameter {
            name: "derandomise",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether drops are evened out: no drop until the probabilities since the last drop sum to \
                  0.85, and a certain drop when they sum to 8.5 (RFC 8033 section 5.4, optional).",
        },
        Parameter {
            name: "cap-increase",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether a probability of 10 % or more grows by at most 2 % per update, so that the slow \
                  start of one connection does not raise it too far (RFC 8033 section 5.5, optional).",
        },
        Parameter {
            name: "raise-above-250ms",
            kind: Kind::Flag,
            default: Preset::Text("false"),
            doc: "Whether the probability also grows by 2 % per update while the delay is longer than 250 ms \
                  (LATENCY_HIGH of RFC 8034). Linux's `sch_pie` always does this, derandomises and caps.",
        },
    ],
    build: |values, stream| Box::new(Pie::new(PieConfig::from(values), stream)),
};

/// What PIE is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// How much may wait.
    pub limit: Limit,
    /// The delay that the controller aims at.
    pub target: Duration,
    /// How often the probability is adjusted.
    pub t_update: Duration,
    /// The integral gain in Hz.
    pub alpha: f64,
    /// The proportional gain in Hz.
    pub beta: f64,
    /// For how long a queue that was short may grow before anything is dropped early.
    pub max_burst: Duration,
    /// Nothing is dropped early while no more than twice this waits.
    pub mtu: Bytes,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The probability from which on they are dropped all the same.
    pub ecn_threshold: f64,
    /// Whether drops are spread out.
    pub derandomise: bool,
    /// Whether a high probability grows slowly.
    pub cap_increase: bool,
    /// Whether the probability grows faster while the delay is long.
    pub raise_above_250ms: bool,
}

impl From<&Values> for PieConfig {
    /// # Panics
    /// If the table that was read does not declare PIE's parameters: a mistake in the program, never in a file.
    fn from(values: &Values) -> PieConfig {
        PieConfig {
            limit: values.limit("limit"),
            target: values.duration("target"),
            t_update: values.duration("t-update"),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            max_burst: values.duration("max-burst"),
            mtu: values.bytes("mtu"),
            ecn: values.flag("ecn"),
            ecn_threshold: values.ratio("ecn-threshold").value(),
            derandomise: values.flag("derandomise"),
            cap_increase: values.flag("cap-increase"),
            raise_above_250ms: values.flag("raise-above-250ms"),
        }
    }
}

/// First in, first out, with PIE at the tail.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    updates: Periodic,
    control: Control,
    stream: Stream,
    packets: VecDeque<Packet>,
    bytes: Bytes,
}

impl Pie {
    /// An empty queue that draws from `stream`.
    pub fn new(config: PieConfig, stream: Stream) -> Pie {
        Pie {
            updates: Periodic::new(config.t_update),
            control: Control::new(&config),
            config,
            stream,
            packets: VecDeque::new(),
            bytes: Bytes::ZERO,
        }
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        let (control, config) = (&mut self.control, &self.config);
        self.updates.catch_up(now, |_| control.update(config));
    }

    /// Whether an arriving packet is to carry the signal (`drop_early` in RFC 8033 sections 4.1 and 5.4).
    fn hits(&mut self) -> bool {
        let control = &mut self.control;
        let calm = control.previous_delay < self.config.target / 2 && control.probability < 0.2;
        if !control.burst_allowance.is_zero() || calm || self.bytes.count() <= 2 * self.config.mtu.count() {
            return false;
        }
        if self.config.derandomise {
            if control.probability == 0.0 {
                control.accumulated = 0.0;
            }
            control.accumulated += control.probability;
            if control.accumulated < 0.85 {
                return false;
            }
            if control.accumulated >= 8.5 {
                return true;
            }
        }
        self.stream.chance(control.probability)
    }
}

impl Queue for Pie {
    fn enqueue(&mut self, now: Time, mut packet: Packet, fates: &mut Fates) {
        self.catch_up(now);
        if !self.config.limit.admits(self.packets.len() as u64, self.bytes, packet.size) {
            self.control.accumulated = 0.0;
            fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::QueueFull });
            return;
        }
        if self.hits() {
            self.control.accumulated = 0.0;
            let mark = self.config.ecn && self.control.probability < self.config.ecn_threshold;
            if !(mark && ecn::mark(now, &mut packet, MarkCause::Probability, fates)) {
                fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::Probability });
                return;
            }
        }
        self.bytes += packet.size;
        self.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _fates: &mut Fates) -> Dequeued {
        self.catch_up(now);
        let Some(packet) = self.packets.pop_front() else {
            return Dequeued::Empty;
        };
        self.bytes = Bytes(self.bytes.count() - packet.size.count());
        self.control.delay =
            if self.packets.is_empty() { Duration::ZERO } else { now.since(packet.enqueued) };
        Dequeued::Packet(packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}

/// A delay at which the probability is to grow fast, if it may (LATENCY_HIGH of RFC 8034).
const LONG_DELAY: Duration = Duration::from_millis(250);

/// The controller (RFC 8033 sections 4.2 to 4.4).
#[derive(Clone, Debug, PartialEq)]
struct Control {
    /// `drop_prob_` of RFC 8033.
    probability: f64,
    /// The latest sample of the delay: how long the packet that left last had waited; zero once the queue is empty.
    delay: Duration,
    /// The sample at the latest update (`qdelay_old_`).
    previous_delay: Duration,
    /// How much longer nothing is dropped early.
    burst_allowance: Duration,
    /// The sum of probabilities since the last signal (`accu_prob_`, RFC 8033 section 5.4).
    accumulated: f64,
}

impl Control {
    fn new(config: &PieConfig) -> Control {
        Control {
            probability: 0.0,
            delay: Duration::ZERO,
            previous_delay: Duration::ZERO,
            burst_allowance: config.max_burst,
            accumulated: 0.0,
        }
    }

    /// One update. Only sums, products and quotients, which are exact to the last digit by IEEE 754 on every machine.
    fn update(&mut self, config: &PieConfig) -> Outlook {
        let before = (self.probability, self.previous_delay, self.burst_allowance);
        let [delay, previous, target] =
            [self.delay, self.previous_delay, config.target].map(Duration::as_secs_f64);
        let mut step = config.alpha * (delay - target) + config.beta * (delay - previous);
        step /= damping(self.probability);
        if config.cap_increase && self.probability >= 0.1 {
            step = step.min(0.02);
        }
        if config.raise_above_250ms && self.delay > LONG_DELAY {
            step += 0.02;
        }
        self.probability += step;
        if self.delay.is_zero() && self.previous_delay.is_zero() {
            // Without congestion, what is left of it goes exponentially.
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);

        self.burst_allowance = self.burst_allowance.saturating_sub(config.t_update);
        let low = |delay: Duration| delay < config.target / 2;
        if self.probability == 0.0 && low(self.delay) && low(self.previous_delay) {
            self.burst_allowance = config.max_burst;
        }
        self.previous_delay = self.delay;

        let after = (self.probability, self.previous_delay, self.burst_allowance);
        if before == after { Outlook::Settled } else { Outlook::Moving }
    }
}

/// By how much the gains are reduced at a low probability, where the same step weighs more (the ladder of RFC 8033
/// section 4.2).
fn damping(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

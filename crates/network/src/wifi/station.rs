//! One station of a cell: its queue, the frame that it contends with, and what it has counted.

use trunkline_core::{Bytes, Duration, Packet, Port, Rate, Seed, Stream, Time};

use crate::fate::{DropCause, Fate, Fates};
use crate::impairment::Stage;
use crate::medium::{MediumCounters, PortConfig};
use crate::queue::{Backlog, Counted, Dequeued};

#[derive(Debug)]
pub(super) struct Station {
    pub(super) rate: Rate,
    pub(super) mtu: Bytes,
    overhead: Bytes,
    /// Probability that a frame is spoilt, and that a bit is.
    frame_errors: f64,
    bit_errors: f64,
    queue: Counted,
    /// What the station has taken from its queue and not got rid of.
    pub(super) frame: Option<Frame>,
    /// The number of the slot in which its backoff ends, or has ended.
    pub(super) backoff: u64,
    /// When a queue that holds something back is to be asked again; [`Time::MAX`] if none is.
    pub(super) wake: Time,
    pub(super) backoffs: Stream,
    pub(super) noise: Stream,
    pub(super) stage: Stage,
    /// The rates at which it sends, and at which an access point sends to it.
    pub(super) up: Adaptation,
    pub(super) down: Adaptation,
    /// By origin: without what belongs to the queue.
    pub(super) counters: MediumCounters,
    pub(super) air: Air,
}

/// A packet in a station's hands.
#[derive(Debug)]
pub(super) struct Frame {
    /// The packet, until it has been delivered.
    pub(super) packet: Packet,
    /// Its length on the air.
    pub(super) size: Bytes,
    pub(super) to: Receiver,
    /// How often it has been transmitted.
    pub(super) transmissions: u64,
    /// Nothing remains to be done for it.
    pub(super) settled: bool,
}

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    Station(Port),
    All,
    /// Nobody who would acknowledge it.
    Absent,
}

/// What a station's transmissions came to, beside [`MediumCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Air {
    pub(super) transmissions: u64,
    /// Transmissions of a frame after its first.
    pub(super) retries: u64,
    /// Transmissions at the same time as another's.
    pub(super) collisions: u64,
    /// Receptions that noise spoilt.
    pub(super) errors: u64,
}

impl Station {
    pub(super) fn new(config: PortConfig<'_>, seed: Seed) -> Station {
        let values = config.values;
        let stream = |what: &str| seed.stream(&format!("{}/{what}", config.place));
        Station {
            rate: values.rate("rate"),
            mtu: values.bytes("mtu"),
            overhead: values.bytes("overhead"),
            frame_errors: values.ratio("frame-errors").value(),
            bit_errors: values.number("bit-errors"),
            backoffs: stream("backoff"),
            noise: stream("noise"),
            stage: Stage::new(&config.impairments, &config.place, seed),
            queue: Counted::new(config.queue),
            frame: None,
            backoff: 0,
            wake: Time::MAX,
            up: Adaptation::default(),
            down: Adaptation::default(),
            counters: MediumCounters::default(),
            air: Air::default(),
        }
    }

    /// Puts a packet into the queue.
    pub(super) fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        self.queue.enqueue(now, packet, fates);
    }

    /// Notes what waits in the queue, after the station has taken from it what it has no other frame for.
    pub(super) fn note_backlog(&mut self) {
        let waiting = self.queue.waiting();
        self.counters.backlog_max = self.counters.backlog_max.max(waiting.bytes);
        self.counters.backlog_packets_max = self.counters.backlog_packets_max.max(waiting.packets);
    }

    /// Takes the next packet from the queue.
    pub(super) fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Dequeued {
        self.wake = Time::MAX;
        let next = match self.queue.waiting().packets {
            0 => Dequeued::Empty,
            _ => self.queue.dequeue(now, fates),
        };
        if let Dequeued::NotBefore(time) = next {
            // A queue that breaks its word must not stop time.
            self.wake = time.max(now + Duration::from_nanos(1));
        }
        next
    }

    /// The length of a packet on the air.
    pub(super) fn on_air(&self, packet: &Packet) -> Bytes {
        packet.size + self.overhead
    }

    /// The probability that noise at this station spares a frame, at errors divided by `gain`.
    pub(super) fn spared(&self, frame: Bytes, gain: f64) -> f64 {
        if self.frame_errors == 0.0 && self.bit_errors == 0.0 {
            return 1.0;
        }
        let bits = 8.0 * frame.count() as f64;
        (1.0 - self.frame_errors / gain) * libm::exp(bits * libm::log1p(-self.bit_errors / gain))
    }

    pub(super) fn waiting(&self) -> Backlog {
        self.queue.waiting()
    }

    pub(super) fn counters(&self) -> MediumCounters {
        self.counters.clone()
    }

    /// Counts a packet whose first transmission begins this long after it joined the queue: the time in which it contends for
    /// the channel belongs to it.
    pub(super) fn note_sojourn(&mut self, sojourn: Duration) {
        self.counters.dequeued += 1;
        self.counters.sojourn_total += sojourn;
        self.counters.sojourns.record(sojourn);
    }

    /// Says that a packet that entered here is gone.
    pub(super) fn lose(&mut self, at: Time, packet: Packet, cause: DropCause, fates: &mut Fates) {
        self.counters.dropped[cause.index()] += 1;
        fates.0.push(Fate::Dropped { at, packet, cause });
    }
}

/// How many steps below the best rate somebody sends (automatic rate fallback: Kamerman and Monteban 1997).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Adaptation {
    pub(super) steps: u64,
    failures: u64,
    successes: u64,
}

/// When rates are changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fallback {
    /// A step down after so many failures in a row; never with 0.
    pub(super) after: u64,
    /// A step up after so many successes in a row.
    pub(super) recover: u64,
}

impl Adaptation {
    pub(super) fn succeeded(&mut self, fallback: Fallback) {
        self.failures = 0;
        self.successes += 1;
        if self.successes >= fallback.recover {
            *self = Adaptation { steps: self.steps.saturating_sub(1), ..Adaptation::default() };
        }
    }

    pub(super) fn failed(&mut self, fallback: Fallback, lower: bool) {
        self.successes = 0;
        self.failures += 1;
        if self.failures == fallback.after {
            *self = Adaptation { steps: self.steps + u64::from(lower), ..Adaptation::default() };
        }
    }
}

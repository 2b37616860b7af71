//! The serial link: a line in each direction that transmits one packet at a time.

mod conditioner;
pub(crate) mod serialiser;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Packet, Port, Rate, Seed, Time};

use crate::bucket::{Policer, TokenBucket};
use crate::fate::{DropCause, Fate};
use crate::impairment::{Impairments, Stage};
use crate::medium::{self, Delivery, Figure, Medium, MediumCounters, MediumKind, Outcome, PortConfig};
use crate::queue::{Counted, Dequeued, Queue};
use conditioner::Conditioner;
use serialiser::Serialiser;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "serial",
    doc: "A point-to-point line that transmits one packet at a time in each direction: a leased line, a radio relay, \
          a full-duplex Ethernet cable. A packet waits in the queue, takes its size and `overhead` divided by `rate` \
          to be transmitted, meets the impairments, and arrives `delay` later. It may be shaped before and policed where \
          it enters the line.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate {
                min: Rate::from_bits_per_second(1),
                max: Rate::from_bits_per_second(1_000_000_000_000),
            },
            default: Preset::Required,
            doc: "Bits per second on the line, framing included.",
        },
        Parameter {
            name: "delay",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            default: Preset::Text("0 ms"),
            doc: "Propagation delay, one way: about 5 us per km of fibre or copper, 119 ms up to a geostationary \
                  satellite.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(65_535) },
            default: Preset::Text("1500 B"),
            doc: "The largest packet, network header included and framing not; a larger one is dropped. The smallest \
                  MTU of IPv4 is 68 B (RFC 791).",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("0 B"),
            doc: "Framing that every packet takes on the line beside its own bytes. Ethernet: 38 B (preamble 8, \
                  header 14, check sequence 4, gap 12); PPP in HDLC-like framing: about 8 B.",
        },
        conditioner::SHAPE_RATE,
        conditioner::SHAPE_BURST,
        conditioner::COMMITTED_RATE,
        conditioner::COMMITTED_BURST,
        conditioner::PEAK_RATE,
        conditioner::PEAK_BURST,
        conditioner::POLICING,
    ],
    shared: &[],
    stations: medium::TWO,
    build: |_, ports, seed| Box::new(SerialLink::new(medium::two(ports).map(SerialConfig::from), seed)),
};

/// One direction of a serial link.
pub struct SerialConfig {
    /// The place in the experiment, from which random streams are named: `link.trunk/berlin-ottawa`.
    pub place: String,
    /// Bits per second on the line, at least 1.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The largest packet at the network layer; larger ones are dropped.
    pub mtu: Bytes,
    /// Framing added to every packet on the line.
    pub overhead: Bytes,
    /// What packets wait for at the head of the queue.
    pub shaper: Option<TokenBucket>,
    /// What they are held to where they enter the line.
    pub policer: Option<Policer>,
    /// The queue in front of the line, empty.
    pub queue: Box<dyn Queue>,
    /// What happens to packets beside that.
    pub impairments: Impairments,
}

impl From<PortConfig<'_>> for SerialConfig {
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    fn from(port: PortConfig<'_>) -> SerialConfig {
        SerialConfig {
            place: port.place,
            rate: port.values.rate("rate"),
            delay: port.values.duration("delay"),
            mtu: port.values.bytes("mtu"),
            overhead: port.values.bytes("overhead"),
            shaper: conditioner::shaper(port.values),
            policer: conditioner::policer(port.values),
            queue: port.queue,
            impairments: port.impairments,
        }
    }
}

/// A link of two independent lines, from port 0 to port 1 and back.
///
/// When a packet's transmission begins, everything about it is decided, and its delivery or loss is handed out at
/// once. A delivery lies in the future by transmission time and delay; a lost packet's fate is dated to the beginning
/// of its transmission. So a link needs the driver only while packets wait.
#[derive(Debug)]
pub struct SerialLink {
    directions: [Direction; 2],
}

#[derive(Debug)]
struct Direction {
    to: Port,
    queue: Counted,
    conditioner: Conditioner,
    line: Serialiser,
    delay: Duration,
    mtu: Bytes,
    overhead: Bytes,
    stage: Stage,
    /// When the queue is to be asked next: when the line becomes free or the queue said "not before";
    /// [`Time::MAX`] while nothing waits.
    wake: Time,
    /// Without what `queue` counts.
    counters: MediumCounters,
}

impl SerialLink {
    /// The link whose first direction leads from port 0 to port 1 and whose second leads back.
    pub fn new(directions: [SerialConfig; 2], seed: Seed) -> SerialLink {
        let [there, back] = directions;
        SerialLink { directions: [Direction::new(there, Port(1), seed), Direction::new(back, Port(0), seed)] }
    }
}

impl Medium for SerialLink {
    /// # Panics
    /// If the link has no port `from`: a mistake in the driver.
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome) {
        self.advance(at, out);
        self.directions[usize::from(from.0)].offer(at, packet, out);
    }

    fn advance(&mut self, to: Time, out: &mut Outcome) {
        // The directions share nothing but the outcome, in which events stand in the order of their times.
        loop {
            let [there, back] = &mut self.directions;
            let next = if back.wake < there.wake { back } else { there };
            if next.wake > to || next.wake == Time::MAX {
                return;
            }
            next.serve(next.wake, out);
        }
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.directions[0].wake.min(self.directions[1].wake);
        (next != Time::MAX).then_some(next)
    }

    fn counters(&self, from: Port) -> MediumCounters {
        self.directions.get(usize::from(from.0)).map(Direction::counters).unwrap_or_default()
    }

    fn figures(&self, _over: Duration) -> Vec<Figure> {
        let directions = (0..).map(Port).zip(&self.directions);
        let figures = directions.flat_map(|(port, direction)| {
            let figures = direction.conditioner.figures();
            figures.map(move |(name, amount)| Figure { station: Some(port), name, amount })
        });
        figures.collect()
    }
}

impl Direction {
    fn new(config: SerialConfig, to: Port, seed: Seed) -> Direction {
        Direction {
            to,
            stage: Stage::new(&config.impairments, &config.place, seed),
            queue: Counted::new(config.queue),
            conditioner: Conditioner::new(config.shaper, config.policer),
            line: Serialiser::new(config.rate),
            delay: config.delay,
            mtu: config.mtu,
            overhead: config.overhead,
            wake: Time::MAX,
            counters: MediumCounters::default(),
        }
    }

    /// Takes a packet once everything due up to `at` is done.
    fn offer(&mut self, at: Time, packet: Packet, out: &mut Outcome) {
        self.counters.offered += 1;
        if packet.size > self.mtu {
            self.counters.dropped[DropCause::TooLarge.index()] += 1;
            out.fates.0.push(Fate::Dropped { at, packet, cause: DropCause::TooLarge });
            return;
        }
        // An idle line takes the packet through the queue all the same: a shaper may still hold it back.
        self.queue.enqueue(at, packet, &mut out.fates);
        self.wake = self.line.free().max(at);
        while self.wake <= at {
            self.serve(at, out);
        }
        self.rest();
        let waiting = self.queue.waiting();
        self.counters.backlog_max = self.counters.backlog_max.max(waiting.bytes);
        self.counters.backlog_packets_max = self.counters.backlog_packets_max.max(waiting.packets);
        self.check();
    }

    /// Transmits the packet that the queue hands out at `now`, when the line is free.
    fn serve(&mut self, now: Time, out: &mut Outcome) {
        match self.queue.dequeue(now, &mut out.fates) {
            Dequeued::Packet(packet) => {
                self.transmit(now, packet, out);
                self.wake = self.line.free();
            }
            Dequeued::Empty => self.wake = Time::MAX,
            // A queue that breaks its word must not stop time.
            Dequeued::NotBefore(time) => self.wake = time.max(now + Duration::from_nanos(1)),
        }
        self.rest();
        self.check();
    }

    /// Nobody needs to be woken for an empty queue.
    fn rest(&mut self) {
        if self.queue.waiting().packets == 0 {
            self.wake = Time::MAX;
        }
    }

    fn transmit(&mut self, now: Time, mut packet: Packet, out: &mut Outcome) {
        let on_line = packet.size + self.overhead;
        // The queue has decided, and nothing else will: what waits for tokens need not wait here.
        let start = self.conditioner.shape(now, packet.size);
        let (end, busy) = self.line.transmit(start, on_line);
        let counters = &mut self.counters;
        counters.transmitted += on_line;
        counters.busy += busy;
        if !self.conditioner.admit(start, &mut packet) {
            counters.dropped[DropCause::Policed.index()] += 1;
            out.fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::Policed });
            return;
        }
        let passage = self.stage.pass(end + self.delay, &mut packet);
        if passage.lost {
            counters.dropped[DropCause::LinkLoss.index()] += 1;
            out.fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::LinkLoss });
            return;
        }
        counters.delivered += 1;
        counters.corrupted += u64::from(passage.corrupted);
        counters.reordered += u64::from(passage.overtakes);
        let copy = passage.duplicated.then(|| packet.clone());
        out.deliveries.push(Delivery { at: passage.arrival, to: self.to, packet });
        if let Some(packet) = copy {
            counters.duplicated += 1;
            out.deliveries.push(Delivery { at: passage.arrival, to: self.to, packet });
        }
    }

    fn counters(&self) -> MediumCounters {
        self.counters.clone().with_queue(self.queue.counters())
    }

    fn check(&self) {
        if cfg!(debug_assertions) {
            let (own, queue) = (&self.counters, self.queue.counters());
            let lost = own.dropped[DropCause::LinkLoss.index()] + own.dropped[DropCause::Policed.index()];
            let refused = own.dropped[DropCause::TooLarge.index()];
            assert_eq!(own.offered, refused + queue.received, "offered = too large + queued");
            assert_eq!(queue.dequeued, own.delivered + lost, "dequeued = delivered + lost");
        }
    }
}

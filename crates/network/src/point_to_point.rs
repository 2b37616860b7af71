//! What all links of two independent lines have in common: a queue, a shaper and a policer, the line, impairments.

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_core::series::Cursor;
use trunkline_core::{Bytes, Duration, OverTime, Packet, PacketId, Port, Seed, Time};

use crate::bucket::{Policer, Shaper};
use crate::fate::{DropCause, Fate};
use crate::impairment::{Impairments, Stage};
use crate::medium::{Change, Delivery, Figure, Fixed, Medium, MediumCounters, Outcome, PortConfig};
use crate::queue::{Backlog, Counted, Dequeued, Queue};
use crate::serial::conditioner::{self, Conditioner};

pub(crate) const DELAY: Parameter = Parameter {
    name: "delay",
    kind: Kind::OverTime(&Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) }),
    default: Preset::Text("0 ms"),
    doc: "Propagation delay, one way: about 5 us per km of fibre or copper, 119 ms up to a geostationary \
          satellite. If it changes, it is the delay of packets whose last bit leaves from then on; one that would \
          overtake an earlier one arrives together with it.",
};
pub(crate) const MTU: Parameter = Parameter {
    name: "mtu",
    kind: Kind::Bytes { min: Bytes(68), max: Bytes(65_535) },
    default: Preset::Text("1500 B"),
    doc: "The largest packet, network header included and framing not; a larger one is dropped. The smallest \
          MTU of IPv4 is 68 B (RFC 791).",
};

/// What puts packets through, one after another.
pub trait Line: Send {
    /// When the line is free, after all that it has transmitted or begun to.
    fn free(&self) -> Time;

    /// When a packet that is there at `at`, and before which none waits, can be transmitted: at `at` or later.
    fn ready(&mut self, at: Time) -> Time;

    /// Transmits `size` bytes from `now` on, which is not before [`Self::free`], and returns when the last bit is
    /// through and for how long the line was busy.
    fn transmit(&mut self, now: Time, size: Bytes) -> (Time, Duration);

    /// Takes new values of the medium's parameters for what is transmitted from `at` on.
    fn change(&mut self, at: Time, values: &Values);
}

/// One direction without its line.
pub(crate) struct DirectionConfig {
    pub(crate) place: String,
    pub(crate) delay: OverTime,
    pub(crate) mtu: Bytes,
    pub(crate) overhead: Bytes,
    pub(crate) shaper: Option<Shaper>,
    pub(crate) policer: Option<Policer>,
    pub(crate) queue: Box<dyn Queue>,
    pub(crate) impairments: Impairments,
}

impl From<PortConfig<'_>> for DirectionConfig {
    /// # Panics
    /// If the values are not those of such a link's parameters: a mistake in the program, never in a file.
    fn from(port: PortConfig<'_>) -> DirectionConfig {
        DirectionConfig {
            place: port.place,
            delay: port.values.over_time("delay"),
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
pub struct PointToPoint<L> {
    directions: [Direction<L>; 2],
}

#[derive(Debug)]
struct Direction<L> {
    to: Port,
    queue: Counted,
    conditioner: Conditioner,
    line: L,
    delay: Delay,
    mtu: Bytes,
    overhead: Bytes,
    stage: Stage,
    /// When the queue is to be asked next: when the line becomes free or the queue said "not before";
    /// [`Time::MAX`] while nothing waits.
    wake: Time,
    /// Without what `queue` counts.
    counters: MediumCounters,
}

/// Propagation: always the same, or over time.
#[derive(Debug)]
enum Delay {
    Always(Duration),
    OverTime(Box<DelayOverTime>),
}

#[derive(Debug)]
struct DelayOverTime {
    delay: Cursor,
    /// The latest arrival so far.
    latest: Time,
}

impl Delay {
    fn new(delay: &OverTime) -> Delay {
        match delay {
            OverTime::Always(delay) => Delay::Always(Duration::from_nanos(*delay)),
            OverTime::Series(series) => {
                Delay::OverTime(Box::new(DelayOverTime { delay: series.cursor(), latest: Time::ZERO }))
            }
        }
    }

    /// When what has left the line at `end` arrives: not before what left it earlier.
    #[inline]
    fn arrival(&mut self, end: Time) -> Time {
        match self {
            Delay::Always(delay) => end + *delay,
            Delay::OverTime(own) => {
                own.latest = own.latest.max(end + Duration::from_nanos(own.delay.at(end)));
                own.latest
            }
        }
    }
}

impl<L: Line> PointToPoint<L> {
    /// The link whose first direction leads from port 0 to port 1 and whose second leads back.
    pub(crate) fn of(directions: [(L, DirectionConfig); 2], seed: Seed) -> PointToPoint<L> {
        let [there, back] = directions;
        PointToPoint {
            directions: [Direction::new(there, Port(1), seed), Direction::new(back, Port(0), seed)],
        }
    }
}

impl<L: Line> Medium for PointToPoint<L> {
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

    fn backlog(&self, from: Port) -> Backlog {
        self.directions.get(usize::from(from.0)).map(Direction::waiting).unwrap_or_default()
    }

    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        self.directions[usize::from(from.0)].counters.busy.under_way(at)
    }

    fn end_measurement(&mut self, at: Time) {
        self.directions.iter_mut().for_each(|direction| direction.counters.busy.end(at));
    }

    fn figures(&self, _over: Duration) -> Vec<Figure> {
        let directions = (0..).map(Port).zip(&self.directions);
        let figures = directions.flat_map(|(port, direction)| {
            let figures = direction.conditioner.figures();
            figures.map(move |(name, amount)| Figure { station: Some(port), name, amount })
        });
        figures.collect()
    }

    /// # Panics
    /// If the link has no port `from`: a mistake in the driver.
    fn change(&mut self, at: Time, from: Port, change: Change<'_>, out: &mut Outcome) -> Result<(), Fixed> {
        self.advance(at, out);
        self.directions[usize::from(from.0)].change(at, change, out);
        Ok(())
    }
}

impl<L: Line> Direction<L> {
    fn new((line, config): (L, DirectionConfig), to: Port, seed: Seed) -> Direction<L> {
        Direction {
            to,
            stage: Stage::new(&config.impairments, &config.place, seed),
            queue: Counted::new(config.queue),
            conditioner: Conditioner::new(config.shaper, config.policer),
            line,
            delay: Delay::new(&config.delay),
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
        self.counters.load += packet.size + self.overhead;
        // An idle line takes the packet through the queue all the same: a shaper may still hold it back.
        self.queue.enqueue(at, packet, &mut out.fates);
        self.begin(at, out);
        let waiting = self.queue.waiting();
        self.counters.backlog_max = self.counters.backlog_max.max(waiting.bytes);
        self.counters.backlog_packets_max = self.counters.backlog_packets_max.max(waiting.packets);
    }

    /// Takes new values once everything due up to `at` is done. What is on the line arrives as was decided, and before what
    /// is transmitted from now on.
    fn change(&mut self, at: Time, change: Change<'_>, out: &mut Outcome) {
        let Change { values, queue, impairments } = change;
        if self.counters.transmitted > Bytes::ZERO {
            self.stage.keep_until(self.delay.arrival(self.line.free()));
        }
        self.line.change(at, values);
        self.delay = Delay::new(&values.over_time("delay"));
        self.mtu = values.bytes("mtu");
        self.overhead = values.bytes("overhead");
        self.conditioner.change(at, conditioner::shaper(values), conditioner::policer(values));
        self.stage.change(&impairments);
        if let Some(queue) = queue {
            self.queue.replace(at, queue, &mut out.fates);
        }
        self.begin(at, out);
    }

    /// Lets the line take at `at` what waits, if it is free.
    fn begin(&mut self, at: Time, out: &mut Outcome) {
        self.wake = self.line.ready(at);
        while self.wake <= at {
            self.serve(at, out);
        }
        self.rest();
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
        counters.busy.add(end, busy);
        counters.busy.carries(packet.id, 1.0);
        packet.on_line = on_line;
        // The policer stands behind the line, where a packet is whole when its last bit has left.
        if !self.conditioner.admit(end, &mut packet) {
            counters.dropped[DropCause::Policed.index()] += 1;
            out.fates.0.push(Fate::Dropped { at: now, packet, cause: DropCause::Policed });
            return;
        }
        let passage = self.stage.pass(self.delay.arrival(end), &mut packet);
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

    fn waiting(&self) -> Backlog {
        self.queue.waiting()
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

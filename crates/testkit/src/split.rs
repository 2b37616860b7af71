//! The split property of media: *when* a driver calls changes nothing about *what* happens.
//!
//! One random workload is offered to three equal media: to one that is called only when a packet is offered, to one
//! that is called at exactly the moments it asks for (as the simulator does), and to one that is called at arbitrary
//! extra moments (as a real-time driver does that wakes early and late). All three must hand out the same deliveries,
//! the same fates, the same counters and the same figures, in the same order.

use trunkline_core::{Bytes, Destination, Duration, Ecn, FlowId, Packet, PacketId, Port, Seed, Stream, Time};
use trunkline_network::{Delivery, Fate, Figure, Medium, MediumCounters, Outcome};

/// How many packets a workload has.
pub const PACKETS: u64 = 400;

/// A packet to offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// When.
    pub at: Time,
    /// Where.
    pub from: Port,
    /// What.
    pub packet: Packet,
}

/// A random workload for a medium with two ports: bursts and pauses on a time scale that differs from seed to seed
/// between microseconds and tens of milliseconds, several flows, sizes from 40 to 1600 bytes.
pub fn workload(seed: u64) -> Vec<Offer> {
    let mut stream = Seed::new(seed, 0).stream("testkit/workload");
    let mean_gap = 1_000.0 * (1u64 << stream.below(16)) as f64;
    let mut at = Time::ZERO;
    let offers = (0..PACKETS).map(|id| {
        if !stream.chance(0.3) {
            at += Duration::from_nanos(stream.exponential(mean_gap) as u64);
        }
        let size = if stream.chance(0.5) { 40 + stream.below(100) } else { 40 + stream.below(1561) };
        let flow = stream.below(6) as u32;
        let mut packet = Packet {
            id: PacketId(id),
            flow: FlowId(flow),
            size: Bytes(size),
            // The field belongs to the flow: queues may sort by it.
            ecn: [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1][flow as usize % 3],
            ..Packet::default()
        };
        // The first bytes stand for all: media never look at them, and the tests compare them often.
        packet.bytes.extend((0..size.min(64)).map(|i| (i * 31 + id) as u8));
        let from = Port(u16::from(stream.chance(0.3)));
        Offer { at, from, packet }
    });
    offers.collect()
}

/// As [`workload`], for a medium with so many stations: all of them send to each other, to all others, and now and then
/// to nobody. With two stations it is that of a link.
pub fn workload_among(stations: u16, seed: u64) -> Vec<Offer> {
    let mut offers = workload(seed);
    if stations > 2 {
        let mut stream = Seed::new(seed, 2).stream("testkit/stations");
        let mut below = |most: u16| stream.below(u64::from(most)) as u16;
        for offer in &mut offers {
            let from = below(stations);
            let to = (from + 1 + below(stations - 1)) % stations;
            offer.from = Port(from);
            offer.packet.to = match below(10) {
                0 => Destination::Everyone,
                1 => Destination::Nobody,
                _ => Destination::Port(Port(to)),
            };
        }
    }
    offers
}

/// Checks the split property of the medium that `build` makes, for one seed.
///
/// `build` must make equal media every time, with equal random streams.
///
/// # Panics
/// With the seed and the first difference, if the property does not hold.
pub fn check(build: impl Fn() -> Box<dyn Medium>, seed: u64) {
    check_among(2, build, seed);
}

/// As [`check`], for a medium with so many stations.
///
/// # Panics
/// With the seed and the first difference, if the property does not hold.
pub fn check_among(stations: u16, build: impl Fn() -> Box<dyn Medium>, seed: u64) {
    let offers = workload_among(stations, seed);
    let run = |medium, between: &mut Between<'_>| run(stations, medium, &offers, between);
    let lazy = run(build(), &mut |_, _, _| {});
    let punctual = run(build(), &mut |medium, until, out| {
        while let Some(next) = medium.next_event().filter(|&next| next <= until) {
            medium.advance(next, out);
        }
    });
    let mut stream = Seed::new(seed, 1).stream("testkit/moments");
    let mut now = Time::ZERO;
    let restless = run(build(), &mut |medium, until, out| {
        for _ in 0..stream.below(4) {
            now = moment(&mut stream, now, until, medium.next_event());
            medium.advance(now, out);
        }
        now = until;
    });
    compare(seed, "called exactly when it asks", &lazy, &punctual);
    compare(seed, "called at arbitrary moments", &lazy, &restless);
}

/// What a medium did with a workload.
struct Run {
    outcome: Outcome,
    counters: Vec<MediumCounters>,
    figures: Vec<Figure>,
}

/// What a driver does before the next offer at this time.
type Between<'a> = dyn FnMut(&mut dyn Medium, Time, &mut Outcome) + 'a;

/// Offers everything, calling `between` with the time of the next offer before it, then lets the medium finish.
fn run(stations: u16, mut medium: Box<dyn Medium>, offers: &[Offer], between: &mut Between<'_>) -> Run {
    let mut outcome = Outcome::default();
    for offer in offers {
        between(&mut *medium, offer.at, &mut outcome);
        medium.offer(offer.at, offer.from, offer.packet.clone(), &mut outcome);
    }
    let last = offers.last().map_or(Time::ZERO, |offer| offer.at);
    let long_after = last + Duration::from_secs(3600);
    between(&mut *medium, long_after, &mut outcome);
    medium.advance(long_after, &mut outcome);
    while let Some(next) = medium.next_event() {
        medium.advance(next, &mut outcome);
    }
    Run {
        outcome,
        counters: (0..stations).map(|port| medium.counters(Port(port))).collect(),
        figures: medium.figures(long_after.since(Time::ZERO)),
    }
}

/// A moment between two others: anywhere, or around the medium's next event.
fn moment(stream: &mut Stream, from: Time, until: Time, next: Option<Time>) -> Time {
    let anywhere = from + stream.duration_below(until.since(from) + Duration::from_nanos(1));
    let nanosecond = Duration::from_nanos(1);
    let near = match (next, stream.below(4)) {
        (Some(next), 0) => next,
        (Some(next), 1) => next + nanosecond,
        (Some(next), 2) => Time::from_nanos(next.as_nanos().saturating_sub(1)),
        _ => anywhere,
    };
    near.clamp(from, until)
}

fn compare(seed: u64, how: &str, expected: &Run, found: &Run) {
    same(seed, how, "delivery", &expected.outcome.deliveries, &found.outcome.deliveries, |d: &Delivery| {
        format!("packet {} to port {} at {} ns", d.packet.id.0, d.to.0, d.at.as_nanos())
    });
    same(seed, how, "fate", &expected.outcome.fates.0, &found.outcome.fates.0, |fate: &Fate| match fate {
        Fate::Dropped { at, packet, cause } => {
            format!("packet {} dropped at {} ns: {}", packet.id.0, at.as_nanos(), cause.name())
        }
        Fate::Marked { at, id, cause, .. } => {
            format!("packet {} marked at {} ns: {}", id.0, at.as_nanos(), cause.name())
        }
    });
    assert_eq!(expected.counters, found.counters, "seed {seed}: {how}, the counters differ");
    assert_eq!(expected.figures, found.figures, "seed {seed}: {how}, the figures differ");
}

fn same<T: PartialEq>(
    seed: u64,
    how: &str,
    what: &str,
    expected: &[T],
    found: &[T],
    show: impl Fn(&T) -> String,
) {
    for i in 0..expected.len().max(found.len()) {
        let (e, f) = (expected.get(i), found.get(i));
        if e != f {
            let [e, f] = [e, f].map(|item| item.map_or("nothing".to_owned(), &show));
            panic!("seed {seed}: {how}, {what} {i} is {f} instead of {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use trunkline_network::Backlog;

    use super::*;

    /// A line that begins the next transmission when it is called, and not when it becomes free.
    #[derive(Default)]
    struct Sluggish {
        waiting: std::collections::VecDeque<Packet>,
        free: Time,
    }

    impl Sluggish {
        fn begin(&mut self, now: Time, out: &mut Outcome) {
            while self.free <= now
                && let Some(packet) = self.waiting.pop_front()
            {
                self.free = now + Duration::from_micros(packet.size.count());
                out.deliveries.push(Delivery { at: self.free, to: Port(1), packet });
            }
        }
    }

    impl Medium for Sluggish {
        fn offer(&mut self, at: Time, _: Port, packet: Packet, out: &mut Outcome) {
            self.advance(at, out);
            self.waiting.push_back(packet);
            self.begin(at, out);
        }
        fn advance(&mut self, to: Time, out: &mut Outcome) {
            self.begin(to, out);
        }
        fn next_event(&self) -> Option<Time> {
            (!self.waiting.is_empty()).then_some(self.free)
        }
        fn counters(&self, _: Port) -> MediumCounters {
            MediumCounters::default()
        }
        fn backlog(&self, _: Port) -> Backlog {
            Backlog::default()
        }
        fn end_measurement(&mut self, _: Time) {}
    }

    #[test]
    fn a_medium_that_decides_when_it_is_woken_is_caught() {
        let caught = (0..20).filter(|&seed| {
            catch_unwind(AssertUnwindSafe(|| check(|| Box::<Sluggish>::default(), seed))).is_err()
        });
        // Workloads so thin that nothing ever waits cannot tell.
        assert!(caught.count() >= 10);
    }
}

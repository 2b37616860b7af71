use proptest::prelude::*;
use trunkline_core::{Ecn, PacketId};

use super::super::workload::{Line, Loop, Reaction, mean};
use super::*;

const RATE: u64 = 10_000_000;

fn config() -> CodelConfig {
    CodelConfig {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu: Bytes(1500),
        ecn: false,
    }
}

fn line(config: CodelConfig) -> Line {
    Line::new(Codel::new(Limit::Packets(100_000), config), RATE)
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn under_constant_overload_drops_follow_the_control_law() {
    let mut line = line(config());
    line.flood((Time::ZERO, at(5_000)), 12_000_000, 1000, Ecn::NotCapable);
    let drops = line.drops(DropCause::Sojourn);
    assert!(drops.len() > 100, "{}", drops.len());

    // A queue grows by 0.2 ms for each ms from the start: above 5 ms from 30 ms on (a packet that leaves then has
    // waited 5 ms), so the first drop is an interval later, give or take a packet's 0.8 ms.
    let first = drops[0].since(Time::ZERO).as_millis_f64();
    assert!((129.0..132.0).contains(&first), "{first}");

    // Drop n + 1 is due 100 ms / sqrt(n), rounded down to a nanosecond, after drop n was due; each happens with the
    // next departure.
    let mut due = drops[0].since(Time::ZERO).as_millis_f64();
    for (n, drop) in drops.iter().enumerate() {
        let late = drop.since(Time::ZERO).as_millis_f64() - due;
        assert!((-1e-3..0.8).contains(&late), "drop {} is {late} ms late", n + 1);
        due += 100.0 / ((n + 1) as f64).sqrt();
    }
}

#[test]
fn a_flow_that_backs_off_is_held_at_the_target_without_idling_the_line() {
    let line = line(config());
    let mut senders = Loop::new(line, Duration::from_millis(100), &[(Reaction::Reno, Ecn::NotCapable); 4]);
    senders.run(at(60_000));
    let line = senders.line;
    let late = |time: Time| time > at(20_000);
    let sojourns = line.sojourns(|time, _| late(time));
    // 40 s at 10 Mbit/s are 33 333 packets of 1500 B.
    assert!(sojourns.len() > 31_000, "{}", sojourns.len());
    let mean = mean(&sojourns);
    assert!((1.0..10.0).contains(&mean), "{mean}");

    // The same senders fill a queue without management.
    let fifo = super::super::Fifo::new(Limit::Packets(1000));
    let mut senders =
        Loop::new(Line::new(fifo, RATE), Duration::from_millis(100), &[(Reaction::Reno, Ecn::NotCapable); 4]);
    senders.run(at(60_000));
    let full = super::super::workload::mean(&senders.line.sojourns(|time, _| late(time)));
    assert!(full > 300.0, "{full}");
}

#[test]
fn nothing_is_dropped_below_the_target() {
    let mut line = line(config());
    // Bursts of 6 packets of 1000 B: the last waits 4 ms.
    for burst in 0..1000 {
        for _ in 0..6 {
            line.offer(at(burst * 10), 0, 1000, Ecn::NotCapable);
        }
    }
    line.run(at(20_000));
    let longest = line.sojourns(|_, _| true).into_iter().fold(0.0, f64::max);
    assert_eq!((longest, line.left.len(), line.fates.0.len()), (4.0, 6000, 0));
}

#[test]
fn a_burst_that_drains_within_an_interval_passes() {
    let mut line = line(config());
    // 100 packets of 0.8 ms: for 75 ms, packets leave that waited longer than the target.
    for _ in 0..100 {
        line.offer(Time::ZERO, 0, 1000, Ecn::NotCapable);
    }
    line.run(at(1000));
    assert!(line.fates.0.is_empty());
    // Twice as many do not drain in time.
    for _ in 0..200 {
        line.offer(at(1000), 0, 1000, Ecn::NotCapable);
    }
    line.run(at(2000));
    assert_eq!(line.drops(DropCause::Sojourn).len(), 1);
}

#[test]
fn the_last_packet_is_never_dropped_however_slow_the_line_is() {
    // A packet takes 1.5 s; the one that waits behind it has always waited far too long.
    let mut line = Line::new(Codel::new(Limit::Packets(100), config()), 8_000);
    for second in 0..100 {
        line.offer(at(second * 1500), 0, 1500, Ecn::NotCapable);
        if second == 0 {
            line.offer(at(0), 0, 1500, Ecn::NotCapable);
        }
    }
    line.run(at(1_000_000));
    assert!(line.sojourns(|_, _| true)[2..].iter().all(|&ms| ms >= 1500.0));
    assert!(line.fates.0.is_empty());

    // The exemption counts bytes behind the packet: with 1499 B of it, the same load is dropped.
    let mut line =
        Line::new(Codel::new(Limit::Packets(100), CodelConfig { mtu: Bytes(1499), ..config() }), 8_000);
    for second in 0..100 {
        line.offer(at(second * 1500), 0, 1500, Ecn::NotCapable);
        if second < 2 {
            line.offer(at(second * 1500), 0, 1500, Ecn::NotCapable);
        }
    }
    line.run(at(1_000_000));
    assert!(!line.fates.0.is_empty());
}

/// Lets an overload begin at `start` for a second, and returns the time of the first drops.
fn overload(line: &mut Line, start: u64) -> Vec<f64> {
    let before = line.drops(DropCause::Sojourn).len();
    line.flood((at(start), at(start + 1_500)), 12_000_000, 1000, Ecn::NotCapable);
    let drops = line.drops(DropCause::Sojourn);
    line.run(at(start + 2_400));
    drops[before..].iter().map(|time| time.since(Time::ZERO).as_millis_f64()).collect()
}

#[test]
fn dropping_resumes_at_the_rate_it_had_reached_unless_it_ended_long_ago() {
    let mut line = line(config());
    let first = overload(&mut line, 0);
    assert!((first[1] - first[0] - 100.0).abs() < 0.8, "{first:?}");
    let reached = first.len();
    assert!(reached > 10);

    // A second later, within 16 intervals: begins with the number of drops that it had ended with.
    let again = overload(&mut line, 2_500);
    let resumed = 100.0 / ((reached - 1) as f64).sqrt();
    assert!((again[1] - again[0] - resumed).abs() < 1.6, "{again:?} should be {resumed} apart");

    // 16 intervals after the last drop are over: begins anew.
    let anew = overload(&mut line, 10_000);
    assert!((anew[1] - anew[0] - 100.0).abs() < 0.8, "{anew:?}");
}

#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let ecn = CodelConfig { ecn: true, ..config() };
    for (config, capability, marked) in [
        (ecn, Ecn::Ect0, true),
        (ecn, Ecn::Ect1, true),
        (ecn, Ecn::NotCapable, false),
        (config(), Ecn::Ect0, false),
    ] {
        let mut line = line(config);
        line.flood((Time::ZERO, at(1000)), 12_000_000, 1000, capability);
        let (marks, drops) = (line.marks(MarkCause::Sojourn), line.drops(DropCause::Sojourn));
        assert_eq!(marks.is_empty(), !marked, "{capability:?}");
        assert_eq!(drops.is_empty(), marked, "{capability:?}");
        let leave_marked = line.left.iter().filter(|(_, p)| p.ecn == Ecn::CongestionExperienced).count();
        assert_eq!(leave_marked, marks.len());
    }
}

#[test]
fn a_packet_marked_elsewhere_is_neither_marked_again_nor_dropped() {
    let mut line = line(CodelConfig { ecn: true, ..config() });
    line.flood((Time::ZERO, at(1000)), 12_000_000, 1000, Ecn::CongestionExperienced);
    assert!(line.fates.0.is_empty());
}

#[test]
fn what_exceeds_the_limit_is_dropped_on_arrival() {
    let mut line = Line::new(Codel::new(Limit::Bytes(Bytes(3000)), config()), RATE);
    for _ in 0..5 {
        line.offer(Time::ZERO, 0, 1000, Ecn::Ect0);
    }
    // One is being transmitted and three wait.
    assert_eq!(line.drops(DropCause::QueueFull), [Time::ZERO]);
}

/// The pseudocode of RFC 8289 section 5, transcribed with its own names and with zero for "never", and the Linux rule that
/// a marked packet is not followed by another.
#[derive(Default)]
struct Rfc8289 {
    queue: VecDeque<Packet>,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    hit: Vec<u64>,
}

impl Rfc8289 {
    fn control_law(t: u64, count: u64) -> u64 {
        t + (100_000_000.0 / (count as f64).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Packet>, bool) {
        let Some(p) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        let sojourn_time = now - p.enqueued.as_nanos();
        let bytes: u64 = self.queue.iter().map(|p| p.size.count()).sum();
        if sojourn_time < 5_000_000 || bytes <= 1500 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + 100_000_000;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn dequeue(&mut self, now: u64) -> Option<Packet> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                let packet = p?;
                self.hit.push(packet.id.0);
                if packet.ecn == Ecn::Ect0 {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                    return Some(packet);
                }
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            let packet = p?;
            self.hit.push(packet.id.0);
            p = if packet.ecn == Ecn::Ect0 { Some(packet) } else { self.dodequeue(now).0 };
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * 100_000_000 {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}

proptest! {
    #[test]
    fn every_decision_is_that_of_the_pseudocode(
        phases in prop::collection::vec((1u64..200, 0u64..3, 1u64..40, any::<bool>()), 1..40),
    ) {
        let mut codel = Codel::new(Limit::Packets(u64::MAX), CodelConfig { ecn: true, ..config() });
        let (mut model, mut fates) = (Rfc8289::default(), Fates::default());
        let (mut now, mut id) = (Time::from_nanos(1), 0);
        // In each phase so many packets come at even distances for each that leaves; times meet 5 ms and 100 ms exactly.
        for (steps, arrivals, half_millis, capable) in phases {
            for _ in 0..steps {
                for _ in 0..arrivals {
                    id += 1;
                    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotCapable };
                    let size = Bytes([500, 1000, 1500][id as usize % 3]);
                    let packet = Packet { id: PacketId(id), size, ecn, enqueued: now, ..Packet::default() };
                    model.queue.push_back(packet.clone());
                    codel.enqueue(now, packet, &mut fates);
                }
                now += Duration::from_micros(500 * half_millis);
                let expected = model.dequeue(now.as_nanos());
                let left = match codel.dequeue(now, &mut fates) {
                    Dequeued::Packet(packet) => Some(packet.id),
                    _ => None,
                };
                prop_assert_eq!(left, expected.map(|packet| packet.id));
            }
        }
        let hit: Vec<u64> = fates
            .0
            .iter()
            .map(|fate| match fate {
                Fate::Dropped { packet, .. } => packet.id.0,
                Fate::Marked { id, .. } => id.0,
            })
            .collect();
        prop_assert_eq!(hit, model.hit);
    }
}

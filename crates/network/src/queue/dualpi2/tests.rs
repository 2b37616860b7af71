use proptest::prelude::*;
use trunkline_core::FlowId;

use super::super::workload::{Line, Loop, Reaction, mean};
use super::*;

fn config() -> DualPi2Config {
    DualPi2Config {
        limit: Limit::Packets(10_000),
        target: Duration::from_millis(15),
        t_update: Duration::from_millis(16),
        alpha: 0.16,
        beta: 3.2,
        coupling: 2.0,
        min_threshold: Duration::from_micros(800),
        range: Duration::from_micros(400),
        mtu: Bytes(1500),
        classic_share: 0.1,
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

proptest! {
    #[test]
    fn the_base_probability_follows_the_law(delays in prop::collection::vec(0u64..60_000, 1..200)) {
        let mut control = Control::default();
        let (mut base, mut previous) = (0.0_f64, 0.0);
        for (n, &micros) in delays.iter().enumerate() {
            let now = at(1000 + 16 * n as u64);
            let oldest = Time::from_nanos(now.as_nanos() - micros * 1000);
            control.update(&config(), now, Some(oldest));
            // In milliseconds and per mille, for independence.
            let delay = micros as f64 / 1000.0;
            base += 0.16 * (delay - 15.0) + 3.2 * (delay - previous);
            base = base.clamp(0.0, 1000.0);
            previous = delay;
            prop_assert!((control.base * 1000.0 - base).abs() < 1e-6, "{} instead of {base}", control.base);
        }
    }
}

/// Queues with the given base probability, in which `packets` of each kind wait.
fn loaded(config: DualPi2Config, base: f64, packets: usize, classic: Ecn) -> DualPi2 {
    let mut queue = DualPi2::new(config);
    for ecn in [Ecn::Ect1, classic].repeat(packets) {
        let packet =
            Packet { flow: FlowId(u32::from(ecn != Ecn::Ect1)), size: Bytes(1000), ecn, ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, &mut Fates::default());
    }
    queue.control = Control { base, previous: Duration::ZERO };
    queue
}

/// What happened to packets, as shares of those that came, for L4S and classic.
#[derive(Debug, Default)]
struct Shares {
    marked: [f64; 2],
    dropped: [f64; 2],
}

/// Empties the queues at once, so that the probability stays and no packet has waited.
fn drain(mut queue: DualPi2, of_each: usize, expected: impl Fn(&Fate) -> bool) -> Shares {
    let mut fates = Fates::default();
    while let Dequeued::Packet(_) = queue.dequeue(Time::ZERO, &mut fates) {}
    let (mut shares, unit) = (Shares::default(), 1.0 / of_each as f64);
    for fate in fates.0 {
        assert!(expected(&fate), "{fate:?}");
        match fate {
            Fate::Marked { flow, .. } => shares.marked[flow.0 as usize] += unit,
            Fate::Dropped { packet, .. } => shares.dropped[packet.flow.0 as usize] += unit,
        }
    }
    shares
}

const MANY: usize = 4000;

#[test]
fn classic_packets_are_hit_with_the_square_and_l4s_with_the_coupled_probability() {
    for base in [0.0, 0.05, 0.1, 0.25, 0.4, 0.49] {
        for classic in [Ecn::NotCapable, Ecn::Ect0] {
            let queue = loaded(config(), base, MANY, classic);
            let shares = drain(queue, MANY, |fate| match fate {
                Fate::Marked { flow, cause, .. } => match flow.0 {
                    0 => *cause == MarkCause::Coupled,
                    _ => *cause == MarkCause::Probability && classic == Ecn::Ect0,
                },
                Fate::Dropped { cause, .. } => *cause == DropCause::Probability && classic == Ecn::NotCapable,
            });
            let close = |share: f64, to: f64| (share - to).abs() <= 2.0 / MANY as f64;
            assert!(close(shares.marked[0], 2.0 * base), "{base}: {shares:?}");
            let hit = if classic == Ecn::Ect0 { shares.marked[1] } else { shares.dropped[1] };
            assert!(close(hit, base * base), "{base}: {shares:?}");
            assert_eq!(shares.dropped[0], 0.0);
        }
    }
}

#[test]
fn in_overload_both_kinds_are_dropped_alike_and_what_is_left_of_l4s_is_marked() {
    for (base, classic) in [(0.5, Ecn::NotCapable), (0.7, Ecn::NotCapable), (0.7, Ecn::Ect0)] {
        let queue = loaded(config(), base, MANY, classic);
        let shares = drain(queue, MANY, |fate| match fate {
            Fate::Marked { flow, cause, .. } => flow.0 == 0 && *cause == MarkCause::Coupled,
            Fate::Dropped { packet, cause, .. } => match packet.ecn {
                Ecn::NotCapable => *cause == DropCause::Probability,
                _ => *cause == DropCause::Overload,
            },
        });
        for dropped in shares.dropped {
            assert!((dropped - base * base).abs() < 0.002, "{base}: {shares:?}");
        }
        assert!((shares.marked[0] + shares.dropped[0] - 1.0).abs() < 0.001, "{base}: {shares:?}");
    }
}

#[test]
fn the_coupling_is_a_parameter() {
    let shares =
        drain(loaded(DualPi2Config { coupling: 4.0, ..config() }, 0.1, MANY, Ecn::Ect0), MANY, |_| true);
    assert!((shares.marked[0] - 0.4).abs() < 0.001 && (shares.marked[1] - 0.01).abs() < 0.001, "{shares:?}");
}

#[test]
fn the_ramp_of_l4s_begins_at_the_threshold() {
    let native = |micros: u64| config().native(Duration::from_micros(micros));
    assert_eq!([0, 800, 900, 1000, 1199, 1200, 5000].map(native), [0.0, 0.0, 0.25, 0.5, 0.9975, 1.0, 1.0]);
    let step = DualPi2Config { range: Duration::ZERO, ..config() };
    assert_eq!([799, 800, 801].map(|micros| step.native(Duration::from_micros(micros))), [0.0, 0.0, 1.0]);
}

#[test]
fn l4s_packets_that_waited_are_marked_unless_they_are_the_last_ones() {
    // 10 Mbit/s: a packet of 1000 B takes 0.8 ms, the n-th leaves at 0.8 n ms.
    let mut line = Line::new(DualPi2::new(config()), 10_000_000);
    for _ in 0..8 {
        line.offer(Time::ZERO, 0, 1000, Ecn::Ect1);
    }
    line.run(at(100));
    let marked: Vec<u64> = line
        .left
        .iter()
        .filter(|(_, packet)| packet.ecn == Ecn::CongestionExperienced)
        .map(|(_, packet)| packet.id.0)
        .collect();
    // 0 and 1 waited up to the threshold; the sum of probabilities exceeds 1 with packet 3; behind 6 and 7 there is
    // no queue.
    assert_eq!(marked, [3, 4, 5]);
    assert_eq!(line.marks(MarkCause::Threshold).len(), 3);
}

#[test]
fn the_larger_of_both_probabilities_marks_l4s() {
    // After 1 ms, the middle of the ramp, half of the packets are marked on account of their own queue.
    for (base, share, cause) in [(0.2, 0.5, MarkCause::Threshold), (0.3, 0.6, MarkCause::Coupled)] {
        let (mut queue, mut fates) = (DualPi2::new(config()), Fates::default());
        for _ in 0..MANY {
            let packet = Packet { size: Bytes(100), ecn: Ecn::Ect1, ..Packet::default() };
            queue.enqueue(Time::ZERO, packet, &mut fates);
        }
        queue.control.base = base;
        while queue.backlog().packets > 2 {
            queue.dequeue(at(1), &mut fates);
        }
        let marked = fates.0.len() as f64 / MANY as f64;
        assert!((marked - share).abs() < 0.001, "{marked} instead of {share}");
        assert!(fates.0.iter().all(|fate| matches!(fate, Fate::Marked { cause: c, .. } if *c == cause)));
    }
}

#[test]
fn what_a_queue_sends_alone_is_not_held_against_it() {
    for alone in [Ecn::Ect1, Ecn::NotCapable] {
        let (mut queue, mut fates) = (DualPi2::new(config()), Fates::default());
        let offer = |queue: &mut DualPi2, ecn| {
            let packet = Packet { size: Bytes(1000), ecn, ..Packet::default() };
            queue.enqueue(Time::ZERO, packet, &mut Fates::default());
        };
        for _ in 0..1000 {
            offer(&mut queue, alone);
            queue.dequeue(Time::ZERO, &mut fates);
        }
        for ecn in [Ecn::Ect1, Ecn::NotCapable].repeat(100) {
            offer(&mut queue, ecn);
        }
        let classic = (0..100).filter(|_| match queue.dequeue(Time::ZERO, &mut fates) {
            Dequeued::Packet(packet) => packet.ecn == Ecn::NotCapable,
            other => panic!("{other:?}"),
        });
        assert_eq!(classic.count(), 10, "{alone:?}");
    }
}

#[test]
fn the_classic_queue_gets_its_share_and_the_other_the_rest() {
    for share in [0.0, 0.1, 0.5] {
        let mut queue =
            loaded(DualPi2Config { classic_share: share, ..config() }, 0.0, 1000, Ecn::NotCapable);
        let leaves = (0..1000).filter(|_| match queue.dequeue(Time::ZERO, &mut Fates::default()) {
            Dequeued::Packet(packet) => packet.flow.0 == 1,
            other => panic!("{other:?}"),
        });
        let classic = leaves.count() as f64 / 1000.0;
        assert!((classic - share).abs() <= 0.002, "{classic} instead of {share}");
    }
}

#[test]
fn ecn_decides_the_queue() {
    let mut queue = DualPi2::new(config());
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::CongestionExperienced] {
        queue.enqueue(Time::ZERO, Packet { ecn, ..Packet::default() }, &mut Fates::default());
    }
    let kinds = |lane: &Lane| lane.packets.iter().map(|packet| packet.ecn).collect::<Vec<Ecn>>();
    assert_eq!(kinds(&queue.low_latency), [Ecn::Ect1, Ecn::CongestionExperienced]);
    assert_eq!(kinds(&queue.classic), [Ecn::NotCapable, Ecn::Ect0]);
}

#[test]
fn classic_and_l4s_senders_share_the_line_and_l4s_does_not_wait() {
    let classic = [(Reaction::Reno, Ecn::NotCapable); 2];
    let l4s = [(Reaction::Scalable, Ecn::Ect1); 2];
    let line = Line::new(DualPi2::new(config()), 20_000_000);
    let mut senders = Loop::new(line, Duration::from_millis(20), &[classic, l4s].concat());
    senders.run(at(60_000));
    let line = senders.line;
    let kind =
        |l4s: bool| move |time: Time, packet: &Packet| time > at(20_000) && (packet.flow.0 >= 2) == l4s;
    let (slow, fast) = (line.sojourns(kind(false)), line.sojourns(kind(true)));

    // 40 s at 20 Mbit/s are 66 667 packets of 1500 B.
    assert!(slow.len() + fast.len() > 65_000, "{} + {}", slow.len(), fast.len());
    let mean_delays = (mean(&slow), mean(&fast));
    assert!((10.0..20.0).contains(&mean_delays.0), "{mean_delays:?}");
    assert!(mean_delays.1 < 1.0, "{mean_delays:?}");
    // About equal rates, in spite of the other law and the longer round trip of the classic senders.
    let ratio = fast.len() as f64 / slow.len() as f64;
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    // The coupling, more than its own queue, is what holds L4S back.
    let (coupled, own) = (line.marks(MarkCause::Coupled).len(), line.marks(MarkCause::Threshold).len());
    assert!(coupled > 4 * own, "{coupled} {own}");
    assert!(line.fates.0.iter().all(|fate| match fate {
        Fate::Dropped { packet, .. } => packet.flow.0 < 2,
        Fate::Marked { flow, .. } => flow.0 >= 2,
    }));
}

#[test]
fn a_flood_of_l4s_that_does_not_listen_is_cut_to_the_line_by_drops() {
    // Twice the line's rate: half of it must go, that is p' = 0.7.
    let mut line = Line::new(DualPi2::new(config()), 10_000_000);
    line.flood((Time::ZERO, at(20_000)), 20_000_000, 1000, Ecn::Ect1);
    let late = |time: &&Time| **time > at(10_000);
    let dropped = line.drops(DropCause::Overload).iter().filter(late).count() as f64;
    // 10 s at 20 Mbit/s are 25 000 packets.
    assert!((dropped / 25_000.0 - 0.5).abs() < 0.03, "{dropped}");
    assert!(line.drops(DropCause::QueueFull).is_empty());
    let delays = line.sojourns(|time, _| time > at(10_000));
    assert!(mean(&delays) < 30.0, "{}", mean(&delays));
}

#[test]
fn a_slow_line_does_not_run_dry() {
    // A packet takes 1.5 s, a hundred times the target.
    let mut line = Line::new(DualPi2::new(config()), 8_000);
    for n in 0..100 {
        line.offer(at(n * 1500), 0, 1500, Ecn::NotCapable);
        if n == 0 {
            line.offer(at(0), 0, 1500, Ecn::NotCapable);
        }
    }
    line.run(at(1_000_000));
    assert!(line.fates.0.is_empty());
    assert!(line.sojourns(|_, _| true)[2..].iter().all(|&ms| ms == 1500.0));
}

#[test]
fn neither_idleness_nor_a_line_that_stands_still_costs_updates() {
    let century = 100 * 365 * 86_400_000;
    // Idle: the probability goes to zero.
    let mut queue = loaded(config(), 0.9, 1, Ecn::Ect0);
    while let Dequeued::Packet(_) = queue.dequeue(Time::ZERO, &mut Fates::default()) {}
    queue.catch_up(at(century));
    assert_eq!(queue.control, Control::default());
    // Standing still: it goes to one, and the delay is known all the same.
    let mut queue = loaded(config(), 0.0, 1, Ecn::Ect0);
    let mut minutely = queue.clone();
    queue.catch_up(at(3_600_000));
    for minute in 1..=60 {
        minutely.catch_up(at(minute * 60_000));
    }
    assert_eq!(queue.control, minutely.control);
    assert_eq!(queue.control.previous, Duration::from_millis(3_600_000));
    queue.catch_up(at(century));
    assert_eq!(queue.control, Control { base: 1.0, previous: Duration::from_millis(century / 16 * 16) });
}

use std::collections::BTreeMap;

use trunkline_core::{Ecn, Seed};

use super::super::workload::{Line, mean};
use super::*;

const RATE: u64 = 10_000_000;

fn config() -> FqCodelConfig {
    FqCodelConfig {
        limit: Limit::Packets(10_240),
        flows: 1024,
        quantum: Bytes(1514),
        codel: CodelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: Bytes(1500),
            ecn: true,
        },
        ce_threshold: None,
        drop_batch: 64,
    }
}

fn queue(config: FqCodelConfig) -> FqCodel {
    FqCodel::new(config, Seed::new(1, 0).stream("queue"))
}

fn line(config: FqCodelConfig) -> Line {
    Line::new(queue(config), RATE)
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// Ten bulk flows that together offer 20 Mbit/s in packets of 1500 B, and a sparse flow, number 10, of 200 B every
/// 20 ms, for `seconds`.
fn ten_and_one(line: &mut Line, seconds: u64) {
    for n in 0..seconds * 1_000_000 / 600 {
        let now = n * 600;
        line.offer(at(now), (n % 10) as u32, 1500, Ecn::NotCapable);
        // 600 us do not divide 20 ms: the sparse flow meets the line in every phase.
        if now / 20_000 != (now + 600) / 20_000 {
            line.offer(at(now), 10, 200, Ecn::NotCapable);
        }
    }
}

#[test]
fn a_sparse_flow_is_not_delayed_by_bulk_flows() {
    let mut line = line(config());
    ten_and_one(&mut line, 10);
    let sparse = line.sojourns(|_, packet| packet.flow == FlowId(10));
    assert!(sparse.len() > 490, "{}", sparse.len());
    // At most the packet being transmitted is before it: 1500 B take 1.2 ms.
    let longest = sparse.iter().copied().fold(0.0, f64::max);
    assert!(longest <= 1.2, "{longest}");
    assert!(mean(&sparse) > 0.3, "the line is busy: {}", mean(&sparse));
    let hit = line.fates.0.iter().any(|fate| match fate {
        Fate::Dropped { packet, .. } => packet.flow == FlowId(10),
        Fate::Marked { flow, .. } => *flow == FlowId(10),
    });
    assert!(!hit, "a packet of the sparse flow was dropped");

    // The same load before a plain queue.
    let mut fifo = Line::new(super::super::Fifo::new(Limit::Packets(100)), RATE);
    ten_and_one(&mut fifo, 10);
    assert!(mean(&fifo.sojourns(|_, packet| packet.flow == FlowId(10))) > 50.0);
}

#[test]
fn bulk_flows_share_the_line_by_bytes() {
    let mut line = line(FqCodelConfig { limit: Limit::Packets(1000), ..config() });
    // Flow n sends packets of 300 n B, each flow 5 Mbit/s.
    let mut due = [0; 5];
    for now in 0..5_000_000u64 {
        for (n, due) in due.iter_mut().enumerate() {
            if now == *due {
                let size = 300 * (n as u64 + 1);
                line.offer(at(now), n as u32, size, Ecn::NotCapable);
                *due += size * 8 / 5;
            }
        }
    }
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for (time, packet) in &line.left {
        if *time > at(1_000_000) {
            *bytes.entry(packet.flow.0).or_default() += packet.size.count();
        }
    }
    // 4 s at 10 Mbit/s, a fifth for each.
    assert_eq!(bytes.len(), 5);
    for (flow, sent) in &bytes {
        let share = *sent as f64 / 1_000_000.0;
        assert!((share - 1.0).abs() < 0.01, "flow {flow}: {share} of its share");
    }
}

#[test]
fn a_new_queue_is_served_for_a_quantum_before_the_old_ones() {
    let (mut queue, mut fates) = (queue(config()), Fates::default());
    let offer = |queue: &mut FqCodel, flow, size| {
        let packet = Packet { flow: FlowId(flow), size: Bytes(size), ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, &mut Fates::default());
    };
    let mut leaves = |queue: &mut FqCodel| match queue.dequeue(Time::ZERO, &mut fates) {
        Dequeued::Packet(packet) => packet.flow.0,
        other => panic!("{other:?}"),
    };
    for _ in 0..4 {
        offer(&mut queue, 1, 1500);
    }
    // 1500 B leave 14 B of credit: a second packet goes, and then the turn is over.
    assert_eq!([leaves(&mut queue), leaves(&mut queue)], [1, 1]);
    for _ in 0..3 {
        offer(&mut queue, 2, 1000);
    }
    assert_eq!([0; 5].map(|_| leaves(&mut queue)), [2, 2, 1, 2, 1]);
    assert_eq!(queue.dequeue(Time::ZERO, &mut Fates::default()), Dequeued::Empty);
}

#[test]
fn a_flow_that_returns_at_once_does_not_go_before_the_others_again() {
    let (mut queue, mut fates) = (queue(config()), Fates::default());
    let offer = |queue: &mut FqCodel, flow| {
        let packet = Packet { flow: FlowId(flow), size: Bytes(100), ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, &mut Fates::default());
    };
    let mut leave = |queue: &mut FqCodel, n: usize| -> Vec<u32> {
        let mut next = || match queue.dequeue(Time::ZERO, &mut fates) {
            Dequeued::Packet(packet) => packet.flow.0,
            other => panic!("{other:?}"),
        };
        (0..n).map(|_| next()).collect()
    };
    for _ in 0..40 {
        offer(&mut queue, 1);
    }
    offer(&mut queue, 2);
    // A quantum of flow 1, which 16 packets exceed by 86 B, then the packet of flow 2.
    assert_eq!(leave(&mut queue, 17), [[1; 16].as_slice(), &[2]].concat());
    // Flow 2 is found empty and moves behind flow 1, which has 1428 B to send: 15 packets.
    assert_eq!(leave(&mut queue, 1), [1]);
    offer(&mut queue, 2);
    assert_eq!(leave(&mut queue, 15), [[1; 14].as_slice(), &[2]].concat());
}

#[test]
fn after_idleness_no_flow_goes_first_for_what_it_sent_before() {
    let (mut queue, mut fates) = (queue(config()), Fates::default());
    let mut offer = |queue: &mut FqCodel, flow| {
        let packet = Packet { flow: FlowId(flow), size: Bytes(100), ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, &mut fates);
    };
    let leaves = |queue: &mut FqCodel| match queue.dequeue(Time::ZERO, &mut Fates::default()) {
        Dequeued::Packet(packet) => packet.flow.0,
        other => panic!("{other:?}"),
    };
    offer(&mut queue, 1);
    assert_eq!(leaves(&mut queue), 1);
    // The line does not ask again before the next packet comes; another driver might.
    let mut asked = queue.clone();
    assert_eq!(asked.dequeue(Time::ZERO, &mut Fates::default()), Dequeued::Empty);
    for mut queue in [queue, asked] {
        offer(&mut queue, 2);
        offer(&mut queue, 1);
        assert_eq!([leaves(&mut queue), leaves(&mut queue)], [2, 1]);
    }
}

#[test]
fn when_all_is_full_the_longest_queue_pays_with_its_oldest_packets() {
    let (mut queue, mut fates) =
        (queue(FqCodelConfig { limit: Limit::Packets(200), ..config() }), Fates::default());
    let mut id = 0;
    let mut offer = |queue: &mut FqCodel, fates: &mut Fates, flow, size| {
        id += 1;
        let id = trunkline_core::PacketId(id);
        let packet = Packet { id, flow: FlowId(flow), size: Bytes(size), ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, fates);
    };
    // Packets 1 to 150 are small and more; 151 to 200 are fewer but longer.
    for _ in 0..150 {
        offer(&mut queue, &mut fates, 1, 100);
    }
    for _ in 0..50 {
        offer(&mut queue, &mut fates, 2, 1000);
    }
    assert!(fates.0.is_empty());
    offer(&mut queue, &mut fates, 3, 100);
    let dropped: Vec<u64> = fates
        .0
        .drain(..)
        .map(|fate| match fate {
            Fate::Dropped { packet, cause: DropCause::LongestQueue, .. } => packet.id.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(dropped, (151..=175).collect::<Vec<u64>>(), "the older half of the longest in bytes");
    assert_eq!(queue.backlog().packets, 176);
}

#[test]
fn no_more_than_a_batch_is_dropped_at_once() {
    for (batch, dropped) in [(64, 64), (10, 10), (1000, 101)] {
        let config = FqCodelConfig { limit: Limit::Packets(200), drop_batch: batch, ..config() };
        let (mut queue, mut fates) = (queue(config), Fates::default());
        for _ in 0..=200 {
            assert!(fates.0.is_empty());
            queue.enqueue(Time::ZERO, Packet { size: Bytes(100), ..Packet::default() }, &mut fates);
        }
        assert_eq!(fates.0.len(), dropped);
    }
}

#[test]
fn a_limit_in_bytes_holds_and_refuses_what_could_never_fit() {
    let mut queue = queue(FqCodelConfig { limit: Limit::Bytes(Bytes(10_000)), ..config() });
    let mut fates = Fates::default();
    for flow in 0..100 {
        let packet = Packet { flow: FlowId(flow % 7), size: Bytes(900), ..Packet::default() };
        queue.enqueue(Time::ZERO, packet, &mut fates);
        assert!(queue.backlog().bytes <= Bytes(10_000));
    }
    fates.0.clear();
    let before = queue.backlog();
    queue.enqueue(Time::ZERO, Packet { size: Bytes(10_001), ..Packet::default() }, &mut fates);
    assert_eq!(queue.backlog(), before);
    assert!(matches!(fates.0[..], [Fate::Dropped { cause: DropCause::QueueFull, .. }]));
}

#[test]
fn flows_spread_over_the_queues_as_by_chance_and_differently_for_another_stream() {
    // 100 flows in 1024 queues: the expected number of queues taken is 1024 (1 - (1 - 1/1024)^100) = 95.3.
    let taken = |seed| {
        let queue = FqCodel::new(config(), Seed::new(seed, 0).stream("queue"));
        let mut places: Vec<u32> = (0..100).map(|flow| queue.place(FlowId(flow))).collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    let counts: Vec<f64> = (0..200).map(|seed| taken(seed).len() as f64).collect();
    let mean = mean(&counts);
    assert!((mean - 95.3).abs() < 1.0, "{mean}");
    assert_ne!(taken(1), taken(2));
}

#[test]
fn flows_that_meet_in_a_queue_share_its_turn() {
    let mut line = line(FqCodelConfig { flows: 1, limit: Limit::Packets(100), ..config() });
    ten_and_one(&mut line, 5);
    let sparse = line.sojourns(|_, packet| packet.flow == FlowId(10));
    assert!(mean(&sparse) > 20.0, "{}", mean(&sparse));
}

#[test]
fn codel_works_in_every_queue_on_its_own() {
    // Flow 0 overloads; flow 1 sends a tenth of the line and stays below the target.
    let mut line = line(config());
    for n in 0..2_000_000 / 800u64 {
        line.offer(at(n * 800), 0, 1500, Ecn::Ect0);
        if n % 10 == 0 {
            line.offer(at(n * 800), 1, 1000, Ecn::NotCapable);
        }
    }
    assert!(line.marks(MarkCause::Sojourn).len() > 5);
    assert!(line.fates.0.iter().all(|fate| matches!(fate, Fate::Marked { flow: FlowId(0), .. })));
}

#[test]
fn a_flow_with_one_packet_is_not_dropped_however_many_others_wait() {
    // A packet takes 120 ms; each of 20 flows sends one in a round, and most wait far longer than the target.
    let mut line = Line::new(queue(config()), 100_000);
    for round in 0..10 {
        for flow in 0..20 {
            line.offer(at(round * 2_400_000), flow, 1500, Ecn::NotCapable);
        }
    }
    line.run(at(100_000_000));
    assert!(mean(&line.sojourns(|_, _| true)) > 1000.0);
    assert!(line.fates.0.is_empty());
}

#[test]
fn the_ce_threshold_marks_every_capable_packet_above_it() {
    let config = FqCodelConfig { ce_threshold: Some(Duration::from_millis(2)), ..config() };
    let mut line = line(config);
    for _ in 0..10 {
        // 0.8 ms each.
        line.offer(Time::ZERO, 0, 1000, Ecn::Ect1);
    }
    line.run(at(1_000_000));
    // They leave at 0, 0.8, 1.6, 2.4 ms ...
    assert_eq!(line.marks(MarkCause::Threshold).len(), 7);
    assert!(line.left.iter().all(|(time, packet)| {
        (packet.ecn == Ecn::CongestionExperienced) == (time.since(Time::ZERO) > Duration::from_millis(2))
    }));
}

use proptest::prelude::*;
use trunkline_core::schema::Limit;
use trunkline_core::{FlowId, PacketId};

use super::*;
use crate::fate::{DropCause, Fate};
use crate::queue::{Fifo, RoundRobin};

const PORT: Port = Port(0);

/// The daughter board of the study with a queue.
fn board(queue: Box<dyn Queue>) -> T1Config {
    T1Config {
        place: "link.trunk/a-b".into(),
        rate: Rate::from_bits_per_second(1_544_000),
        delay: Duration::ZERO,
        mtu: Bytes(65_535),
        overhead: Bytes(8),
        frame: Bytes(256),
        join: true,
        chunk: Bytes(64),
        input: Bytes(4000),
        output: Bytes(1000),
        backplane: Rate::from_bits_per_second(6_400_000),
        cost_in: Duration::from_nanos(1413),
        cost_out: Duration::from_nanos(1231),
        queue,
        impairments: Impairments::default(),
    }
}

/// The plain DSX1 board: hardware only.
fn plain() -> T1Config {
    T1Config {
        join: false,
        input: Bytes::ZERO,
        output: Bytes::ZERO,
        cost_in: Duration::ZERO,
        cost_out: Duration::ZERO,
        backplane: Rate::from_bits_per_second(1_000_000_000_000),
        ..board(fifo(32_000))
    }
}

fn fifo(bytes: u64) -> Box<dyn Queue> {
    Box::new(Fifo::new(Limit::Bytes(Bytes(bytes))))
}

fn round_robin(quantum: u64) -> Box<dyn Queue> {
    Box::new(RoundRobin::new(Bytes(quantum), Limit::Bytes(Bytes(500_000))))
}

fn trunk(there: T1Config) -> T1Link {
    T1Link::new([there, plain()], Seed::new(1, 0))
}

fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: Bytes(size), bytes: vec![7; 3], ..Packet::default() }
}

/// Runs until nothing is due any more, and returns when each packet arrived.
fn run_out(trunk: &mut T1Link, out: &mut Outcome) -> Vec<(u64, Time)> {
    while let Some(next) = trunk.next_event() {
        trunk.advance(next, out);
    }
    out.deliveries.iter().map(|delivery| (delivery.packet.id.0, delivery.at)).collect()
}

/// Bytes per second of `blocks` URP blocks of a size, trailers of 6 bytes with them, that wait from the beginning.
fn throughput(there: T1Config, block: u64, blocks: u64) -> f64 {
    let (mut trunk, mut out) = (trunk(there), Outcome::default());
    for id in 0..blocks {
        trunk.offer(Time::ZERO, PORT, packet(id, 1, block), &mut out);
        trunk.offer(Time::ZERO, PORT, packet(id, 1, 6), &mut out);
    }
    let arrivals = run_out(&mut trunk, &mut out);
    assert_eq!(arrivals.len() as u64, 2 * blocks);
    let last = arrivals.last().expect("blocks arrived").1;
    (blocks * block) as f64 / last.as_secs_f64()
}

#[test]
fn without_joining_the_trunk_carries_what_table_1_says() {
    // Hawley 1989, Table 1: 192 KB/s * B / (B + 14 + 8 * B / Q).
    for (quantum, block) in [(16, 256), (32, 512), (64, 256), (64, 1024), (128, 1024), (256, 1024)] {
        let there = T1Config { chunk: Bytes(quantum), ..plain() };
        let there = T1Config { queue: fifo(10_000_000), ..there };
        let (q, b) = (quantum as f64, block as f64);
        let expected = 192_000.0 * b / (b + 14.0 + 8.0 * b / q);
        let found = throughput(there, block, 300);
        assert!(
            (found / expected - 1.0).abs() < 0.0005,
            "Q {quantum}, B {block}: {found} against {expected}"
        );
    }
}

#[test]
fn one_channel_alone_fills_its_frames() {
    let there = T1Config { input: Bytes::ZERO, ..board(round_robin(64)) };
    let found = throughput(there, 1024, 300);
    // Trailers join too: 1030 bytes in frames of 256.
    let expected = 192_000.0 * 1024.0 / (1030.0 * 264.0 / 256.0);
    assert!((found / expected - 1.0).abs() < 0.002, "{found} against {expected}");
}

#[test]
fn a_lone_byte_passes_backplane_processor_and_line() {
    let (mut trunk, mut out) = (trunk(board(fifo(500_000))), Outcome::default());
    trunk.offer(Time::ZERO, PORT, packet(1, 1, 1), &mut out);
    let arrivals = run_out(&mut trunk, &mut out);
    // 3 envelopes off the backplane at 1.25 us, 1 in at 1.413 us, 3 out at 1.231 us, 9 bytes on the line at 5.208 us.
    assert_eq!(arrivals, [(1, Time::from_nanos(3 * 1250 + 1413 + 3 * 1231 + 46_875))]);
    assert_eq!(out.deliveries[0].packet.bytes, [7; 3], "the packet comes out as it went in");
}

#[test]
fn a_short_message_waits_for_fifos_and_turns_under_round_robin_and_for_everything_under_fifo() {
    let wait = |queue: Box<dyn Queue>| {
        let there = T1Config { input: Bytes::ZERO, ..board(queue) };
        let (mut trunk, mut out) = (trunk(there), Outcome::default());
        for id in 0..20 {
            trunk.offer(Time::ZERO, PORT, packet(id, 1 + id as u32 % 4, 1030), &mut out);
        }
        // Long after the processor has everything in memory.
        let later = Time::ZERO + Duration::from_millis(45);
        trunk.offer(later, PORT, packet(99, 9, 15), &mut out);
        let arrivals = run_out(&mut trunk, &mut out);
        arrivals.iter().find(|(id, _)| *id == 99).expect("it arrives").1.since(later)
    };
    let (fair, first_come) = (wait(round_robin(64)), wait(fifo(500_000)));
    // Section 2.2: the output FIFO holds 1 KE, 5.7 ms; then a turn of at most four quanta.
    assert!(fair > Duration::from_millis(5) && fair < Duration::from_micros(7_700), "{fair}");
    assert!(first_come > Duration::from_millis(50), "{first_come}");
}

#[test]
fn an_input_fifo_overflows_only_in_a_burst_of_35_600_envelopes() {
    // Section 1.4: 4 KE overflow when 35.6 KE come at 800 KE/s and 710 KE/s leave. The data of such a burst is 16/18.
    let survives = |envelopes: u64| {
        let there = T1Config {
            // The study counts envelopes of data and of channel numbers alike.
            cost_in: Duration::from_nanos(1413 * 18 / 16),
            cost_out: Duration::ZERO,
            output: Bytes(1 << 20),
            ..board(fifo(500_000))
        };
        let (mut trunk, mut out) = (trunk(there), Outcome::default());
        for id in 0..envelopes / 18 {
            trunk.offer(Time::ZERO, PORT, packet(id, 1, 16), &mut out);
        }
        run_out(&mut trunk, &mut out);
        !out.fates.0.iter().any(|fate| matches!(fate, Fate::Dropped { cause: DropCause::InputFull, .. }))
    };
    assert!(survives(30_000));
    assert!(!survives(45_000));
}

#[test]
fn a_dropped_chunk_takes_its_packet_with_it_once() {
    let there = T1Config { queue: fifo(200), ..plain() };
    let (mut trunk, mut out) = (trunk(there), Outcome::default());
    for id in 0..3 {
        trunk.offer(Time::ZERO, PORT, packet(id, 1, 256), &mut out);
    }
    let arrived: Vec<u64> = run_out(&mut trunk, &mut out).iter().map(|(id, _)| *id).collect();
    let dropped: Vec<u64> = out
        .fates
        .0
        .iter()
        .map(|fate| match fate {
            Fate::Dropped { packet, cause: DropCause::QueueFull, .. } => packet.id.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((arrived, dropped), (vec![0], vec![1, 2]));
    let counters = trunk.counters(PORT);
    assert_eq!((counters.offered, counters.delivered), (3, 1));
    assert_eq!(counters.dropped[DropCause::QueueFull.index()], 2);
}

proptest! {
    /// Every packet is delivered or dropped, once; within a channel packets that arrive keep their order.
    #[test]
    fn nothing_is_lost_without_a_word(
        offers in prop::collection::vec((0u64..3_000_000, 0u32..5, 0u64..3000), 1..80),
        limit in 100u64..20_000,
        chunk in 1u64..300,
        join: bool,
        fair: bool,
        hardware: bool,
    ) {
        let queue = if fair { round_robin(64) } else { fifo(limit) };
        let base = if hardware { plain() } else { board(fifo(1)) };
        let (mut trunk, mut out) = (trunk(T1Config { queue, chunk: Bytes(chunk), join, ..base }), Outcome::default());
        let mut now = Time::ZERO;
        for (id, &(gap, flow, size)) in offers.iter().enumerate() {
            now += Duration::from_nanos(gap);
            trunk.offer(now, PORT, packet(id as u64, flow, size), &mut out);
        }
        run_out(&mut trunk, &mut out);
        let mut seen: Vec<u64> = out.deliveries.iter().map(|delivery| delivery.packet.id.0).collect();
        for flow in 0..5 {
            let of_flow = out.deliveries.iter().filter(|delivery| delivery.packet.flow == FlowId(flow));
            let ids: Vec<u64> = of_flow.map(|delivery| delivery.packet.id.0).collect();
            prop_assert!(ids.is_sorted(), "{:?}", ids);
        }
        for fate in &out.fates.0 {
            if let Fate::Dropped { packet, .. } = fate {
                prop_assert_eq!(packet.bytes.len(), 3);
                seen.push(packet.id.0);
            }
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..offers.len() as u64).collect::<Vec<_>>());
    }
}

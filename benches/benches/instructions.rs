//! Instructions of the hottest pure parts, counted by valgrind's callgrind: a neighbour on the machine changes nothing.
//!
//! `cargo bench -p trunkline-benches --bench instructions`, which needs valgrind and
//! `cargo install gungraun-runner --version 0.20.0`. Each figure is for [`UNITS`] units of work.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "what the macros of gungraun make is public and has no documentation"
)]

mod parts;

use std::hint::black_box;

use gungraun::prelude::*;
use parts::Part;
use parts::codecs::{self, Chunk};
use parts::metrics::SentAndReceived;
use parts::network::{MediumHop, QueueHop};
use parts::traffic::Production;
use parts::transport::UdpExchange;
use trunkline_benches::queues::Order;
use trunkline_network::{medium, queue};
use trunkline_traffic as traffic;
use trunkline_transport::framing::decode_message;

/// Units of work behind each figure.
const UNITS: u64 = 1000;

fn work(part: &mut impl Part) {
    let mut done = 0;
    while done < UNITS {
        done += part.step();
    }
    black_box(done);
}

fn queue_of(kind: usize, flows: u32) -> QueueHop {
    QueueHop::new(&queue::KINDS[kind], flows, Order::Steady)
}

fn queue_of_1_flow(kind: usize) -> QueueHop {
    queue_of(kind, 1)
}

fn queue_of_1000_flows(kind: usize) -> QueueHop {
    queue_of(kind, 1000)
}

#[library_benchmark]
#[benches::flow(iter = 0..queue::KINDS.len(), setup = queue_of_1_flow)]
#[benches::thousand_flows(iter = 0..queue::KINDS.len(), setup = queue_of_1000_flows)]
fn queue_hop(mut part: QueueHop) -> QueueHop {
    work(&mut part);
    part
}

/// Queues that must not mind how many flows there are.
const PER_FLOW: [&str; 2] = ["round-robin", "drr"];

fn per_flow(queue: usize, flows: u32) -> QueueHop {
    let kind = queue::find(PER_FLOW[queue]).expect("a queue of that name is registered");
    QueueHop::new(kind, flows, Order::Shuffled)
}

fn per_flow_10(queue: usize) -> QueueHop {
    per_flow(queue, 10)
}

fn per_flow_100000(queue: usize) -> QueueHop {
    per_flow(queue, 100_000)
}

#[library_benchmark]
#[benches::ten_flows(iter = 0..PER_FLOW.len(), setup = per_flow_10)]
#[benches::hundred_thousand_flows(iter = 0..PER_FLOW.len(), setup = per_flow_100000)]
fn queue_growth(mut part: QueueHop) -> QueueHop {
    work(&mut part);
    part
}

fn idle(kind: usize) -> MediumHop {
    MediumHop::new(&medium::KINDS[kind], 0)
}

fn congested(kind: usize) -> MediumHop {
    MediumHop::new(&medium::KINDS[kind], 50)
}

#[library_benchmark]
#[benches::uncongested(iter = 0..medium::KINDS.len(), setup = idle)]
#[benches::congested(iter = 0..medium::KINDS.len(), setup = congested)]
fn medium_hop(mut part: MediumHop) -> MediumHop {
    work(&mut part);
    part
}

fn message() -> Vec<u8> {
    codecs::datagram(1, 80)
}

#[library_benchmark]
#[bench::voice(setup = message)]
fn framing_encode(mut message: Vec<u8>) -> Vec<u8> {
    let header = codecs::header(1, 80);
    for _ in 0..UNITS {
        black_box(&header).encode(black_box(&mut message));
    }
    message
}

#[library_benchmark]
#[bench::voice(setup = message)]
fn framing_decode(message: Vec<u8>) -> Vec<u8> {
    let key = codecs::header(1, 80).key;
    for _ in 0..UNITS {
        let _ = black_box(decode_message(black_box(&message), key));
    }
    message
}

#[library_benchmark]
#[benches::payload(args = [80, 940], setup = Chunk::new)]
fn framing_deframe(mut part: Chunk) -> Chunk {
    work(&mut part);
    part
}

#[library_benchmark]
#[benches::payload(args = [80, 940], setup = UdpExchange::new)]
fn udp_send_to_receive(mut part: UdpExchange) -> UdpExchange {
    work(&mut part);
    part
}

#[library_benchmark]
#[benches::channels(args = [1, 1000], setup = SentAndReceived::new)]
fn meter_sent_and_received(mut part: SentAndReceived) -> SentAndReceived {
    work(&mut part);
    part
}

fn source(kind: usize) -> Production {
    Production::new(&traffic::KINDS[kind], 1)
}

#[library_benchmark]
#[benches::kind(iter = 0..traffic::KINDS.len(), setup = source)]
fn source_produce(mut part: Production) -> Production {
    work(&mut part);
    part
}

library_benchmark_group!(
    name = pure,
    benchmarks = [
        queue_hop,
        queue_growth,
        medium_hop,
        framing_encode,
        framing_decode,
        framing_deframe,
        udp_send_to_receive,
        meter_sent_and_received,
        source_produce,
    ]
);

main!(library_benchmark_groups = pure);

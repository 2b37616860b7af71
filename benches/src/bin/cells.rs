//! How fast ATM is: cells per second through shaper, policer, switch and AAL5, in one virtual channel and in up to 10,000
//! whose cells take turns.
//!
//! `cargo run --release -p trunkline-benches --bin cells`

use std::time::Instant;

use clap::Parser;
use trunkline_benches::Spread;
use trunkline_core::{Amount, Bytes, Duration, FlowId, Packet, PacketId, Port, Seed, Time};
use trunkline_network::impairment::Impairments;
use trunkline_network::medium::{self, PortConfig};
use trunkline_network::{Medium, Outcome, queue};
use trunkline_testkit::values::values;

/// Speed of cells.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Cells of each round
    #[arg(long, default_value_t = 2_000_000)]
    cells: u64,
    /// Numbers of virtual channels to compare
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000])]
    channels: Vec<u32>,
}

fn main() {
    let options = Options::parse();
    anstream::println!("{} rounds, medians (smallest to largest)\n", options.rounds);
    for (what, size) in [("voice, 3 cells", 108), ("bulk, 192 cells", 9180)] {
        let nanos = measure(&options, "bundle", 8, size);
        show(&format!("one channel for all, packets of {what}"), &nanos);
    }
    let rounds: Vec<Vec<f64>> =
        options.channels.iter().map(|&channels| measure(&options, "flow", channels, 108)).collect();
    for (channels, nanos) in options.channels.iter().zip(&rounds) {
        show(&format!("{channels} channels, packets of voice"), nanos);
        anstream::println!(
            "    x {:.2} of what a cell costs with {}",
            Spread::of_ratios(nanos, &rounds[0]),
            options.channels[0]
        );
    }
}

fn show(what: &str, nanos: &[f64]) {
    let millions: Vec<f64> = nanos.iter().map(|nanos| 1e3 / nanos).collect();
    anstream::println!(
        "{what}: {:.1} ns each, {:.1} million cells per second",
        Spread::of(nanos),
        Spread::of(&millions)
    );
}

/// Nanoseconds per cell, by round.
fn measure(options: &Options, vc: &str, flows: u32, size: u64) -> Vec<f64> {
    (0..options.rounds).map(|_| round(options, vc, flows, size)).collect()
}

fn round(options: &Options, vc: &str, flows: u32, size: u64) -> f64 {
    let mut driver = Driver::new(vc, flows, size);
    // A few times around first, so that everything has its place.
    driver.run(u64::from(flows) * 10);
    let before = driver.cells();
    let start = Instant::now();
    driver.run(options.cells);
    start.elapsed().as_secs_f64() * 1e9 / (driver.cells() - before) as f64
}

/// Keeps a packet waiting in each flow, beside the one whose cells leave.
struct Driver {
    medium: Box<dyn Medium>,
    out: Outcome,
    size: Bytes,
    next: u64,
}

impl Driver {
    fn new(vc: &str, flows: u32, size: u64) -> Driver {
        let mut driver = Driver { medium: medium(vc), out: Outcome::default(), size: Bytes(size), next: 0 };
        for flow in (0..flows).chain(0..flows) {
            driver.offer(Time::ZERO, FlowId(flow), Vec::new());
        }
        driver
    }

    fn run(&mut self, cells: u64) {
        let until = self.cells() + cells;
        // Counting costs more than a packet.
        while self.cells() < until {
            for _ in 0..1000 {
                let now = self.medium.next_event().expect("a packet waits in every flow");
                self.medium.advance(now, &mut self.out);
                assert!(self.out.fates.0.is_empty(), "what is shaped by its contract is not policed");
                while let Some(delivery) = self.out.deliveries.pop() {
                    self.offer(now, delivery.packet.flow, delivery.packet.bytes);
                }
            }
        }
    }

    fn offer(&mut self, now: Time, flow: FlowId, bytes: Vec<u8>) {
        self.next += 1;
        let packet = Packet { id: PacketId(self.next), flow, size: self.size, bytes, ..Packet::default() };
        self.medium.offer(now, Port(0), packet, &mut self.out);
    }

    fn cells(&self) -> u64 {
        let figures = self.medium.figures(Duration::from_secs(1));
        match figures.iter().find(|figure| figure.name == "cells").and_then(|figure| figure.amount) {
            Some(Amount::Count(cells)) => cells,
            other => panic!("cells are {other:?}"),
        }
    }
}

/// Channels with a shaper and a policer of two rates each.
fn medium(vc: &str) -> Box<dyn Medium> {
    let kind = medium::find("atm").expect("it is registered");
    let given = [
        ("vc", vc),
        ("line", "20 Gbit/s"),
        ("rate", "20 Gbit/s"),
        ("shape-pcr", "1594 kbit/s"),
        ("shape-scr", "1 Mbit/s"),
        ("shape-mbs", "32"),
        ("pcr", "1594 kbit/s"),
        ("scr", "1 Mbit/s"),
        ("mbs", "32"),
    ];
    let (shared, own) = (values(kind.shared, &[]), values(kind.parameters, &given));
    let fifo = &queue::KINDS[0];
    let port = |place: &str| PortConfig {
        place: place.to_owned(),
        values: &own,
        queue: (fifo.build)(&values(fifo.parameters, &[]), Seed::new(1, 0).stream(place)),
        impairments: Impairments::default(),
    };
    (kind.build)(&shared, vec![port("link.bench/a-b"), port("link.bench/b-a")], Seed::new(1, 0))
}

//! How fast each queue is alone: packets per second beside FIFO, which does the least that a queue can do, and how the
//! cost of a packet grows with the number of active channels.
//!
//! `cargo run --release -p trunkline-benches --bin queues`

use std::time::Instant;

use clap::Parser;
use trunkline_benches::Spread;
use trunkline_benches::queues::{Order, QueueHop};
use trunkline_network::queue;

/// Slices of a round.
const SLICES: usize = 8;

/// Speed of the queues.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Packets of each of the slices of a round
    #[arg(long, default_value_t = 20_000)]
    packets: u32,
    /// Active channels of the comparison
    #[arg(long, default_value_t = 1_000)]
    channels: u32,
    /// Queues whose growth with the number of channels is shown, beside FIFO's
    #[arg(long, value_delimiter = ',', default_values = ["round-robin", "drr"])]
    growth: Vec<String>,
    /// Numbers of active channels to compare
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000, 100_000])]
    sizes: Vec<u32>,
}

fn main() {
    let options = Options::parse();
    let all: Vec<&str> = queue::KINDS.iter().map(|kind| kind.name).collect();
    let nanos = measure(&options, &all, options.channels, Order::Steady);
    anstream::println!(
        "{} active channels, a packet in and a packet out, median of {} rounds (smallest to largest):",
        options.channels,
        options.rounds
    );
    for (name, of_queue) in all.iter().zip(&nanos) {
        let millions: Vec<f64> = of_queue.iter().map(|nanos| 1e3 / nanos).collect();
        let times = Spread::of_ratios(of_queue, &nanos[0]);
        anstream::println!(
            "  {name:12} {:5.1} million packets/s   {:.1} ns   x {times:.2} of {}",
            Spread::of(&millions).median,
            Spread::of(of_queue),
            all[0]
        );
    }
    growth(&options, all[0]);
}

fn growth(options: &Options, fifo: &str) {
    let names: Vec<&str> = std::iter::once(fifo).chain(options.growth.iter().map(String::as_str)).collect();
    for (order, what) in [
        (Order::Steady, "channels that send in a steady order, as voice does"),
        (
            Order::Shuffled,
            "channels that send in a shuffled order (memory decides, once the caches are full)",
        ),
    ] {
        anstream::println!("\n{what}: ns per packet by number of active channels, and relative to {fifo}'s:");
        for &channels in &options.sizes {
            let nanos = measure(options, &names, channels, order);
            anstream::println!("  {channels:6} channels");
            for (name, of_queue) in names.iter().zip(&nanos) {
                let times = Spread::of_ratios(of_queue, &nanos[0]);
                anstream::println!("    {name:12} {:.1} ns   x {times:.2}", Spread::of(of_queue));
            }
        }
    }
}

/// Nanoseconds per packet of each queue and round. The queues have their slices in turn; the fastest slice stands for
/// the round, since neighbours on the machine only ever add to it.
fn measure(options: &Options, names: &[&str], channels: u32, order: Order) -> Vec<Vec<f64>> {
    let hop = |name: &&str| {
        let kind = queue::find(name).unwrap_or_else(|| panic!("there is no queue `{name}`"));
        QueueHop::new(kind, channels, order)
    };
    let mut hops: Vec<QueueHop> = names.iter().map(hop).collect();
    let mut nanos = vec![vec![f64::INFINITY; options.rounds]; names.len()];
    for round in 0..options.rounds {
        for _ in 0..SLICES {
            for (hop, nanos) in hops.iter_mut().zip(&mut nanos) {
                let started = Instant::now();
                for _ in 0..options.packets {
                    hop.step();
                }
                let slice = started.elapsed().as_nanos() as f64 / f64::from(options.packets);
                nanos[round] = nanos[round].min(slice);
            }
        }
    }
    nanos
}

//! How fast the transports are: round trips over sockets beside bare UDP in the same run, packets through XTP in memory, and
//! what a reliable multicast costs in control packets as its group grows.
//!
//! `cargo run --release -p trunkline-benches --bin transports`

mod groups;
mod memory;
mod round_trips;

use anstream::println;
use clap::Parser;

/// Speed of the transports.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement, bare UDP and the transports in turn
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Round trips of each round, or packets of each round divided by a hundred
    #[arg(long, default_value_t = 2_000)]
    count: usize,
    /// Only transports whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Which to measure: one-thread, two-threads, xtp, multicast; all if none is named
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
}

fn main() {
    let options = Options::parse();
    let wanted = |what: &str| options.what.is_empty() || options.what.iter().any(|named| named == what);
    println!("{}\n", trunkline_live::machine_description());
    for (name, threads) in [("one-thread", 1), ("two-threads", 2)] {
        if wanted(name) {
            round_trips::measure(options.rounds, options.count, &options.only, threads);
        }
    }
    if wanted("xtp") {
        memory::xtp(options.rounds, 100 * options.count);
    }
    if wanted("multicast") {
        groups::control_traffic();
    }
}

//! How fast the simulator is: packet-hops per second on one core, beside ns-3 where Debian's libns3-dev is installed, and
//! how the cost of a packet grows with the number of flows.
//!
//! `cargo run --release -p trunkline-benches --bin simulator`

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::Parser;
use trunkline_benches::{Spread, experiment, ns3, simulate};
use trunkline_metrics::RepetitionSummary;

/// Speed of the simulator.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Simulated seconds of the scenario with 1,000 channels
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only the growth with the number of flows
    #[arg(long)]
    growth_only: bool,
    /// Numbers of flows to compare
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000])]
    flows: Vec<u32>,
    /// Simulated seconds for ns-3, which is slower: its rate does not depend on the length
    #[arg(long, default_value_t = 5)]
    peer_seconds: u32,
}

fn main() {
    let options = Options::parse();
    if !options.growth_only {
        against_ns3(&options);
    }
    by_flows(&options);
}

/// 1,000 UDP voice channels, 80 bytes every 10 ms, over one 200 Mbit/s link.
fn scenario(flows: u32, millis: u32, rate: &str) -> String {
    format!(
        "name = \"voice\"\nduration = \"{millis} ms\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{rate}\"\ndelay = \"20 ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"1000 packets\" }}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"voice\", samples = 80 }}\ncount = {flows}\n"
    )
}

/// Simulates with the meter that every run has, without a trace on disk; returns hops per second and the summary.
fn timed(text: &str) -> (f64, RepetitionSummary) {
    let experiment = experiment(text);
    let started = Instant::now();
    let summary = simulate(&experiment);
    let took = started.elapsed().as_secs_f64();
    let hops: u64 = summary.links.iter().map(|link| link.delivered).sum();
    (hops as f64 / took, summary)
}

fn against_ns3(options: &Options) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let peer = ns3::build("ns3-voice", folder.path());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let (rate, summary) = timed(&scenario(1000, 1000 * options.seconds, "200 Mbit/s"));
        let counts = summary.flows[0].counts;
        assert_eq!(counts.sent, counts.received, "the scenario is meant to lose nothing");
        ours.push(rate);
        if let Some(peer) = &peer {
            theirs.push(run_ns3(peer, options.peer_seconds));
        }
    }
    anstream::println!(
        "1,000 voice channels over one link, {} simulated seconds, million packet-hops per second:",
        options.seconds
    );
    anstream::println!("  trunkline        {:.2}", Spread::of(&millions(&ours)));
    if theirs.is_empty() {
        anstream::println!("  ns-3             not installed (Debian: libns3-dev and g++)");
    } else {
        anstream::println!("  ns-3             {:.3}", Spread::of(&millions(&theirs)));
        anstream::println!("  trunkline / ns-3 {:.1}", Spread::of_ratios(&ours, &theirs));
    }
}

fn by_flows(options: &Options) {
    const PACKETS: u32 = 2_000_000;
    let flows = &options.flows;
    let mut nanos = vec![Vec::new(); flows.len()];
    for _ in 0..options.rounds {
        for (of_flows, &flows) in nanos.iter_mut().zip(flows) {
            // The same number of packets at every size: 100 packets per second and flow.
            let millis = 10 * (PACKETS / flows).max(1);
            let (rate, _) = timed(&scenario(flows, millis, "4 Gbit/s"));
            of_flows.push(1e9 / rate);
        }
    }
    anstream::println!("\nnanoseconds per packet-hop by number of flows, and relative to the first:");
    for (of_flows, flows) in nanos.iter().zip(flows) {
        let growth = Spread::of_ratios(of_flows, &nanos[0]);
        anstream::println!("  {flows:6} flows  {:.0}   x {growth:.2}", Spread::of(of_flows));
    }
}

fn millions(rates: &[f64]) -> Vec<f64> {
    rates.iter().map(|rate| rate / 1e6).collect()
}

/// Packets per second of wall time.
fn run_ns3(program: &Path, seconds: u32) -> f64 {
    let output = Command::new(program).args(["1000", &seconds.to_string()]).output();
    let output = output.unwrap_or_else(|error| panic!("ns-3 does not run: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (packets, took) = (words.next().unwrap_or(0.0), words.next().unwrap_or(f64::INFINITY));
    packets / took
}

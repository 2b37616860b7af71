//! Does the wire do what the simulator predicts? The mean one-way delay of voice beside load, with three queues on links of
//! three rates, the same experiment on both.
//!
//! `cargo run --release -p trunkline-benches --bin agreement`, on Linux. Exits with 1 if a mean is off by more than 15 %.
//!
//! The load is an open loop, so that both have the same: four Poisson streams, together a fifth more than the line
//! carries. With `--tcp` it is four bulk transfers instead, by the kernel's TCP here and the simulator's there: then two
//! implementations of TCP are compared as well, and nothing is judged.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anstream::println;
use clap::Parser;
use trunkline_benches::experiment;
use trunkline_core::Duration;
use trunkline_live::{FarEnd, LiveOptions, far_end};
use trunkline_metrics::{DelaySummary, Estimate, estimate};
use trunkline_runner::{Hear, Observer, Plan, Request, WireMeans};
use trunkline_store::{Backend, Store, StoredPoint};

/// Simulated and measured delay of voice under load.
#[derive(Parser)]
struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    seconds: u32,
    /// How often each is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Let the load be bulk transfers over TCP
    #[arg(long)]
    tcp: bool,
    /// The far end, in its own process
    #[arg(long, hide = true)]
    far_end: bool,
    /// The first process of the wire's process namespace
    #[arg(long, hide = true)]
    init: bool,
}

/// The goal, as a share of the simulated mean.
const GOAL: f64 = 0.15;
/// Bits per second.
const RATES: [u64; 3] = [1_500_000, 10_000_000, 100_000_000];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    if options.far_end {
        // The near end has been told of an error.
        let _ = far_end::serve_standard_streams();
        return Ok(ExitCode::SUCCESS);
    }
    #[cfg(target_os = "linux")]
    if options.init {
        trunkline_wire::ground::serve_init()?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before the first thread.
    let program = std::env::current_exe()?;
    let wire = WireMeans::gain(program.clone(), vec!["--init".into()])?;
    let live = LiveOptions::new(FarEnd::Process { program, arguments: vec!["--far-end".into()] });
    let directory = tempfile::tempdir()?;
    let store = Store::open(directory.path())?;

    println!("{}\n", trunkline_live::machine_description());
    println!("mean delay of voice, 5 ms of it propagation; ms, with the 95 % confidence interval\n");
    println!(
        "{:>12}  {:<12}{:>20}{:>20}{:>10}{:>24}",
        "rate", "queue", "sim", "wire", "off by", "p99 sim, wire"
    );
    let mut worst: f64 = 0.0;
    for rate in RATES {
        let experiment = experiment(&file(&options, rate));
        let measured = |backend| -> Result<Vec<StoredPoint>, Box<dyn Error>> {
            let file = Path::new("agreement.toml");
            let (experiment, live, wire) = (&experiment, &live, Some(&wire));
            let request = Request {
                experiment,
                file,
                backend,
                jobs: 2,
                live,
                wire,
                tap: None,
                kernels: None,
                fleet: None,
                hear: &Hear::default(),
            };
            let run = trunkline_runner::run(&store, request, &Silent, &AtomicBool::new(false))?.run;
            Ok(store.run(run.id)?.points)
        };
        let (sim, wire) = (measured(Backend::Sim)?, measured(Backend::Wire)?);
        for ((sim, wire), queue) in sim.iter().zip(&wire).zip(["fifo", "round-robin", "fq-codel"]) {
            let ([sim, sim_p99], [wire, wire_p99]) = (voice(sim), voice(wire));
            let off = wire.mean / sim.mean - 1.0;
            worst = worst.max(off.abs());
            println!(
                "{:>5} Mbit/s  {queue:<12}{:>20}{:>20}{:>8.1} %{:>24}",
                rate as f64 / 1e6,
                shown(sim),
                shown(wire),
                off * 100.0,
                format!("{:.2}, {:.2}", sim_p99.mean, wire_p99.mean),
            );
        }
    }
    println!("\nthe worst is off by {:.1} %, the goal is {:.0} %", worst * 100.0, GOAL * 100.0);
    Ok(if options.tcp || worst <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The experiment at this rate. A queue holds 50 ms.
fn file(options: &Options, rate: u64) -> String {
    let Options { seconds, repetitions, .. } = options;
    let limit = rate / 8 / 20;
    // With header, UDP and IP 1068 bytes, in each of four streams.
    let interval = 4.0 * 1068.0 * 8.0 / (1.2 * rate as f64) * 1e6;
    let load = match options.tcp {
        true => "transport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }".to_owned(),
        false => format!(
            "transport = \"udp\"\nsource = {{ kind = \"load\", message = \"1000 B\", \
             interval = {{ kind = \"exponential\", mean = \"{interval:.3} us\" }} }}"
        ),
    };
    format!(
        "name = \"agreement\"\nduration = \"{seconds} s\"\ndrain = \"1 s\"\nrepetitions = {repetitions}\nseed = 7\n\
         [hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{rate} bit/s\"\ndelay = \"5 ms\"\n\
         [flow.load]\nfrom = \"a\"\nto = \"b\"\ncount = 4\n{load}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"1 s\"\n\
         source = {{ kind = \"voice\", samples = 80 }}\n\
         [sweep]\n\"link.trunk.queue\" = [\n{{ kind = \"fifo\", limit = \"{limit} B\" }},\n\
         {{ kind = \"round-robin\", quantum = \"1500 B\", limit = \"{limit} B\" }},\n\"fq-codel\",\n]\n"
    )
}

/// The mean delay of voice and its 99th percentile over repetitions, in milliseconds.
fn voice(point: &StoredPoint) -> [Estimate; 2] {
    let summaries = point.repetitions.iter().filter_map(|repetition| repetition.summary.as_ref());
    let voice = summaries.filter_map(|summary| summary.flows.iter().find(|flow| flow.flow == "voice"));
    let delays: Vec<DelaySummary> = voice.filter_map(|flow| flow.latency).collect();
    let over = |of: fn(&DelaySummary) -> Duration| {
        estimate(&delays.iter().map(|delay| of(delay).as_secs_f64() * 1e3).collect::<Vec<f64>>())
    };
    [over(|delay| delay.mean), over(|delay| delay.p99)]
}

fn shown(estimate: Estimate) -> String {
    match estimate.confidence95 {
        Some(half) => format!("{:.3} ± {half:.3}", estimate.mean),
        None => format!("{:.3}", estimate.mean),
    }
}

/// Says nothing but what is wrong.
struct Silent;

impl Observer for Silent {
    fn planned(&self, _: &Plan) {}
    fn advanced(&self, _: Duration) {}
    fn repetition_done(&self) {}
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        println!("{message}");
    }
}

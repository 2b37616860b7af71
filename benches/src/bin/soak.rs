//! An hour of 1,000 channels must not grow memory beyond 300 MB: the whole way of a run, from the simulator through the
//! meter to traces on disk, a summary with exact percentiles and the store.
//!
//! `cargo run --release -p trunkline-benches --bin soak` (some 4 GB of disk in the folder for temporary files, freed at
//! the end; `--seconds 60` for a quick look). Exits with 1 if the peak is above the limit.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration as WallTime, Instant};

use anstream::println;
use clap::Parser;
use trunkline_benches::{experiment, memory};
use trunkline_core::Duration;
use trunkline_io::process::cpu_time;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_runner::{Hear, Observer, Plan, Request, RunnerError};
use trunkline_store::{Backend, RunInfo, Store, StoreError};

/// Memory of a long run.
#[derive(Parser)]
struct Options {
    /// Simulated seconds
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Voice channels
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    channels: u16,
    /// The limit on memory, in MB
    #[arg(long, default_value_t = 300)]
    limit: u64,
}

const MB: u64 = 1_000_000;

/// Set by Ctrl-C: the run ends, and its folder is removed.
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let options = Options::parse();
    ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed))?;
    // Removed when it is dropped, also after an error.
    let directory = tempfile::tempdir()?;
    let progress = Printed::new(f64::from(options.seconds));
    let run = soak(&options, directory.path(), &progress)?;
    let peak = memory::peak();
    report(&options, directory.path(), &run, progress.started.elapsed())?;
    directory.close()?;

    let verdict = if peak <= options.limit * MB { "kept" } else { "exceeded" };
    println!("peak memory        {} MB: the limit of {} MB is {verdict}", peak / MB, options.limit);
    Ok(if peak <= options.limit * MB && !STOP.load(Ordering::Relaxed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn soak(options: &Options, directory: &Path, observer: &dyn Observer) -> Result<RunInfo, RunnerError> {
    // 80 bytes every 10 ms with 28 bytes of UDP and IP: 86.4 kbit/s each; room for measurement headers beside.
    let rate = 200 * u32::from(options.channels).max(10);
    let experiment = experiment(&format!(
        "name = \"soak\"\nduration = \"{} s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{rate} kbit/s\"\ndelay = \"20 ms\"\nloss = \"1 %\"\n\
         queue = {{ kind = \"fifo\", limit = \"1000 packets\" }}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nchannels = {}\n\
         source = {{ kind = \"voice\", samples = 80 }}\n",
        options.seconds, options.channels
    ));
    let live = LiveOptions::new(FarEnd::Thread);
    let file = Path::new("soak.toml");
    let request = Request {
        experiment: &experiment,
        file,
        backend: Backend::Sim,
        jobs: 1,
        live: &live,
        wire: None,
        hear: &Hear::default(),
        tap: None,
        kernels: None,
        fleet: None,
    };
    let store = Store::open(directory)?;
    Ok(trunkline_runner::run(&store, request, observer, &STOP)?.run)
}

fn report(options: &Options, directory: &Path, run: &RunInfo, took: WallTime) -> Result<(), StoreError> {
    let stored = Store::open(directory)?.run(run.id)?;
    let repetition = stored.points.first().and_then(|point| point.repetitions.first());
    let Some((repetition, summary)) = repetition.and_then(|r| Some((r, r.summary.as_ref()?))) else {
        println!("nothing was measured");
        return Ok(());
    };
    let messages: u64 = summary.flows.iter().map(|flow| flow.counts.sent).sum();
    let lost: u64 = summary.flows.iter().map(|flow| flow.counts.lost).sum();
    let hops: u64 = summary.links.iter().map(|link| link.delivered).sum();
    let bytes: u64 =
        repetition.traces.iter().filter_map(|(_, path)| path.metadata().ok()).map(|m| m.len()).sum();
    let exact = summary.flows.iter().all(|flow| flow.latency.is_none_or(|latency| latency.exact));
    let seconds = took.as_secs_f64();
    println!("{} simulated seconds of {} channels:", options.seconds, options.channels);
    println!("wall time          {seconds:.1} s, {:.1} s of CPU", cpu_time().as_secs_f64());
    println!("messages           {messages}, {lost} lost");
    println!("percentiles        {}", if exact { "exact" } else { "of the histogram" });
    println!("traces             {} MB, {:.2} B per message", bytes / MB, bytes as f64 / messages as f64);
    println!("hops per second    {:.2} million, all included", hops as f64 / seconds / 1e6);
    Ok(())
}

/// A line every ten seconds.
struct Printed {
    started: Instant,
    /// Simulated seconds in all.
    total: f64,
    /// Simulated nanoseconds so far.
    done: AtomicU64,
    /// Wall seconds at the next line.
    next: AtomicU64,
}

impl Printed {
    const EVERY: u64 = 10;

    fn new(total: f64) -> Printed {
        Printed { started: Instant::now(), total, done: AtomicU64::new(0), next: AtomicU64::new(Self::EVERY) }
    }
}

impl Observer for Printed {
    fn planned(&self, _: &Plan) {}

    fn advanced(&self, by: Duration) {
        let done = self.done.fetch_add(by.as_nanos(), Ordering::Relaxed) + by.as_nanos();
        let elapsed = self.started.elapsed().as_secs();
        if elapsed >= self.next.load(Ordering::Relaxed) {
            self.next.store(elapsed + Self::EVERY, Ordering::Relaxed);
            let (resident, peak) = (memory::resident() / MB, memory::peak() / MB);
            let done = done as f64 / 1e9;
            println!(
                "{elapsed:4} s  {done:6.0} of {} s simulated  {resident} MB, {peak} MB at most",
                self.total
            );
        }
    }

    fn repetition_done(&self) {}

    fn point_done(&self) {}

    fn warning(&self, message: &str) {
        println!("{message}");
    }
}

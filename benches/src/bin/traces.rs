//! What a trace costs: nanoseconds of CPU per record on the driver's thread and on all, bytes on disk, and memory, with
//! one trace and with many; and how long it takes to draw.
//!
//! `cargo run --release -p trunkline-benches --bin traces`

use std::path::PathBuf;

use anstream::println;
use clap::Parser;
use trunkline_benches::{Spread, memory};
use trunkline_core::{Duration, Time};
use trunkline_io::process::{cpu_time, raise_open_files};
use trunkline_metrics::{Fate, Record, TraceSink};
use trunkline_store::{
    Backend, LatencySeries, NewRun, RunWriter, Store, latency_cdf, latency_series, read_latencies,
};

/// Cost of traces.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Records of each round
    #[arg(long, default_value_t = 5_000_000)]
    records: u32,
    /// Numbers of traces that are open at once
    #[arg(long, value_delimiter = ',', default_values_t = [1, 1_000])]
    traces: Vec<usize>,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let options = Options::parse();
    let directory = tempfile::tempdir()?;
    let store = Store::open(directory.path())?;
    for &traces in &options.traces {
        // Three files each while they are written.
        raise_open_files(3 * traces as u64 + 100)?;
        memory::forget_peak();
        let before = memory::resident();
        let run = store.begin(new_run(options.rounds))?;
        let rounds = (0..options.rounds).map(|round| one(&run, round, traces, options.records));
        let rounds = rounds.collect::<Result<Vec<Cost>>>()?;
        let of = |figure: fn(&Cost) -> f64| Spread::of(&rounds.iter().map(figure).collect::<Vec<_>>());
        println!("{traces} traces, {} records, per record:", options.records);
        println!("  driver's thread    {:.0} ns of CPU", of(|cost| cost.driver));
        println!("  all threads        {:.0} ns of CPU", of(|cost| cost.all));
        println!("  reading latencies  {:.0} ns of CPU", of(|cost| cost.reading));
        println!(
            "  to be drawn        {:.0} ns of CPU over time, {:.0} as a distribution",
            of(|cost| cost.series),
            of(|cost| cost.cdf)
        );
        println!("  on disk            {:.2} B", of(|cost| cost.bytes));
        println!("  memory             {} MB, {} MB before", memory::peak() >> 20, before >> 20);
    }
    Ok(())
}

/// What one round cost, per record: nanoseconds, and bytes.
struct Cost {
    driver: f64,
    all: f64,
    reading: f64,
    series: f64,
    cdf: f64,
    bytes: f64,
}

fn one(run: &RunWriter, round: u32, traces: usize, records: u32) -> Result<Cost> {
    let names: Vec<String> = (0..traces).map(|trace| format!("flow{trace}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut writer = run.begin_repetition(0, round, &names)?;
    let mut noise = Noise(12_345);
    let (cpu, thread) = (cpu_time(), memory::thread_cpu_time());
    for n in 0..records {
        writer.write(n as usize % traces, &record(n, &mut noise));
    }
    let thread = memory::thread_cpu_time() - thread;
    let closed = writer.close()?;
    let all = cpu_time() - cpu;

    let cpu = cpu_time();
    let mut read = 0;
    let mut bytes = 0;
    for (_, path) in closed.traces() {
        read_latencies(path, &mut |_| read += 1)?;
        bytes += std::fs::metadata(path)?.len();
    }
    let reading = cpu_time() - cpu;
    let cpu = cpu_time();
    for (_, path) in closed.traces() {
        latency_series(path, None, 2_000, LatencySeries::EXACT_UP_TO)?;
    }
    let series = cpu_time() - cpu;
    let cpu = cpu_time();
    for (_, path) in closed.traces() {
        latency_cdf(path, 1_000)?;
    }
    let cdf = cpu_time() - cpu;
    let per_record = |total: u128| total as f64 / f64::from(records);
    Ok(Cost {
        driver: per_record(thread.as_nanos()),
        all: per_record(u128::from(all.as_nanos())),
        reading: per_record(u128::from(reading.as_nanos())),
        series: per_record(u128::from(series.as_nanos())),
        cdf: per_record(u128::from(cdf.as_nanos())),
        bytes: per_record(u128::from(bytes)),
    })
}

/// The `n`th record of 1,000 voice channels: a packet every 10 ms, jitter below 0.5 ms, one of a hundred lost.
fn record(n: u32, noise: &mut Noise) -> Record {
    let draw = noise.draw();
    let due = Time::from_nanos(u64::from(n / 1000) * 10_000_000);
    let sent = due + Duration::from_nanos(draw % 1000);
    let lost = (draw >> 10).is_multiple_of(100);
    Record {
        member: 0,
        channel: (n % 1000) as u16,
        sequence: n / 1000,
        due,
        sent: Some(sent),
        received: (!lost).then(|| due + Duration::from_nanos(51_000_000 + (draw >> 20) % 500_000)),
        reflected: None,
        payload: 80,
        fate: if lost { Fate::Lost } else { Fate::Received },
    }
}

/// Xorshift: costs next to nothing.
struct Noise(u64);

impl Noise {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn new_run(repetitions: u32) -> NewRun {
    NewRun {
        name: "traces".to_owned(),
        backend: Backend::Sim,
        text: String::new(),
        file: PathBuf::from("traces.toml"),
        named: trunkline_experiment::NamedFiles::default(),
        settings: Vec::new(),
        shard: None,
        axes: Vec::new(),
        limits: Vec::new(),
        seed: 1,
        repetitions,
        points: vec![(0, Vec::new())],
        repetition_length: Duration::from_secs(1),
        machine: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

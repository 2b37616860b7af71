//! A run of 100 points whose database is killed at a moment of chance, over and over: whether any point is lost or measured
//! twice. Every other time the server is back at once, and the run goes on; else it stays away, the run ends partial and is
//! resumed.
//!
//! `cargo run --release -p trunkline-benches --bin resume_database`

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anstream::println;
use clap::Parser;
use trunkline_benches::experiment;
use trunkline_experiment::Experiment;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_runner::{Hear, Observer, Plan, Request, RunnerError};
use trunkline_store::{Backend, Status, Store, read_trace};
use trunkline_testkit::postgres::PostgresServer;

/// A database that is killed under a run.
#[derive(Parser)]
struct Options {
    /// How many runs, in each of which the database is killed once
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Points of each run
    #[arg(long, default_value_t = 100)]
    points: u32,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let Some(server) = PostgresServer::start() else { return Ok(ExitCode::from(1)) };
    let folder = tempfile::tempdir()?;
    let experiment = experiment(&sweep(options.points));
    let (mut went_on, mut resumed) = (0, 0);
    let began = Instant::now();
    for kill in 0..options.kills {
        let stays_away = kill % 2 == 1;
        let chance = trunkline_core::Seed::new(u64::from(kill), 0).stream("kill").bits();
        match one(&server, folder.path(), &experiment, chance, stays_away)? {
            0 => went_on += 1,
            _ => resumed += 1,
        }
    }
    println!(
        "{} runs of {} points, the database killed in each: {went_on} went on, {resumed} were resumed; no point lost, none \
         measured twice ({:.0} s)",
        options.kills,
        options.points,
        began.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}

/// One run to its end, with one kill; how often it was resumed.
fn one(
    server: &PostgresServer,
    files: &Path,
    experiment: &Experiment,
    chance: u64,
    stays_away: bool,
) -> Result<u32> {
    // Who waits for a second only is sure to give up.
    let url = if stays_away { format!("{}&connect_timeout=1", server.url()) } else { server.url() };
    let live = LiveOptions::new(FarEnd::Thread);
    let request = Request {
        experiment,
        file: Path::new("resume.toml"),
        backend: Backend::Sim,
        jobs: 2,
        live: &live,
        wire: None,
        fleet: None,
        hear: Hear::nothing(),
        tap: None,
        kernels: None,
    };
    let (counter, stop) = (Counter::default(), AtomicBool::new(false));
    let store = Store::connect(&url, files)?;
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Somewhere in it, however long it takes.
            let at = (chance % experiment.points.len() as u64) as u32;
            while counter.0.load(Ordering::Relaxed) < at {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(chance >> 40 & 0x1fff));
            server.kill();
            std::thread::sleep(Duration::from_millis(if stays_away { 4_000 } else { chance >> 32 & 0xff }));
            server.start_again();
        });
        trunkline_runner::run(&store, request, &counter, &stop)
    });
    drop(store);
    let mut resumed = 0;
    match ended {
        Ok(_) => {}
        Err(RunnerError::Store(_)) if stays_away => {
            let store = Store::connect(&url, files)?;
            let run = store.runs()?.pop().ok_or("the run is gone")?;
            assert_eq!(run.status, Status::Partial);
            trunkline_runner::resume(&store, run.id, request, &counter, &stop)?;
            resumed += 1;
        }
        Err(error) => return Err(error.into()),
    }
    check(&Store::connect(&url, files)?, experiment.points.len())?;
    Ok(resumed)
}

/// That the latest run has each point once, with all its records.
fn check(store: &Store, points: usize) -> Result<()> {
    let run = store.run(store.find("latest")?)?;
    assert_eq!((run.info.status, run.points.len()), (Status::Complete, points));
    for point in &run.points {
        let [only] = &point.repetitions[..] else { panic!("point {}: {:?}", point.index, point.repetitions) };
        let summary = only.summary.as_ref().filter(|_| !only.partial).ok_or("a repetition is partial")?;
        let (_, trace) = only.traces.first().ok_or("a trace is missing")?;
        let (mut sequences, mut records) = (std::collections::BTreeSet::new(), 0);
        read_trace(trace, &mut |record| {
            sequences.insert((record.member, record.channel, record.sequence));
            records += 1;
        })?;
        let counts = summary.flows[0].counts;
        assert_eq!((records, sequences.len() as u64), (counts.sent, counts.sent), "point {}", point.index);
    }
    Ok(())
}

fn sweep(points: u32) -> String {
    let rates: Vec<String> = (0..points).map(|n| format!("\"{} kbit/s\"", 500 + n)).collect();
    format!(
        "name = \"killed\"\nduration = \"2 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Mbit/s\"\nloss = \"1 %\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"voice\" }}\nchannels = 4\n[sweep]\n\"link.trunk.rate\" = [{}]\n",
        rates.join(", ")
    )
}

/// Counts repetitions.
#[derive(Default)]
struct Counter(AtomicU32);

impl Observer for Counter {
    fn planned(&self, _: &Plan) {}
    fn advanced(&self, _: trunkline_core::Duration) {}
    fn repetition_done(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn point_done(&self) {}
    fn warning(&self, message: &str) {
        println!("{message}");
    }
}

//! The endurance run: agents, reflector, server and wire under moderate load and injected faults for two hours, without growth
//! of memory, descriptors or threads.
//!
//! `docs/checks.md` says how to read the result.

mod faults;
mod growth;
mod load;
mod place;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use growth::{Sample, Verdict};
use load::Load;
use place::{Monitored, Place};

const SAMPLING: Duration = Duration::from_secs(10);
/// Without load for so long before the values at rest are read: the longest timeout of any server is 60 s.
const REST: Duration = Duration::from_secs(75);
/// At the start caches fill and pools of threads start.
const MAX_WARM_UP: Duration = Duration::from_secs(30 * 60);

/// The length of the run and the program.
#[derive(clap::Args)]
pub(crate) struct Endure {
    /// Minutes in all; the first quarter, at most half an hour, is the warm-up
    #[arg(long, default_value_t = 120)]
    minutes: u64,
    /// The program [default: the one that the tests have built, beside this one]
    #[arg(long)]
    program: Option<PathBuf>,
    /// The processor time that the run may take, in percent of one core; pauses between rounds keep it
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    share: u64,
    /// Also write every sample to this file
    #[arg(long)]
    csv: Option<PathBuf>,
}

/// The samples of one process.
struct Series {
    process: Monitored,
    samples: Vec<Sample>,
}

pub(crate) fn run(endure: &Endure) -> Result<(), String> {
    let program = endure.program.clone().map_or_else(|| crate::test::program("trunkline"), Ok)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let of_handler = Arc::clone(&is_over);
    ctrlc::set_handler(move || of_handler.store(true, Ordering::Relaxed))
        .map_err(|e| format!("signals cannot be caught: {e}"))?;
    let began = Instant::now();
    let length = Duration::from_secs(endure.minutes * 60);
    let (warm_up, until) = ((length / 4).min(MAX_WARM_UP), length.saturating_sub(REST));
    let mut place = Place::start(&program)?;
    let series: Vec<Series> =
        place.monitored().map(|process| Series { process, samples: Vec::new() }).collect();
    let all = Arc::new(Mutex::new(series));
    let (of_sampler, over) = (Arc::clone(&all), Arc::clone(&is_over));
    let sampler = thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            sample(&of_sampler, began);
            thread::sleep(SAMPLING);
        }
    });
    anstream::println!(
        "{program:?} in {}: {} min, warm-up {} min",
        place.folder(),
        endure.minutes,
        warm_up.as_secs() / 60
    );

    let mut load = Load::new(&place, endure.share, Arc::clone(&is_over));
    load.fill(&place);
    while began.elapsed() < warm_up && load.goes_on() {
        load.round(&mut place);
    }
    let started = rest(&mut load, &all, began);
    while began.elapsed() < until && load.goes_on() {
        load.round(&mut place);
    }
    let ended = rest(&mut load, &all, began);
    let was_interrupted = is_over.swap(true, Ordering::Relaxed);
    // It only sleeps and reads.
    let _ = sampler.join();
    let mut problems = load.table();
    problems.extend(place.end());
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = &endure.csv {
        write_samples(path, &all)?;
    }
    problems.extend(table(&all, &started, &ended));
    if was_interrupted {
        problems.push(format!("it was interrupted after {:.0} s", began.elapsed().as_secs_f64()));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Reads every process once.
fn sample(all: &Mutex<Vec<Series>>, began: Instant) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    for series in all.iter_mut() {
        if let Some(counts) = series.process.read() {
            series.samples.push(Sample { seconds: began.elapsed().as_secs_f64(), counts });
        }
    }
}

/// Lets all timeouts expire, and returns the last sample of each process.
fn rest(load: &mut Load, all: &Mutex<Vec<Series>>, began: Instant) -> Vec<Option<Sample>> {
    load.rest(REST);
    sample(all, began);
    all.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .map(|series| series.samples.last().copied())
        .collect()
}

/// Prints start, end and slope of each value, and returns what has grown.
fn table(all: &[Series], started: &[Option<Sample>], ended: &[Option<Sample>]) -> Vec<String> {
    anstream::println!(
        "\n{:<14} {:<18} {:>9} {:>9} {:>12} {:>12}  verdict",
        "process",
        "value",
        "start",
        "end",
        "slope/h",
        "bound/h"
    );
    let mut problems = Vec::new();
    for ((series, start), end) in all.iter().zip(started).zip(ended) {
        let name = series.process.name;
        let (Some(start), Some(end)) = (start, end) else {
            problems.push(format!("{name} was not sampled"));
            continue;
        };
        let after = |sample: &&Sample| sample.seconds >= start.seconds;
        let samples: Vec<Sample> = series.samples.iter().filter(after).copied().collect();
        for verdict in Verdict::of_all(&samples, start, end) {
            anstream::println!("{name:<14} {verdict}");
            problems.extend(verdict.problem(name));
        }
    }
    problems
}

fn write_samples(path: &PathBuf, all: &[Series]) -> Result<(), String> {
    let mut text = "process,seconds,resident-kib,descriptors,threads\n".to_owned();
    for series in all {
        for Sample { seconds, counts: [resident, descriptors, threads] } in &series.samples {
            text += &format!("{},{seconds:.0},{resident},{descriptors},{threads}\n", series.process.name);
        }
    }
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

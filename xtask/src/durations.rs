//! Durations of the suite's steps and of its test programs, printed at the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Test programs that are printed: the slowest.
const SLOWEST: usize = 15;

/// Steps that have ended, in their order.
static STEPS: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Test programs that have ended.
static PROGRAMS: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Time and processor time since the suite began.
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { began: Instant::now() }
    }
}

/// Notes how long a step took.
pub(crate) fn note(step: &str, took: Duration) {
    if let Ok(mut steps) = STEPS.lock() {
        steps.push((step.to_owned(), took));
    }
}

/// Prints all steps. Those that ran side by side add up to more than the whole.
pub(crate) fn print_steps(suite: &Clock) {
    let steps = STEPS.lock().map(|steps| steps.clone()).unwrap_or_default();
    let total = ("together".to_owned(), suite.began.elapsed());
    anstream::println!("\n==> duration of each step");
    for (name, took) in steps.iter().chain([&total]) {
        anstream::println!("    {:>6.0} s  {name}", took.as_secs_f64());
    }
    if let Some(busy) = processor_time() {
        anstream::println!("    {:>6.0} s  of processor time", busy.as_secs_f64());
    }
}

/// Processor time of this process and of all processes that it has started and that have ended; `None` where the system does
/// not say.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may have spaces and parentheses.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    // utime, stime, cutime and cstime, in hundredths of a second.
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * ticks))
}

/// Notes how long a test program took.
pub(crate) fn note_program(name: String, took: Duration) {
    if let Ok(mut programs) = PROGRAMS.lock() {
        programs.push((name, took));
    }
}

/// Prints the slowest test programs, and keeps all durations for the order of the next run.
pub(crate) fn print_programs() {
    let mut slowest = PROGRAMS.lock().map(|programs| programs.clone()).unwrap_or_default();
    slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let lines = slowest.iter().map(|(name, took)| format!("{}\t{name}\n", took.as_millis()));
    // Without it, the next run has another order only.
    let _ = std::fs::write(kept(), lines.collect::<String>());
    anstream::println!("\n==> slowest of {} test programs", slowest.len());
    for (name, took) in slowest.into_iter().take(SLOWEST) {
        anstream::println!("    {:>6.1} s  {name}", took.as_secs_f64());
    }
}

/// Milliseconds that test programs took the last time; empty if that is not known.
pub(crate) fn of_last_suite() -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(kept()).unwrap_or_default();
    let program = |line: &str| {
        let (took, name) = line.split_once('\t')?;
        Some((name.to_owned(), took.parse().ok()?))
    };
    text.lines().filter_map(program).collect()
}

fn kept() -> PathBuf {
    crate::root().join("target/test-durations.tsv")
}

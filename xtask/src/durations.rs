//! Durations of the suite's steps and of its test programs, printed at the end.

use std::sync::Mutex;
use std::time::Duration;

/// Test programs that are printed: the slowest.
const SLOWEST: usize = 15;

/// Steps that have ended, in their order.
static STEPS: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Test programs that have ended.
static PROGRAMS: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Notes how long a step took.
pub(crate) fn note(step: &str, took: Duration) {
    if let Ok(mut steps) = STEPS.lock() {
        steps.push((step.to_owned(), took));
    }
}

/// Prints all steps.
pub(crate) fn print_steps() {
    let steps = STEPS.lock().map(|steps| steps.clone()).unwrap_or_default();
    let total: Duration = steps.iter().map(|(_, took)| *took).sum();
    anstream::println!("\n==> duration of each step");
    for (name, took) in steps.iter().map(|(name, took)| (name.as_str(), took)).chain([("together", &total)]) {
        anstream::println!("    {:>6.0} s  {name}", took.as_secs_f64());
    }
}

/// Notes how long a test program took.
pub(crate) fn note_program(name: String, took: Duration) {
    if let Ok(mut programs) = PROGRAMS.lock() {
        programs.push((name, took));
    }
}

/// Prints the slowest test programs.
pub(crate) fn print_programs() {
    let mut slowest = PROGRAMS.lock().map(|programs| programs.clone()).unwrap_or_default();
    slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    anstream::println!("\n==> slowest of {} test programs", slowest.len());
    for (name, took) in slowest.into_iter().take(SLOWEST) {
        anstream::println!("    {:>6.1} s  {name}", took.as_secs_f64());
    }
}

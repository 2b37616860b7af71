//! Tests in real time: under a watch that tells a late machine from a defect.
//!
//! A test that sends or plays by the clock fails on a machine that pauses. A rerun after such a failure could also hide a
//! defect, so the rule is narrow:
//! - Tests in real time run one at a time on a machine, so that they do not load each other.
//! - A failure is excused only by a scheduler stall that an independent thread saw during the attempt, and never if the test
//!   itself kept the processors busy. CPU pressure (PSI) excuses nothing: on two cores it is high whenever a test works.
//! - Every rerun goes into the [`journal`]. `cargo xtask test` prints them and fails above its budget, and
//!   `cargo xtask reruns` repeats the tests in real time and fails at the first.

#![allow(clippy::print_stderr, reason = "a rerun is reported")]

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::journal;

/// Attempts at most.
const MAX_ATTEMPTS: u32 = 3;
/// An overrun this long means that the scheduler stalled.
const STALL: Duration = Duration::from_millis(20);
/// Share of all processors from which on the test's own load explains a stall.
const OWN_LOAD: f64 = 0.9;

/// The system counts processor time in hundredths of a second: the load of a shorter attempt is not known.
const MIN_FOR_OWN_LOAD: Duration = Duration::from_millis(500);

/// Runs a test that depends on the machine's being on time, alone among such tests. Where it fails and the scheduler stalled
/// meanwhile, the whole test is run again, at most three times in all. A failure without a stall fails at once.
///
/// # Panics
/// As the test does the last time; or if called inside another test in real time.
pub fn in_real_time<T>(test: impl Fn() -> T) -> T {
    in_real_time_within(STALL, test)
}

/// The same for a test with a smaller buffer against stalls, such as the queue of another program: a stall of this length
/// excuses a failure.
///
/// # Panics
/// As the test does the last time; or if called inside another test in real time.
pub fn in_real_time_within<T>(stall: Duration, test: impl Fn() -> T) -> T {
    let _alone = Alone::wait();
    let began = Instant::now();
    let mut reruns = 0;
    let result = attempts(stall, test, Watch::start, |attempt, lateness, failure| {
        eprintln!("attempt {attempt} failed while {lateness}: running the test again");
        journal::append("rerun", &[&attempt.to_string(), &lateness.to_string(), failure]);
        reruns += 1;
        wait_for_calm();
    });
    journal::append("real-time", &[&reruns.to_string(), &format!("{:.2}", began.elapsed().as_secs_f64())]);
    result
}

/// The same, with the watch and what happens before a rerun.
fn attempts<T, W: FnOnce() -> Lateness>(
    stall: Duration,
    test: impl Fn() -> T,
    watch: impl Fn() -> W,
    mut rerun: impl FnMut(u32, Lateness, &str),
) -> T {
    let mut attempt = 1;
    loop {
        let judge = watch();
        let result = catch_unwind(AssertUnwindSafe(&test));
        let lateness = judge();
        match result {
            Ok(value) => return value,
            Err(panic) if attempt == MAX_ATTEMPTS || !lateness.is_excuse(stall) => {
                eprintln!("attempt {attempt} failed while {lateness}: the failure counts");
                resume_unwind(panic);
            }
            Err(panic) => rerun(attempt, lateness, failure(&*panic)),
        }
        attempt += 1;
    }
}

/// Waits for a second without a stall before a rerun, half a minute at most.
fn wait_for_calm() {
    for _ in 0..30 {
        let watch = Watch::start();
        std::thread::sleep(Duration::from_secs(1));
        if watch().stall < STALL {
            return;
        }
    }
}

fn failure(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(a panic without text)")
}

/// A lock that all processes of one build folder share: it is held by the test in real time that runs.
struct Alone(File);

thread_local! {
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

impl Alone {
    fn wait() -> Alone {
        assert!(!IS_RUNNING.replace(true), "a test in real time is inside another one");
        let folder = std::env::current_exe().expect("a test program has a path");
        let path = folder.with_file_name("real-time.lock");
        let file = File::options().create(true).append(true).open(&path).and_then(|file| {
            file.lock()?;
            Ok(file)
        });
        Alone(file.unwrap_or_else(|e| panic!("{} cannot be locked: {e}", path.display())))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.unlock();
        IS_RUNNING.set(false);
    }
}

/// Lateness of the machine during an attempt.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    /// The longest time for which a thread that was due did not run.
    stall: Duration,
    /// The share of all processors that this process and its children used; `None` where the system does not tell.
    own: Option<f64>,
    /// PSI CPU pressure, for the reader of the journal.
    pressure: Option<f64>,
}

impl Lateness {
    fn is_excuse(&self, stall: Duration) -> bool {
        self.stall >= stall && self.own.is_none_or(|own| own < OWN_LOAD)
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the scheduler stalled for up to {} ms", self.stall.as_millis())?;
        if let Some(own) = self.own {
            write!(f, ", own load {:.0} %", 100.0 * own)?;
        }
        match self.pressure {
            Some(pressure) => write!(f, ", CPU pressure {:.0} %", 100.0 * pressure),
            None => Ok(()),
        }
    }
}

/// Watches the machine during an attempt: a thread that sleeps a millisecond at a time, and the system's accounts.
struct Watch {
    is_over: Arc<AtomicBool>,
    longest: JoinHandle<Duration>,
    began: Instant,
    own: Option<Duration>,
    pressure: Option<Duration>,
}

impl Watch {
    /// Starts it; the result ends it.
    fn start() -> impl FnOnce() -> Lateness {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let longest = std::thread::spawn(move || {
            const STEP: Duration = Duration::from_millis(1);
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(STEP);
                longest = longest.max(began.elapsed().saturating_sub(STEP));
            }
            longest
        });
        let watch = Watch { is_over, longest, began: Instant::now(), own: own_time(), pressure: pressure() };
        move || watch.end()
    }

    fn end(self) -> Lateness {
        let lasted = self.began.elapsed();
        let since = |now: Option<Duration>, then: Option<Duration>| {
            Some(now?.saturating_sub(then?).as_secs_f64() / lasted.as_secs_f64())
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let own = since(own_time(), self.own).map(|share| share / processors as f64);
        let own = own.filter(|_| lasted >= MIN_FOR_OWN_LOAD);
        let pressure = since(pressure(), self.pressure);
        self.is_over.store(true, Ordering::Relaxed);
        Lateness { stall: self.longest.join().unwrap_or_default(), own, pressure }
    }
}

/// Processor time that this process and its ended children have used.
fn own_time() -> Option<Duration> {
    of_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

fn of_stat(stat: &str) -> Option<Duration> {
    // Linux counts these in hundredths of a second on every architecture that we run on.
    const TICK: Duration = Duration::from_millis(10);
    let behind_name = stat.rsplit_once(')')?.1;
    let times = behind_name.split_whitespace().skip(11).take(4);
    let ticks = times.map(|time| time.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}

/// Time since the start of the machine in which something waited for a processor.
fn pressure() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().find(|line| line.starts_with("some"))?.split("total=").nth(1)?;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test that holds from this attempt on; returns the number of attempts and whether it held.
    fn run(holds_at: u32, lateness: Lateness) -> (u32, bool) {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            assert!(count.get() >= holds_at, "attempt {}", count.get());
        };
        let mut reruns = Vec::new();
        let rerun = |attempt, _, failure: &str| reruns.push((attempt, failure.to_owned()));
        let held =
            catch_unwind(AssertUnwindSafe(|| attempts(STALL, test, || move || lateness, rerun))).is_ok();
        let expected = (1..count.get()).map(|attempt| (attempt, format!("attempt {attempt}")));
        assert_eq!(reruns, expected.collect::<Vec<_>>());
        (count.get(), held)
    }

    #[test]
    fn only_a_failure_during_a_stall_is_run_again() {
        let stalled = Lateness { stall: STALL, own: Some(0.4), pressure: Some(0.1) };
        let pressed = Lateness { stall: STALL / 2, own: Some(0.4), pressure: Some(1.0) };
        assert_eq!(run(1, Lateness::default()), (1, true));
        assert_eq!(run(2, Lateness::default()), (1, false));
        assert_eq!(run(2, pressed), (1, false), "CPU pressure does not excuse it");
        assert_eq!(run(3, stalled), (3, true));
        assert_eq!(run(MAX_ATTEMPTS + 1, stalled), (MAX_ATTEMPTS, false));
        assert_eq!(run(2, Lateness { own: Some(0.95), ..stalled }), (1, false), "the test stalls itself");
        assert_eq!(run(2, Lateness { own: None, ..stalled }), (2, true));
    }

    #[test]
    fn the_journal_says_how_late_the_machine_was() {
        let late = Lateness { stall: STALL, own: Some(0.31), pressure: Some(0.9) };
        assert_eq!(
            late.to_string(),
            "the scheduler stalled for up to 20 ms, own load 31 %, CPU pressure 90 %"
        );
    }

    #[test]
    fn own_time_is_that_of_the_process_and_its_children() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 1 2 3 4 100 20 3000 400 20 0 1 0 5";
        assert_eq!(of_stat(stat), Some(Duration::from_millis(35_200)));
        assert_eq!(of_stat("nothing"), None);
    }

    #[test]
    fn two_tests_in_real_time_do_not_run_at_once() {
        let running = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    in_real_time(|| {
                        assert!(!running.swap(true, Ordering::SeqCst), "another one runs");
                        std::thread::sleep(Duration::from_millis(5));
                        running.store(false, Ordering::SeqCst);
                    });
                });
            }
        });
    }
}

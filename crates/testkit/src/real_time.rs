//! Tests in real time, on machines that have other things to do.

#![allow(clippy::print_stderr, reason = "a test that is run again says so")]

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a test is run at most.
const MOST: u32 = 5;
/// Who sleeps so much too long has not been run when it was due.
const STALL: Duration = Duration::from_millis(20);
/// Of the time, the share in which somebody waited for a processor, from which on the machine is busy.
const BUSY: f64 = 0.5;

/// Runs a test that depends on the machine's being on time. Where it fails and the machine was late meanwhile, the failure may
/// be the machine's and says nothing: the whole test is run again, five times at most. What fails on a machine that is on time
/// fails at once.
///
/// # Panics
/// As the test does the last time.
pub fn in_real_time<T>(test: impl Fn() -> T) -> T {
    attempts(test, || {
        let watch = Watch::start();
        move || watch.end()
    })
}

/// The same, with what judges the machine: called before an attempt it gives what tells afterwards whether it was late.
fn attempts<T, W: FnOnce() -> Lateness>(test: impl Fn() -> T, watch: impl Fn() -> W) -> T {
    let mut attempt = 1;
    loop {
        let judge = watch();
        let result = catch_unwind(AssertUnwindSafe(&test));
        let lateness = judge();
        match result {
            Ok(value) => return value,
            Err(panic) if attempt == MOST || !lateness.is_late() => resume_unwind(panic),
            Err(_) => eprintln!("this may be the machine's fault, {lateness}: it is tried again"),
        }
        attempt += 1;
    }
}

/// How late a machine was.
#[derive(Clone, Copy, Debug)]
struct Lateness {
    /// The longest time for which a thread that was due was not run.
    stall: Duration,
    /// The share of the time in which somebody waited for a processor; `None` where the kernel does not tell.
    busy: Option<f64>,
}

impl Lateness {
    fn is_late(&self) -> bool {
        self.stall >= STALL || self.busy.is_some_and(|share| share >= BUSY)
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "which stood still for up to {} ms", self.stall.as_millis())?;
        match self.busy {
            Some(share) => write!(f, " and had too much to do {:.0} % of the time", 100.0 * share),
            None => Ok(()),
        }
    }
}

/// Watches the machine: a thread that sleeps a millisecond at a time, and the kernel's account of who waits.
struct Watch {
    is_over: Arc<AtomicBool>,
    longest: JoinHandle<Duration>,
    began: Instant,
    waited: Option<Duration>,
}

impl Watch {
    fn start() -> Watch {
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
        Watch { is_over, longest, began: Instant::now(), waited: waited_for_processors() }
    }

    fn end(self) -> Lateness {
        let lasted = self.began.elapsed();
        let waited = waited_for_processors().zip(self.waited);
        self.is_over.store(true, Ordering::Relaxed);
        let busy = waited.map(|(now, then)| now.saturating_sub(then).as_secs_f64() / lasted.as_secs_f64());
        Lateness { stall: self.longest.join().unwrap_or_default(), busy }
    }
}

/// For how long somebody has waited for a processor since the machine was started.
fn waited_for_processors() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().find(|line| line.starts_with("some"))?.split("total=").nth(1)?;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Runs a test that holds at this attempt, on a machine that is late or not; says how often it was run, if it held.
    fn run(holds_at: u32, stall: Duration) -> (u32, bool) {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            assert!(count.get() >= holds_at, "attempt {}", count.get());
        };
        let judge = || move || Lateness { stall, busy: Some(0.1) };
        let held = catch_unwind(AssertUnwindSafe(|| attempts(test, judge))).is_ok();
        (count.get(), held)
    }

    #[test]
    fn only_what_fails_on_a_late_machine_is_run_again() {
        assert_eq!(run(1, Duration::ZERO), (1, true));
        assert_eq!(run(2, Duration::ZERO), (1, false));
        assert_eq!(run(3, STALL), (3, true));
        assert_eq!(run(MOST + 1, STALL), (MOST, false));
    }

    #[test]
    fn a_machine_with_too_much_to_do_is_late() {
        let lateness = |busy| Lateness { stall: Duration::ZERO, busy };
        assert_eq!([None, Some(0.3), Some(0.9)].map(|busy| lateness(busy).is_late()), [false, false, true]);
        let told = lateness(Some(0.9)).to_string();
        assert_eq!(told, "which stood still for up to 0 ms and had too much to do 90 % of the time");
    }
}

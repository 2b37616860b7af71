//! Jobs that run side by side: each prints everything at its end, and a failure ends no other.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::log::Log;

/// Niceness of the jobs that need processors, so that those that wait for a browser or a clock get them at once.
const NICE: i32 = 10;

/// A part of the suite that runs beside others.
pub(crate) struct Job<'a> {
    name: String,
    work: Work<'a>,
}

type Work<'a> = Box<dyn FnOnce(&Log) -> Result<(), String> + Send + 'a>;

impl<'a> Job<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        work: impl FnOnce(&Log) -> Result<(), String> + Send + 'a,
    ) -> Self {
        Job { name: name.into(), work: Box::new(work) }
    }

    fn run(self, failed: &Mutex<Vec<Failed>>) {
        let Job { name, work } = self;
        let (done, printed) = match kept() {
            Ok(log) => (work(&log), log.take()),
            Err(problem) => (Err(problem), Vec::new()),
        };
        show(&printed);
        if let Err(failure) = done {
            show(format!("\n==> {name} failed\n").as_bytes());
            failed.lock().unwrap_or_else(PoisonError::into_inner).push((failure, printed));
        }
    }
}

/// The failure of a job, and everything that it has printed.
type Failed = (String, Vec<u8>);

/// Runs the jobs that need processors, one on each, and beside them all that mostly wait. Outputs of
/// jobs that fail come once more at the end. Returns the failures.
pub(crate) fn run(busy: Vec<Job>, waiting: Vec<Job>) -> Vec<String> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let busy = Queue::new(busy);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for job in waiting {
            scope.spawn(|| job.run(&failed));
        }
        for _ in 0..workers {
            scope.spawn(|| {
                // On Linux it is the thread's own, and that of the processes that it starts. Without it, all take longer.
                let _ = rustix::process::nice(NICE);
                while let Some(job) = busy.next() {
                    job.run(&failed);
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let print = |(failure, printed): Failed| {
        show(&printed);
        failure
    };
    failed.into_iter().map(print).collect()
}

/// Jobs that wait for a worker.
struct Queue<'a>(Mutex<std::vec::IntoIter<Job<'a>>>);

impl<'a> Queue<'a> {
    fn new(jobs: Vec<Job<'a>>) -> Self {
        Queue(Mutex::new(jobs.into_iter()))
    }

    fn next(&self) -> Option<Job<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// A log in the target folder.
fn kept() -> Result<Log, String> {
    static NUMBER: Mutex<u32> = Mutex::new(0);
    let mut number = NUMBER.lock().unwrap_or_else(PoisonError::into_inner);
    *number += 1;
    Log::kept(&crate::root().join(format!("target/job-{}-{number}.out", std::process::id())))
}

/// Prints in one piece.
fn show(printed: &[u8]) {
    // A terminal that is gone is no failure of a check.
    let _ = std::io::stdout().lock().write_all(printed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_and_failures_are_returned() {
        let ran = Mutex::new(Vec::new());
        let job = |name: &'static str, done: Result<(), String>| {
            let ran = &ran;
            Job::new(name, move |log| {
                log.say("something");
                ran.lock().unwrap().push(name);
                done
            })
        };
        let busy = vec![job("a", Ok(())), job("b", Err("b is broken".to_owned())), job("c", Ok(()))];
        let waiting = vec![job("d", Err("d is broken".to_owned())), job("e", Ok(()))];
        let mut failures = run(busy, waiting);
        failures.sort_unstable();
        assert_eq!(failures, ["b is broken", "d is broken"]);
        let mut ran: Vec<&str> = ran.into_inner().unwrap();
        ran.sort_unstable();
        assert_eq!(ran, ["a", "b", "c", "d", "e"]);
    }
}

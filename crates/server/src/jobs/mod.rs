//! What the server executes: jobs, each with a thread of its own, some at once and the others in a queue.

mod feed;
mod job;
mod kept;
mod live;
mod so_far;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::api::{self, ApiError, JobKind};
use crate::app::App;

pub(crate) use feed::Watching;
pub(crate) use job::Job;
pub(crate) use live::Live;

/// So many may wait.
const MOST_WAITING: usize = 100;
/// So many that have ended are remembered, of those that the store keeps and of the others.
const MOST_ENDED: usize = 200;
/// So many simulations share the cores.
const MOST_ON_CORES: usize = 4;

/// A job to be done.
#[derive(Clone, Debug)]
pub(crate) struct NewJob {
    /// Its kind.
    pub(crate) kind: JobKind,
    /// What it is called.
    pub(crate) title: String,
    /// What it needs.
    pub(crate) needs: Needs,
}

/// What a job needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Computing: several may share the cores.
    Cores,
    /// The machine by itself: it measures in real time, and whatever runs beside it would be measured too.
    Machine,
    /// Other machines: one such job at a time, beside computing.
    Fleet,
}

/// How a job ended that did not fail, with what `/jobs/{id}/result` answers.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// It did all.
    Done(Option<serde_json::Value>),
    /// It was stopped; what is known is kept.
    Stopped(Option<serde_json::Value>),
}

/// What a job does, on its own thread.
pub(crate) type Work = Box<dyn FnOnce(&App, &Arc<Job>) -> Result<Ended, ApiError> + Send>;

/// All jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// Tells the jobs of this server from those of one that ended.
    prefix: String,
    next: AtomicU64,
    table: Mutex<Table>,
    /// Is told when one has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Table {
    /// The oldest first.
    jobs: VecDeque<Arc<Job>>,
    waiting: VecDeque<(Arc<Job>, Work)>,
    running: Vec<Arc<Job>>,
    is_closed: bool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("jobs", &self.jobs.len()).field("running", &self.running.len()).finish()
    }
}

impl Jobs {
    /// The jobs of a server, with those that earlier ones have kept in the store.
    pub(crate) fn new(store: &Path) -> Jobs {
        let started = jiff::Timestamp::now().as_microsecond();
        let jobs = kept::read(store).into_iter().map(|job| Arc::new(Job::kept(job))).collect();
        Jobs {
            prefix: format!("{:x}", started & 0xff_ffff_ffff),
            next: AtomicU64::new(1),
            table: Mutex::new(Table { jobs, ..Table::default() }),
            ended: Condvar::new(),
        }
    }

    /// Every job that is remembered, the newest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.table().jobs.iter().rev().cloned().collect()
    }

    /// A job.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Job>, ApiError> {
        let found = self.table().jobs.iter().find(|job| job.id() == id).cloned();
        found.ok_or_else(|| {
            ApiError::not_found(format_args!(
                "no job `{}`: the server forgets old jobs, and those without a result when it restarts; their runs are kept",
                id.escape_debug()
            ))
        })
    }

    /// The job that writes a run now.
    pub(crate) fn of_run(&self, run: u64) -> Option<Arc<Job>> {
        let table = self.table();
        table.jobs.iter().find(|job| job.run() == Some(run) && !job.state().is_over()).cloned()
    }

    /// True while a job measures in real time on this machine, or is the next to do so.
    pub(crate) fn measures(&self) -> bool {
        let table = self.table();
        let first = table.waiting.front().map(|(job, _)| job);
        table.running.iter().chain(first).any(|job| job.needs() == Needs::Machine)
    }

    /// Stops a job: at once if it waits.
    pub(crate) fn stop(&self, id: &str) -> Result<Arc<Job>, ApiError> {
        let job = self.find(id)?;
        job.ask_to_stop();
        let waited = {
            let mut table = self.table();
            let place = table.waiting.iter().position(|(waiting, _)| waiting.id() == id);
            place.and_then(|place| table.waiting.remove(place))
        };
        if waited.is_some() {
            job.ended(Ok(Ended::Stopped(None)));
        }
        Ok(job)
    }

    /// Stops all jobs, takes no others, and waits for their ends, for so long at most. Says whether all have ended.
    pub(crate) fn close(&self, patience: Duration) -> bool {
        let all = {
            let mut table = self.table();
            table.is_closed = true;
            table.jobs.iter().filter(|job| !job.state().is_over()).cloned().collect::<Vec<_>>()
        };
        for job in all {
            // Each of them is there.
            let _ = self.stop(job.id());
        }
        let until = Instant::now() + patience;
        let mut table = self.table();
        while !table.running.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            table = self.ended.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Does `work` as a job: now, or when others have ended.
    ///
    /// # Errors
    /// If too many wait.
    pub(crate) fn start(
        self: &Arc<App>,
        new: NewJob,
        work: impl FnOnce(&App, &Arc<Job>) -> Result<Ended, ApiError> + Send + 'static,
    ) -> Result<Arc<Job>, ApiError> {
        let number = self.jobs.next.fetch_add(1, Ordering::Relaxed);
        let job = Arc::new(Job::new(format!("{}-{number}", self.jobs.prefix), new));
        {
            let mut table = self.jobs.table();
            if table.is_closed {
                return Err(ApiError::busy("the server is shutting down"));
            }
            if table.waiting.len() >= MOST_WAITING {
                return Err(ApiError::busy(format_args!(
                    "{MOST_WAITING} jobs are already waiting: stop some, or try again when they have ended"
                )));
            }
            table.forget();
            // Events of others that have ended are for those who look at them now.
            for ended in table.jobs.iter().filter(|job| job.state().is_over()) {
                ended.feed().forget();
            }
            table.jobs.push_back(Arc::clone(&job));
            table.waiting.push_back((Arc::clone(&job), Box::new(work)));
        }
        self.begin_what_can();
        Ok(job)
    }

    /// Begins the jobs whose turn it is.
    fn begin_what_can(self: &Arc<App>) {
        while let Some((job, work)) = self.jobs.table().take_next() {
            let (app, own) = (Arc::clone(self), Arc::clone(&job));
            let spawned = std::thread::Builder::new().name(format!("job {}", job.id())).spawn(move || {
                let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&app, &own)));
                let worked = worked.unwrap_or_else(|_| {
                    Err(ApiError::environment("it hit a bug in the program; please report it"))
                });
                if let Err(error) = worked
                    .as_ref()
                    .map_or(Ok(()), |ended| kept::keep(app.store.directory(), own.shown(), ended))
                {
                    own.is_unsaved(error.to_string());
                }
                own.ended(worked);
                app.jobs.is_over(&own);
                app.begin_what_can();
            });
            if let Err(error) = spawned {
                job.ended(Err(ApiError::environment(format_args!("cannot start a thread: {error}"))));
                self.jobs.is_over(&job);
            }
        }
    }
}

impl Jobs {
    fn is_over(&self, job: &Arc<Job>) {
        self.table().running.retain(|running| !Arc::ptr_eq(running, job));
        self.ended.notify_all();
    }
}

impl Table {
    /// The first that waits, if it may run beside those that do. Those behind it wait too: else one that needs the machine
    /// might wait for ever.
    fn take_next(&mut self) -> Option<(Arc<Job>, Work)> {
        let (first, _) = self.waiting.front()?;
        let needs = |needs: Needs| self.running.iter().filter(|job| job.needs() == needs).count();
        let may_run = needs(Needs::Machine) == 0
            && match first.needs() {
                Needs::Cores => needs(Needs::Cores) < MOST_ON_CORES,
                Needs::Machine => self.running.is_empty(),
                Needs::Fleet => needs(Needs::Fleet) == 0,
            };
        if !may_run {
            return None;
        }
        let (job, work) = self.waiting.pop_front()?;
        job.begins();
        self.running.push(Arc::clone(&job));
        Some((job, work))
    }

    /// Forgets the oldest that have ended, of those that the store keeps and of the others.
    fn forget(&mut self) {
        for kept in [true, false] {
            let is_one = |job: &Arc<Job>| job.state().is_over() && job.is_kept() == kept;
            let ended = self.jobs.iter().filter(|job| is_one(job)).count();
            for _ in MOST_ENDED..ended {
                if let Some(oldest) = self.jobs.iter().position(is_one) {
                    self.jobs.remove(oldest);
                }
            }
        }
    }
}

/// What jobs look like for clients.
pub(crate) fn shown(jobs: &[Arc<Job>]) -> Vec<api::Job> {
    jobs.iter().map(|job| job.shown()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_keeps_is_not_forgotten_for_others() {
        let mut table = Table::default();
        let mut add = |id: String, kind: JobKind| {
            let job = Job::new(id, NewJob { kind, title: String::new(), needs: Needs::Cores });
            job.ended(Ok(Ended::Done(Some(1.into()))));
            table.jobs.push_back(Arc::new(job));
            table.forget();
        };
        for n in 0..MOST_ENDED + 2 {
            add(format!("plan-{n}"), JobKind::Plan);
        }
        for n in 0..MOST_ENDED + 2 {
            add(format!("run-{n}"), JobKind::Run);
        }
        let count = |kind: &str| table.jobs.iter().filter(|job| job.id().starts_with(kind)).count();
        assert_eq!((count("plan-"), count("run-")), (MOST_ENDED, MOST_ENDED));
        assert!(table.jobs.iter().any(|job| job.id() == format!("plan-{}", MOST_ENDED + 1)));
    }
}

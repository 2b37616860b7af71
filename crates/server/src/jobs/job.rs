//! One job: how it stands, how far it is, and what its watchers are told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;
use trunkline_core::Duration;
use trunkline_runner::{Observer, Plan};
use trunkline_store::RunInfo;

use super::feed::{Feed, Watching};
use super::kept::{KEPT, Kept};
use super::{Ended, Needs, NewJob};
use crate::api::{self, ApiError, End, JobProgress, JobState, PredictedLatency, Warning};

/// A job. Work that it does tells it how far it is: it observes runs, plans and studies.
#[derive(Debug)]
pub(crate) struct Job {
    id: String,
    new: NewJob,
    stop: AtomicBool,
    feed: Arc<Feed>,
    now: Mutex<Now>,
    /// The simulator's latencies of what it measures.
    predicted: OnceLock<Vec<PredictedLatency>>,
}

/// What changes.
#[derive(Debug)]
struct Now {
    state: JobState,
    run: Option<u64>,
    progress: JobProgress,
    /// Of what is measured, how much in all and how much until now.
    length: Duration,
    passed: Duration,
    since: Instant,
    /// When it will be over, of work in rounds that knows that better than from what a round measures.
    over: Over,
    ended: Option<String>,
    error: Option<String>,
    unsaved: Option<String>,
    result: Option<Value>,
}

/// When a job will be over.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// When all that is measured has been.
    Measured,
    /// Not known yet.
    Unknown,
    At(Instant),
}

impl Job {
    pub(super) fn new(id: String, new: NewJob) -> Job {
        let now = Now {
            state: JobState::Waiting,
            run: None,
            progress: JobProgress::default(),
            length: Duration::ZERO,
            passed: Duration::ZERO,
            since: Instant::now(),
            over: Over::Measured,
            ended: None,
            error: None,
            result: None,
            unsaved: None,
        };
        let (stop, feed) = (AtomicBool::new(false), Arc::new(Feed::new()));
        Job { id, new, stop, feed, now: Mutex::new(now), predicted: OnceLock::new() }
    }

    /// A job of an earlier server.
    pub(super) fn kept(Kept { job, result }: Kept) -> Job {
        let new = NewJob { kind: job.kind, title: job.title, needs: Needs::Cores };
        let kept = Job::new(job.id, new);
        kept.change(|now| (now.run, now.progress, now.ended) = (job.run, job.progress, job.ended));
        let result = Some(result);
        kept.ended(Ok(if job.state == JobState::Done {
            Ended::Done(result)
        } else {
            Ended::Stopped(result)
        }));
        kept
    }

    /// Its name in addresses.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What it needs of the machine.
    pub(crate) fn needs(&self) -> Needs {
        self.new.needs
    }

    /// Its state.
    pub(crate) fn state(&self) -> JobState {
        self.now().state
    }

    /// The run that it writes.
    pub(crate) fn run(&self) -> Option<u64> {
        self.now().run
    }

    /// Set once it is to stop.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// What its watchers are told.
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Watches it.
    pub(crate) fn watch(&self, last: Option<u64>) -> Watching {
        self.feed.watch(last)
    }

    /// What clients see of it.
    pub(crate) fn shown(&self) -> api::Job {
        let now = self.now();
        api::Job {
            id: self.id.clone(),
            kind: self.new.kind,
            title: self.new.title.clone(),
            run: now.run,
            state: now.state,
            progress: now.progress(),
            ended: now.ended.clone(),
            error: now.error.clone(),
            result: now.result.is_some().then(|| format!("/api/v1/jobs/{}/result", self.id)),
            unsaved: now.unsaved.clone(),
        }
    }

    /// True if it has a result that the store keeps.
    pub(super) fn is_kept(&self) -> bool {
        let now = self.now();
        KEPT.contains(&self.new.kind) && now.result.is_some() && now.unsaved.is_none()
    }

    /// Its result is lost when the server ends, for this reason.
    pub(super) fn is_unsaved(&self, why: String) {
        self.change(|now| now.unsaved = Some(why));
    }

    /// What it gave.
    pub(crate) fn result(&self) -> Option<Value> {
        self.now().result.clone()
    }

    /// The simulator's latencies of what it measures; empty if they are not known.
    pub(crate) fn predicted(&self) -> &[PredictedLatency] {
        self.predicted.get().map_or(&[], Vec::as_slice)
    }

    /// Keeps them, once.
    pub(crate) fn predict(&self, latencies: Vec<PredictedLatency>) {
        self.predicted.get_or_init(|| latencies);
    }

    /// So much is done, and so long it may still take: for work that knows that better than from the length of what it
    /// measures.
    pub(crate) fn progress(&self, fraction: f64, left: Option<Duration>) {
        self.change(|now| {
            now.progress.fraction = fraction.clamp(0.0, 1.0);
            now.progress.left_s = left.map(Duration::as_secs_f64);
        });
    }

    /// It works in rounds, and the rest of them takes so long; `None` while nobody knows.
    pub(crate) fn lasts(&self, left: Option<std::time::Duration>) {
        self.change(|now| now.over = left.map_or(Over::Unknown, |left| Over::At(Instant::now() + left)));
    }

    /// Tells its watchers what they should know.
    pub(crate) fn warn(&self, message: &str) {
        self.feed.tell("warning", &Warning { message: message.to_owned() });
    }

    /// Tells it to stop.
    pub(super) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.change(|now| {
            if now.state == JobState::Running {
                now.state = JobState::Stopping;
            }
        });
    }

    /// It is its turn.
    pub(super) fn begins(&self) {
        self.change(|now| {
            now.state = JobState::Running;
            now.since = Instant::now();
        });
    }

    /// It has ended so.
    pub(super) fn ended(&self, how: Result<Ended, ApiError>) {
        let mut state = JobState::Failed;
        self.change(|now| {
            now.progress = now.progress();
            now.progress.left_s = None;
            now.ended.get_or_insert_with(|| Timestamp::now().to_string());
            (state, now.result) = match how {
                Ok(Ended::Done(result)) => {
                    now.progress.fraction = 1.0;
                    (JobState::Done, result)
                }
                Ok(Ended::Stopped(result)) => (JobState::Stopped, result),
                Err(error) => {
                    now.error = Some(error.info().message.clone());
                    (JobState::Failed, None)
                }
            };
            now.state = state;
            now.length = Duration::ZERO;
        });
        self.feed.tell("end", &End { state });
    }

    fn plan(&self, points: usize, repetitions: usize, length: Duration) {
        self.change(|now| {
            now.progress = JobProgress { points, repetitions, ..JobProgress::default() };
            (now.length, now.passed, now.since) = (length, Duration::ZERO, Instant::now());
        });
    }

    fn pass(&self, by: Duration) {
        self.change(|now| now.passed = (now.passed + by).min(now.length));
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now());
        self.feed.stir();
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        // A panic in one thread of a job must not hide how the others are.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    /// How far it is: what it was told itself, or from the length of what it measures.
    fn progress(&self) -> JobProgress {
        let elapsed = self.since.elapsed().as_secs_f64();
        let (fraction, left_s) = match self.over {
            Over::Measured if self.length == Duration::ZERO => return self.progress,
            Over::Measured => {
                let fraction = self.passed.as_secs_f64() / self.length.as_secs_f64();
                (fraction, (fraction > 0.0).then(|| elapsed / fraction * (1.0 - fraction)))
            }
            Over::Unknown => (0.0, None),
            Over::At(end) => {
                let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
                (elapsed / (elapsed + left), Some(left))
            }
        };
        JobProgress { fraction, left_s, ..self.progress }
    }
}

impl Observer for Job {
    fn begun(&self, run: &RunInfo) {
        self.change(|now| now.run = Some(run.id));
    }

    fn planned(&self, plan: &Plan) {
        self.plan(plan.points, plan.repetitions, plan.length);
    }

    fn advanced(&self, by: Duration) {
        self.pass(by);
    }

    fn repetition_done(&self) {
        self.change(|now| now.progress.repetitions_done += 1);
    }

    fn point_done(&self) {
        self.change(|now| now.progress.points_done += 1);
    }

    fn warning(&self, message: &str) {
        self.warn(message);
    }
}

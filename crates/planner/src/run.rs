//! Carries a plan out. One repetition of each value first finds roughly where each edge lies and what a repetition costs; from
//! that comes the forecast. Then, round by round, every search names a value, all of them are measured on all cores and
//! judged.

use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_experiment::Limit;
use trunkline_runner::{GrowingRun, RunnerError};
use trunkline_store::{RunInfo, Status, Store, StoredRun};

use crate::forecast::Forecast;
use crate::judge::Judged;
use crate::overload::{Overloaded, Rising, Unfinished};
use crate::plan::{Means, Plan, PlanError};
use crate::search::{Edge, Verdict};
use crate::work::Work;

/// Follows the progress of a plan; called from several threads.
pub trait Observer: trunkline_runner::Observer {
    /// A value was judged; a sentence.
    fn judged(&self, sentence: &str);
    /// A value was tried once, to find the edge roughly; a sentence with its figures.
    fn tried(&self, _sentence: &str) {}
    /// The edges were probed and the plan itself begins.
    fn estimated(&self, _forecast: &Forecast) {}
    /// The forecast for the whole rest, after each round.
    fn forecast(&self, _forecast: &Forecast) {}
}

/// What a plan found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The run with every repetition that was measured.
    pub run: RunInfo,
    /// The limits that were to be kept.
    pub limits: Vec<Limit>,
    /// For every combination of what else is swept, in the product's order, the last axis fastest.
    pub answers: Vec<Answer>,
    /// True if it was stopped before its end.
    pub stopped: bool,
    /// What the plan was expected to take when the edges had been probed; `None` if it was stopped before.
    pub estimate: Option<Forecast>,
}

/// What was found for one combination of what else is swept.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The chosen value's index on each of the plan's axes.
    pub choice: Vec<usize>,
    /// Between which values the edge lies.
    pub edge: Edge,
    /// True if the search was completed.
    pub finished: bool,
    /// What was measured, the smallest value first.
    pub trials: Vec<Trial>,
    /// Flows whose latency still rises at the end of the run at the value that keeps the limits: it may keep them only because
    /// the run is short.
    pub rising: Vec<Rising>,
    /// Links that are offered more than they carry at that value, of which the run shows only a part.
    pub overloaded: Vec<Overloaded>,
    /// Flows of which most messages were refused or had not arrived when the run ended at that value: limits judge the others only.
    pub unfinished: Vec<Unfinished>,
}

impl Answer {
    /// True if the value may keep the limits only because the run is short.
    pub(crate) fn is_doubtful(&self) -> bool {
        !(self.rising.is_empty() && self.overloaded.is_empty() && self.unfinished.is_empty())
    }

    /// Whether a row of a table does not say it all.
    pub(crate) fn needs_words(&self) -> bool {
        !self.finished || !self.edge.kept_behind.is_empty() || self.is_doubtful()
    }
}

/// One value that was measured.
#[derive(Clone, Debug)]
pub struct Trial {
    /// In grains of the key.
    pub value: u64,
    /// What became of it; `None` if it was not measured as often as a verdict needs: when the plan was stopped, or when one
    /// repetition was enough to see on which side of the edge it probably lies.
    pub verdict: Option<Verdict>,
    /// How often it was measured.
    pub repetitions: u32,
    /// Each limit in the file's order.
    pub limits: Vec<Judged>,
    /// Why the file cannot be run with it, which counts as broken.
    pub refused: Option<String>,
}

impl Trial {
    /// Whether nothing is subject to any limit, as with 0 members of the only flow: then it shows nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.limits.is_empty() && !self.limits.iter().any(Judged::applies)
    }
}

/// Carries a plan out in a new run, or in a partial one of the same plan that is resumed: what that has is not measured
/// again. When `stop` is set, what is known is given back and the run is marked partial.
///
/// # Errors
/// If measuring fails; the run keeps what it has and is marked partial.
pub fn run(
    store: &Store,
    plan: &Plan,
    resume: Option<u64>,
    means: &Means<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Found, PlanError> {
    let stored = resume.map(|id| stored(store, id, plan, means)).transpose()?;
    let mut work = Work::new(plan, stored.as_ref());
    let mut run = match &stored {
        Some(stored) => GrowingRun::resume(store, stored.info.id)?,
        None => GrowingRun::begin(store, &means.request(&plan.first, &plan.file))?,
    };
    observer.begun(&run.info()?);
    let mut estimate = None;
    let go_on = || !stop.load(Ordering::Relaxed);
    while go_on() && work.probe(&mut run, means, observer, stop)? {}
    if go_on() {
        work.expect_what_was_probed();
        estimate = Some(work.forecast(means));
        estimate.iter().for_each(|forecast| observer.estimated(forecast));
    }
    while go_on() && work.round(&mut run, means, observer, stop)? {
        observer.forecast(&work.forecast(means));
    }
    let stopped = !go_on() && !work.is_done();
    let run = run.finish(if stopped { Status::Partial } else { Status::Complete })?;
    Ok(Found { run, limits: plan.first.limits.clone(), answers: work.answers(), stopped, estimate })
}

/// A partial run of this very plan.
fn stored(store: &Store, id: u64, plan: &Plan, means: &Means<'_>) -> Result<StoredRun, PlanError> {
    let run = store.run(id).map_err(RunnerError::from)?;
    let other = |what: &str| {
        Err(PlanError::Question(format!(
            "run {id} is {what}: resume a plan with the file and key with which it was started"
        )))
    };
    if run.info.status == Status::Complete {
        return Err(PlanError::Question(format!("run {id} is complete: there is nothing to resume")));
    }
    if run.info.backend != means.backend {
        return other("of another backend");
    }
    let values =
        run.axes.first().filter(|axis| axis.key == plan.key.key()).map(|axis| axis.values.as_slice());
    let parsed = values.map(|values| values.iter().filter_map(|value| plan.key.parse(value).ok()));
    match parsed.map(|values| plan.with(values)) {
        Some(Ok(same)) if same.text == run.text => Ok(run),
        _ => other("of another plan or file"),
    }
}

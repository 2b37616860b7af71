//! Some of many runs: those that a user asks for, and those that have been kept long enough.

use jiff::{SignedDuration, Timestamp};

use crate::model::{Backend, RunInfo, Status};

/// What runs are looked for; what is not given does not matter.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// A part of the experiment's name, whatever its case.
    pub name: Option<String>,
    /// Where they ran.
    pub backend: Option<Backend>,
    /// How far they are.
    pub status: Option<Status>,
    /// Tags that they all have.
    pub tags: Vec<String>,
    /// Started then or later.
    pub since: Option<Timestamp>,
    /// Started before.
    pub before: Option<Timestamp>,
}

impl RunFilter {
    /// Whether a run is one of them.
    pub fn matches(&self, run: &RunInfo) -> bool {
        let named = |part: &String| run.name.to_lowercase().contains(&part.to_lowercase());
        self.name.as_ref().is_none_or(named)
            && self.backend.is_none_or(|backend| run.backend == backend)
            && self.status.is_none_or(|status| run.status == status)
            && self.tags.iter().all(|tag| run.tags.contains(tag))
            && self.since.is_none_or(|since| run.started >= since)
            && self.before.is_none_or(|before| run.started < before)
    }
}

/// How long runs are kept. Runs with a tag and those being measured always are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    /// The latest of each experiment on each backend, however old.
    pub latest: u32,
    /// All that started within this time.
    pub within: SignedDuration,
}

impl Retention {
    /// The numbers of the runs that need not be kept any longer at `now`.
    pub fn expired(&self, runs: &[RunInfo], now: Timestamp) -> Vec<u64> {
        let is_old = |run: &RunInfo| now.duration_since(run.started) > self.within;
        let is_free = |run: &RunInfo| run.tags.is_empty() && run.status != Status::Running;
        let later = |run: &RunInfo| {
            let same = |other: &&RunInfo| {
                other.experiment_hash == run.experiment_hash
                    && other.backend == run.backend
                    && (other.started, other.id) > (run.started, run.id)
            };
            runs.iter().filter(same).count()
        };
        let expired = |run: &&RunInfo| is_free(run) && is_old(run) && later(run) >= self.latest as usize;
        runs.iter().filter(expired).map(|run| run.id).collect()
    }
}

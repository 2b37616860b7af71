//! Jobs of the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AdviceResult, PlanResult, StudyResult};

/// A job of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// For addresses.
    pub id: String,
    /// Its kind.
    pub kind: JobKind,
    /// The text for people.
    pub title: String,
    /// The run that it writes, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Its state.
    pub state: JobState,
    /// Its progress.
    pub progress: JobProgress,
    /// The time of its end (RFC 3339, UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The reason for its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The address of its result, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The reason for which the store does not keep its result, which is lost when the server ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
}

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// Runs an experiment.
    Run,
    /// Searches the edge of a key.
    Plan,
    /// Repeats a published study.
    Paper,
    /// Measures a connection and gives advice.
    Probe,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// Others are before it.
    Waiting,
    /// At work.
    Running,
    /// Told to stop.
    Stopping,
    /// It has ended, and did all.
    Done,
    /// It has ended with an error.
    Failed,
    /// It was stopped: what was measured is kept.
    Stopped,
}

impl JobState {
    /// Whether nothing will change any more.
    pub fn is_over(self) -> bool {
        matches!(self, JobState::Done | JobState::Failed | JobState::Stopped)
    }
}

/// The progress of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// Number of points to measure.
    pub points: usize,
    /// Number of points already measured.
    pub points_done: usize,
    /// Number of repetitions to measure.
    pub repetitions: usize,
    /// Number of repetitions already measured.
    pub repetitions_done: usize,
    /// The share that is done, from 0 to 1.
    pub fraction: f64,
    /// Time left, in seconds; missing while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
}

/// A job was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStarted {
    /// Its name for addresses.
    pub job: String,
}

/// The result of a job, by its kind.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum JobResult {
    /// Of a plan.
    Plan(PlanResult),
    /// Of a probe.
    Advice(AdviceResult),
    /// Of a study.
    Study(StudyResult),
}

//! What the server executes now.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AdviceResult, PlanResult, StudyResult};

/// Something that the server executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// For addresses.
    pub id: String,
    /// What it is.
    pub kind: JobKind,
    /// For people.
    pub title: String,
    /// The run that it writes, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// How it stands.
    pub state: JobState,
    /// How far it is.
    pub progress: JobProgress,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The address of its result, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// What a job is.
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

/// How a job stands.
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

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// How many points it measures.
    pub points: usize,
    /// How many of them are measured.
    pub points_done: usize,
    /// How many repetitions it measures.
    pub repetitions: usize,
    /// How many of them are measured.
    pub repetitions_done: usize,
    /// The share that is done, from 0 to 1.
    pub fraction: f64,
    /// How long it may still take, in seconds; missing while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
}

/// A job was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStarted {
    /// Its name for addresses.
    pub job: String,
}

/// What a job gives: by its kind.
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

//! Stored runs.

use serde::{Deserialize, Serialize};
pub use trunkline_report::output::{Axis, Backend, RunSummary, Status};
use utoipa::ToSchema;

use super::Report;

/// A stored run, without its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// The run.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The job of this server that executes it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// Some of the stored runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The newest first.
    pub runs: Vec<RunInfo>,
    /// How many there are that fit, on this page and others.
    pub total: usize,
    /// `before` of the next page; null on the last.
    #[schema(required = true)]
    pub next: Option<u64>,
}

/// An experiment to run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// The experiment file.
    #[schema(max_length = 4_194_304)]
    pub text: String,
    /// What it is called: the runs of one file belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// On what it is executed.
    pub backend: Backend,
    /// What to mark the run with.
    #[serde(default)]
    #[schema(required = false)]
    pub tags: Vec<String>,
    /// Whose audio to write as it is heard: `flow.voice.1`, or `flow.voice.1.2` for its second channel only.
    #[serde(default)]
    #[schema(required = false)]
    pub hear: Vec<String>,
}

/// A run was begun.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunStarted {
    /// The job that executes it.
    pub job: String,
    /// The run's number; missing while others are in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// A run with its results.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// What it is.
    pub info: RunInfo,
    /// The experiment file's text.
    pub text: String,
    /// What was swept.
    pub axes: Vec<Axis>,
    /// What counts as good enough.
    pub limits: Vec<Limit>,
    /// Every point, also those without a repetition yet.
    pub points: Vec<RunPoint>,
    /// The run of the same experiment on another backend that stands beside it in `figures`.
    #[schema(required = true)]
    pub counterpart: Option<u64>,
    /// Every figure of every point, over repetitions.
    #[schema(value_type = Report)]
    pub figures: serde_json::Value,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Limit {
    /// `flow.voice.latency.p999`
    pub key: String,
    /// `< 150 ms`
    pub condition: String,
    /// With what it is compared, in base units.
    pub bound: f64,
}

/// A point of a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunPoint {
    /// Counted from 0.
    pub index: u32,
    /// The chosen value's index on each axis.
    pub choice: Vec<usize>,
    /// The chosen values as written.
    pub values: Vec<String>,
    /// What was measured.
    pub repetitions: Vec<RunRepetition>,
}

/// A repetition of a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunRepetition {
    /// Counted from 0.
    pub index: u32,
    /// Whether it was interrupted.
    pub partial: bool,
    /// Whether it has a summary: not if its process was killed.
    pub summarised: bool,
    /// Its flows with a trace on this host.
    pub traces: Vec<TraceName>,
    /// Its files of received audio, for `/files/`.
    pub audio: Vec<String>,
}

/// A trace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceName {
    /// Of which flow.
    pub flow: String,
}

/// A figure of a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FigureName {
    /// For its address.
    pub name: String,
    /// What it shows.
    pub title: String,
}

/// What became of an archive.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// The run's number here.
    pub run: u64,
    /// Whether it was not here before.
    pub new: bool,
}

/// The distribution of a flow's latency.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Cdf {
    /// `latency`
    pub quantity: String,
    /// `s`
    pub unit: String,
    /// Shares of the received messages, rising from 0 to 1.
    pub p: Vec<f64>,
    /// The latency that so large a share does not exceed.
    pub value: Vec<f64>,
}

impl From<&trunkline_experiment::Limit> for Limit {
    fn from(limit: &trunkline_experiment::Limit) -> Limit {
        Limit { key: limit.key.clone(), condition: limit.condition.clone(), bound: limit.bound }
    }
}

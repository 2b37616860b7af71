//! Stored runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Report;

/// On what a run is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// In virtual time, over the links that the file describes.
    Sim,
    /// In real time over the same links, between namespaces of the server's machine.
    Wire,
    /// On real sockets over the network as it is.
    Live,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Being executed.
    Running,
    /// Every repetition of every point was measured.
    Complete,
    /// Interrupted: what was measured is kept, and it can be resumed.
    Partial,
}

/// What a run is, without its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// Its number in this store, from 1.
    pub id: u64,
    /// The experiment's name.
    pub name: String,
    /// On what it was executed.
    pub backend: Backend,
    /// How far it is.
    pub status: Status,
    /// When it started.
    pub started: jiff::Timestamp,
    /// When it ended, if it has.
    #[schema(required = true)]
    pub finished: Option<jiff::Timestamp>,
    /// The version of Trunkline that made it.
    pub version: String,
    /// The machine: kernel, processor, number of cores, host name.
    pub machine: String,
    /// The seed, in decimal digits: it may be larger than a browser's numbers.
    pub seed: String,
    /// How often every point is measured.
    pub repetitions: u32,
    /// How many points it has.
    pub points: u32,
    /// How many repetitions were measured to the end, over all points.
    pub repetitions_done: u32,
    /// How long one repetition lasts (duration and drain), in seconds.
    pub repetition_length_s: f64,
    /// The folder with its traces, audio and report, on the host that measured it.
    pub directory: String,
    /// The experiment file's path when it was run.
    pub file: String,
    /// Runs with the same one ran the same experiment file.
    pub experiment_hash: String,
    /// What users have marked it with, in alphabetical order.
    pub tags: Vec<String>,
    /// What tells it from the runs of all other stores.
    pub key: String,
    /// What was set beside the file, `link.trunk.rate=5 Mbit/s`; the run's text has it.
    pub settings: Vec<String>,
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

/// A swept key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Axis {
    /// `flow.voice.count`
    pub key: String,
    /// The values as written: `16 KiB`.
    pub values: Vec<String>,
    /// The same as numbers in `unit`; null if they are words.
    #[schema(required = true)]
    pub numbers: Option<Vec<f64>>,
    /// The unit of `numbers`: `KiB`, `ms`, `kbit/s`, or empty for counts.
    pub unit: String,
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

impl From<trunkline_store::Backend> for Backend {
    fn from(backend: trunkline_store::Backend) -> Backend {
        match backend {
            trunkline_store::Backend::Sim => Backend::Sim,
            trunkline_store::Backend::Wire => Backend::Wire,
            trunkline_store::Backend::Live => Backend::Live,
        }
    }
}

impl From<Backend> for trunkline_store::Backend {
    fn from(backend: Backend) -> trunkline_store::Backend {
        match backend {
            Backend::Sim => trunkline_store::Backend::Sim,
            Backend::Wire => trunkline_store::Backend::Wire,
            Backend::Live => trunkline_store::Backend::Live,
        }
    }
}

impl From<trunkline_store::Status> for Status {
    fn from(status: trunkline_store::Status) -> Status {
        match status {
            trunkline_store::Status::Running => Status::Running,
            trunkline_store::Status::Complete => Status::Complete,
            trunkline_store::Status::Partial => Status::Partial,
        }
    }
}

impl From<Status> for trunkline_store::Status {
    fn from(status: Status) -> trunkline_store::Status {
        match status {
            Status::Running => trunkline_store::Status::Running,
            Status::Complete => trunkline_store::Status::Complete,
            Status::Partial => trunkline_store::Status::Partial,
        }
    }
}

impl From<&trunkline_store::RunInfo> for RunInfo {
    fn from(info: &trunkline_store::RunInfo) -> RunInfo {
        RunInfo {
            id: info.id,
            name: info.name.clone(),
            backend: info.backend.into(),
            status: info.status.into(),
            started: info.started,
            finished: info.finished,
            version: info.version.clone(),
            machine: info.machine.clone(),
            seed: info.seed.to_string(),
            repetitions: info.repetitions,
            points: info.points,
            repetitions_done: info.repetitions_done,
            repetition_length_s: info.repetition_length.as_secs_f64(),
            directory: info.directory.display().to_string(),
            file: info.file.display().to_string(),
            experiment_hash: info.experiment_hash.clone(),
            tags: info.tags.clone(),
            key: info.key.clone(),
            settings: info.settings.clone(),
            job: None,
        }
    }
}

impl From<&trunkline_experiment::Axis> for Axis {
    fn from(axis: &trunkline_experiment::Axis) -> Axis {
        let trunkline_experiment::Axis { key, values, numbers, unit } = axis.clone();
        Axis { key, values, numbers, unit }
    }
}

impl From<&trunkline_experiment::Limit> for Limit {
    fn from(limit: &trunkline_experiment::Limit) -> Limit {
        Limit { key: limit.key.clone(), condition: limit.condition.clone(), bound: limit.bound }
    }
}

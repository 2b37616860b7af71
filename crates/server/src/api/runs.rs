//! Stored runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
pub use trunkline_report::output::{Axis, Backend, RunAnswer, RunSummary, Status};
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
    /// Its answer, in lists. Missing while it runs, and until the server has read its results: ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<RunAnswer>,
}

/// Some of the stored runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// The newest first.
    pub runs: Vec<RunInfo>,
    /// Number of matching runs on all pages.
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
    /// The name of the file; runs of one file belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// The backend.
    pub backend: Backend,
    /// The tags of the run.
    #[serde(default)]
    #[schema(required = false)]
    pub tags: Vec<String>,
    /// The listener whose audio to write: `flow.voice.1`, or `flow.voice.1.2` for its second channel only.
    #[serde(default)]
    #[schema(required = false)]
    pub hear: Vec<String>,
}

/// A run was started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunStarted {
    /// The job that executes it.
    pub job: String,
    /// The run's number; missing while it waits for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// A run with its results.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Facts about the run.
    pub info: RunInfo,
    /// The experiment file's text.
    pub text: String,
    /// The swept keys.
    pub axes: Vec<Axis>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// Every point, also those without a repetition yet.
    pub points: Vec<RunPoint>,
    /// The run of the same experiment on another backend that is included in `figures`.
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
    /// The bound, in base units.
    pub bound: f64,
}

/// A point of a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunPoint {
    /// Counted from 0.
    pub index: u32,
    /// The chosen value's index on each axis.
    pub choice: Vec<usize>,
    /// The chosen values as reports show them: `fifo 600 KB` for a table.
    pub values: Vec<String>,
    /// The measurements.
    pub repetitions: Vec<RunRepetition>,
}

/// A repetition of a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunRepetition {
    /// Counted from 0.
    pub index: u32,
    /// Whether it was interrupted.
    pub partial: bool,
    /// Whether it has a summary; false if its process was killed.
    pub summarised: bool,
    /// Its flows with a trace on this host.
    pub traces: Vec<TraceName>,
    /// Its flows whose channels have sound.
    pub sounds: Vec<FlowSound>,
    /// Its files of received audio, for `/files/`.
    pub audio: Vec<String>,
}

/// A flow whose channels have sound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowSound {
    /// The flow.
    pub flow: String,
    /// Number of its members; those at each of several sinks count.
    pub members: u32,
    /// Number of channels of each member.
    pub channels: u16,
}

/// A trace.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceName {
    /// The flow.
    pub flow: String,
}

/// A figure of a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FigureName {
    /// For its address.
    pub name: String,
    /// Its description.
    pub title: String,
}

/// The result of importing an archive.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// The run's number in this store.
    pub run: u64,
    /// Whether it is new in this store.
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
    /// The latency that this share does not exceed.
    pub value: Vec<f64>,
}

/// Pieces of a channel's sound, each from and to in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pieces {
    /// Length of the sound.
    pub duration: f64,
    /// Pieces of which nothing is heard although they were due: messages that were lost, refused by the sender or under way at the
    /// end, and samples that found no room in a FIFO.
    pub lost: Vec<[f64; 2]>,
    /// Messages that arrived after their playout deadline; for a flow with a `playback`, the time in which its FIFO was empty.
    pub late: Vec<[f64; 2]>,
    /// The playout delay with which they are, in seconds; for a flow with a `playback`, the time that its `fill` lasts. Missing if the flow has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playout: Option<f64>,
    /// Start and end of this sound in that of the channel, in seconds, if it is a part of it: in the file of a saved run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<[f64; 2]>,
}

/// The place of a message in the sound of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Moment {
    /// The member of the flow, from 0.
    pub member: u32,
    /// Its channel, from 0.
    pub channel: u16,
    /// Its place in the sound, in seconds.
    pub position: f64,
}

/// A repetition over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct OverTime {
    /// The flows, in the order of the file.
    pub flows: Vec<FlowOverTime>,
    /// The directions of links in whose queues anything waited.
    pub queues: Vec<QueueOverTime>,
    /// Stalls of the machine: start and end, in seconds since the start of the repetition.
    pub stalls: Vec<[f64; 2]>,
}

/// A flow over time. All times are in seconds since the start of the repetition.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowOverTime {
    /// The flow's name.
    pub flow: String,
    /// Starts of equal intervals, and the end of the last one; empty if the trace is not on this server.
    pub t: Vec<f64>,
    /// Payload received in each interval, in bit/s; 0 at the end.
    pub throughput: Vec<f64>,
    /// When its first TCP connection was sampled.
    pub sampled: Vec<f64>,
    /// Segments that this connection had retransmitted until then.
    pub retransmissions: Vec<u64>,
    /// The same by cause; null where the sender does not report it. Causes that never occurred are left out.
    #[serde(default)]
    #[schema(required = true)]
    pub retransmissions_by_cause: BTreeMap<String, Vec<Option<u64>>>,
    /// Its congestion window at each sample, in bytes.
    pub window: Vec<u64>,
    /// Its slow-start threshold, in bytes; null before there is one.
    #[serde(default)]
    #[schema(required = true)]
    pub slow_start_threshold: Vec<Option<u64>>,
    /// Its bytes in flight.
    #[serde(default)]
    #[schema(required = true)]
    pub in_flight: Vec<u64>,
    /// Its smoothed round trip, in seconds; null before the first measured one.
    #[serde(default)]
    #[schema(required = true)]
    pub round_trip: Vec<Option<f64>>,
    /// Its pacing rate, in bit/s; null before there is one.
    #[serde(default)]
    #[schema(required = true)]
    pub pacing_rate: Vec<Option<u64>>,
}

/// A queue over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct QueueOverTime {
    /// `trunk berlin>ottawa`
    pub link: String,
    /// Starts of intervals, in seconds since the start of the repetition.
    pub t: Vec<f64>,
    /// The most bytes that were seen waiting in each interval.
    pub bytes: Vec<u64>,
}

impl From<&trunkline_experiment::Limit> for Limit {
    fn from(limit: &trunkline_experiment::Limit) -> Limit {
        Limit { key: limit.key.clone(), condition: limit.condition.clone(), bound: limit.bound }
    }
}

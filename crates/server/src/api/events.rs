//! Server-sent events for watchers of a running job. Beside these there is `job`, a [`Job`].
//!
//! [`Job`]: super::Job

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JobState;

/// Event `records`: the measurements since the last one, for live charts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Records {
    /// Number of this event, from 0. A gap means that this client was too slow for some of them.
    pub seq: u64,
    /// The point, from 0.
    pub point: u32,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The point's swept values as written.
    pub values: Vec<String>,
    /// The flows that `flow` and `throughput` count.
    pub flows: Vec<String>,
    /// The send time of each message, in seconds from the start of the repetition.
    pub t: Vec<f64>,
    /// Its flow: an index into `flows`.
    pub flow: Vec<u32>,
    /// Its channel within the flow, from 0.
    pub channel: Vec<u32>,
    /// Its latency in seconds; null if it was lost.
    pub latency: Vec<Option<f64>>,
    /// The data that each flow has received since the last event.
    pub throughput: Vec<FlowThroughput>,
    /// The current lengths of the queues.
    pub queues: Vec<QueueLength>,
    /// Number of messages shown here.
    pub shown: u64,
    /// Number of messages: more than `shown` if there were too many to show.
    pub counted: u64,
    /// Figures of the repetition so far, by flow, of what is measured in real time. Twice a second; empty in other events.
    pub so_far: Vec<FlowSoFar>,
    /// The limits of the file, at the same times.
    pub limits: Vec<LimitSoFar>,
}

/// Figures of a flow since the start of the repetition. Missing figures are not known yet, or do not apply to the flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowSoFar {
    /// An index into `flows`.
    pub flow: u32,
    /// True if its latencies are those of round trips.
    pub round_trip: bool,
    /// 99 % of the latencies are at most this, in seconds.
    pub latency_p99: Option<f64>,
    /// Share of the messages that were lost.
    pub loss: Option<f64>,
    /// Share of the messages that missed their playout deadline.
    pub late: Option<f64>,
    /// Estimated mean opinion score of a conversation.
    pub mos: Option<f64>,
}

/// A limit while the repetition runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitSoFar {
    /// `flow.voice.latency.p999`
    pub key: String,
    /// `< 150 ms`
    pub condition: String,
    /// The flow that it is about, an index into `flows`; missing if it is about others.
    pub flow: Option<u32>,
    /// Its bound in seconds, if it is about a flow's latency.
    pub latency: Option<f64>,
    /// The figure so far, with its unit; missing if it is known only at the end.
    pub value: Option<String>,
    /// True if the figure so far keeps the limit.
    pub holds: Option<bool>,
}

/// The data that a flow has received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowThroughput {
    /// An index into `flows`.
    pub flow: u32,
    /// Payload in bits per second of the experiment's time.
    pub bps: f64,
}

/// The length of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueLength {
    /// The link.
    pub link: String,
    /// The direction: `berlin → ottawa`.
    pub direction: String,
    /// Bytes in it.
    pub bytes: u64,
    /// Packets in it.
    pub packets: u64,
    /// Time in seconds from the start of the repetition.
    pub t: f64,
}

/// Event `repetition`: a repetition was completed and stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RepetitionDone {
    /// The point, from 0.
    pub point: u32,
    /// The repetition, from 0.
    pub repetition: u32,
    /// Its figures by flow, and then by name: see `/definitions`.
    #[schema(value_type = std::collections::BTreeMap<String, std::collections::BTreeMap<String, f64>>)]
    pub figures: serde_json::Value,
}

/// Event `warning`: a message for the user that does not end the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// A sentence.
    pub message: String,
}

/// Event `end`: the job has ended, and this is the last event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct End {
    /// The outcome.
    pub state: JobState,
}

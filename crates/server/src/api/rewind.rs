//! A moment of a run, with its cause.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A message and all that happened around it. All times are in seconds since the start of the repetition.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Rewind {
    /// The cause of its latency or loss: a sentence.
    pub sentence: String,
    /// The message.
    pub message: RewoundMessage,
    /// Parts of its latency, the longest first. Empty for a lost message, and where the parts are not known.
    pub parts: Vec<RewoundPart>,
    /// Starts of the intervals of `queues`.
    pub t: Vec<f64>,
    /// Queues by flow: known of a simulated run, which is simulated again for this.
    pub queues: Vec<RewoundQueue>,
    /// Dropped and marked packets, in the order of time.
    pub events: Vec<RewoundEvent>,
    /// TCP connections.
    pub connections: Vec<RewoundConnection>,
    /// Stalls of the machine: start and end.
    pub stalls: Vec<[f64; 2]>,
    /// The reason why something above is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Remedies to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedies: Option<Remedies>,
}

/// The message nearest to the moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RewoundMessage {
    /// Its member: `voice`, or `voice.2` of several.
    pub member: String,
    /// When it was sent.
    pub sent: f64,
    /// When it arrived; null if it did not.
    #[schema(required = true)]
    pub received: Option<f64>,
}

/// A part of a latency.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RewoundPart {
    /// Its name: "queue of `trunk` (berlin>ottawa)".
    pub name: String,
    /// Its length in seconds.
    pub seconds: f64,
}

/// A queue over time, by flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RewoundQueue {
    /// `trunk berlin>ottawa`
    pub link: String,
    /// The flows that waited there.
    pub flows: Vec<FlowInQueue>,
}

/// A flow in a queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowInQueue {
    /// The flow's name.
    pub flow: String,
    /// Bytes that waited at the start of each interval.
    pub bytes: Vec<u64>,
}

/// Packets that were dropped or marked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RewoundEvent {
    /// When.
    pub t: f64,
    /// `trunk berlin>ottawa`
    pub link: String,
    /// The member that the packet belonged to.
    pub member: String,
    /// True for a mark, false for a drop.
    pub mark: bool,
    /// The cause, such as `queue-full`.
    pub cause: String,
}

/// A TCP connection over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RewoundConnection {
    /// Its flow.
    pub flow: String,
    /// Its member.
    pub member: String,
    /// Times of the samples.
    pub t: Vec<f64>,
    /// The congestion window, in bytes.
    pub window: Vec<u64>,
}

/// An experiment that repeats the moment with remedies.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Remedies {
    /// The experiment file: its sweep has the queue as it was, and three others.
    pub text: String,
    /// Names of the points of its sweep, the queue as it was first.
    pub names: Vec<String>,
}

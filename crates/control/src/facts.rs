//! What an agent tells of its host, its owner's limits, and what it is doing. Texts that come from another host hold nothing
//! that a terminal obeys.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_peer::{Fingerprint, printable};
use utoipa::ToSchema;

use crate::part::PartId;

/// An agent's host, and the limits that its owner has set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentFacts)]
pub struct Facts {
    /// The agent's name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
    /// The version of Trunkline.
    #[serde(deserialize_with = "printable")]
    pub program: String,
    /// The processor.
    #[serde(deserialize_with = "printable")]
    pub cpu: String,
    /// Number of cores that the agent may use.
    pub cores: u32,
    /// The kernel and its version.
    #[serde(deserialize_with = "printable")]
    pub kernel: String,
    /// Memory of the host, in bytes.
    #[schema(value_type = u64)]
    pub memory: Bytes,
    /// Free disk space for the agent's records, in bytes.
    #[schema(value_type = u64)]
    pub disk_free: Bytes,
    /// Steps of the clock since the agent started.
    pub clock_steps: u64,
    /// Features beside UDP and TCP: `sctp`, `mptcp`, `udp-lite`, `raw`, `real-time`, ...
    pub features: BTreeSet<String>,
    /// Congestion controls that its kernel has loaded; empty if not known.
    #[serde(default)]
    pub congestion_controls: Vec<String>,
    /// Limits of all controllers together.
    pub limits: Limits,
    /// Limits of this controller.
    pub permissions: Permissions,
    /// Current load, for all controllers together.
    pub busy: Busy,
}

/// Current load of an agent, for all controllers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentBusy)]
pub struct Busy {
    /// Number of parts that are prepared or running.
    pub parts: u32,
    /// Their conversations.
    pub conversations: u64,
    /// Rate granted to them, in bits per second.
    #[schema(value_type = u64)]
    pub rate: Rate,
}

/// Limits for all controllers of a host together. A missing value means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentLimits)]
pub struct Limits {
    /// Rate that this host may send, over all parts, in bits per second.
    #[schema(value_type = Option<u64>)]
    pub rate: Option<Rate>,
    /// Number of simultaneous conversations.
    pub flows: Option<u64>,
    /// Memory of the agent, in bytes.
    #[schema(value_type = Option<u64>)]
    pub memory: Option<Bytes>,
    /// Disk space for results of controllers, in bytes.
    #[schema(value_type = Option<u64>)]
    pub disk: Option<Bytes>,
    /// The longest part, in nanoseconds.
    #[serde(rename = "duration_ns", alias = "duration")]
    #[schema(value_type = Option<u64>)]
    pub duration: Option<Duration>,
}

/// Limits for one controller of a host. A missing value means no limit of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentPermissions)]
pub struct Permissions {
    /// Rate that this host may send for this controller, in bits per second.
    #[schema(value_type = Option<u64>)]
    pub rate: Option<Rate>,
    /// Number of simultaneous conversations.
    pub flows: Option<u64>,
    /// Networks to which this host sends, and for which it acts as far end, such as `10.0.0.0/8`.
    pub to: Option<Vec<String>>,
}

/// The current work of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentState)]
pub struct Status {
    /// The agent's name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
    /// The version of Trunkline.
    #[serde(deserialize_with = "printable")]
    pub program: String,
    /// Start, in UTC.
    pub since: Timestamp,
    /// Connections of controllers and other agents.
    pub sessions: u32,
    /// The parts that it executes or stores.
    pub parts: Vec<PartInfo>,
    /// Disk space for results of controllers, in bytes.
    #[schema(value_type = u64)]
    pub spool: Bytes,
    /// Free disk space in addition, in bytes.
    #[schema(value_type = u64)]
    pub disk_free: Bytes,
    /// Processor time of the agent over the last seconds: 1 is one core.
    pub cpu: f64,
    /// Memory of the agent, in bytes.
    #[schema(value_type = u64)]
    pub memory: Bytes,
    /// Steps of the clock since the agent started.
    pub clock_steps: u64,
    /// The enrolled controllers.
    pub controllers: Vec<ControllerInfo>,
    /// Events for its owner, oldest first.
    pub notices: Vec<Notice>,
}

/// An event at an agent for its owner, such as a clock step or an almost full disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentNotice)]
pub struct Notice {
    /// The time, in UTC.
    pub at: Timestamp,
    /// The event in a sentence.
    #[serde(deserialize_with = "printable")]
    pub text: String,
}

/// A controller that an agent knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentController)]
pub struct ControllerInfo {
    /// Its name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
    /// Its key.
    #[schema(value_type = String)]
    pub fingerprint: Fingerprint,
    /// Whether it is connected now.
    pub connected: bool,
    /// The time of its enrolment, in UTC.
    pub enrolled: Timestamp,
    /// Its limits.
    pub permissions: Permissions,
}

/// A part that an agent executes or stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentPart)]
pub struct PartInfo {
    /// Its identifier.
    pub part: PartId,
    /// Its progress.
    pub state: PartState,
    /// Number of chunks, including those that were acknowledged.
    pub chunks: u64,
    /// The first chunk that is still stored.
    pub kept_from: u64,
    /// Its size on disk, in bytes.
    #[schema(value_type = u64)]
    pub bytes: Bytes,
    /// Observations recorded.
    pub recorded: u64,
    /// The controller that it is for.
    #[serde(deserialize_with = "printable")]
    pub controller: String,
}

/// Progress of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = AgentPartState)]
pub enum PartState {
    /// Its sockets are open.
    Prepared,
    /// It is measuring.
    Running,
    /// It has ended as it should, and waits to be collected.
    Finished,
    /// It has ended early: it failed, or the agent did.
    Interrupted,
}

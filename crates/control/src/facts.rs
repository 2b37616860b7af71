//! What an agent tells of its host, its owner's limits, and what it is doing. Texts that come from another host hold nothing
//! that a terminal obeys.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, Duration, Rate};

use crate::error::printable;
use crate::fingerprint::Fingerprint;
use crate::message::PartId;

/// What kind of host this is, and what it may be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// How many of its cores the agent may use.
    pub cores: u32,
    /// The kernel and its version.
    #[serde(deserialize_with = "printable")]
    pub kernel: String,
    /// Memory of the host.
    pub memory: Bytes,
    /// What is free where the agent keeps what it records.
    pub disk_free: Bytes,
    /// How often the clock has been seen to step since the agent started.
    pub clock_steps: u64,
    /// What the host can do beside UDP and TCP: `sctp`, `mptcp`, `udp-lite`, `raw`, `real-time`, ...
    pub features: BTreeSet<String>,
    /// What the owner lets all controllers together have.
    pub limits: Limits,
    /// What the owner lets this controller have.
    pub permissions: Permissions,
    /// What runs now, for all controllers together.
    pub busy: Busy,
}

/// What an agent executes at a moment, for all controllers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Parts that are prepared or running.
    pub parts: u32,
    /// Their conversations.
    pub conversations: u64,
    /// What they may send at most.
    pub rate: Rate,
}

/// What the owner of a host lets all controllers together have. Without a value there is no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Sent by this host, over all parts.
    pub rate: Option<Rate>,
    /// Conversations at once.
    pub flows: Option<u64>,
    /// Memory of the agent.
    pub memory: Option<Bytes>,
    /// What is kept on disk for controllers.
    pub disk: Option<Bytes>,
    /// The longest part.
    pub duration: Option<Duration>,
}

/// What the owner of a host lets one controller have. Without a value there is no limit of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Permissions {
    /// Sent by this host for this controller.
    pub rate: Option<Rate>,
    /// Conversations at once.
    pub flows: Option<u64>,
    /// Networks that this host sends to and is the far end for, such as `10.0.0.0/8`.
    pub to: Option<Vec<String>>,
}

/// What an agent is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The agent's name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
    /// The version of Trunkline.
    #[serde(deserialize_with = "printable")]
    pub program: String,
    /// When it started.
    pub since: Timestamp,
    /// Connections of controllers and other agents.
    pub sessions: u32,
    /// The parts that it executes or keeps.
    pub parts: Vec<PartInfo>,
    /// What is kept on disk for controllers.
    pub spool: Bytes,
    /// What is free beside it.
    pub disk_free: Bytes,
    /// Processor time of the agent over the last seconds: 1 is one core.
    pub cpu: f64,
    /// Memory of the agent.
    pub memory: Bytes,
    /// How often the clock has been seen to step since the agent started.
    pub clock_steps: u64,
    /// The controllers that are known.
    pub controllers: Vec<ControllerInfo>,
    /// What somebody should know, the oldest first.
    pub notices: Vec<Notice>,
}

/// Something that happened at an agent and that somebody should know: its clock stepped, the disk became short, ...
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// When.
    pub at: Timestamp,
    /// What, in one sentence.
    #[serde(deserialize_with = "printable")]
    pub text: String,
}

/// A controller that an agent knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerInfo {
    /// Its name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
    /// Its key.
    pub fingerprint: Fingerprint,
    /// Whether it is connected now.
    pub connected: bool,
    /// When it was enrolled.
    pub enrolled: Timestamp,
    /// What it may have.
    pub permissions: Permissions,
}

/// A part that an agent executes or keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartInfo {
    /// Which.
    pub part: PartId,
    /// How far it is.
    pub state: PartState,
    /// How many chunks there are, with those that were acknowledged.
    pub chunks: u64,
    /// The first chunk that is still kept.
    pub kept_from: u64,
    /// What is kept of it on disk.
    pub bytes: Bytes,
    /// How many observations were recorded.
    pub recorded: u64,
    /// The controller that it is for.
    #[serde(deserialize_with = "printable")]
    pub controller: String,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

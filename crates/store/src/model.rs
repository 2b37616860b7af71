//! What is stored of a run, and handed out again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_experiment::{Axis, Limit};
use trunkline_metrics::RepetitionSummary;

use crate::shard::Shard;

/// On what a run was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Virtual time, over the links of the file.
    Sim,
    /// Real time, over the links of the file between namespaces of one machine.
    Wire,
    /// Real hosts and the network as it is.
    Live,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 3] = [Backend::Sim, Backend::Wire, Backend::Live];

    /// Its name on the command line, in the database and in folder names.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Sim => "sim",
            Backend::Wire => "wire",
            Backend::Live => "live",
        }
    }

    /// True if its clock is virtual: repetitions share the cores without disturbing each other.
    pub const fn is_simulated(self) -> bool {
        matches!(self, Backend::Sim)
    }

    /// True if packets cross the links of the file.
    pub const fn has_links_of_file(self) -> bool {
        !matches!(self, Backend::Live)
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Being executed by a process that is alive.
    Running,
    /// Every repetition of every point was measured; of a part of a run, those that belong to it.
    Complete,
    /// Interrupted: what was measured is kept, and `run --resume` finishes it.
    Partial,
}

/// What a run is, without its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its number in this store, from 1: what a user types.
    pub id: u64,
    /// The experiment's name.
    pub name: String,
    /// On what it was executed.
    pub backend: Backend,
    /// Its progress.
    pub status: Status,
    /// When it started.
    pub started: jiff::Timestamp,
    /// When it ended, if it has.
    pub finished: Option<jiff::Timestamp>,
    /// The version of Trunkline that made it.
    pub version: String,
    /// The machine: kernel, processor, number of cores, host name.
    pub machine: String,
    /// The seed.
    pub seed: u64,
    /// Repetitions of every point.
    pub repetitions: u32,
    /// How many points it has.
    pub points: u32,
    /// How many repetitions were measured to the end, over all points.
    pub repetitions_done: u32,
    /// How long one repetition lasts (duration and drain).
    pub repetition_length: Duration,
    /// The folder with its traces, audio and report.
    pub directory: PathBuf,
    /// The experiment file's path when it was run.
    pub file: PathBuf,
    /// A hash of the experiment file's text: runs with the same one can be compared side by side.
    pub experiment_hash: String,
    /// What users have marked it with, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What tells it from the runs of all other stores: 32 hexadecimal digits.
    #[serde(default)]
    pub key: String,
    /// What was set beside the file, `link.trunk.rate=5 Mbit/s`; the stored text has it.
    #[serde(default)]
    pub settings: Vec<String>,
    /// The part of the run that was to be measured here; `None` for all of it.
    #[serde(default)]
    pub shard: Option<Shard>,
}

impl RunInfo {
    /// Repetitions that it is to measure, over all points.
    pub fn wanted(&self) -> u64 {
        let all = u64::from(self.points) * u64::from(self.repetitions);
        self.shard.map_or(all, |shard| shard.of_all(all))
    }

    /// Returns true if it is to measure a point.
    pub fn has(&self, point: u32) -> bool {
        self.shard.is_none_or(|shard| shard.has_any(self.points, point, self.repetitions))
    }
}

/// A run with its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Facts about the run.
    pub info: RunInfo,
    /// The experiment file's text.
    pub text: String,
    /// The swept keys.
    pub axes: Vec<Axis>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// Every point, also those without a repetition yet, in the product's order.
    pub points: Vec<StoredPoint>,
}

/// One point of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPoint {
    /// Counted from 0: its place in the product of the axes; in a run that searches, the order in which it was tried.
    pub index: u32,
    /// The chosen value's index on each axis.
    pub choice: Vec<usize>,
    /// What was measured, in order of the repetitions.
    pub repetitions: Vec<StoredRepetition>,
}

/// One repetition of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRepetition {
    /// Counted from 0.
    pub index: u32,
    /// Whether it was interrupted. Resuming measures it anew.
    pub partial: bool,
    /// The summary; `None` if the process died before it could be made (the traces are there).
    pub summary: Option<RepetitionSummary>,
    /// The trace of each flow, by the flow's name.
    pub traces: Vec<(String, PathBuf)>,
    /// The received audio files.
    pub audio: Vec<PathBuf>,
}

/// The name of a status in the database.
pub(crate) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Complete => "complete",
        Status::Partial => "partial",
    }
}

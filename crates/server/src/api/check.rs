//! Experiment files, and what is wrong with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An experiment file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The file: TOML.
    pub text: String,
}

/// A problem of an experiment file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// One sentence: the problem, and the expected value.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The line of its end.
    pub end_line: usize,
    /// The column after its last character.
    pub end_column: usize,
    /// The named file that has the problem; missing for the experiment file itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The swept values at which the problem occurs, if not at all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
}

/// Whether an experiment file can be run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Checked {
    /// Its problems; empty if it is valid.
    pub problems: Vec<Problem>,
    /// A summary of the experiment, if it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExperimentSummary>,
    /// The backends that can run it, if it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends: Option<BackendReasons>,
}

/// A summary of an experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentSummary {
    /// Its name.
    pub name: String,
    /// Number of combinations of swept values.
    pub points: usize,
    /// Number of repetitions of each point.
    pub repetitions: u32,
    /// Length of all repetitions of all points, one after the other, in seconds.
    pub duration_s: f64,
    /// Whether repetitions may end earlier.
    pub ends_early: bool,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of links.
    pub links: usize,
    /// Number of flows.
    pub flows: usize,
}

/// For each backend, the reason why the file cannot run on it; null if it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackendReasons {
    /// In virtual time.
    pub sim: Option<String>,
    /// In real time over the links of the file.
    pub wire: Option<String>,
    /// Over the network as it is.
    pub live: Option<String>,
}

impl From<&trunkline_experiment::Problem> for Problem {
    fn from(problem: &trunkline_experiment::Problem) -> Problem {
        let is_main = &*problem.file == super::MAIN_FILE;
        Problem {
            message: problem.message.clone(),
            line: problem.line,
            column: problem.column,
            end_line: problem.line,
            end_column: problem.column + problem.width(),
            file: (!is_main).then(|| problem.file.to_string()),
            point: None,
        }
    }
}

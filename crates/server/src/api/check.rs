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

/// Something wrong with an experiment file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// One sentence: what is wrong, and what was expected.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// The line where it ends.
    pub end_line: usize,
    /// The character behind the last.
    pub end_column: usize,
    /// The file that the experiment file names and that this is about; missing for the experiment file itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The swept values with which it is wrong, if not with all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
}

/// Whether an experiment file can be run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Checked {
    /// What is wrong; empty if nothing is.
    pub problems: Vec<Problem>,
    /// What it would do, if nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExperimentSummary>,
    /// Where it can run, if nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends: Option<BackendReasons>,
}

/// What an experiment file would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentSummary {
    /// Its name.
    pub name: String,
    /// How many combinations of swept values.
    pub points: usize,
    /// How often each is measured.
    pub repetitions: u32,
    /// How long all repetitions of all points last one after the other, in seconds.
    pub duration_s: f64,
    /// Whether they may end earlier.
    pub ends_early: bool,
    /// How many hosts.
    pub hosts: usize,
    /// How many links.
    pub links: usize,
    /// How many flows.
    pub flows: usize,
}

/// For each backend why the file cannot run on it; null where it can.
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

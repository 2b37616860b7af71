//! Searching the edge of a key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Backend;

/// What to search: exactly one of `maximise` and `minimise`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// The experiment file with its limits.
    pub text: String,
    /// Find the largest value of this key: `flow.voice.count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximise: Option<String>,
    /// Find the smallest value of this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimise: Option<String>,
    /// The smallest and the largest value to try, as written in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(String, String)>,
    /// How near the answer must come, as a share of the value: `1 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// How sure each verdict must be: `95 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// On what it is measured.
    pub backend: Backend,
}

/// What was found, and an experiment file with it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanResult {
    /// What was found.
    #[serde(flatten)]
    pub plan: Plan,
    /// The experiment file at the answer; null if no value keeps the limits.
    #[schema(required = true)]
    pub experiment: Option<String>,
}

/// What was found: as `trunkline plan --json` prints it, but for the run, of which this is the number.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// The version of this layout.
    pub format: u32,
    /// The run that keeps every repetition.
    pub run: u64,
    /// `maximise` or `minimise`.
    pub goal: String,
    /// The key.
    pub key: String,
    /// The unit of its numbers.
    pub unit: String,
    /// The smallest value that could be tried.
    pub from: PlanValue,
    /// The largest.
    pub to: PlanValue,
    /// How sure each verdict is.
    pub confidence: f64,
    /// How often a value is measured before it is judged.
    pub repetitions: u32,
    /// How often at most.
    pub most_repetitions: u32,
    /// The limits.
    pub limits: Vec<PlanLimit>,
    /// Whether it was interrupted.
    pub stopped: bool,
    /// An answer for every combination of what else is swept.
    pub answers: Vec<PlanAnswer>,
}

/// A value of the searched key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanValue {
    /// As written.
    pub value: String,
    /// As a number.
    pub number: f64,
}

/// A limit of a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanLimit {
    /// As written.
    pub key: String,
    /// As written.
    pub condition: String,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanAnswer {
    /// The values of what else is swept, by key.
    pub values: BTreeMap<String, Option<String>>,
    /// The last value that keeps the limits.
    #[schema(required = true)]
    pub kept: Option<PlanValue>,
    /// The first that breaks one.
    #[schema(required = true)]
    pub broken: Option<PlanValue>,
    /// Between which values it is not decided.
    #[schema(required = true)]
    pub undecided: Option<(PlanValue, PlanValue)>,
    /// Values behind the edge that keep the limits all the same.
    pub kept_behind: Vec<PlanValue>,
    /// Whether the search came to its end.
    pub finished: bool,
    /// The answer in a sentence.
    pub sentence: String,
    /// All that was tried.
    pub trials: Vec<PlanTrial>,
}

/// A value that was tried.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanTrial {
    /// As written.
    pub value: String,
    /// As a number.
    pub number: f64,
    /// What was found.
    #[schema(required = true)]
    pub verdict: Option<PlanVerdict>,
    /// How often it was measured.
    pub repetitions: u32,
    /// Why it cannot be measured.
    #[schema(required = true)]
    pub refused: Option<String>,
    /// What was found of each limit.
    pub limits: Vec<PlanLimitVerdict>,
}

/// What was found of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanVerdict {
    /// It keeps the limits.
    Kept,
    /// It breaks one.
    Broken,
    /// It is not known.
    Undecided,
}

/// What was found of a limit at a value.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanLimitVerdict {
    /// The limit.
    pub key: String,
    /// Whether it is kept.
    pub verdict: PlanVerdict,
    /// The figure's mean, in base units.
    #[schema(required = true)]
    pub mean: Option<f64>,
    /// Its standard deviation.
    #[schema(required = true)]
    pub sd: Option<f64>,
    /// Half the width of its confidence interval.
    #[schema(required = true)]
    pub half_width: Option<f64>,
}

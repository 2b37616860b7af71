//! The JSON of plans: what `trunkline plan --json` prints. The JSON Schema and the description of the API are made from these
//! types.
//!
//! Values of the searched key stand as written (`value`) and as a number (`number`) in the plan's `unit`; figures of limits in
//! base units: seconds, bits per second, bytes, shares from 0 to 1, counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trunkline_report::output::RunSummary;
use utoipa::ToSchema;

/// A plan with its run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanOutput {
    /// The run that keeps every repetition.
    pub run: RunSummary,
    /// The question and its answers.
    #[serde(flatten)]
    pub plan: PlanFound,
    /// The page with the answer and its figures; missing if none was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A question and its answers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanFound {
    /// The name of this layout: `plan`.
    pub kind: String,
    /// The version of this layout.
    pub format: u32,
    /// The end of the range that was searched.
    pub goal: PlanGoal,
    /// The key that was searched: `flow.voice.count`.
    pub key: String,
    /// The unit of its numbers: `kbit/s`, `ms`, or empty for counts.
    pub unit: String,
    /// The smallest value that could be tried.
    pub from: PlanValue,
    /// The largest value that could be tried.
    pub to: PlanValue,
    /// Confidence of each verdict, from 0 to 1.
    pub confidence: f64,
    /// Repetitions of a value before it can count as kept; a value that breaks a limit by far may have fewer.
    pub repetitions: u32,
    /// Maximum number of repetitions of a value.
    pub most_repetitions: u32,
    /// The limits.
    pub limits: Vec<PlanLimit>,
    /// Whether it was interrupted.
    pub stopped: bool,
    /// The expected effort after the probe; missing if the plan was interrupted before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<PlanEstimate>,
    /// Over the draws of learned paths, the values that keep the limits in all of them or in most; missing if the file has no
    /// `draws`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<PlanDraws>,
    /// An answer for every combination of the other swept values.
    pub answers: Vec<PlanAnswer>,
}

/// Values that keep the limits in most draws of learned paths, for one combination of what else is swept.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanDraws {
    /// The other swept values, by key.
    pub values: BTreeMap<String, Option<String>>,
    /// Number of draws.
    pub of: usize,
    /// The best values for all draws, for 95 %, for 90 % and for half of them, as far as there are any.
    pub kept: Vec<PlanDrawsKept>,
    /// The same in a sentence.
    pub sentence: String,
}

/// A value with the draws in which it keeps the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanDrawsKept {
    /// The value.
    #[serde(flatten)]
    pub value: PlanValue,
    /// The number of these draws.
    pub draws: usize,
}

/// The expected effort of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanEstimate {
    /// Number of values to measure, including those that were probed and need more repetitions.
    pub values: usize,
    /// Number of repetitions to measure.
    pub repetitions: u64,
    /// Expected time, in seconds.
    pub time_s: f64,
}

/// The end of the range of values that keep the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanGoal {
    /// The largest value that keeps the limits.
    Maximise,
    /// The smallest.
    Minimise,
}

/// A value of the searched key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanValue {
    /// As written in the file.
    pub value: String,
    /// As a number in the plan's `unit`.
    pub number: f64,
}

/// A limit of a plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanLimit {
    /// As written in the file.
    pub key: String,
    /// As written in the file.
    pub condition: String,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanAnswer {
    /// The other swept values, by key.
    pub values: BTreeMap<String, Option<String>>,
    /// The last value that keeps the limits; null if none was found.
    #[schema(required = true)]
    pub kept: Option<PlanValue>,
    /// The first value that breaks a limit; null if none was found.
    #[schema(required = true)]
    pub broken: Option<PlanValue>,
    /// The first and the last undecided value between the two; null if there are none.
    #[schema(required = true)]
    pub undecided: Option<(PlanValue, PlanValue)>,
    /// Values beyond the edge that keep the limits nevertheless.
    pub kept_behind: Vec<PlanValue>,
    /// Whether the search was completed.
    pub finished: bool,
    /// Flows whose latency still rises at the end of a run at the value kept; a longer run might break a limit.
    pub rising: Vec<PlanRising>,
    /// Links that are offered more than they carry at the value kept, which the duration hides; a longer run might break a limit.
    #[serde(default)]
    #[schema(required = true)]
    pub overloaded: Vec<PlanOverloaded>,
    /// Flows of which most messages were refused or had not arrived at the end of a run at the value kept; limits judge the others only.
    pub unfinished: Vec<PlanUnfinished>,
    /// The answer in a sentence.
    pub sentence: String,
    /// All tried values, the smallest first.
    pub trials: Vec<PlanTrial>,
}

/// A flow whose latency rises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanRising {
    /// Its name.
    pub flow: String,
    /// Growth of its mean latency in the last half of the run, in seconds per second.
    pub per_second: f64,
}

/// A link that is offered more than it carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanOverloaded {
    /// Its name, with the direction.
    pub link: String,
    /// The time that it needs for what is offered in a second, in seconds: above 1.
    pub load: f64,
}

/// A flow of which most messages were refused or had not arrived at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanUnfinished {
    /// Its name.
    pub flow: String,
    /// Their share of the messages due, from 0 to 1.
    pub share: f64,
}

/// A value that was tried.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanTrial {
    /// As written in the file.
    pub value: String,
    /// As a number in the plan's `unit`.
    pub number: f64,
    /// The verdict; null if it was not judged.
    #[schema(required = true)]
    pub verdict: Option<PlanVerdict>,
    /// Repetitions.
    pub repetitions: u32,
    /// The reason why it cannot be measured; null if it can.
    #[schema(required = true)]
    pub refused: Option<String>,
    /// The verdict on each limit.
    pub limits: Vec<PlanLimitVerdict>,
}

/// A verdict on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanVerdict {
    /// It keeps the limits.
    Kept,
    /// It breaks one.
    Broken,
    /// The repetitions do not show which.
    Undecided,
    /// Nothing is subject to the limit, or to any: what it is about has no members.
    NotApplicable,
}

/// The verdict on a limit at a value.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanLimitVerdict {
    /// The limit.
    pub key: String,
    /// The verdict.
    pub verdict: PlanVerdict,
    /// The figure's mean, in base units.
    #[schema(required = true)]
    pub mean: Option<f64>,
    /// Its standard deviation.
    #[schema(required = true)]
    pub sd: Option<f64>,
    /// Distance from the mean to the confidence bound on the side of the limit; null if the limit is broken by so much that
    /// none was needed, or if there are too few repetitions for a bound that says anything.
    #[schema(required = true)]
    pub half_width: Option<f64>,
    /// Whether R or MOS is extrapolated, because an input is outside the E-model's range.
    pub outside_e_model: bool,
}

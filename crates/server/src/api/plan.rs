//! Searching the edge of a key.

use serde::{Deserialize, Serialize};
pub use trunkline_planner::output::{
    PlanAnswer, PlanDraws, PlanDrawsKept, PlanEstimate, PlanFound, PlanGoal, PlanLimit, PlanLimitVerdict,
    PlanRising, PlanTrial, PlanUnfinished, PlanValue, PlanVerdict,
};
use utoipa::ToSchema;

use super::Backend;

/// A search: exactly one of `maximise` and `minimise` is required.
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
    /// Precision of the answer, as a share of the value: `1 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// The confidence of each verdict: `95 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
    /// Backend that measures the candidates.
    pub backend: Backend,
}

/// The result, and an experiment file for it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanResult {
    /// The number of the run that keeps every repetition.
    pub run: u64,
    /// The result, as `trunkline plan --json` prints it.
    #[serde(flatten)]
    pub plan: PlanFound,
    /// The experiment file at the answer; null if no value keeps the limits.
    #[schema(required = true)]
    pub experiment: Option<String>,
}

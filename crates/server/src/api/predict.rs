//! Predictions: short simulations that are not stored.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Report;

/// An experiment to be predicted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPrediction {
    /// The file: TOML.
    pub text: String,
    /// The point, from 0 [default: the last one].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<usize>,
    /// Wall time that the simulation may take, in milliseconds [default: 120]. With it, up to 100,000 hosts and members of
    /// flows are simulated; without it, up to 5,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub budget_ms: Option<u32>,
}

/// The result of the simulator within its budget.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// The point, from 0.
    pub point: usize,
    /// All points of the sweep, at most 1,000; empty without a sweep.
    pub points: Vec<PredictedPoint>,
    /// True if the repetition was simulated to its end.
    pub whole: bool,
    /// Virtual time that was simulated, in seconds.
    pub simulated_s: f64,
    /// Virtual time of a repetition, in seconds.
    pub length_s: f64,
    /// Wall time that the simulation took, in milliseconds.
    pub took_ms: f64,
    /// Its figures: those of a run with this one point and repetition, and with number 0.
    pub report: Report,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PredictedPoint {
    /// Its value on each axis, as reports show it.
    pub values: Vec<String>,
}

/// The latencies of a flow at a point, as simulated before they were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PredictedLatency {
    /// The point's value on each axis.
    pub values: Vec<String>,
    /// The flow.
    pub flow: String,
    /// The least, in seconds.
    pub least_s: f64,
    /// The latency that 99.9 % do not exceed, in seconds.
    pub most_s: f64,
}

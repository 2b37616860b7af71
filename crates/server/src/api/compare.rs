//! Runs beside each other, and what their figures mean.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FigureQuantity, RunSummary};

/// Two runs, compared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// The first.
    pub run: RunSummary,
    /// The second.
    pub with: RunSummary,
    /// True if both ran the same experiment file with the same settings and seed.
    pub same_experiment: bool,
    /// A row for each point, flow and figure that both have.
    pub rows: Vec<ComparisonRow>,
    /// Points that only one of them has.
    pub unmatched: Vec<String>,
    /// The definitions of the figures.
    pub definitions: Vec<Definition>,
}

/// A figure in both runs, in base units.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ComparisonRow {
    /// The point: `bulk.count = 2`; empty where nothing is swept.
    pub point: String,
    /// The point's index in the first run, for its traces.
    pub a_point: u32,
    /// The point's index in the second run.
    pub b_point: u32,
    /// The flow.
    pub flow: String,
    /// The figure's name in files and addresses.
    pub metric: String,
    /// The figure's name for people.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// Its quantity.
    pub quantity: FigureQuantity,
    /// In the first run.
    pub a: CompareEstimate,
    /// In the second.
    pub b: CompareEstimate,
    /// The mean of the second minus that of the first.
    pub difference: f64,
    /// The difference as a share of the first; null if that is zero.
    #[schema(required = true)]
    pub relative: Option<f64>,
    /// Half the width of the difference's 95 % confidence interval (Welch's t-interval); null unless both were repeated.
    #[schema(required = true)]
    pub confidence: Option<f64>,
    /// Whether it is significant; null if a run has no repetitions.
    #[schema(required = true)]
    pub significant: Option<bool>,
    /// Whether it is one of the main figures.
    pub telling: bool,
}

/// A figure in one of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompareEstimate {
    /// The mean over repetitions.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; null for a single repetition.
    #[schema(required = true)]
    pub ci: Option<f64>,
    /// Number of repetitions.
    pub repetitions: usize,
}

/// The meaning of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Definition {
    /// The figure's name in files and addresses; missing for words that explain others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The text for people.
    pub title: String,
    /// Definition of the figure, or of the word.
    pub text: String,
    /// Standard or paper; empty if the text says it all.
    pub source: String,
}

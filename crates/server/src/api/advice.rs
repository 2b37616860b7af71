//! Advice on how to send audio over a connection.

use serde::{Deserialize, Serialize};
pub use trunkline_advisor::output::{
    Advice, AdviceBlocks, AdviceFailed, AdviceRow, AdviceStages, Judgement, Protection, Recommendation, Use,
};
use utoipa::ToSchema;

/// A measurement of a connection.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProbe {
    /// Where `trunkline reflect` listens: a name or an address.
    pub host: String,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The time budget, in seconds.
    #[schema(minimum = 1, maximum = 3600)]
    pub budget_s: f64,
    /// The uses to advise on; all if missing.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Use>,
    /// Number of audio channels.
    #[schema(minimum = 1, maximum = 1024)]
    pub channels: u16,
    /// Samples per second.
    #[schema(minimum = 8000, maximum = 192_000)]
    pub rate: u32,
}

/// The advice, and an experiment file with it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceResult {
    /// The advice: as `trunkline probe --json` prints it.
    #[serde(flatten)]
    pub advice: Advice,
    /// An experiment file for the recommendation; null if there is none.
    #[schema(required = true)]
    pub experiment: Option<String>,
}

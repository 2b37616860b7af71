//! The name of a part.

use serde::{Deserialize, Serialize};
use trunkline_peer::bounded;

/// Digits of a run's key.
const RUN_KEY: usize = 32;

/// An agent's part of one repetition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentPartId)]
pub struct PartId {
    /// The run's key: 32 hexadecimal digits.
    #[serde(deserialize_with = "bounded::text::<_, RUN_KEY>")]
    pub run: String,
    /// The point, from 0.
    pub point: u32,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The pair of hosts, from 0.
    pub pair: u16,
    /// Earlier attempts.
    pub attempt: u32,
}

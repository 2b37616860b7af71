//! What was measured of one configuration.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

/// The round trips of consecutive packets, in the order in which they were due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// From when a packet was due to when it was back; `None` of a packet that did not come back.
    pub round_trips: Vec<Option<Duration>>,
}

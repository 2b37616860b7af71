//! What the two ends tell each other once a second, so that both know the latency of every stage.

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

/// A word of one end to the other. One that is not understood is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case")]
pub(super) enum Word {
    /// Of the end that sends.
    Sending(Sending),
    /// Of the end that plays.
    Playing(Playing),
    /// A recording has reached its limit: the session ends, and another attempt would fail.
    Limit,
}

/// What only the sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sending {
    /// What the player's clock shows beyond the sender's, in nanoseconds, and how far that may be from the truth.
    pub(super) offset: Option<(i64, Duration)>,
    pub(super) capture: Duration,
    pub(super) block: Duration,
    pub(super) packet: Duration,
    /// How many parts of blocks there were, when there are no more.
    pub(super) blocks: Option<u64>,
    /// How many frames there were, when there are no more: the last block may not be full. Not known if they were resampled.
    #[serde(default)]
    pub(super) frames: Option<u64>,
    /// How many blocks of its device were lost before they were sent.
    #[serde(default)]
    pub(super) left_out: u64,
    /// Whether what the device captured was resampled to the rate of the stream.
    #[serde(default)]
    pub(super) resampled: bool,
    /// True if the samples of the file that it sends have more bits than those of the stream.
    #[serde(default)]
    pub(super) narrowed: bool,
}

/// What only the player knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Playing {
    /// With how far that may be from the truth.
    pub(super) network: Option<(Duration, Duration)>,
    pub(super) playout: Duration,
    pub(super) resampling: Duration,
    pub(super) playback: Duration,
    pub(super) drift_ppm: Option<f64>,
    pub(super) received: u64,
    pub(super) expected: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) concealed: u64,
    pub(super) recovered: u64,
    pub(super) reordered: u64,
    pub(super) duplicate: u64,
    /// How many parts of blocks the sender has said that there were: after that the counts are final once their turn has come.
    #[serde(default)]
    pub(super) blocks: Option<u64>,
}

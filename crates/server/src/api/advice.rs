//! Advice on how to send audio over a connection.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to measure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProbe {
    /// Where `trunkline reflect` listens: a name or an address.
    pub host: String,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How long it may take, in seconds.
    #[schema(minimum = 1, maximum = 3600)]
    pub budget_s: f64,
    /// For what; all of them if missing.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Use>,
    /// How many audio channels.
    #[schema(minimum = 1, maximum = 1024)]
    pub channels: u16,
    /// Samples per second.
    #[schema(minimum = 8000, maximum = 192_000)]
    pub rate: u32,
}

/// For what audio is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Playing together.
    Rehearsal,
    /// Recording what is played elsewhere.
    Recording,
    /// Talking to each other.
    Telephony,
}

/// The advice, and an experiment file with it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceResult {
    /// The advice.
    #[serde(flatten)]
    pub advice: Advice,
    /// An experiment file of what is recommended; null if nothing is.
    #[schema(required = true)]
    pub experiment: Option<String>,
}

/// The advice: as `trunkline probe --json` prints it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// The version of this layout.
    pub format: u32,
    /// What was measured.
    pub host: String,
    /// How long it could take, in seconds.
    pub budget: f64,
    /// How long it took.
    pub took: f64,
    /// Whether it was stopped before.
    pub partial: bool,
    /// The share of a rehearsal's audio that may have to be concealed.
    pub concealed: f64,
    /// What to do.
    pub recommendations: Vec<Recommendation>,
    /// What to know.
    pub warnings: Vec<String>,
    /// What was measured.
    pub measured: Vec<AdviceRow>,
    /// What did not work.
    pub failed: Vec<AdviceFailed>,
    /// What bulk transfers reached in the direction in which they reached less, in bits per second.
    #[schema(required = true)]
    pub capacity: Option<f64>,
}

/// A recommendation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Recommendation {
    /// For what.
    #[serde(rename = "for")]
    pub purpose: Use,
    /// How best to send.
    pub best: Judgement,
    /// Whether that does what the use asks for.
    pub suffices: bool,
    /// What is next best.
    #[schema(required = true)]
    pub runner_up: Option<Judgement>,
    /// Why, in sentences.
    #[schema(value_type = Value)]
    pub why: serde_json::Value,
    /// What the next best costs.
    #[schema(value_type = Value)]
    pub runner_up_costs: serde_json::Value,
    /// What to type here.
    #[schema(value_type = Value)]
    pub send: serde_json::Value,
    /// What to type there.
    #[schema(value_type = Value)]
    pub answer: serde_json::Value,
    /// The best under bulk load.
    #[schema(required = true)]
    pub loaded: Option<Judgement>,
    /// The best with other playout depths.
    pub by_depth: Vec<Judgement>,
}

/// A way to send, and what it comes to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Judgement {
    /// The transport.
    #[schema(value_type = Value)]
    pub transport: serde_json::Value,
    /// The blocks of audio.
    pub blocks: AdviceBlocks,
    /// What is sent against loss.
    pub protection: Protection,
    /// The playout depth, in seconds.
    pub depth: f64,
    /// Where the delay comes from.
    pub stages: AdviceStages,
    /// The delay from mouth to ear, in seconds.
    pub mouth_to_ear: f64,
    /// How many blocks were measured.
    pub measured: u64,
    /// Share that was lost.
    pub lost: f64,
    /// Share that came late.
    pub late: f64,
    /// Share that was concealed.
    pub concealed: f64,
    /// The longest gap, in seconds.
    pub longest_gap: f64,
    /// The burst ratio.
    pub burst_r: f64,
    /// The R-factor.
    pub r: Option<f64>,
    /// The mean opinion score.
    pub mos: Option<f64>,
    /// Bits per second.
    pub rate: f64,
}

/// Blocks of audio.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceBlocks {
    /// Samples per second.
    pub sample_rate: u32,
    /// Samples of a channel in a block.
    pub frames: u32,
    /// Channels.
    pub channels: u32,
    /// Bytes per sample.
    pub sample_bytes: u32,
}

/// What is sent against loss.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Protection {
    /// Nothing.
    None,
    /// Each block again with later ones.
    Repeat {
        /// How often.
        repeats: u32,
    },
    /// A parity block.
    Xor {
        /// For how many.
        data: u32,
    },
    /// Reed-Solomon.
    ReedSolomon {
        /// For how many.
        data: u32,
        /// How many.
        parity: u32,
    },
}

/// Where delay comes from, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceStages {
    /// The microphone's device.
    pub capture: f64,
    /// Filling a block.
    pub block: f64,
    /// The network.
    pub network: f64,
    /// The playout buffer.
    pub playout: f64,
    /// The loudspeaker's device.
    pub playback: f64,
}

/// What was measured of one configuration: its round trips in seconds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceRow {
    /// The transport.
    #[schema(value_type = Value)]
    pub transport: serde_json::Value,
    /// The blocks.
    pub blocks: AdviceBlocks,
    /// `idle` or `bulk`.
    pub load: String,
    /// `expedited` or `best-effort`.
    pub marking: String,
    /// Blocks sent.
    pub sent: u64,
    /// Blocks lost.
    pub lost: u64,
    /// The fastest.
    pub fastest: f64,
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The slowest.
    pub slowest: f64,
    /// The mean absolute deviation.
    pub deviation: f64,
}

/// What did not work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceFailed {
    /// The transport.
    #[schema(value_type = Value)]
    pub transport: serde_json::Value,
    /// Why.
    pub why: String,
}

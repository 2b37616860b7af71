//! The JSON of advice: what `trunkline probe --json` prints. The JSON Schema and the description of the API are made from
//! these types.
//!
//! Numbers are in base units: seconds, bits per second, bytes, shares from 0 to 1, counts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The use of the audio.
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

/// Advice on how to send audio over a connection.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Advice {
    /// The name of this layout: `advice`.
    pub kind: String,
    /// The version of this layout.
    pub format: u32,
    /// The host that was measured, as given in the request.
    pub host: String,
    /// The time budget, in seconds.
    pub budget: f64,
    /// Duration of the measurement, in seconds.
    pub took: f64,
    /// Whether the measurement was stopped before its budget was used up.
    pub partial: bool,
    /// The share of a rehearsal's audio that may have to be concealed, from 0 to 1.
    pub concealed: f64,
    /// A recommendation for each use.
    pub recommendations: Vec<Recommendation>,
    /// Warnings, a sentence or two each.
    pub warnings: Vec<String>,
    /// The round trips of each configuration that was measured.
    pub measured: Vec<AdviceRow>,
    /// Transports that could not be measured.
    pub failed: Vec<AdviceFailed>,
    /// Throughput of bulk transfers in the slower direction, in bits per second; null if it was not
    /// measured.
    #[schema(required = true)]
    pub capacity: Option<u64>,
}

/// A recommendation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Recommendation {
    /// The use.
    #[serde(rename = "for")]
    pub purpose: Use,
    /// The best way to send.
    pub best: Judgement,
    /// Whether it is good enough for the use.
    pub suffices: bool,
    /// The next best way; null if nothing else was measured.
    #[schema(required = true)]
    pub runner_up: Option<Judgement>,
    /// The reasons, in sentences.
    pub why: String,
    /// The drawback of the next best, in a sentence; null if there is none.
    #[schema(required = true)]
    pub runner_up_costs: Option<String>,
    /// The command that sends.
    pub send: String,
    /// The command at the other end.
    pub answer: String,
    /// The best under bulk load, with the same playout depth and redundancy; null if load was not measured.
    #[schema(required = true)]
    pub loaded: Option<Judgement>,
    /// The best with other playout depths.
    pub by_depth: Vec<Judgement>,
}

/// A way to send, with its figures.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Judgement {
    /// The transport.
    pub transport: String,
    /// The blocks of audio.
    pub blocks: AdviceBlocks,
    /// The redundancy.
    pub protection: Protection,
    /// The playout depth, in seconds.
    pub depth: f64,
    /// The parts of the delay.
    pub stages: AdviceStages,
    /// The delay from mouth to ear, in seconds.
    pub mouth_to_ear: f64,
    /// Number of blocks measured.
    pub measured: u64,
    /// Share of them that had not come back when the measurement ended, from 0 to 1.
    pub lost: f64,
    /// Share of them that arrived too late to be played.
    pub late: f64,
    /// Share of the audio that was concealed.
    pub concealed: f64,
    /// The longest gap, in seconds.
    pub longest_gap: f64,
    /// The burst ratio (ITU-T G.107).
    pub burst_r: f64,
    /// The R-factor (ITU-T G.107), from 0 to 100; null if it is not defined.
    #[schema(required = true)]
    pub r: Option<f64>,
    /// The mean opinion score, from 1 to 4.5; null if it is not defined.
    #[schema(required = true)]
    pub mos: Option<f64>,
    /// The rate on the network, in bits per second.
    pub rate: u64,
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

/// The redundancy.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Protection {
    /// Nothing.
    None,
    /// Each block repeated with later ones.
    Repeat {
        /// Earlier packets that each packet repeats.
        repeats: usize,
    },
    /// A parity block.
    Xor {
        /// Packets of audio in a group.
        data: usize,
    },
    /// Reed-Solomon.
    ReedSolomon {
        /// Packets of audio in a group.
        data: usize,
        /// Packets of redundancy in a group.
        parity: usize,
    },
}

/// The parts of the delay from mouth to ear, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceStages {
    /// The microphone's device, in seconds.
    pub capture: f64,
    /// Filling a block, in seconds.
    pub block: f64,
    /// The network, in seconds.
    pub network: f64,
    /// The playout buffer, in seconds.
    pub playout: f64,
    /// The loudspeaker's device, in seconds.
    pub playback: f64,
}

/// The round trips of one configuration, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceRow {
    /// The transport.
    pub transport: String,
    /// The blocks.
    pub blocks: AdviceBlocks,
    /// Other traffic of the probe: `idle` (none) or `bulk`.
    pub load: String,
    /// The packets' differentiated services code point: `expedited` or `best-effort`.
    pub marking: String,
    /// Blocks sent.
    pub sent: u64,
    /// Blocks that had not come back at the end: lost, not accepted by the transport, or still being retransmitted.
    pub lost: u64,
    /// The fastest round trip, in seconds.
    pub fastest: f64,
    /// The median, in seconds.
    pub median: f64,
    /// The 99th percentile, in seconds.
    pub p99: f64,
    /// The slowest, in seconds.
    pub slowest: f64,
    /// The mean absolute deviation from the mean, in seconds.
    pub deviation: f64,
}

/// Transports that could not be measured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AdviceFailed {
    /// The transport.
    pub transport: String,
    /// The reason.
    pub why: String,
}

//! What is measured, exactly: records, streaming statistics and summaries. Every number in a report is defined here,
//! with its source (DESIGN section "what we measure", `docs/metrics.md`).
//!
//! Drivers report [`Observation`]s to a [`Meter`], which joins them to one [`Record`] per message and makes the
//! [`RepetitionSummary`]. Each definition stands in a file of its own and can be used alone.

mod bundle;
mod bursts;
pub mod clocks;
mod connection;
mod delays;
mod estimate;
mod exact;
pub mod figures;
mod histogram;
mod jitter;
mod limited;
mod lognormal;
mod margins;
mod meter;
mod moments;
mod over_time;
mod percentile;
mod playback;
mod playout;
pub mod quality;
pub mod record;
mod reordering;
mod robust;
mod so_far;
pub mod summary;
mod throughput;
mod transfers;
mod voice_path;

pub use bursts::LossRun;
pub use connection::{ConnectionOverTime, ConnectionSample, Retransmissions};
pub use delays::Delays;
pub use estimate::{binomial_bounds, estimate, student_t};
pub use exact::{PercentileSelector, SelectError};
pub use jitter::{InterarrivalJitter, IpdvPairs};
pub use limited::{BurstLimit, CutBy, LimitedBy, SendLimit};
pub use lognormal::lognormal_mean_bound;
pub use meter::{FlowProgress, Meter, Remembered};
pub use moments::Moments;
pub use over_time::LatencyOverTime;
pub use percentile::PerMille;
pub use playback::{Arrived, Playback, PlaybackFifo, TalkSpurts};
pub use playout::Playout;
pub use quality::{Listening, QualitySummary};
pub use record::{
    BundleMeta, Console, DriverOutcome, Fate, FlowMeta, FlowOutcome, Lasting, Observation, OnNetwork, Record,
    Recorder, SocketPair, TraceSink,
};
pub use reordering::NextExpected;
pub use robust::robust_delay;
pub use so_far::SoFar;
pub use summary::{
    BundleSummary, ClassSummary, Counts, DelaySummary, Estimate, FlowSummary, JitterSummary, LinkSummary,
    Measured, MediumSummary, RepetitionSummary, RobustDelay, SinkSummary, Spread, StallSummary,
    ThroughputSummary, TransferSummary,
};
pub use throughput::{VOICE_CHANNEL, jain_fairness};
pub use voice_path::{Margin, MarginSummary, VoiceEvent, VoiceEventKind, VoicePath, VoicePathSummary};

//! What is measured, exactly: records, streaming statistics and summaries. Every number in a report is defined here,
//! with its source (DESIGN section "what we measure", `docs/metrics.md`).

pub mod record;
pub mod summary;

pub use record::{
    DriverOutcome, Fate, FlowMeta, FlowOutcome, Observation, Record, Recorder, TraceSink,
};
pub use summary::{
    Counts, DelaySummary, Estimate, FlowSummary, JitterSummary, LinkSummary, Measured, RepetitionSummary, RobustDelay,
    StallSummary, ThroughputSummary,
};

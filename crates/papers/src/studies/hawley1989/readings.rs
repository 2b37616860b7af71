//! Columns of the measured tables from summaries of flows.

use trunkline_core::{Duration, Rate};
use trunkline_metrics::{FlowSummary, RobustDelay, TransferSummary};

use crate::study::{Metric, Reading};

/// The flow whose delay is measured (`ipuke`).
const PROBE: &str = "probe";
/// The bulk transfers (`mpuke`).
const BULK: &str = "bulk";

/// Columns of the throughput table: 10 transfers, the first and the last dropped.
pub(super) const THROUGHPUT: &[Metric] = &[
    transfers("throughput_per_conversation_bytes_s", |flow| of_transfers(flow, |t| t.rate_mean)),
    transfers("std_bytes_s", |flow| of_transfers(flow, |t| t.rate_standard_deviation)),
    transfers("total_throughput_bytes_s", |flow| of_transfers(flow, |t| t.rate_total)),
];

/// Columns of the minimum estimate of delay (section 4.2.1).
pub(super) const MINIMUM: &[Metric] = &[
    milliseconds("mean_ms", |flow| of_delay(flow, |d| d.minimum)),
    milliseconds("std_ms", |flow| of_delay(flow, |d| d.minimum_standard_deviation)),
    plain("good_points", 0, |flow| Some(flow.robust?.minimum_kept as f64)),
    plain("bad_points", 0, |flow| Some(flow.robust?.minimum_removed as f64)),
    milliseconds("threshold_ms", |flow| of_delay(flow, |d| d.minimum_threshold)),
    plain("mean_over_std", 3, |flow| Some(flow.robust.as_ref()?.minimum_ratio)),
];

/// Columns of the average estimate of delay (section 4.3.1).
pub(super) const AVERAGE: &[Metric] = &[
    milliseconds("mean_ms", |flow| of_delay(flow, |d| d.loaded)),
    milliseconds("std_ms", |flow| of_delay(flow, |d| d.loaded_standard_deviation)),
    plain("good_points", 0, |flow| Some(flow.robust?.loaded_kept as f64)),
    plain("bad_points", 0, |flow| Some(flow.robust?.loaded_removed as f64)),
    milliseconds("threshold_ms", |flow| of_delay(flow, |d| d.loaded_threshold)),
    plain("mean_over_std", 3, |flow| Some(flow.robust.as_ref()?.loaded_ratio)),
];

type Read = fn(&FlowSummary) -> Option<f64>;

const fn transfers(column: &'static str, read: Read) -> Metric {
    Metric { column, decimals: 0, reading: Reading::Flow(BULK, read) }
}

const fn milliseconds(column: &'static str, read: Read) -> Metric {
    Metric { column, decimals: 3, reading: Reading::Flow(PROBE, read) }
}

/// A count or a ratio.
const fn plain(column: &'static str, decimals: usize, read: Read) -> Metric {
    Metric { column, decimals, reading: Reading::Flow(PROBE, read) }
}

/// In bytes per second.
fn of_transfers(flow: &FlowSummary, rate: fn(&TransferSummary) -> Rate) -> Option<f64> {
    Some(rate(flow.transfers.as_ref()?).bits_per_second() as f64 / 8.0)
}

/// In milliseconds.
fn of_delay(flow: &FlowSummary, delay: fn(&RobustDelay) -> Duration) -> Option<f64> {
    Some(delay(flow.robust.as_ref()?).as_nanos() as f64 / 1e6)
}

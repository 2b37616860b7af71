//! Columns of the tables from summaries of flows: round trips, in ms.

use trunkline_core::Duration;
use trunkline_metrics::FlowSummary;

use super::tables::published_latency;
use crate::study::{Metric, Reading};
use crate::value::Keys;

const AUDIO: &str = "audio";

/// As the paper prints them. Its jitter is the standard deviation: see the study's README.
pub(super) const PUBLISHED: &[Metric] = &[
    audio("latency_ms", 2, latency),
    audio("jitter_ms", 2, deviation),
    audio("loss_packets", 0, lost),
    audio("loss_pct", 2, lost_percent),
];

/// Both things that the paper calls jitter.
pub(super) const JITTER: &[Metric] = &[
    audio("mean_absolute_deviation_ms", 2, absolute_deviation),
    audio("standard_deviation_ms", 2, deviation),
    audio("p99_ms", 2, p99),
];

/// The same of this machine, beside the published round trips of the two computers.
pub(super) const HERE: &[Metric] = &[
    own("latency_ms", 3, latency),
    own("jitter_ms", 3, deviation),
    own("mean_absolute_deviation_ms", 3, absolute_deviation),
    own("loss_packets", 0, lost),
    own("loss_pct", 2, lost_percent),
    published("latency_a_ms", |keys| published_latency("A", keys)),
    published("latency_b_ms", |keys| published_latency("B", keys)),
];

const fn audio(column: &'static str, decimals: usize, read: fn(&FlowSummary) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::Flow(AUDIO, read) }
}

const fn own(column: &'static str, decimals: usize, read: fn(&FlowSummary) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::OwnFlow(read) }
}

const fn published(column: &'static str, read: fn(&Keys) -> Option<f64>) -> Metric {
    Metric { column, decimals: 2, reading: Reading::Formula(read) }
}

fn latency(flow: &FlowSummary) -> Option<f64> {
    Some(milliseconds(flow.latency?.mean))
}

fn p99(flow: &FlowSummary) -> Option<f64> {
    Some(milliseconds(flow.latency?.p99))
}

fn deviation(flow: &FlowSummary) -> Option<f64> {
    Some(milliseconds(flow.jitter?.standard_deviation))
}

fn absolute_deviation(flow: &FlowSummary) -> Option<f64> {
    Some(milliseconds(flow.jitter?.mean_absolute_deviation))
}

/// Also what a blocked sender gave up: the study ignored the error and counted the packet as lost.
fn lost(flow: &FlowSummary) -> Option<f64> {
    let counts = &flow.counts;
    Some((counts.lost + counts.unfinished + counts.refused) as f64)
}

fn lost_percent(flow: &FlowSummary) -> Option<f64> {
    Some(100.0 * flow.undelivered())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

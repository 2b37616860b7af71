//! Columns of the tables from summaries of bundles, flows and cells. KB is 1024 bytes.

use trunkline_core::{Amount, Duration, Rate};
use trunkline_metrics::{BundleSummary, ClassSummary, FlowSummary, JitterSummary, MediumSummary};

use crate::study::{Metric, Reading};

const BUNDLE: &str = "bundle";
const VOICE: &str = "voice";
const TRUNK: &str = "trunk";
/// The sender across the Atlantic.
const ENDOR: &str = "endor";

pub(super) const TCP: &[Metric] =
    &[bundle("tcp_throughput_kbytes_s", |bundle| Some(kbytes(throughput(bundle, "tcp")?)))];
pub(super) const UDP: &[Metric] =
    &[bundle("udp_throughput_kbytes_s", |bundle| Some(kbytes(throughput(bundle, "udp")?)))];
pub(super) const LOSS: &[Metric] =
    &[bundle("udp_loss_pct", |bundle| Some(100.0 * class(bundle, "udp")?.loss?.mean.value()))];

/// The test set saw a cell each 10 ms or so, where a voice unit has three: one of each unit.
pub(super) const INTERARRIVAL: &[Metric] = &[
    voice("mean_interarrival_ms", 2, |flow| of_jitter(flow, |jitter| jitter.interarrival_mean)),
    voice("std_interarrival_ms", 2, |flow| of_jitter(flow, |jitter| jitter.interarrival_standard_deviation)),
];

/// What the study could not measure: delay from the moment at which a unit was due, and how evenly the bundle is shared.
pub(super) const DELAY: &[Metric] = &[
    voice("mean_ms", 1, |flow| Some(milliseconds(flow.latency_from_due?.mean))),
    voice("p99_ms", 1, |flow| Some(milliseconds(flow.latency_from_due?.p99))),
    voice("max_ms", 1, |flow| Some(milliseconds(flow.latency_from_due?.max))),
    Metric {
        column: "fairness_udp",
        decimals: 3,
        reading: Reading::Bundle(BUNDLE, |bundle| class(bundle, "udp")?.fairness),
    },
    Metric {
        column: "fairness_tcp",
        decimals: 3,
        reading: Reading::Bundle(BUNDLE, |bundle| class(bundle, "tcp")?.fairness),
    },
];

/// The cells of one voice stream, all three of each unit, as they leave the network.
pub(super) const CELLS: &[Metric] = &[
    cells("cells", 0, |trunk| count(trunk, "observed-cells")),
    cells("lost", 0, |trunk| count(trunk, "observed-cells-lost")),
    cells("delay_variation_ms", 3, |trunk| time(trunk, "observed-cell-delay-variation")),
    cells("mean_interarrival_ms", 2, |trunk| time(trunk, "observed-cell-interarrival-mean")),
    cells("std_interarrival_ms", 2, |trunk| time(trunk, "observed-cell-interarrival-standard-deviation")),
];

const fn bundle(column: &'static str, read: fn(&BundleSummary) -> Option<f64>) -> Metric {
    Metric { column, decimals: 2, reading: Reading::Bundle(BUNDLE, read) }
}

const fn voice(column: &'static str, decimals: usize, read: fn(&FlowSummary) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::Flow(VOICE, read) }
}

const fn cells(column: &'static str, decimals: usize, read: fn(&MediumSummary) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::Medium(TRUNK, ENDOR, read) }
}

/// The connections of one transport.
fn class<'b>(bundle: &'b BundleSummary, transport: &str) -> Option<&'b ClassSummary> {
    bundle.classes.iter().find(|class| class.transport == transport)
}

/// The mean over connections of what each received in its own time.
fn throughput(bundle: &BundleSummary, transport: &str) -> Option<Rate> {
    Some(class(bundle, transport)?.throughput?.mean)
}

fn kbytes(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / (8.0 * 1024.0)
}

fn of_jitter(flow: &FlowSummary, jitter: fn(&JitterSummary) -> Duration) -> Option<f64> {
    Some(milliseconds(jitter(flow.jitter.as_ref()?)))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

fn amount(medium: &MediumSummary, name: &str) -> Option<Amount> {
    medium.figures.iter().find(|(figure, _)| figure == name).map(|(_, amount)| *amount)
}

fn count(medium: &MediumSummary, name: &str) -> Option<f64> {
    match amount(medium, name)? {
        Amount::Count(count) => Some(count as f64),
        _ => None,
    }
}

fn time(medium: &MediumSummary, name: &str) -> Option<f64> {
    match amount(medium, name)? {
        Amount::Time(time) => Some(milliseconds(time)),
        _ => None,
    }
}

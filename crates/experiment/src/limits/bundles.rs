//! Figures of bundles, and of the connections of each transport in them.

use trunkline_metrics::{BundleSummary, ClassSummary, Spread};

use super::{Metric, Unit, metric};
use crate::model::{BundleMetric, ClassMetric, Over};

/// Every figure of a bundle as a whole, as written behind its name.
pub(crate) const BUNDLE_METRICS: &[Metric<BundleMetric>] = &[
    metric("throughput", BundleMetric::Throughput, Unit::Rate, "Payload delivered by all flows together."),
    metric(
        "throughput.network",
        BundleMetric::NetworkThroughput,
        Unit::Rate,
        "What the flows took of their path's first link, with all framing of that link.",
    ),
    metric(
        "fairness",
        BundleMetric::Fairness,
        Unit::Number,
        "Jain's index of the throughputs of all members, from 1/n to 1.",
    ),
];

/// Every figure of the connections of a transport, as written behind its name. Each is taken of every connection first.
pub(crate) const CLASS_METRICS: &[Metric<ClassMetric>] = &[
    metric(
        "throughput.mean",
        ClassMetric::Throughput(Over::Mean),
        Unit::Rate,
        "Throughput of a connection: the mean of all.",
    ),
    metric(
        "throughput.min",
        ClassMetric::Throughput(Over::Min),
        Unit::Rate,
        "The same: the smallest of all.",
    ),
    metric("throughput.max", ClassMetric::Throughput(Over::Max), Unit::Rate, "The same: the largest of all."),
    metric("loss.mean", ClassMetric::Loss(Over::Mean), Unit::Share, "Loss of a connection: the mean of all."),
    metric("loss.min", ClassMetric::Loss(Over::Min), Unit::Share, "The same: the smallest of all."),
    metric("loss.max", ClassMetric::Loss(Over::Max), Unit::Share, "The same: the largest of all."),
    metric(
        "unfinished.mean",
        ClassMetric::Unfinished(Over::Mean),
        Unit::Share,
        "Unfinished messages of a connection, of those due: the mean of all.",
    ),
    metric(
        "unfinished.min",
        ClassMetric::Unfinished(Over::Min),
        Unit::Share,
        "The same: the smallest of all.",
    ),
    metric(
        "unfinished.max",
        ClassMetric::Unfinished(Over::Max),
        Unit::Share,
        "The same: the largest of all.",
    ),
    metric(
        "refused.mean",
        ClassMetric::Refused(Over::Mean),
        Unit::Share,
        "Refused messages of a connection, of those due: the mean of all.",
    ),
    metric("refused.min", ClassMetric::Refused(Over::Min), Unit::Share, "The same: the smallest of all."),
    metric("refused.max", ClassMetric::Refused(Over::Max), Unit::Share, "The same: the largest of all."),
    metric(
        "latency.mean.mean",
        ClassMetric::LatencyMean(Over::Mean),
        Unit::Duration,
        "Mean latency of a connection: the mean of all.",
    ),
    metric(
        "latency.mean.min",
        ClassMetric::LatencyMean(Over::Min),
        Unit::Duration,
        "The same: the smallest of all.",
    ),
    metric(
        "latency.mean.max",
        ClassMetric::LatencyMean(Over::Max),
        Unit::Duration,
        "The same: the largest of all.",
    ),
    metric(
        "latency.p999.mean",
        ClassMetric::LatencyP999(Over::Mean),
        Unit::Duration,
        "What 99.9 % of a connection's latencies are at most: the mean of all.",
    ),
    metric(
        "latency.p999.min",
        ClassMetric::LatencyP999(Over::Min),
        Unit::Duration,
        "The same: the smallest of all.",
    ),
    metric(
        "latency.p999.max",
        ClassMetric::LatencyP999(Over::Max),
        Unit::Duration,
        "The same: the largest of all.",
    ),
    metric(
        "fairness",
        ClassMetric::Fairness,
        Unit::Number,
        "Jain's index of their throughputs, from 1/n to 1.",
    ),
];

impl BundleMetric {
    /// The figure in a summary, in the base units of [`Limit::bound`](crate::Limit::bound); `None` where nothing was
    /// measured.
    pub fn value(&self, bundle: &BundleSummary) -> Option<f64> {
        match self {
            BundleMetric::Throughput => Some(bundle.user.bits_per_second() as f64),
            BundleMetric::NetworkThroughput => Some(bundle.network?.bits_per_second() as f64),
            BundleMetric::Fairness => bundle.fairness,
        }
    }
}

impl ClassMetric {
    /// The figure in a summary, in the base units of [`Limit::bound`](crate::Limit::bound); `None` where nothing was
    /// measured.
    pub fn value(&self, class: &ClassSummary) -> Option<f64> {
        match self {
            ClassMetric::Throughput(over) => Some(over.of(class.throughput?).bits_per_second() as f64),
            ClassMetric::Loss(over) => Some(over.of(class.loss?).value()),
            ClassMetric::Unfinished(over) => Some(over.of(class.unfinished?).value()),
            ClassMetric::Refused(over) => Some(over.of(class.refused?).value()),
            ClassMetric::LatencyMean(over) => Some(over.of(class.latency_mean?).as_secs_f64()),
            ClassMetric::LatencyP999(over) => Some(over.of(class.latency_p999?).as_secs_f64()),
            ClassMetric::Fairness => class.fairness,
        }
    }
}

impl Over {
    fn of<T>(self, spread: Spread<T>) -> T {
        match self {
            Over::Mean => spread.mean,
            Over::Min => spread.min,
            Over::Max => spread.max,
        }
    }
}

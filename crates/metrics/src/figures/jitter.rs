//! Variation of latency, by each definition.

use trunkline_core::Duration;

use super::Quantity::Time;
use super::{Definition, FigureKind, define, figure};
use crate::summary::{FlowSummary, JitterSummary};

pub(super) const JITTER_MAD: Definition = define(
    "jitter-mad",
    "jitter, mean absolute deviation",
    "Mean of the absolute differences between each latency and the mean latency.",
)
.source("Schiavoni and Queiroz 2013, equation 2");

pub(super) const JITTER_SD: Definition =
    define("jitter-sd", "jitter, standard deviation", "Standard deviation of latency.");

pub(super) const JITTER_INTERARRIVAL: Definition = define(
    "jitter-interarrival",
    "interarrival jitter",
    "J = J + (|D| - J)/16, where D is the change of latency from one message of a channel to the next in order of \
     arrival. The figure is the final J, averaged over channels.",
)
.source("RFC 3550 section 6.4.1");

pub(super) const IPDV: Definition =
    define("ipdv", "IPDV", "Absolute difference of the latencies of consecutive messages of a channel.")
        .source("RFC 3393 with consecutive selection");

pub(super) const PDV: Definition =
    define("pdv", "PDV", "Latency minus the smallest latency of the flow.").source("RFC 5481 section 4.2");

pub(super) const INTERARRIVAL: Definition =
    define("interarrival", "interarrival time", "Time between consecutive arrivals of one channel.")
        .source("Lamont et al. 1998");

pub(super) const DEFINITIONS: &[&Definition] =
    &[&JITTER_MAD, &JITTER_SD, &JITTER_INTERARRIVAL, &IPDV, &PDV, &INTERARRIVAL];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("jitter_mean_absolute_deviation", "jitter, mean absolute deviation", Time, &JITTER_MAD)
        .of_flow(|f| jitter(f, |j| Some(j.mean_absolute_deviation)))
        .of_sink(|s| Some(s.mean_absolute_deviation?.as_secs_f64()))
        .limit(
            "jitter.mean-absolute-deviation",
            "Mean absolute deviation of latency from its mean (Schiavoni and Queiroz 2013, equation 2).",
        )
        .rank(8),
    figure("jitter_standard_deviation", "jitter, standard deviation", Time, &JITTER_SD).of_flow(|f| {
        jitter(f, |j| Some(j.standard_deviation)).filter(|_| f.latency.is_some_and(|l| l.count > 1))
    }),
    figure("jitter_interarrival", "interarrival jitter (RFC 3550)", Time, &JITTER_INTERARRIVAL)
        .of_flow(|f| jitter(f, |j| j.interarrival))
        .limit("jitter.interarrival", "Interarrival jitter (RFC 3550 section 6.4.1).")
        .rank(9),
    figure("jitter_ipdv_mean", "IPDV, mean", Time, &IPDV).of_flow(|f| jitter(f, |j| j.ipdv_mean)),
    figure("jitter_ipdv_p999", "IPDV, p99.9", Time, &IPDV).of_flow(|f| jitter(f, |j| j.ipdv_p999)),
    figure("jitter_pdv_mean", "PDV, mean", Time, &PDV).of_flow(|f| jitter(f, |j| Some(j.pdv_mean))),
    figure("jitter_pdv_p999", "PDV, p99.9", Time, &PDV).of_flow(|f| jitter(f, |j| Some(j.pdv_p999))).limit(
        "jitter.pdv-p999",
        "99.9th percentile of latency minus the smallest latency (RFC 5481 section 4.2).",
    ),
    figure("interarrival_mean", "interarrival time, mean", Time, &INTERARRIVAL)
        .of_flow(|f| jitter(f, |j| j.interarrival_mean)),
    figure("interarrival_standard_deviation", "interarrival time, standard deviation", Time, &INTERARRIVAL)
        .of_flow(|f| jitter(f, |j| j.interarrival_standard_deviation)),
];

fn jitter(flow: &FlowSummary, of: fn(&JitterSummary) -> Option<Duration>) -> Option<f64> {
    Some(of(flow.jitter.as_ref()?)?.as_secs_f64())
}

//! Latency, and latency from due.

use trunkline_core::Duration;

use super::Quantity::Time;
use super::{Definition, FigureKind, define, figure};
use crate::summary::{DelaySummary, FlowSummary};

pub(super) const LATENCY: Definition = define(
    "latency",
    "latency",
    "Time from sending a message to its arrival. A one-way latency ends at the sink. A round trip ends back at the \
     source, through the reflector, and is not halved. The standard deviation is that of the sample.",
)
.source("RFC 7679 section 3; RFC 2681 section 2");

pub(super) const PERCENTILE: Definition = define(
    "percentile",
    "p50, p90, p99, p99.9",
    "The smallest latency that at least that share of the received messages does not exceed (nearest rank). \
     Values marked ≈ come from a histogram and are right within 0.1 %; all others are exact. p99.9 is Weaver's \
     “99.9 % threshold”.",
)
.source("RFC 2330 section 11.3");

pub(super) const LATENCY_FROM_DUE: Definition = define(
    "latency-from-due",
    "latency from due",
    "Time from the moment at which the source wanted to send a message to its arrival. If the transport blocks the \
     sender, this is larger than latency, because it includes the wait for the transport.",
);

pub(super) const DEFINITIONS: &[&Definition] = &[&LATENCY, &PERCENTILE, &LATENCY_FROM_DUE];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("latency_mean", "latency mean", Time, &LATENCY)
        .of_flow(|f| latency(f, |d| d.mean))
        .of_sink(|s| Some(s.latency?.mean.as_secs_f64()))
        .limit("latency.mean", "Mean latency.")
        .rank(4),
    figure("latency_standard_deviation", "latency standard deviation", Time, &LATENCY)
        .of_flow(|f| deviation(&f.latency?))
        .of_sink(|s| deviation(&s.latency?)),
    figure("latency_min", "latency minimum", Time, &LATENCY)
        .of_flow(|f| latency(f, |d| d.min))
        .of_sink(|s| Some(s.latency?.min.as_secs_f64())),
    figure("latency_p50", "latency p50", Time, &PERCENTILE)
        .of_flow(|f| latency(f, |d| d.p50))
        .of_sink(|s| Some(s.latency?.p50.as_secs_f64()))
        .limit("latency.p50", "Median latency."),
    figure("latency_p90", "latency p90", Time, &PERCENTILE)
        .of_flow(|f| latency(f, |d| d.p90))
        .of_sink(|s| Some(s.latency?.p90.as_secs_f64()))
        .limit("latency.p90", "90 % of the latencies are at most this."),
    figure("latency_p99", "latency p99", Time, &PERCENTILE)
        .of_flow(|f| latency(f, |d| d.p99))
        .of_sink(|s| Some(s.latency?.p99.as_secs_f64()))
        .limit("latency.p99", "99 % of the latencies are at most this.")
        .rank(5),
    figure("latency_p999", "latency p99.9", Time, &PERCENTILE)
        .of_flow(|f| latency(f, |d| d.p999))
        .of_sink(|s| Some(s.latency?.p999.as_secs_f64()))
        .limit("latency.p999", "99.9 % of the latencies are at most this.")
        .rank(6),
    figure("latency_max", "latency maximum", Time, &LATENCY)
        .of_flow(|f| latency(f, |d| d.max))
        .of_sink(|s| Some(s.latency?.max.as_secs_f64()))
        .limit("latency.max", "The largest latency.")
        .rank(7),
    figure("latency_from_due_mean", "latency from due, mean", Time, &LATENCY_FROM_DUE)
        .of_flow(|f| from_due(f, |d| d.mean))
        .of_sink(|s| Some(s.latency_from_due?.mean.as_secs_f64())),
    figure("latency_from_due_p50", "latency from due, p50", Time, &LATENCY_FROM_DUE)
        .of_flow(|f| from_due(f, |d| d.p50))
        .of_sink(|s| Some(s.latency_from_due?.p50.as_secs_f64())),
    figure("latency_from_due_p99", "latency from due, p99", Time, &LATENCY_FROM_DUE)
        .of_flow(|f| from_due(f, |d| d.p99))
        .of_sink(|s| Some(s.latency_from_due?.p99.as_secs_f64())),
    figure("latency_from_due_p999", "latency from due, p99.9", Time, &LATENCY_FROM_DUE)
        .of_flow(|f| from_due(f, |d| d.p999))
        .of_sink(|s| Some(s.latency_from_due?.p999.as_secs_f64())),
    figure("latency_from_due_max", "latency from due, maximum", Time, &LATENCY_FROM_DUE)
        .of_flow(|f| from_due(f, |d| d.max))
        .of_sink(|s| Some(s.latency_from_due?.max.as_secs_f64())),
];

fn latency(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    flow.latency.as_ref().map(|delays| of(delays).as_secs_f64())
}

fn deviation(delays: &DelaySummary) -> Option<f64> {
    delays.deviation().map(Duration::as_secs_f64)
}

fn from_due(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    flow.latency_from_due.as_ref().map(|delays| of(delays).as_secs_f64())
}

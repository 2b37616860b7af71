//! Bundles, and their connections by transport.

use trunkline_core::{Duration, Rate as BitRate, Ratio};

use super::Quantity::{Number, Rate, Share, Time};
use super::loss::{REFUSED, UNFINISHED};
use super::throughput::FAIRNESS;
use super::{Definition, FigureKind, Grain, define, figure};

pub(super) const BUNDLE: Definition = define(
    "bundle",
    "bundle",
    "Flows counted together. The throughput is that of all of them, over the time from the first due message to the \
     end of the last active time; network throughput includes all framing of the first link.",
);

pub(super) const CONNECTION: Definition = define(
    "connection",
    "figures of connections",
    "Each figure is first computed for every member of the bundle's flows by itself. Then its mean, smallest and \
     largest value are taken over all members whose flows use the same transport. p99.9 is at most 0.8 % too high.",
)
.source("Lamont et al. 1998, section 6");

pub(super) const DEFINITIONS: &[&Definition] = &[&BUNDLE, &CONNECTION];

/// The mean, the smallest and the largest of a figure over the connections of a transport.
macro_rules! over_connections {
    ($($field:ident: $id:literal, $name:literal, $quantity:ident, $definition:ident, $key:literal, $doc:literal, $grains:expr,
       $base:expr;)*) => {
        &[$(
            figure($id, concat!($name, ", mean"), $quantity, &$definition)
                .of_connections(|c| Some($base(c.$field?.mean)))
                .limit(concat!($key, ".mean"), concat!($doc, ": the mean of all."))
                .grain($grains.0),
            figure(concat!($id, "_min"), concat!($name, ", smallest"), $quantity, &$definition)
                .of_connections(|c| Some($base(c.$field?.min)))
                .limit(concat!($key, ".min"), "The same, smallest value.")
                .grain($grains.1),
            figure(concat!($id, "_max"), concat!($name, ", largest"), $quantity, &$definition)
                .of_connections(|c| Some($base(c.$field?.max)))
                .limit(concat!($key, ".max"), "The same, largest value.")
                .grain($grains.1),
        )*]
    };
}

const UNCOUNTED: (Grain, Grain) = (Grain::None, Grain::None);
const COUNTED: (Grain, Grain) = (Grain::Share, Grain::ShareOfConnection);

pub(super) const FIGURES: &[FigureKind] = &[
    figure("throughput_user", "user throughput, all flows", Rate, &BUNDLE)
        .of_bundle(|b| Some(b.user.bits_per_second() as f64))
        .limit("throughput", "Payload delivered by all flows together."),
    figure("throughput_network", "network throughput, all flows", Rate, &BUNDLE)
        .of_bundle(|b| Some(b.network?.bits_per_second() as f64))
        .limit(
            "throughput.network",
            "Traffic of the flows on the first link of their path, with all framing of that link.",
        )
        .stored("network-throughput"),
    figure("active", "active time", Time, &BUNDLE)
        .of_bundle(|b| (!b.active.is_zero()).then(|| b.active.as_secs_f64())),
    figure("fairness", "fairness (Jain)", Number, &FAIRNESS)
        .of_bundle(|b| b.fairness)
        .of_connections(|c| c.fairness)
        .limit("fairness", "Jain's index of the throughputs of all members, from 1/n to 1.")
        .within(0.0, 1.0),
];

pub(super) const OF_CONNECTIONS: &[FigureKind] = over_connections! {
    throughput: "connection_throughput", "user throughput of a connection", Rate, CONNECTION,
        "throughput", "Throughput of a connection", UNCOUNTED, |rate: BitRate| rate.bits_per_second() as f64;
    loss: "connection_loss", "loss of a connection", Share, CONNECTION,
        "loss", "Loss of a connection", COUNTED, |share: Ratio| share.value();
    unfinished: "connection_unfinished", "unfinished of a connection", Share, UNFINISHED,
        "unfinished", "Unfinished messages of a connection, of those due", COUNTED, |share: Ratio| share.value();
    refused: "connection_refused", "refused of a connection", Share, REFUSED,
        "refused", "Refused messages of a connection, of those due", COUNTED, |share: Ratio| share.value();
    latency_mean: "connection_latency_mean", "latency mean of a connection", Time, CONNECTION,
        "latency.mean", "Mean latency of a connection", UNCOUNTED, |time: Duration| time.as_secs_f64();
    latency_p999: "connection_latency_p999", "latency p99.9 of a connection", Time, CONNECTION,
        "latency.p999", "Latency that 99.9 % of a connection's messages do not exceed", UNCOUNTED, |time: Duration| time.as_secs_f64();
};

//! Throughput, transfers, voice channels, fairness.

use trunkline_core::Rate as BitRate;

use super::Quantity::{Count, Number, Rate, Time};
use super::{Definition, FigureKind, KnownIn, define, figure};
use crate::summary::{FlowSummary, Measured, TransferSummary};

pub(super) const THROUGHPUT_USER: Definition = define(
    "throughput-user",
    "user throughput",
    "Payload delivered in the flow's active time, each message once, over all its members and channels. The window \
     at the sink begins and ends later by the propagation delay of the path, the shortest if it changes. Messages that \
     still wait in a queue at its end do not count, so no sum of flows exceeds what a link carries. Of requests with \
     `reflect`, only those that were answered count.",
);

pub(super) const THROUGHPUT_ANSWERS: Definition = define(
    "throughput-answers",
    "answer throughput",
    "Payload of the answers received in the flow's active time, in flows with `reflect` whose sinks answer requests \
     with messages of another size. Offered load, user and network throughput are those of the requests.",
);

pub(super) const THROUGHPUT_NETWORK: Definition = define(
    "throughput-network",
    "network throughput",
    "Traffic of the flow on the first link of its path in its active time, with all framing of that link.",
)
.known_in(KnownIn::SimAndWire);

pub(super) const THROUGHPUT_OFFERED: Definition = define(
    "throughput-offered",
    "offered load",
    "Payload that the source wanted to send, per second of active time. Samples dropped by a full A/D FIFO count.",
);

pub(super) const ACTIVE: Definition = define(
    "active",
    "active time",
    "From the first due message to the end of the run; for a source that sends a fixed volume, to the last \
     arrival.",
);

pub(super) const TRANSFERS: Definition = define(
    "transfers",
    "transfer rate",
    "Payload of one transfer divided by the time from its first message to the answer that ends it. If a channel has \
     at least three transfers, its first and last are dropped. “All channels” is the mean times the number of \
     channels of all members.",
)
.source("Hawley 1989, section 4.1.1");

pub(super) const VOICE_CHANNELS: Definition = define(
    "voice-channels",
    "voice channels",
    "Number of telephone channels of 64 kbit/s that were delivered, rounded down.",
)
.source("ITU-T G.711");

pub(super) const FAIRNESS: Definition = define(
    "fairness",
    "fairness",
    "Jain's index of the user throughputs of the members of a flow or of a bundle, each over its own active \
     time: 1 if all are equal, 1/n if one has everything.",
)
.source("Jain, Chiu and Hawe 1984");

pub(super) const DEFINITIONS: &[&Definition] = &[
    &THROUGHPUT_USER,
    &THROUGHPUT_ANSWERS,
    &THROUGHPUT_NETWORK,
    &THROUGHPUT_OFFERED,
    &ACTIVE,
    &TRANSFERS,
    &VOICE_CHANNELS,
    &FAIRNESS,
];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("throughput_user", "user throughput", Rate, &THROUGHPUT_USER)
        .of_flow(|f| if_received(f, if_there(f, rate(f.throughput.user))))
        .of_sink(|s| Some(rate(s.user)))
        .limit("throughput", "Payload delivered per second, each message once.")
        .rank(1),
    figure("throughput_answers", "answer throughput", Rate, &THROUGHPUT_ANSWERS)
        .of_flow(|f| if_received(f, if_there(f, rate(f.throughput.answers?))))
        .limit("throughput.answers", "Payload of answers to requests, per second."),
    figure("throughput_network", "network throughput", Rate, &THROUGHPUT_NETWORK)
        .of_flow(|f| if_there(f, rate(f.throughput.network?))),
    figure("throughput_offered", "offered load", Rate, &THROUGHPUT_OFFERED)
        .of_flow(|f| if_there(f, rate(f.throughput.offered))),
    figure("active", "active time", Time, &ACTIVE)
        .of_flow(|f| (f.counts.due() > 0).then_some(f.throughput.active.as_secs_f64())),
    figure("transfer_rate_mean", "transfer rate, mean", Rate, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| rate(t.rate_mean))),
    figure("transfer_rate_standard_deviation", "transfer rate, standard deviation", Rate, &TRANSFERS)
        .of_flow(|f| f.transfers.filter(|t| t.kept > 1).map(|t| rate(t.rate_standard_deviation))),
    figure("transfer_rate_min", "transfer rate, lowest", Rate, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| rate(t.rate_min))),
    figure("transfer_rate_max", "transfer rate, highest", Rate, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| rate(t.rate_max))),
    figure("transfer_rate_total", "transfer rate, all channels", Rate, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| rate(t.rate_total))),
    figure("transfers_completed", "transfers completed", Count, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| t.completed as f64)),
    figure("transfers_kept", "transfers kept", Count, &TRANSFERS)
        .of_flow(|f| transfers(f, |t| t.kept as f64)),
    figure("voice_channels", "voice channels", Count, &VOICE_CHANNELS)
        .of_flow(|f| if_received(f, if_there(f, f.voice_channels as f64)))
        .of_sink(|s| Some(s.voice_channels as f64))
        .limit("voice-channels", "Telephone channels of 64 kbit/s that were delivered, rounded down.")
        .rank(10),
    figure("fairness", "fairness (Jain)", Number, &FAIRNESS)
        .of_flow(|f| f.fairness)
        .limit("fairness", "Jain's index of the members' throughputs, from 1/n to 1.")
        .within(0.0, 1.0),
];

/// The value, except for a flow without sinks.
fn if_received(flow: &FlowSummary, value: Option<f64>) -> Option<f64> {
    value.filter(|_| flow.measured != Measured::Nothing)
}

/// A flow of no members has no throughput; one that sent nothing has a throughput of zero.
fn if_there(flow: &FlowSummary, value: f64) -> Option<f64> {
    (flow.members > 0).then_some(value)
}

fn transfers(flow: &FlowSummary, of: fn(&TransferSummary) -> f64) -> Option<f64> {
    flow.transfers.as_ref().map(of)
}

fn rate(rate: BitRate) -> f64 {
    rate.bits_per_second() as f64
}

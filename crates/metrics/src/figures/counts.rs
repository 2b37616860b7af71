//! Messages by their fate.

use super::Quantity::{Bytes, Count};
use super::loss::{LATE, LOSS, REFUSED, UNFINISHED};
use super::{Definition, FigureKind, define, figure};
use crate::summary::Measured;

pub(super) const LOSS_BURST: Definition =
    define("loss-burst", "loss burst", "Consecutive lost messages of one channel.")
        .source("RFC 3357 section 3");

pub(super) const REORDERED: Definition = define(
    "reordered",
    "reordered",
    "Messages that arrived after a message with a larger sequence number, per channel.",
)
.source("RFC 4737 section 3");

pub(super) const COUNTS: Definition = define(
    "counts",
    "counts",
    "Due = sent + refused; sent = received + late + lost + unfinished. Further copies of a message count as \
     duplicates and nowhere else.",
);

pub(super) const STRAY: Definition =
    define("stray", "stray bytes", "Bytes that arrived but were not part of a message of this run.");

pub(super) const DEFINITIONS: &[&Definition] = &[&LOSS_BURST, &REORDERED, &COUNTS, &STRAY];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("sent", "messages sent", Count, &COUNTS)
        .of_flow(|f| Some(f.counts.sent as f64))
        .of_sink(|s| Some(s.counts.sent as f64)),
    figure("received", "messages received in time", Count, &COUNTS)
        .of_flow(|f| Some(f.counts.received as f64))
        .of_sink(|s| Some(s.counts.received as f64)),
    figure("received_late", "messages received late", Count, &LATE)
        .of_flow(|f| Some(f.counts.late as f64))
        .of_sink(|s| Some(s.counts.late as f64)),
    figure("lost", "messages lost", Count, &LOSS)
        .of_flow(|f| Some(f.counts.lost as f64))
        .of_sink(|s| Some(s.counts.lost as f64)),
    figure("unfinished", "messages unfinished", Count, &UNFINISHED)
        .of_flow(|f| Some(f.counts.unfinished as f64))
        .of_sink(|s| Some(s.counts.unfinished as f64)),
    figure("refused", "messages refused", Count, &REFUSED)
        .of_flow(|f| Some(f.counts.refused as f64))
        .of_sink(|s| Some(s.counts.refused as f64)),
    figure("duplicate", "duplicates", Count, &COUNTS)
        .of_flow(|f| Some(f.counts.duplicate as f64))
        .of_sink(|s| Some(s.counts.duplicate as f64)),
    figure("reordered", "messages reordered", Count, &REORDERED)
        .of_flow(|f| Some(f.counts.reordered as f64))
        .of_sink(|s| Some(s.counts.reordered as f64)),
    figure("loss_burst_longest", "longest loss burst", Count, &LOSS_BURST).of_flow(|f| {
        let longest = f.loss_bursts.keys().next_back().copied().unwrap_or(0);
        (f.measured != Measured::Nothing && f.counts.due() > 0).then_some(longest.into())
    }),
    figure("stray", "stray bytes", Bytes, &STRAY).of_flow(|f| Some(f.stray.count() as f64)),
];

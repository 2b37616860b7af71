//! Shares of the messages due that were lost, late, unfinished or refused.

use super::Quantity::Share;
use super::{Definition, FigureKind, Grain, define, figure};
use crate::summary::{FlowSummary, Measured, SinkSummary};

pub(super) const LOSS: Definition = define(
    "loss",
    "loss",
    "Messages that the network or the transport lost: sent but not received by the end of the run plus its drain \
     time, as a share of those due. Messages that are still on their way are unfinished, and \
     messages that it never accepted are refused; neither counts as lost.",
)
.source("RFC 7680 section 2");

pub(super) const UNFINISHED: Definition = define(
    "unfinished",
    "unfinished",
    "Messages that the transport accepted and that were still on their way at the end of the run plus its drain time: \
     they wait in the sender's buffer or in a queue, or are being retransmitted. As a share of the messages due.",
);

pub(super) const REFUSED: Definition = define(
    "refused",
    "refused",
    "Messages that the transport never accepted: there was no room before the send timeout or by the end of the run, \
     or they were too large. As a share of the messages due.",
);

pub(super) const UNDELIVERED: Definition = define(
    "undelivered",
    "undelivered",
    "Messages that did not arrive: lost, unfinished or refused, as a share of those due. A second figure adds those \
     that arrived late.",
);

pub(super) const LATE: Definition = define(
    "late",
    "late",
    "Messages received after the playout deadline: the arrival of the channel's first message, plus the playout \
     delay, plus the difference of the two due times. As a share of the messages due. Needs a playout in the file.",
);

pub(super) const LOSS_AND_LATE: Definition = define("loss-and-late", "loss and late", "Loss plus late.");

pub(super) const AFFECTED: Definition = define(
    "affected",
    "time affected",
    "Share of the time in which a listener hears concealment or silence instead of the audio that was sent: audio \
     that was lost, unfinished, refused, late or dropped by a full FIFO, as a share of all audio due, over all \
     channels. Behind a D/A FIFO, a message that misses its deadline counts whole, though it is played after a shorter \
     silence; the silence of a lost message counts once.",
);

pub(super) const DEFINITIONS: &[&Definition] =
    &[&LOSS, &UNFINISHED, &REFUSED, &UNDELIVERED, &LATE, &LOSS_AND_LATE, &AFFECTED];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("loss", "loss", Share, &LOSS)
        .of_flow(|f| share_of(f, f.loss.value()))
        .of_sink(|s| share_at(s, s.loss.value()))
        .limit("loss", "Lost messages, of those due.")
        .grain(Grain::Share)
        .rank(2),
    figure("late", "late", Share, &LATE)
        .of_flow(|f| share_of(f, f.late.value()))
        .of_sink(|s| share_at(s, s.late.value()))
        .limit("late", "Messages after their playout deadline, of those due.")
        .grain(Grain::Share)
        .rank(3),
    figure("loss_and_late", "loss and late", Share, &LOSS_AND_LATE)
        .of_flow(|f| share_of(f, f.loss.value() + f.late.value()))
        .of_sink(|s| share_at(s, s.loss.value() + s.late.value()))
        .limit("loss-and-late", "Lost and late messages, of those due.")
        .grain(Grain::Share),
    figure("unfinished_share", "unfinished", Share, &UNFINISHED)
        .of_flow(|f| share_of(f, f.unfinished.value()))
        .of_sink(|s| share_at(s, s.unfinished.value()))
        .limit(
            "unfinished",
            "Messages that the transport accepted and that were still on their way at the end, of those due.",
        )
        .grain(Grain::Share),
    figure("refused_share", "refused", Share, &REFUSED)
        .of_flow(|f| share_of(f, f.refused.value()))
        .of_sink(|s| share_at(s, s.refused.value()))
        .limit(
            "refused",
            "Messages that the transport did not accept in time, or that were too large, of those due.",
        )
        .grain(Grain::Share),
    figure("undelivered", "undelivered", Share, &UNDELIVERED)
        .of_flow(|f| share_of(f, f.undelivered()))
        .of_sink(|s| share_at(s, s.undelivered()))
        .limit("undelivered", "Messages that did not arrive: lost, unfinished or refused, of those due.")
        .grain(Grain::Share),
    figure("not_in_time", "undelivered or late", Share, &UNDELIVERED)
        .of_flow(|f| share_of(f, f.undelivered() + f.late.value()))
        .of_sink(|s| share_at(s, s.undelivered() + s.late.value()))
        .limit("not-in-time", "Messages undelivered or late, of those due.")
        .grain(Grain::Share),
    figure("affected", "time affected", Share, &AFFECTED)
        .of_flow(|f| Some(f.affected?.value()))
        .limit("affected", "Audio that was not heard in time (concealed or silent), of all audio due.")
        .grain(Grain::Share),
];

/// Without a message there is no share of messages, and a flow without sinks loses nothing.
fn share_of(flow: &FlowSummary, share: f64) -> Option<f64> {
    (flow.measured != Measured::Nothing && flow.counts.due() > 0).then_some(share)
}

fn share_at(sink: &SinkSummary, share: f64) -> Option<f64> {
    (sink.counts.due() > 0).then_some(share)
}

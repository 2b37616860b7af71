//! Figures of the FIFOs of a voice path.

use trunkline_core::Duration;

use super::Quantity::{Count, Time};
use super::{Definition, FigureKind, define, figure};
use crate::summary::{DelaySummary, FlowSummary};
use crate::voice_path::{Margin, MarginSummary, VoicePathSummary};

pub(super) const START_UP: Definition = define(
    "start-up",
    "start-up delay",
    "Time from the beginning of the first sample of a talk spurt until that sample is played: the time to fill a \
     packet, its latency, and the time to fill the D/A FIFO to the level that `playback` requires.",
)
.source("Weaver and McNabb 1992, section 5.2");

pub(super) const MARGIN: Definition = define(
    "margin",
    "deadline margin",
    "Time from the arrival of a packet to its deadline; negative if the packet missed it. The deadline is the moment \
     at which everything before the packet has been played: its predecessor's deadline plus the length of the \
     predecessor's samples. Percentiles by nearest rank: 0.1 % of the packets had a margin of p0.1 or less.",
)
.source("Weaver and McNabb 1992, section 5.2");

pub(super) const UNDERFLOW: Definition = define(
    "underflow",
    "underflow, silence",
    "A D/A FIFO had nothing to play: silence until the next packet.",
)
.source("Weaver and McNabb 1992, section 3");

pub(super) const OVERFLOW: Definition = define(
    "overflow",
    "overflow",
    "Samples were dropped because a FIFO was full: the A/D FIFO while the transport accepted nothing, or the D/A \
     FIFO when a packet arrived.",
)
.source("Weaver and McNabb 1992, section 3");

pub(super) const DEFINITIONS: &[&Definition] = &[&START_UP, &MARGIN, &UNDERFLOW, &OVERFLOW];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("start_up_mean", "start-up delay, mean", Time, &START_UP)
        .of_flow(|f| start_up(f, |d| d.mean))
        .limit("start-up.mean", "Mean time from the first sample of a talk spurt to its playback."),
    figure("start_up_p99", "start-up delay, p99", Time, &START_UP).of_flow(|f| start_up(f, |d| d.p99)),
    figure("start_up_max", "start-up delay, maximum", Time, &START_UP)
        .of_flow(|f| start_up(f, |d| d.max))
        .limit("start-up.max", "The longest start-up delay."),
    figure("margin_mean", "deadline margin, mean", Time, &MARGIN)
        .of_flow(|f| margin(f, |m| m.mean))
        .signed_limit("margin.mean", "Mean time by which packets arrive before their deadline."),
    figure("margin_min", "deadline margin, minimum", Time, &MARGIN)
        .of_flow(|f| margin(f, |m| m.min))
        .signed_limit("margin.min", "The smallest margin of any packet."),
    figure("margin_p001", "deadline margin, p0.1", Time, &MARGIN)
        .of_flow(|f| margin(f, |m| m.p001))
        .signed_limit("margin.p001", "0.1 % of the margins are at most this."),
    figure("margin_p01", "deadline margin, p1", Time, &MARGIN)
        .of_flow(|f| margin(f, |m| m.p01))
        .signed_limit("margin.p01", "1 % of the margins are at most this."),
    figure("margin_p10", "deadline margin, p10", Time, &MARGIN).of_flow(|f| margin(f, |m| m.p10)),
    figure("margin_p50", "deadline margin, p50", Time, &MARGIN).of_flow(|f| margin(f, |m| m.p50)),
    figure("margin_max", "deadline margin, maximum", Time, &MARGIN).of_flow(|f| margin(f, |m| m.max)),
    figure("margin_missed", "deadlines missed", Count, &MARGIN)
        .of_flow(|f| f.voice_path.and_then(|v| v.margin).map(|m| m.missed as f64)),
    figure("underflows", "D/A underflows", Count, &UNDERFLOW)
        .of_flow(|f| voice(f, |v| v.underflows as f64))
        .limit("underflows", "Number of times that a D/A FIFO had nothing to play."),
    figure("silence", "silence", Time, &UNDERFLOW)
        .of_flow(|f| voice(f, |v| v.silence.as_secs_f64()))
        .limit("silence", "Total time in which D/A FIFOs had nothing to play."),
    figure("silence_longest", "longest silence", Time, &UNDERFLOW)
        .of_flow(|f| voice(f, |v| v.silence_longest.as_secs_f64()))
        .limit("silence.longest", "The longest of these silences."),
    figure("capture_overflows", "A/D overflows", Count, &OVERFLOW)
        .of_flow(|f| voice(f, |v| v.capture_overflows as f64))
        .limit("capture-overflows", "Number of times that an A/D FIFO was full and dropped samples."),
    figure("playback_overflows", "D/A overflows", Count, &OVERFLOW)
        .of_flow(|f| voice(f, |v| v.playback_overflows as f64))
        .limit("playback-overflows", "Packets of which a full D/A FIFO dropped samples."),
    figure("samples_lost", "samples lost in FIFOs", Count, &OVERFLOW)
        .of_flow(|f| voice(f, |v| (v.capture_lost + v.playback_lost) as f64))
        .limit("samples-lost", "Samples dropped by full FIFOs of either kind."),
    figure("capture_lost", "samples lost, A/D", Count, &OVERFLOW)
        .of_flow(|f| voice(f, |v| v.capture_lost as f64)),
    figure("playback_lost", "samples lost, D/A", Count, &OVERFLOW)
        .of_flow(|f| voice(f, |v| v.playback_lost as f64)),
];

fn voice(flow: &FlowSummary, of: fn(&VoicePathSummary) -> f64) -> Option<f64> {
    flow.voice_path.as_ref().map(of)
}

fn start_up(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    Some(of(flow.voice_path?.start_up.as_ref()?).as_secs_f64())
}

fn margin(flow: &FlowSummary, of: fn(&MarginSummary) -> Margin) -> Option<f64> {
    Some(of(flow.voice_path?.margin.as_ref()?).as_secs_f64())
}

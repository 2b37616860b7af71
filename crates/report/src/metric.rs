//! Every figure of a flow: its name, its definition with the source, and where it stands in a summary. Tables, files,
//! JSON and the glossary are all made from this one list.

use trunkline_core::{Duration, Rate};
use trunkline_experiment::LimitMetric;
use trunkline_metrics::{
    DelaySummary, FlowSummary, JitterSummary, Margin, MarginSummary, Measured, QualitySummary, RobustDelay,
    SinkSummary, TransferSummary, VoicePathSummary,
};

use crate::units::Quantity;

/// A figure of a flow.
pub(crate) struct Metric {
    /// What it is called in CSV, JSON and links: stable.
    pub(crate) id: &'static str,
    /// What it is called in text.
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    /// Index of its definition in [`DEFINITIONS`].
    definition: &'static str,
    value: fn(&FlowSummary) -> Option<f64>,
}

impl Metric {
    /// Its value in base units; `None` where there was nothing to measure.
    pub(crate) fn value(&self, flow: &FlowSummary) -> Option<f64> {
        (self.value)(flow).filter(|value| value.is_finite())
    }

    /// The same of one of the flow's sinks; `None` also where sinks have no such figure by themselves.
    pub(crate) fn value_at(&self, flow: &FlowSummary, sink: &str) -> Option<f64> {
        let sink = flow.sinks.iter().find(|summary| summary.sink == sink)?;
        let (_, value) = OF_SINKS.iter().find(|(id, _)| *id == self.id)?;
        value(sink).filter(|_| flow.members > 0)
    }

    /// Whether each of several sinks has this figure by itself.
    pub(crate) fn is_of_sinks(&self) -> bool {
        OF_SINKS.iter().any(|(id, _)| *id == self.id)
    }

    pub(crate) fn definition(&self) -> &'static Definition {
        DEFINITIONS.iter().find(|d| d.id == self.definition).unwrap_or(&DEFINITIONS[0])
    }
}

/// What a name in the report means.
pub(crate) struct Definition {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Standard or paper; empty if the text says it all.
    pub(crate) source: &'static str,
}

/// The metric with this id. Ids are written in this crate only, and a test looks them all up.
pub(crate) fn metric(id: &str) -> &'static Metric {
    METRICS.iter().find(|m| m.id == id).unwrap_or(&METRICS[0])
}

/// The metric that a limit on a flow names.
pub(crate) fn limited(limit: LimitMetric) -> &'static Metric {
    metric(match limit {
        LimitMetric::Loss => "loss",
        LimitMetric::Late => "late",
        LimitMetric::LossAndLate => "loss_and_late",
        LimitMetric::LatencyMean => "latency_mean",
        LimitMetric::LatencyP50 => "latency_p50",
        LimitMetric::LatencyP90 => "latency_p90",
        LimitMetric::LatencyP99 => "latency_p99",
        LimitMetric::LatencyP999 => "latency_p999",
        LimitMetric::LatencyMax => "latency_max",
        LimitMetric::JitterMeanAbsoluteDeviation => "jitter_mean_absolute_deviation",
        LimitMetric::JitterInterarrival => "jitter_interarrival",
        LimitMetric::JitterPdvP999 => "jitter_pdv_p999",
        LimitMetric::Throughput => "throughput_user",
        LimitMetric::VoiceChannels => "voice_channels",
        LimitMetric::Fairness => "fairness",
        LimitMetric::MarginMean => "margin_mean",
        LimitMetric::MarginMin => "margin_min",
        LimitMetric::MarginP001 => "margin_p001",
        LimitMetric::MarginP01 => "margin_p01",
        LimitMetric::Underflows => "underflows",
        LimitMetric::Silence => "silence",
        LimitMetric::SilenceLongest => "silence_longest",
        LimitMetric::CaptureOverflows => "capture_overflows",
        LimitMetric::PlaybackOverflows => "playback_overflows",
        LimitMetric::SamplesLost => "samples_lost",
        LimitMetric::StartUpMean => "start_up_mean",
        LimitMetric::StartUpMax => "start_up_max",
        LimitMetric::R => "r",
        LimitMetric::Mos => "mos",
        LimitMetric::MouthToEar => "mouth_to_ear",
        LimitMetric::Ppl => "ppl",
    })
}

/// The id of a metric that each of several sinks has by itself, and where it stands in the sink's summary.
type OfSink = (&'static str, fn(&SinkSummary) -> Option<f64>);

const OF_SINKS: &[OfSink] = &[
    ("throughput_user", |s| Some(rate(s.user))),
    ("voice_channels", |s| Some(s.voice_channels as f64)),
    ("loss", |s| share_at(s, s.loss.value())),
    ("late", |s| share_at(s, s.late.value())),
    ("loss_and_late", |s| share_at(s, s.loss.value() + s.late.value())),
    ("latency_mean", |s| Some(s.latency?.mean.as_secs_f64())),
    ("latency_standard_deviation", |s| Some(s.latency?.standard_deviation.as_secs_f64())),
    ("latency_min", |s| Some(s.latency?.min.as_secs_f64())),
    ("latency_p50", |s| Some(s.latency?.p50.as_secs_f64())),
    ("latency_p90", |s| Some(s.latency?.p90.as_secs_f64())),
    ("latency_p99", |s| Some(s.latency?.p99.as_secs_f64())),
    ("latency_p999", |s| Some(s.latency?.p999.as_secs_f64())),
    ("latency_max", |s| Some(s.latency?.max.as_secs_f64())),
    ("latency_from_due_mean", |s| Some(s.latency_from_due?.mean.as_secs_f64())),
    ("latency_from_due_p50", |s| Some(s.latency_from_due?.p50.as_secs_f64())),
    ("latency_from_due_p99", |s| Some(s.latency_from_due?.p99.as_secs_f64())),
    ("latency_from_due_p999", |s| Some(s.latency_from_due?.p999.as_secs_f64())),
    ("latency_from_due_max", |s| Some(s.latency_from_due?.max.as_secs_f64())),
    ("jitter_mean_absolute_deviation", |s| Some(s.mean_absolute_deviation?.as_secs_f64())),
    ("sent", |s| Some(s.counts.sent as f64)),
    ("refused", |s| Some(s.counts.refused as f64)),
    ("received", |s| Some(s.counts.received as f64)),
    ("received_late", |s| Some(s.counts.late as f64)),
    ("lost", |s| Some(s.counts.lost as f64)),
    ("duplicate", |s| Some(s.counts.duplicate as f64)),
    ("reordered", |s| Some(s.counts.reordered as f64)),
];

fn share_at(sink: &SinkSummary, share: f64) -> Option<f64> {
    (sink.counts.sent + sink.counts.refused > 0).then_some(share)
}

fn due(flow: &FlowSummary) -> u64 {
    flow.counts.sent.saturating_add(flow.counts.refused)
}

fn if_due(flow: &FlowSummary, value: f64) -> Option<f64> {
    (due(flow) > 0).then_some(value)
}

/// A flow of no members has no throughput, one that sent nothing has a throughput of zero.
fn if_there(flow: &FlowSummary, value: f64) -> Option<f64> {
    (flow.members > 0).then_some(value)
}

/// What a flow without sinks has not.
fn if_received(flow: &FlowSummary, value: Option<f64>) -> Option<f64> {
    value.filter(|_| flow.measured != Measured::Nothing)
}

fn latency(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    flow.latency.as_ref().map(|d| of(d).as_secs_f64())
}

fn from_due(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    flow.latency_from_due.as_ref().map(|d| of(d).as_secs_f64())
}

fn jitter(flow: &FlowSummary, of: fn(&JitterSummary) -> Duration) -> Option<f64> {
    flow.jitter.as_ref().map(|j| of(j).as_secs_f64())
}

fn robust(flow: &FlowSummary, of: fn(&RobustDelay) -> f64) -> Option<f64> {
    flow.robust.as_ref().map(of)
}

fn transfers(flow: &FlowSummary, of: fn(&TransferSummary) -> f64) -> Option<f64> {
    flow.transfers.as_ref().map(of)
}

fn voice(flow: &FlowSummary, of: fn(&VoicePathSummary) -> f64) -> Option<f64> {
    flow.voice_path.as_ref().map(of)
}

fn start_up(flow: &FlowSummary, of: fn(&DelaySummary) -> Duration) -> Option<f64> {
    Some(of(flow.voice_path?.start_up.as_ref()?).as_secs_f64())
}

fn margin(flow: &FlowSummary, of: fn(&MarginSummary) -> Margin) -> Option<f64> {
    Some(of(flow.voice_path?.margin.as_ref()?).as_secs_f64())
}

fn quality(flow: &FlowSummary, of: fn(&QualitySummary) -> Option<f64>) -> Option<f64> {
    of(flow.quality.as_ref()?)
}

fn rate(rate: Rate) -> f64 {
    rate.bits_per_second() as f64
}

macro_rules! metrics {
    ($($id:literal, $name:literal, $quantity:ident, $definition:literal, $value:expr;)*) => {
        /// Every figure of a flow, in the order of tables.
        pub(crate) const METRICS: &[Metric] = &[$(Metric {
            id: $id, name: $name, quantity: Quantity::$quantity, definition: $definition, value: $value,
        }),*];
    };
}

metrics! {
    "throughput_user", "user throughput", Rate, "throughput-user",
        |f| if_received(f, if_there(f, f.throughput.user.bits_per_second() as f64));
    "throughput_network", "network throughput", Rate, "throughput-network",
        |f| if_there(f, f.throughput.network?.bits_per_second() as f64);
    "throughput_offered", "offered load", Rate, "throughput-offered",
        |f| if_there(f, f.throughput.offered.bits_per_second() as f64);
    "active", "active time", Time, "active", |f| if_due(f, f.throughput.active.as_secs_f64());
    "transfer_rate_mean", "transfer rate, mean", Rate, "transfers", |f| transfers(f, |t| rate(t.rate_mean));
    "transfer_rate_standard_deviation", "transfer rate, standard deviation", Rate, "transfers",
        |f| transfers(f, |t| rate(t.rate_standard_deviation));
    "transfer_rate_min", "transfer rate, lowest", Rate, "transfers", |f| transfers(f, |t| rate(t.rate_min));
    "transfer_rate_max", "transfer rate, highest", Rate, "transfers", |f| transfers(f, |t| rate(t.rate_max));
    "transfer_rate_total", "transfer rate, all channels", Rate, "transfers",
        |f| transfers(f, |t| rate(t.rate_total));
    "transfers_completed", "transfers completed", Count, "transfers", |f| transfers(f, |t| t.completed as f64);
    "transfers_kept", "transfers kept", Count, "transfers", |f| transfers(f, |t| t.kept as f64);
    "voice_channels", "voice channels", Count, "voice-channels", |f| if_received(f, if_there(f, f.voice_channels as f64));
    "fairness", "fairness (Jain)", Number, "fairness", |f| f.fairness;
    "loss", "loss", Share, "loss", |f| if_received(f, if_due(f, f.loss.value()));
    "late", "late", Share, "late", |f| if_received(f, if_due(f, f.late.value()));
    "loss_and_late", "loss and late", Share, "loss-and-late", |f| if_received(f, if_due(f, f.loss.value() + f.late.value()));
    "latency_mean", "latency mean", Time, "latency", |f| latency(f, |d| d.mean);
    "latency_standard_deviation", "latency standard deviation", Time, "latency",
        |f| latency(f, |d| d.standard_deviation);
    "latency_min", "latency minimum", Time, "latency", |f| latency(f, |d| d.min);
    "latency_p50", "latency p50", Time, "percentile", |f| latency(f, |d| d.p50);
    "latency_p90", "latency p90", Time, "percentile", |f| latency(f, |d| d.p90);
    "latency_p99", "latency p99", Time, "percentile", |f| latency(f, |d| d.p99);
    "latency_p999", "latency p99.9", Time, "percentile", |f| latency(f, |d| d.p999);
    "latency_max", "latency maximum", Time, "latency", |f| latency(f, |d| d.max);
    "latency_from_due_mean", "latency from due, mean", Time, "latency-from-due", |f| from_due(f, |d| d.mean);
    "latency_from_due_p50", "latency from due, p50", Time, "latency-from-due", |f| from_due(f, |d| d.p50);
    "latency_from_due_p99", "latency from due, p99", Time, "latency-from-due", |f| from_due(f, |d| d.p99);
    "latency_from_due_p999", "latency from due, p99.9", Time, "latency-from-due", |f| from_due(f, |d| d.p999);
    "latency_from_due_max", "latency from due, maximum", Time, "latency-from-due", |f| from_due(f, |d| d.max);
    "jitter_mean_absolute_deviation", "jitter, mean absolute deviation", Time, "jitter-mad",
        |f| jitter(f, |j| j.mean_absolute_deviation);
    "jitter_standard_deviation", "jitter, standard deviation", Time, "jitter-sd",
        |f| jitter(f, |j| j.standard_deviation);
    "jitter_interarrival", "interarrival jitter (RFC 3550)", Time, "jitter-interarrival",
        |f| jitter(f, |j| j.interarrival);
    "jitter_ipdv_mean", "IPDV, mean", Time, "ipdv", |f| jitter(f, |j| j.ipdv_mean);
    "jitter_ipdv_p999", "IPDV, p99.9", Time, "ipdv", |f| jitter(f, |j| j.ipdv_p999);
    "jitter_pdv_mean", "PDV, mean", Time, "pdv", |f| jitter(f, |j| j.pdv_mean);
    "jitter_pdv_p999", "PDV, p99.9", Time, "pdv", |f| jitter(f, |j| j.pdv_p999);
    "interarrival_mean", "interarrival time, mean", Time, "interarrival", |f| jitter(f, |j| j.interarrival_mean);
    "interarrival_standard_deviation", "interarrival time, standard deviation", Time, "interarrival",
        |f| jitter(f, |j| j.interarrival_standard_deviation);
    "robust_minimum", "robust minimum (Hawley)", Time, "robust-minimum", |f| robust(f, |r| r.minimum.as_secs_f64());
    "robust_minimum_kept", "robust minimum, points kept", Count, "robust-minimum",
        |f| robust(f, |r| r.minimum_kept as f64);
    "robust_minimum_removed", "robust minimum, points removed", Count, "robust-minimum",
        |f| robust(f, |r| r.minimum_removed as f64);
    "robust_minimum_threshold", "robust minimum, threshold", Time, "robust-minimum",
        |f| robust(f, |r| r.minimum_threshold.as_secs_f64());
    "robust_minimum_standard_deviation", "robust minimum, standard deviation", Time, "robust-minimum",
        |f| robust(f, |r| r.minimum_standard_deviation.as_secs_f64());
    "robust_minimum_ratio", "robust minimum, mean over deviation", Number, "robust-minimum",
        |f| robust(f, |r| r.minimum_ratio);
    "robust_loaded", "robust loaded mean (Hawley)", Time, "robust-loaded", |f| robust(f, |r| r.loaded.as_secs_f64());
    "robust_loaded_kept", "robust loaded mean, points kept", Count, "robust-loaded",
        |f| robust(f, |r| r.loaded_kept as f64);
    "robust_loaded_removed", "robust loaded mean, points removed", Count, "robust-loaded",
        |f| robust(f, |r| r.loaded_removed as f64);
    "robust_loaded_threshold", "robust loaded mean, threshold", Time, "robust-loaded",
        |f| robust(f, |r| r.loaded_threshold.as_secs_f64());
    "robust_loaded_standard_deviation", "robust loaded mean, standard deviation", Time, "robust-loaded",
        |f| robust(f, |r| r.loaded_standard_deviation.as_secs_f64());
    "robust_loaded_ratio", "robust loaded mean, mean over deviation", Number, "robust-loaded",
        |f| robust(f, |r| r.loaded_ratio);
    "start_up_mean", "start-up delay, mean", Time, "start-up", |f| start_up(f, |d| d.mean);
    "start_up_p99", "start-up delay, p99", Time, "start-up", |f| start_up(f, |d| d.p99);
    "start_up_max", "start-up delay, maximum", Time, "start-up", |f| start_up(f, |d| d.max);
    "margin_mean", "deadline margin, mean", Time, "margin", |f| margin(f, |m| m.mean);
    "margin_min", "deadline margin, minimum", Time, "margin", |f| margin(f, |m| m.min);
    "margin_p001", "deadline margin, p0.1", Time, "margin", |f| margin(f, |m| m.p001);
    "margin_p01", "deadline margin, p1", Time, "margin", |f| margin(f, |m| m.p01);
    "margin_p10", "deadline margin, p10", Time, "margin", |f| margin(f, |m| m.p10);
    "margin_p50", "deadline margin, p50", Time, "margin", |f| margin(f, |m| m.p50);
    "margin_max", "deadline margin, maximum", Time, "margin", |f| margin(f, |m| m.max);
    "margin_missed", "deadlines missed", Count, "margin",
        |f| f.voice_path.and_then(|v| v.margin).map(|m| m.missed as f64);
    "underflows", "D/A underflows", Count, "underflow", |f| voice(f, |v| v.underflows as f64);
    "silence", "silence", Time, "underflow", |f| voice(f, |v| v.silence.as_secs_f64());
    "silence_longest", "longest silence", Time, "underflow", |f| voice(f, |v| v.silence_longest.as_secs_f64());
    "capture_overflows", "A/D overflows", Count, "overflow", |f| voice(f, |v| v.capture_overflows as f64);
    "playback_overflows", "D/A overflows", Count, "overflow", |f| voice(f, |v| v.playback_overflows as f64);
    "samples_lost", "samples lost in FIFOs", Count, "overflow",
        |f| voice(f, |v| (v.capture_lost + v.playback_lost) as f64);
    "capture_lost", "samples lost, A/D", Count, "overflow", |f| voice(f, |v| v.capture_lost as f64);
    "playback_lost", "samples lost, D/A", Count, "overflow", |f| voice(f, |v| v.playback_lost as f64);
    "mos", "MOS (estimated)", Number, "mos", |f| quality(f, |q| Some(q.mos));
    "r", "R-factor", Number, "r", |f| quality(f, |q| Some(q.r));
    "mouth_to_ear", "mouth-to-ear delay, mean", Time, "mouth-to-ear",
        |f| quality(f, |q| Some(q.mouth_to_ear?.as_secs_f64()));
    "ppl", "not heard in time (Ppl)", Share, "ppl", |f| quality(f, |q| Some(q.ppl.value()));
    "burst_r", "burst ratio", Number, "burst-r", |f| quality(f, |q| Some(q.burst_r));
    "sent", "messages sent", Count, "counts", |f| Some(f.counts.sent as f64);
    "received", "messages received in time", Count, "counts", |f| Some(f.counts.received as f64);
    "received_late", "messages received late", Count, "late", |f| Some(f.counts.late as f64);
    "lost", "messages lost", Count, "loss", |f| Some(f.counts.lost as f64);
    "refused", "messages refused", Count, "counts", |f| Some(f.counts.refused as f64);
    "duplicate", "duplicates", Count, "counts", |f| Some(f.counts.duplicate as f64);
    "reordered", "messages reordered", Count, "reordered", |f| Some(f.counts.reordered as f64);
    "loss_burst_longest", "longest loss burst", Count, "loss-burst",
        |f| if_received(f, if_due(f, f.loss_bursts.keys().next_back().copied().unwrap_or(0).into()));
    "stray", "stray bytes", Bytes, "stray", |f| Some(f.stray.count() as f64);
    "schedule_error_p50", "schedule error, p50", Time, "schedule-error",
        |f| f.schedule_error.map(|d| d.p50.as_secs_f64());
    "schedule_error_p99", "schedule error, p99", Time, "schedule-error",
        |f| f.schedule_error.map(|d| d.p99.as_secs_f64());
    "schedule_error_max", "schedule error, maximum", Time, "schedule-error",
        |f| f.schedule_error.map(|d| d.max.as_secs_f64());
    "send_call_p50", "send call, p50", Time, "send-call", |f| f.send_call.map(|d| d.p50.as_secs_f64());
    "send_call_p99", "send call, p99", Time, "send-call", |f| f.send_call.map(|d| d.p99.as_secs_f64());
    "send_call_max", "send call, maximum", Time, "send-call", |f| f.send_call.map(|d| d.max.as_secs_f64());
}

macro_rules! definitions {
    ($($id:literal, $name:literal, $text:literal, $source:literal;)*) => {
        /// The glossary, in the order in which it is printed.
        pub(crate) const DEFINITIONS: &[Definition] = &[$(Definition {
            id: $id, name: $name, text: $text, source: $source,
        }),*];
    };
}

definitions! {
    "message", "message", "What the application hands over at once: one voice packet's samples, one block of a bulk \
        transfer. All figures count messages unless they say packets.", "";
    "latency", "latency", "From the moment a message was sent to the moment it arrived where latency is measured. \
        One way: at the sink. Round trip: back at the source, through the reflector; it is not halved. The standard \
        deviation is the sample's.", "RFC 7679 section 3; RFC 2681 section 2";
    "percentile", "p50, p90, p99, p99.9", "The smallest latency that at least that share of the received messages \
        does not exceed (nearest rank). Marked ≈ where taken from a histogram, which is right within 0.1 %; exact \
        otherwise. p99.9 is Weaver's “99.9 % threshold”.", "RFC 2330 section 11.3";
    "latency-from-due", "latency from due", "From the moment the source wanted a message sent to its arrival. Where \
        the transport blocks its sender this is larger than latency: it includes the wait in front of the transport.",
        "";
    "jitter-mad", "jitter, mean absolute deviation", "Mean of the absolute differences between each latency and the \
        mean latency.", "Schiavoni and Queiroz 2013, equation 2";
    "jitter-sd", "jitter, standard deviation", "Standard deviation of latency.", "";
    "jitter-interarrival", "interarrival jitter", "J = J + (|D| - J)/16 with D the change of latency from one message \
        of a channel to the next in order of arrival; its value at the end, mean over channels.",
        "RFC 3550 section 6.4.1";
    "ipdv", "IPDV", "Absolute difference of the latencies of consecutive messages of a channel.",
        "RFC 3393 with consecutive selection";
    "pdv", "PDV", "Latency minus the smallest latency of the flow.", "RFC 5481 section 4.2";
    "interarrival", "interarrival time", "Time between consecutive arrivals of one channel.", "Lamont et al. 1998";
    "robust-minimum", "robust minimum", "First and last ten messages dropped; then latencies above mean + 1 standard \
        deviation removed, twice; the mean of the rest, with the number of points kept and removed, the second \
        threshold, and the standard deviation of the points kept with the mean over it.", "Hawley 1989, section 4.2.1";
    "robust-loaded", "robust loaded mean", "First and last ten messages dropped; then latencies above mean + 8 \
        standard deviations removed, once; the mean of the rest, with the same figures beside it.",
        "Hawley 1989, section 4.3.1";
    "loss", "loss", "Messages not received by the end of the run plus its drain time, and messages that the sender \
        gave up (refused), as a share of those due.", "RFC 7680 section 2";
    "late", "late", "Received after the playout deadline: the first received message of the channel, plus the playout \
        delay, plus the difference of their due times. A share of the messages due. Needs a playout in the file.", "";
    "loss-and-late", "loss and late", "Loss plus late: what a listener does not hear in time.", "";
    "loss-burst", "loss burst", "Consecutive lost or refused messages of one channel.", "RFC 3357 section 3";
    "reordered", "reordered", "Arrived with a smaller sequence number than one that arrived before, per channel.",
        "RFC 4737 section 3";
    "counts", "counts", "Due = sent + refused; sent = received + late + lost. Duplicates are further copies and count \
        nowhere else.", "";
    "stray", "stray bytes", "Bytes that arrived and were no message of this run.", "";
    "throughput-user", "user throughput", "Payload received, each message once, per second of the flow's active time, \
        over all its members and channels.", "";
    "throughput-network", "network throughput", "What the flow took of the first link of its path, with all framing \
        of that link. Known in simulated runs only.", "";
    "throughput-offered", "offered load", "Payload that the source wanted sent, per second of active time.", "";
    "active", "active time", "From the first due message to the last arrival; for a source with a pace of its own, to \
        the end of the run; for one as fast as its transport, to the later of the two.", "";
    "transfers", "transfer rate", "Payload of one transfer over the time from its first message to the answer that ends \
        it. Of every channel with at least three transfers the first and the last are dropped. “All channels” is the \
        mean times the number of channels of all members.", "Hawley 1989, section 4.1.1";
    "voice-channels", "voice channels", "How many telephone channels of 64 kbit/s the user throughput holds, rounded \
        down.", "ITU-T G.711";
    "fairness", "fairness", "Jain's index of the user throughputs of the members of a flow or of a bundle: 1 if all are equal, 1/n if one \
        has everything.", "Jain, Chiu and Hawe 1984";
    "bundle", "bundle", "Flows counted together on one path. Its throughput is that of all of them, over the time from the \
        first due message to the end of the last active time; network throughput with all framing of the first link.", "";
    "connection", "figures of connections", "Of each member of a bundle's flows by itself first; then the mean, the \
        smallest and the largest over all members whose flows use the same transport. p99.9 is at most 0.8 % too high.",
        "Lamont et al. 1998, section 6";
    "start-up", "start-up delay", "From the moment at which the first sample of a talk spurt began to the moment at which \
        it is played: the time to fill a packet, its latency, and the time until the D/A FIFO is filled as far as \
        `playback` asks.", "Weaver and McNabb 1992, section 5.2";
    "margin", "deadline margin", "How much earlier than its deadline a packet came; less than zero if it missed it. The \
        deadline is the moment at which everything before it has been played: as long after its predecessor's as that \
        one's samples last. Percentiles by nearest rank: 0.1 % of the packets had p0.1 or less.",
        "Weaver and McNabb 1992, section 5.2";
    "underflow", "underflow, silence", "A D/A FIFO had nothing to play: silence until the next packet.",
        "Weaver and McNabb 1992, section 3";
    "overflow", "overflow", "Samples found no room: in the A/D FIFO while the transport took nothing, or in the D/A FIFO \
        at the arrival of a packet.", "Weaver and McNabb 1992, section 3";
    "mos", "MOS (estimated)", "Mean opinion score of a conversation, from 1 to 4.5, that belongs to the R-factor         (MOS-CQE). An estimate for planning: nobody was asked.", "ITU-T G.107 (06/2015), Annex B";
    "r", "R-factor", "Transmission rating of a conversation, from 0 to 100, from the codec, the mouth-to-ear delay with         talkers' echo 65 dB down, the share not heard in time and its burst ratio; all else has the default values. G.711         without delay and loss has 93.2; 80 and more satisfy users.",
        "ITU-T G.107 (06/2015), equation 7-1; codecs: ITU-T G.113, Appendix I";
    "mouth-to-ear", "mouth-to-ear delay", "Mean over the messages heard of the time to fill a packet, the codec's         look-ahead and the time from when a message is due until it is played. Sound cards and processing cost none.",
        "ITU-T G.114";
    "ppl", "not heard in time (Ppl)", "Share of the messages due that were lost, refused or late; of a flow with FIFOs         also those that missed their deadline or found no room.", "ITU-T G.107 (06/2015), clause 7.5";
    "burst-r", "burst ratio", "Mean length of the runs of messages not heard, over that of random loss of the same         probability: 1 / (1 - Ppl).", "ITU-T G.107 (06/2015), clause 7.5";
    "schedule-error", "schedule error", "How long after its due time a message was handed to the kernel: the \
        instrument's own error.", "";
    "send-call", "send call", "How long the call took that handed a message to the kernel.", "";
    "estimate", "mean ± half width", "Mean over repetitions, with half the width of its 95 % confidence interval \
        (Student's t). One repetition has none.", "";
    "verdict", "verdict", "A limit holds at a point if the mean over repetitions meets it. “Not certain” means that \
        the 95 % confidence interval reaches across the bound.", "";
    "token-rotation", "token rotation", "From one coming of the token to the first station of a ring to the next, \
        rotations on which nobody sent among them. Percentiles by nearest rank, within 0.8 %.", "ANSI X3.139";
    "ttrt", "ttrt", "The target token rotation time on which the stations of a ring agreed.", "ANSI X3.139";
    "late-counter", "late counter", "How often a station's token rotation timer had expired since the token had come \
        last, at the most.", "ANSI X3.139";
    "ring-latency", "ring latency", "How long a bit takes around a ring.", "";
    "ring-utilisation", "ring utilisation", "Share of the time in which a station of a ring sent a frame.", "";
    "frames", "frames", "Frames sent on a ring, by class of station or by station.", "";
    "bytes", "bytes", "Bytes sent on a ring, with all framing.", "";
    "switch", "switch", "Of the port of a switch that leads to a station: the share of the time in which it transmitted, \
        how long frames waited in its buffer, the most bytes that waited there, and frames for which it had no room.",
        "";
    "channel-use", "channel use", "Share of the time in which the channel of a cell was in use.", "";
    "collisions", "collisions", "How often several stations of a cell transmitted at once.", "";
    "airtime", "airtime", "Share of the time in which a station used the channel of its cell.", "";
    "transmissions", "transmissions", "Frames that a station transmitted in its cell, repeated ones among them.", "";
    "retries", "retries", "Transmissions that were not the first of their packet.", "IEEE 802.11";
    "collided", "collided", "Transmissions of a station that coincided with another's.", "";
    "spoilt", "spoilt", "Receptions of a station's transmissions that noise spoilt.", "";
    "utilisation", "utilisation", "Share of the time in which the line was busy.", "";
    "sojourn", "sojourn time", "Time from a packet's arrival at a queue to its departure; percentiles by nearest rank \
        over all packets of the direction that left the queue, to 0.8 %.", "";
    "backlog", "backlog", "What waits in a queue; the largest seen.", "";
    "stalls", "stalls", "Gaps in which the operating system or the host of a virtual machine did not run a probe \
        that wanted to run. Latencies beyond p99 of a measured run can be no better than these.", "";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use trunkline_core::Ratio;
    use trunkline_experiment::{Figure, Subject};

    use super::*;

    #[test]
    fn every_metric_has_a_definition_and_ids_are_unique() {
        let mut ids = BTreeSet::new();
        for m in METRICS {
            assert!(ids.insert(m.id), "{} twice", m.id);
            assert!(DEFINITIONS.iter().any(|d| d.id == m.definition), "{} has no definition", m.id);
        }
        let definitions: BTreeSet<_> = DEFINITIONS.iter().map(|d| d.id).collect();
        assert_eq!(definitions.len(), DEFINITIONS.len());
    }

    #[test]
    fn limits_and_tables_read_the_same_figures() {
        let flow = crate::fixtures::single(trunkline_store::Backend::Live).points[0].repetitions[0]
            .summary
            .as_ref()
            .unwrap()
            .flows[0]
            .clone();
        let margin = Margin::from_nanos;
        let flow = FlowSummary {
            quality: Some(QualitySummary {
                r: 82.0,
                mos: 4.1,
                mouth_to_ear: Some(Duration::from_millis(150)),
                ppl: Ratio::new(0.01).unwrap(),
                burst_r: 1.5,
                codec: "g711".to_owned(),
            }),
            voice_path: Some(VoicePathSummary {
                capture_overflows: 1,
                capture_lost: 2,
                underflows: 3,
                silence: Duration::from_millis(4),
                silence_longest: Duration::from_millis(5),
                playback_overflows: 6,
                playback_lost: 7,
                start_up: flow.latency,
                margin: Some(MarginSummary {
                    mean: margin(8),
                    min: margin(-9),
                    p001: margin(-10),
                    p01: margin(11),
                    ..MarginSummary::default()
                }),
            }),
            ..flow
        };
        let silent = FlowSummary { members: 1, ..FlowSummary::default() };
        for limit in [
            LimitMetric::Loss,
            LimitMetric::Late,
            LimitMetric::LossAndLate,
            LimitMetric::LatencyMean,
            LimitMetric::LatencyP50,
            LimitMetric::LatencyP90,
            LimitMetric::LatencyP99,
            LimitMetric::LatencyP999,
            LimitMetric::LatencyMax,
            LimitMetric::JitterMeanAbsoluteDeviation,
            LimitMetric::JitterInterarrival,
            LimitMetric::JitterPdvP999,
            LimitMetric::Throughput,
            LimitMetric::VoiceChannels,
            LimitMetric::Fairness,
            LimitMetric::MarginMean,
            LimitMetric::MarginMin,
            LimitMetric::MarginP001,
            LimitMetric::MarginP01,
            LimitMetric::Underflows,
            LimitMetric::Silence,
            LimitMetric::SilenceLongest,
            LimitMetric::CaptureOverflows,
            LimitMetric::PlaybackOverflows,
            LimitMetric::SamplesLost,
            LimitMetric::StartUpMean,
            LimitMetric::StartUpMax,
            LimitMetric::R,
            LimitMetric::Mos,
            LimitMetric::MouthToEar,
            LimitMetric::Ppl,
        ] {
            for flow in [&flow, &silent] {
                assert_eq!(limited(limit).value(flow), limit.value(flow), "{limit:?}");
            }
        }
    }

    #[test]
    fn figures_of_sinks_are_figures_of_flows() {
        let run = crate::fixtures::sinks();
        let summary = run.points[3].repetitions[0].summary.as_ref().unwrap();
        let flow = &summary.flows[0];
        for (id, _) in OF_SINKS {
            let metric = METRICS.iter().find(|m| m.id == *id).unwrap_or_else(|| panic!("no metric {id}"));
            assert!(metric.value_at(flow, "far").is_some() && metric.value(flow).is_some(), "{id}");
        }
        assert_eq!(metric("fairness").value_at(flow, "far"), None);
        assert_eq!(metric("loss").value_at(flow, "nowhere"), None);
        for limit in &run.limits {
            let Subject::Flow { sink, metric, .. } = &limit.subject else { panic!("of flows") };
            let shown = limited(*metric);
            let shown = sink.as_ref().map_or(shown.value(flow), |sink| shown.value_at(flow, sink));
            assert_eq!(Some(limit.figure(summary)), shown.map(Figure::Value), "{}", limit.key);
        }
    }

    #[test]
    fn a_flow_without_messages_has_no_figures_but_counts() {
        let flow = FlowSummary::default();
        for m in METRICS.iter().filter(|m| !matches!(m.quantity, Quantity::Count | Quantity::Bytes)) {
            assert_eq!(m.value(&flow), None, "{}", m.id);
        }
    }
}

//! Figures of flows and of their sinks.

use trunkline_core::Duration;
use trunkline_metrics::{
    DelaySummary, FlowSummary, JitterSummary, Margin, MarginSummary, Measured, QualitySummary, SinkSummary,
    VoicePathSummary,
};

use super::{Metric, Unit, metric};
use crate::model::LimitMetric;

/// Every figure of a flow, as written behind its name.
pub(crate) const FLOW_METRICS: &[Metric<LimitMetric>] = &[
    metric("loss", LimitMetric::Loss, Unit::Share, "Lost messages, of those due."),
    metric("late", LimitMetric::Late, Unit::Share, "Messages after their playout deadline, of those due."),
    metric("loss-and-late", LimitMetric::LossAndLate, Unit::Share, "Both together."),
    metric(
        "unfinished",
        LimitMetric::Unfinished,
        Unit::Share,
        "Messages that a reliable transport took and had not delivered by the end, of those due.",
    ),
    metric(
        "refused",
        LimitMetric::Refused,
        Unit::Share,
        "Messages that the transport had no room for in time, or that were too large, of those due.",
    ),
    metric(
        "undelivered",
        LimitMetric::Undelivered,
        Unit::Share,
        "Messages that did not arrive: lost, unfinished or refused, of those due.",
    ),
    metric("not-in-time", LimitMetric::NotInTime, Unit::Share, "Messages undelivered or late, of those due."),
    metric(
        "affected",
        LimitMetric::Affected,
        Unit::Share,
        "Audio that was not heard in time, and so concealed or silent, of that due.",
    ),
    metric("latency.mean", LimitMetric::LatencyMean, Unit::Duration, "Mean latency."),
    metric("latency.p50", LimitMetric::LatencyP50, Unit::Duration, "Median latency."),
    metric("latency.p90", LimitMetric::LatencyP90, Unit::Duration, "90 % of the latencies are at most this."),
    metric("latency.p99", LimitMetric::LatencyP99, Unit::Duration, "99 % of the latencies are at most this."),
    metric(
        "latency.p999",
        LimitMetric::LatencyP999,
        Unit::Duration,
        "99.9 % of the latencies are at most this.",
    ),
    metric("latency.max", LimitMetric::LatencyMax, Unit::Duration, "The largest latency."),
    metric(
        "jitter.mean-absolute-deviation",
        LimitMetric::JitterMeanAbsoluteDeviation,
        Unit::Duration,
        "Mean absolute deviation of latency from its mean (Schiavoni and Queiroz 2013, equation 2).",
    ),
    metric(
        "jitter.interarrival",
        LimitMetric::JitterInterarrival,
        Unit::Duration,
        "Interarrival jitter (RFC 3550 section 6.4.1).",
    ),
    metric(
        "jitter.pdv-p999",
        LimitMetric::JitterPdvP999,
        Unit::Duration,
        "99.9th percentile of latency minus the smallest latency (RFC 5481 section 4.2).",
    ),
    metric(
        "throughput",
        LimitMetric::Throughput,
        Unit::Rate,
        "Payload delivered, each message once, per time.",
    ),
    metric(
        "voice-channels",
        LimitMetric::VoiceChannels,
        Unit::Number,
        "Telephone channels of 64 kbit/s that were delivered, rounded down.",
    ),
    metric(
        "fairness",
        LimitMetric::Fairness,
        Unit::Number,
        "Jain's index of the members' throughputs, from 1/n to 1.",
    ),
    metric(
        "margin.mean",
        LimitMetric::MarginMean,
        Unit::Margin,
        "How much before its deadline a packet came, mean.",
    ),
    metric(
        "margin.min",
        LimitMetric::MarginMin,
        Unit::Margin,
        "The same of the packet that came the latest.",
    ),
    metric("margin.p001", LimitMetric::MarginP001, Unit::Margin, "0.1 % of the margins are at most this."),
    metric("margin.p01", LimitMetric::MarginP01, Unit::Margin, "1 % of the margins are at most this."),
    metric("underflows", LimitMetric::Underflows, Unit::Number, "How often a D/A FIFO had nothing to play."),
    metric("silence", LimitMetric::Silence, Unit::Duration, "How long they had nothing to play, in all."),
    metric("silence.longest", LimitMetric::SilenceLongest, Unit::Duration, "The longest of these silences."),
    metric(
        "capture-overflows",
        LimitMetric::CaptureOverflows,
        Unit::Number,
        "How often an A/D FIFO had no room for samples.",
    ),
    metric(
        "playback-overflows",
        LimitMetric::PlaybackOverflows,
        Unit::Number,
        "Packets of which samples found no room in a D/A FIFO.",
    ),
    metric(
        "samples-lost",
        LimitMetric::SamplesLost,
        Unit::Number,
        "Samples that found no room in a FIFO of either kind.",
    ),
    metric(
        "start-up.mean",
        LimitMetric::StartUpMean,
        Unit::Duration,
        "From the first sample of a talk spurt to its playback, mean.",
    ),
    metric("start-up.max", LimitMetric::StartUpMax, Unit::Duration, "The longest of these delays."),
    metric("r", LimitMetric::R, Unit::Number, "R-factor of a conversation, from 0 to 100 (ITU-T G.107)."),
    metric("mos", LimitMetric::Mos, Unit::Number, "Mean opinion score estimated from it, from 1 to 4.5."),
    metric("mouth-to-ear", LimitMetric::MouthToEar, Unit::Duration, "Mean delay from mouth to ear."),
    metric("ppl", LimitMetric::Ppl, Unit::Share, "Messages that were not heard in time, of those due."),
];

impl LimitMetric {
    /// The figure in a summary: seconds, bits per second, a share from 0 to 1 or a count. `None` where nothing was
    /// measured.
    pub fn value(&self, flow: &FlowSummary) -> Option<f64> {
        let latency = |of: fn(&DelaySummary) -> Duration| flow.latency.as_ref().map(|l| of(l).as_secs_f64());
        let jitter = |of: fn(&JitterSummary) -> Duration| flow.jitter.as_ref().map(|j| of(j).as_secs_f64());
        let is_measured = flow.measured != Measured::Nothing;
        let voice = |of: fn(&VoicePathSummary) -> f64| flow.voice_path.as_ref().map(of);
        let margin =
            |of: fn(&MarginSummary) -> Margin| Some(of(flow.voice_path?.margin.as_ref()?).as_secs_f64());
        let start_up =
            |of: fn(&DelaySummary) -> Duration| Some(of(flow.voice_path?.start_up.as_ref()?).as_secs_f64());
        let quality = |of: fn(&QualitySummary) -> Option<f64>| of(flow.quality.as_ref()?);
        // Without a message there is no share of messages.
        let share = |share: f64| (is_measured && flow.counts.due() > 0).then_some(share);
        match self {
            LimitMetric::Loss => share(flow.loss.value()),
            LimitMetric::Late => share(flow.late.value()),
            LimitMetric::LossAndLate => share(flow.loss.value() + flow.late.value()),
            LimitMetric::Unfinished => share(flow.unfinished.value()),
            LimitMetric::Refused => share(flow.refused.value()),
            LimitMetric::Undelivered => share(flow.undelivered()),
            LimitMetric::NotInTime => share(flow.undelivered() + flow.late.value()),
            LimitMetric::Affected => flow.affected.map(|share| share.value()),
            LimitMetric::LatencyMean => latency(|l| l.mean),
            LimitMetric::LatencyP50 => latency(|l| l.p50),
            LimitMetric::LatencyP90 => latency(|l| l.p90),
            LimitMetric::LatencyP99 => latency(|l| l.p99),
            LimitMetric::LatencyP999 => latency(|l| l.p999),
            LimitMetric::LatencyMax => latency(|l| l.max),
            LimitMetric::JitterMeanAbsoluteDeviation => jitter(|j| j.mean_absolute_deviation),
            LimitMetric::JitterInterarrival => jitter(|j| j.interarrival),
            LimitMetric::JitterPdvP999 => jitter(|j| j.pdv_p999),
            LimitMetric::Throughput => is_measured.then_some(flow.throughput.user.bits_per_second() as f64),
            LimitMetric::VoiceChannels => is_measured.then_some(flow.voice_channels as f64),
            LimitMetric::Fairness => flow.fairness,
            LimitMetric::MarginMean => margin(|m| m.mean),
            LimitMetric::MarginMin => margin(|m| m.min),
            LimitMetric::MarginP001 => margin(|m| m.p001),
            LimitMetric::MarginP01 => margin(|m| m.p01),
            LimitMetric::Underflows => voice(|v| v.underflows as f64),
            LimitMetric::Silence => voice(|v| v.silence.as_secs_f64()),
            LimitMetric::SilenceLongest => voice(|v| v.silence_longest.as_secs_f64()),
            LimitMetric::CaptureOverflows => voice(|v| v.capture_overflows as f64),
            LimitMetric::PlaybackOverflows => voice(|v| v.playback_overflows as f64),
            LimitMetric::SamplesLost => voice(|v| (v.capture_lost + v.playback_lost) as f64),
            LimitMetric::StartUpMean => start_up(|d| d.mean),
            LimitMetric::StartUpMax => start_up(|d| d.max),
            LimitMetric::R => quality(|q| Some(q.r)),
            LimitMetric::Mos => quality(|q| Some(q.mos)),
            LimitMetric::MouthToEar => quality(|q| Some(q.mouth_to_ear?.as_secs_f64())),
            LimitMetric::Ppl => quality(|q| Some(q.ppl.value())),
        }
    }
}

/// Of one of several sinks.
impl LimitMetric {
    /// Reads the figure of a sink; `None` if only the flow as a whole has it.
    pub(super) fn of_sink(self) -> Option<fn(&SinkSummary) -> Option<f64>> {
        Some(match self {
            LimitMetric::Loss => |sink| share_at(sink, sink.loss.value()),
            LimitMetric::Late => |sink| share_at(sink, sink.late.value()),
            LimitMetric::LossAndLate => |sink| share_at(sink, sink.loss.value() + sink.late.value()),
            LimitMetric::Unfinished => |sink| share_at(sink, sink.unfinished.value()),
            LimitMetric::Refused => |sink| share_at(sink, sink.refused.value()),
            LimitMetric::Undelivered => |sink| share_at(sink, sink.undelivered()),
            LimitMetric::NotInTime => |sink| share_at(sink, sink.undelivered() + sink.late.value()),
            LimitMetric::LatencyMean => |sink| Some(sink.latency?.mean.as_secs_f64()),
            LimitMetric::LatencyP50 => |sink| Some(sink.latency?.p50.as_secs_f64()),
            LimitMetric::LatencyP90 => |sink| Some(sink.latency?.p90.as_secs_f64()),
            LimitMetric::LatencyP99 => |sink| Some(sink.latency?.p99.as_secs_f64()),
            LimitMetric::LatencyP999 => |sink| Some(sink.latency?.p999.as_secs_f64()),
            LimitMetric::LatencyMax => |sink| Some(sink.latency?.max.as_secs_f64()),
            LimitMetric::JitterMeanAbsoluteDeviation => {
                |sink| Some(sink.mean_absolute_deviation?.as_secs_f64())
            }
            LimitMetric::Throughput => |sink| Some(sink.user.bits_per_second() as f64),
            LimitMetric::VoiceChannels => |sink| Some(sink.voice_channels as f64),
            _ => return None,
        })
    }
}

fn share_at(sink: &SinkSummary, share: f64) -> Option<f64> {
    (sink.counts.due() > 0).then_some(share)
}

impl Metric<LimitMetric> {
    /// Whether each of several sinks has this figure by itself.
    pub(crate) fn is_of_sinks(&self) -> bool {
        self.metric.of_sink().is_some()
    }
}

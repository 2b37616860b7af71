//! Every figure of a flow: its name, its definition with the source, and where it stands in a summary. Tables, files,
//! JSON and the glossary are all made from this one list.

use trunkline_core::{Duration, Rate};
use trunkline_experiment::LimitMetric;
use trunkline_metrics::{
    DelaySummary, FlowSummary, JitterSummary, Margin, MarginSummary, Measured, QualitySummary, RobustDelay,
    SinkSummary, TransferSummary, VoicePathSummary,
};

pub(crate) use crate::definition::{DEFINITIONS, Definition};
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

    /// The same of one of the flow's sinks, or of the flows that it is made as; `None` also where sinks have no such figure by
    /// themselves.
    pub(crate) fn value_at(&self, flow: &FlowSummary, sink: &str) -> Option<f64> {
        if let Some(single) = flow.each.iter().find(|single| single.flow == sink) {
            return self.value(single);
        }
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
        LimitMetric::Unfinished => "unfinished_share",
        LimitMetric::Refused => "refused_share",
        LimitMetric::Undelivered => "undelivered",
        LimitMetric::NotInTime => "not_in_time",
        LimitMetric::Affected => "affected",
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
    ("unfinished_share", |s| share_at(s, s.unfinished.value())),
    ("refused_share", |s| share_at(s, s.refused.value())),
    ("undelivered", |s| share_at(s, s.undelivered())),
    ("not_in_time", |s| share_at(s, s.undelivered() + s.late.value())),
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
    ("unfinished", |s| Some(s.counts.unfinished as f64)),
    ("duplicate", |s| Some(s.counts.duplicate as f64)),
    ("reordered", |s| Some(s.counts.reordered as f64)),
];

fn share_at(sink: &SinkSummary, share: f64) -> Option<f64> {
    (sink.counts.due() > 0).then_some(share)
}

fn due(flow: &FlowSummary) -> u64 {
    flow.counts.due()
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
    "unfinished_share", "unfinished", Share, "unfinished", |f| if_received(f, if_due(f, f.unfinished.value()));
    "refused_share", "refused", Share, "refused", |f| if_received(f, if_due(f, f.refused.value()));
    "undelivered", "undelivered", Share, "undelivered", |f| if_received(f, if_due(f, f.undelivered()));
    "not_in_time", "undelivered or late", Share, "undelivered",
        |f| if_received(f, if_due(f, f.undelivered() + f.late.value()));
    "affected", "time affected", Share, "affected", |f| Some(f.affected?.value());
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
    "unfinished", "messages unfinished", Count, "unfinished", |f| Some(f.counts.unfinished as f64);
    "refused", "messages refused", Count, "refused", |f| Some(f.counts.refused as f64);
    "duplicate", "duplicates", Count, "counts", |f| Some(f.counts.duplicate as f64);
    "reordered", "messages reordered", Count, "reordered", |f| Some(f.counts.reordered as f64);
    "loss_burst_longest", "longest loss burst", Count, "loss-burst",
        |f| if_received(f, if_due(f, f.loss_bursts.keys().next_back().copied().unwrap_or(0).into()));
    "stray", "stray bytes", Bytes, "stray", |f| Some(f.stray.count() as f64);
    "clock_error", "bound of the clocks", Time, "clock-error", |f| f.clock_error.map(Duration::as_secs_f64);
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
            affected: Ratio::new(0.02),
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
            LimitMetric::Unfinished,
            LimitMetric::Refused,
            LimitMetric::Undelivered,
            LimitMetric::NotInTime,
            LimitMetric::Affected,
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

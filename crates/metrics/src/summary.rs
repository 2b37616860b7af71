//! Statistics of a repetition, as stored, reported and printed as JSON. Names are the definitions' names; durations are
//! nanoseconds, rates bits per second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trunkline_core::{Amount, Bytes, Duration, Rate, Ratio, Time};

use crate::connection::ConnectionSample;
use crate::limited::{CutBy, LimitedBy};
use crate::quality::QualitySummary;
use crate::voice_path::VoicePathSummary;

/// All that is kept of one repetition of one point, beside its traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepetitionSummary {
    /// One per flow of the file, in its order; a flow with `count = n`, or one that is made for each of n hosts, is one entry
    /// over its n members.
    pub flows: Vec<FlowSummary>,
    /// One per bundle of the file, in its order.
    #[serde(default)]
    pub bundles: Vec<BundleSummary>,
    /// One per link and direction (`sim` and `wire`).
    pub links: Vec<LinkSummary>,
    /// What only some kinds of media have to tell, per medium and per station (`sim` and `wire`).
    #[serde(default)]
    pub media: Vec<MediumSummary>,
    /// Gaps in which this machine did not run us (`live` and `wire`).
    pub stalls: Option<StallSummary>,
    /// How long the measurement lasted: virtual time in `sim`.
    pub duration: Duration,
    /// CPU time of all our processes together (`live` and `wire`).
    pub cpu: Option<Duration>,
    /// True if it was interrupted.
    pub partial: bool,
}

/// What a latency is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// From the source to the sink.
    #[default]
    OneWay,
    /// From the source through the reflector back to the source.
    RoundTrip,
    /// Nothing: the flow has no sinks.
    Nothing,
}

/// One flow of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name in the file.
    pub flow: String,
    /// The transport's name.
    pub transport: String,
    /// How many members (conversations) it has.
    pub members: u32,
    /// Channels per member.
    pub channels: u32,
    /// What its latencies are.
    pub measured: Measured,
    /// Messages by what became of them.
    pub counts: Counts,
    /// Lost messages as a share of those due.
    pub loss: Ratio,
    /// Messages that a reliable transport has not delivered by the end, as a share of those due.
    #[serde(default)]
    pub unfinished: Ratio,
    /// Messages that the sender gave up, as a share of those due.
    #[serde(default)]
    pub refused: Ratio,
    /// Late messages as a share of those due.
    pub late: Ratio,
    /// Audio that was not heard in time as a share of that due; `None` of what is no audio.
    #[serde(default)]
    pub affected: Option<Ratio>,
    /// Lengths of runs of consecutive lost messages of one channel: length to number of runs.
    pub loss_bursts: BTreeMap<u32, u64>,
    /// From `sent` to `received`.
    pub latency: Option<DelaySummary>,
    /// From `due` to `received`: includes the time a message waited for a blocked sender.
    pub latency_from_due: Option<DelaySummary>,
    /// Variation of latency, by each definition.
    pub jitter: Option<JitterSummary>,
    /// Hawley's robust estimates of latency.
    pub robust: Option<RobustDelay>,
    /// Data per time.
    pub throughput: ThroughputSummary,
    /// The window or the send buffer that held the flow back, if one did.
    #[serde(default)]
    pub limited_by: Option<LimitedBy>,
    /// The limit that drops its packets on an idle line, if messages are missing and there is one.
    #[serde(default)]
    pub cut_by: Option<CutBy>,
    /// Rates of single transfers, of a source that makes them.
    pub transfers: Option<TransferSummary>,
    /// What happened at the FIFOs of its channels, if it has any.
    pub voice_path: Option<VoicePathSummary>,
    /// How good a conversation over it is, of speech in one direction that is played.
    #[serde(default)]
    pub quality: Option<QualitySummary>,
    /// Telephone channels of 64 kbit/s that were delivered, rounded down; of several sinks the least that one of them has.
    pub voice_channels: u64,
    /// Jain's fairness index of the members' user throughputs, from 1/n to 1; `None` for one member, or if nothing was
    /// received.
    pub fairness: Option<f64>,
    /// Arrivals were brought from the sink's clock to the source's: no one-way time is further from the truth than this
    /// (`live` between hosts).
    #[serde(default)]
    pub clock_error: Option<Duration>,
    /// Start of the send call minus due time (`live` and `wire`).
    pub schedule_error: Option<DelaySummary>,
    /// Duration of the send call (`live` and `wire`).
    pub send_call: Option<DelaySummary>,
    /// Counters of the transport by name: retransmissions, checksum errors ...
    pub transport_counters: BTreeMap<String, u64>,
    /// Each sink by itself, if there are several.
    #[serde(default)]
    pub sinks: Vec<SinkSummary>,
    /// Each by itself of the flows that a flow between hosts that are alike is made as, without curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<FlowSummary>,
    /// Bytes that arrived but were not part of a message of this run.
    pub stray: Bytes,
    /// Points of the latency's cumulative distribution: (latency, share of messages at most that), both increasing; at
    /// most 512.
    pub latency_cdf: Vec<(Duration, f64)>,
    /// Latency over time, a sample of at most 2,000 messages: (sent, latency), in the order of sending. Chosen evenly,
    /// with the largest of each interval kept.
    pub latency_over_time: Vec<(Time, Duration)>,
    /// Samples of the sending end of its first TCP connection, at most 400 in the order of time; empty for other transports.
    #[serde(default, with = "crate::connection::columns", skip_serializing_if = "Vec::is_empty")]
    pub connection: Vec<ConnectionSample>,
}

impl FlowSummary {
    /// The transport counter of connections that were not established while their sources sent (`sim`).
    pub const NOT_CONNECTED: &str = "connections-not-made";

    /// The share of the messages due that did not arrive: lost, unfinished or refused.
    pub fn undelivered(&self) -> f64 {
        self.loss.value() + self.unfinished.value() + self.refused.value()
    }
}

impl SinkSummary {
    /// The share of the messages due that did not arrive: lost, unfinished or refused.
    pub fn undelivered(&self) -> f64 {
        self.loss.value() + self.unfinished.value() + self.refused.value()
    }
}

/// One of several sinks of a flow. The flow's own figures are those of all sinks together, in which a message counts once
/// for every sink that it was sent to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SinkSummary {
    /// Its host.
    pub sink: String,
    /// Messages by what became of them on the way to this sink.
    pub counts: Counts,
    /// Lost messages as a share of those due.
    pub loss: Ratio,
    /// Messages that a reliable transport has not delivered by the end, as a share of those due.
    #[serde(default)]
    pub unfinished: Ratio,
    /// Messages that the sender gave up, as a share of those due.
    #[serde(default)]
    pub refused: Ratio,
    /// Late messages as a share of those due.
    pub late: Ratio,
    /// From `sent` to `received`.
    pub latency: Option<DelaySummary>,
    /// From `due` to `received`.
    pub latency_from_due: Option<DelaySummary>,
    /// Mean absolute deviation of latency from its mean.
    pub mean_absolute_deviation: Option<Duration>,
    /// Payload delivered in the flow's active time, each message once.
    pub user: Rate,
    /// Telephone channels of 64 kbit/s that were delivered, rounded down.
    pub voice_channels: u64,
}

/// Flows counted together. A connection of a bundle is a member of one of its flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BundleSummary {
    /// Its name in the file.
    pub bundle: String,
    /// Its flows, in its own order.
    pub flows: Vec<String>,
    /// How many members they have together.
    pub members: u32,
    /// From the first due message of any flow to the end of the last one's active time.
    pub active: Duration,
    /// Payload received by all flows, each message once, over the bundle's active time.
    pub user: Rate,
    /// What each flow took of the first link of its path, with all framing of that link, over the bundle's active time (`sim`
    /// and `wire`).
    pub network: Option<Rate>,
    /// Jain's fairness index of the user throughputs of all members; `None` for one member, or if nothing was received.
    pub fairness: Option<f64>,
    /// Its members by transport, in the order in which its flows name transports first.
    pub classes: Vec<ClassSummary>,
}

/// The connections of one transport in a bundle. Every figure is taken of each connection by itself first (Lamont et al.
/// 1998 section 6).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// The transport's name.
    pub transport: String,
    /// How many members the flows of the transport have together.
    pub members: u32,
    /// What their latencies are.
    pub measured: Measured,
    /// Payload received by a member over its own active time, which begins and ends as a flow's does: a transfer of fixed
    /// volume is measured over its own life.
    pub throughput: Option<Spread<Rate>>,
    /// Lost messages of a member as a share of those due.
    pub loss: Option<Spread<Ratio>>,
    /// Unfinished messages of a member as a share of those due.
    #[serde(default)]
    pub unfinished: Option<Spread<Ratio>>,
    /// Refused messages of a member as a share of those due.
    #[serde(default)]
    pub refused: Option<Spread<Ratio>>,
    /// A member's mean latency.
    pub latency_mean: Option<Spread<Duration>>,
    /// A member's p99.9 of latency: as that of its flow if it is the only member, or else at most 0.8 % too high.
    pub latency_p999: Option<Spread<Duration>>,
    /// Jain's fairness index of their user throughputs; `None` for one member, or if nothing was received.
    pub fairness: Option<f64>,
}

/// A figure over members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread<T> {
    /// The mean of the members' figures.
    pub mean: T,
    /// The smallest of them.
    pub min: T,
    /// The largest of them.
    pub max: T,
    /// How many members have it.
    pub members: u32,
}

/// Messages by what became of them. `due = sent + refused` and `sent = received + late + lost + unfinished`; of a flow
/// without sinks nothing is received or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Taken by the transport.
    pub sent: u64,
    /// Given up by the sender.
    pub refused: u64,
    /// Arrived in time.
    pub received: u64,
    /// Arrived after the playout deadline.
    pub late: u64,
    /// Not received by the end of the run plus the drain time, over a transport that may lose them.
    pub lost: u64,
    /// Not received by then, over a transport that would still have delivered them.
    #[serde(default)]
    pub unfinished: u64,
    /// Further copies.
    pub duplicate: u64,
    /// Arrived with a smaller sequence number than one before of the same channel (RFC 4737 section 3).
    pub reordered: u64,
}

impl Counts {
    /// How many messages were due.
    pub fn due(&self) -> u64 {
        self.sent.saturating_add(self.refused)
    }

    /// So many messages as a share of those due.
    pub fn share(&self, part: u64) -> Ratio {
        share(part, self.due())
    }
}

/// A part as a share of a whole; none of nothing.
pub(crate) fn share(part: u64, whole: u64) -> Ratio {
    Ratio::new(part as f64 / whole.max(1) as f64).unwrap_or_default()
}

/// A distribution of durations in figures. Percentiles are by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// How many.
    pub count: u64,
    /// The mean.
    pub mean: Duration,
    /// The sample standard deviation; zero of a single one.
    pub standard_deviation: Duration,
    /// The smallest.
    pub min: Duration,
    /// The median.
    pub p50: Duration,
    /// 90 % are at most this.
    pub p90: Duration,
    /// 99 % are at most this.
    pub p99: Duration,
    /// 99.9 % are at most this: Weaver's "99.9 % threshold".
    pub p999: Duration,
    /// The largest.
    pub max: Duration,
    /// Whether the percentiles are exact; otherwise they come from a histogram and are right within 0.1 %.
    pub exact: bool,
}

impl DelaySummary {
    /// The sample standard deviation, which one value alone does not have.
    pub fn deviation(&self) -> Option<Duration> {
        (self.count > 1).then_some(self.standard_deviation)
    }
}

/// Variation of latency. No two of these are the same; each is printed with its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JitterSummary {
    /// Mean absolute deviation of latency from its mean (Schiavoni and Queiroz 2013, equation 2).
    pub mean_absolute_deviation: Duration,
    /// Standard deviation of latency.
    pub standard_deviation: Duration,
    /// Interarrival jitter J at the end, mean over channels (RFC 3550 section 6.4.1); `None` if no channel had two arrivals.
    pub interarrival: Option<Duration>,
    /// Mean of |IPDV| of consecutive messages (RFC 3393 with consecutive selection); `None` if no two of them arrived.
    pub ipdv_mean: Option<Duration>,
    /// 99.9th percentile of |IPDV|.
    pub ipdv_p999: Option<Duration>,
    /// Mean of PDV, latency minus the smallest latency (RFC 5481 section 4.2).
    pub pdv_mean: Duration,
    /// 99.9th percentile of PDV.
    pub pdv_p999: Duration,
    /// Mean time between arrivals of one channel (Lamont et al. 1998); `None` if no channel had two.
    pub interarrival_mean: Option<Duration>,
    /// Standard deviation of the time between arrivals of one channel (Lamont et al. 1998); `None` of fewer than two times.
    pub interarrival_standard_deviation: Option<Duration>,
}

/// Hawley's robust estimates (Hawley 1989 sections 4.2.1 and 4.3.1), over the first
/// [`RobustDelay::CAPACITY`] messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RobustDelay {
    /// Minimum estimate: first and last ten dropped, then points above mean + 1 sd removed, twice; the mean of the rest.
    pub minimum: Duration,
    /// Points kept for the minimum estimate.
    pub minimum_kept: u64,
    /// Points removed for it, without the first and last ten.
    pub minimum_removed: u64,
    /// The second threshold.
    pub minimum_threshold: Duration,
    /// The sample standard deviation of the points kept.
    #[serde(default)]
    pub minimum_standard_deviation: Duration,
    /// Mean over standard deviation of the points kept; 0 if they are all equal.
    pub minimum_ratio: f64,
    /// Loaded estimate: first and last ten dropped, then points above mean + 8 sd removed, once; the mean of the rest.
    pub loaded: Duration,
    /// Points kept for the loaded estimate.
    pub loaded_kept: u64,
    /// Points removed for it.
    pub loaded_removed: u64,
    /// Its threshold.
    pub loaded_threshold: Duration,
    /// The sample standard deviation of the points kept.
    #[serde(default)]
    pub loaded_standard_deviation: Duration,
    /// Mean over standard deviation of the points kept; 0 if they are all equal.
    #[serde(default)]
    pub loaded_ratio: f64,
}

impl RobustDelay {
    /// How many messages are considered at most.
    pub const CAPACITY: usize = 100_000;
}

/// Data per time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputSummary {
    /// Payload offered by the source (sent, refused and lost in A/D FIFOs) over the flow's active time.
    pub offered: Rate,
    /// Payload delivered in the flow's active time, each message once; of requests, that of those that were answered.
    pub user: Rate,
    /// Payload of the answers to requests that came back in that time; `None` of a flow without answers of their own size.
    #[serde(default)]
    pub answers: Option<Rate>,
    /// What the flow took of its path's first link in that time, with all framing of that link (`sim` and `wire`).
    pub network: Option<Rate>,
    /// From the first due message to the end that [`Lasting`](crate::Lasting) defines; if nothing arrived, to the end of
    /// the run.
    pub active: Duration,
}

/// Rates of single transfers: payload over the time from the first message of a transfer to the answer that ends it. Of
/// every channel with at least three transfers the first and the last are dropped (Hawley 1989 section 4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// Transfers made, over all members and channels.
    pub completed: u64,
    /// Transfers that the figures are of.
    pub kept: u64,
    /// The mean of their rates.
    pub rate_mean: Rate,
    /// The sample standard deviation of their rates.
    pub rate_standard_deviation: Rate,
    /// The lowest rate.
    pub rate_min: Rate,
    /// The highest rate.
    pub rate_max: Rate,
    /// The mean times the number of channels of all members: what they carry together while all of them transfer at that rate.
    pub rate_total: Rate,
}

/// One direction of one link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// `trunk berlin>ottawa`.
    pub link: String,
    /// Share of the time that the line was busy.
    pub utilisation: Ratio,
    /// The time that the line needs for all that was offered to its queue, over the measured time: above 1 in an overload. `None`
    /// of media with several stations, of links that carried nothing, and in runs of versions that did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered: transmitted, or begun to be, and not lost. They may arrive after the end of the run.
    pub delivered: u64,
    /// Packets dropped, by cause; causes that did not occur are left out.
    pub dropped: BTreeMap<String, u64>,
    /// Packets marked, by cause.
    pub marked: BTreeMap<String, u64>,
    /// Mean time in the queue.
    pub sojourn_mean: Duration,
    /// What half of the packets that left the queue did not exceed, to 0.8 %; `None` if none left it, and in runs of
    /// versions that did not measure it.
    pub sojourn_p50: Option<Duration>,
    /// What 99 % of them did not exceed.
    pub sojourn_p99: Option<Duration>,
    /// What 99.9 % of them did not exceed.
    pub sojourn_p999: Option<Duration>,
    /// Longest time in the queue.
    pub sojourn_max: Duration,
    /// Most bytes that waited.
    pub backlog_max: Bytes,
    /// Most packets that waited.
    pub backlog_packets_max: u64,
    /// Backlog over time: the start of each interval, and the largest backlog sampled in it. Empty if nothing ever waited, for
    /// directions beyond the first 64 of an experiment, and in runs of versions that did not keep it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backlog_over_time: Vec<(Time, Bytes)>,
}

/// What a medium, or one of its stations, has to tell beside what all links do: the rotation time of a token, collisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediumSummary {
    /// Its name in the file: `ring`.
    pub medium: String,
    /// The host whose station it is; `None` for the medium as a whole.
    pub station: Option<String>,
    /// Names, which are ids in the table of figures, with amounts, in the order of the medium; without an amount if there was
    /// nothing to measure.
    pub figures: Vec<(String, Option<Amount>)>,
}

/// Periods in which the machine did not run a probe that wanted to run: what part of a tail is the machine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallSummary {
    /// `sleeping` (woken every millisecond) or `spinning`.
    pub probe: String,
    /// How long it watched.
    pub watched: Duration,
    /// Gaps by size: (longer than, how many), thresholds increasing.
    pub gaps: Vec<(Duration, u64)>,
    /// The sum of all gaps beyond the probe's period, as a share of the time watched.
    pub share: Ratio,
    /// The longest.
    pub longest: Duration,
    /// Gaps of a millisecond and more, in the order of time: the start since the start of the sources, and the length. Of more
    /// than 1,000 the longest ones; empty in runs of versions that did not keep them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<(Time, Duration)>,
}

/// A figure over repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over repetitions.
    pub mean: f64,
    /// The sample standard deviation; `None` for one repetition.
    pub standard_deviation: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); `None` for one repetition.
    pub confidence95: Option<f64>,
    /// How many repetitions.
    pub repetitions: u32,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::voice_path::MarginSummary;

    const DEFINITIONS: &str = include_str!("../../../docs/metrics.md");

    /// The names of all figures in a summary: what a report shows and links to its definition.
    fn figures(of: &Value, names: &mut Vec<String>) {
        for (name, value) in of.as_object().into_iter().flatten() {
            names.push(name.replace('_', "-"));
            figures(value, names);
        }
    }

    #[test]
    fn every_figure_has_an_anchor_among_the_definitions() {
        let delay = Some(DelaySummary::default());
        let flow = FlowSummary {
            latency: delay,
            latency_from_due: delay,
            jitter: Some(JitterSummary::default()),
            robust: Some(RobustDelay::default()),
            transfers: Some(TransferSummary::default()),
            voice_path: Some(VoicePathSummary {
                start_up: delay,
                margin: Some(MarginSummary::default()),
                ..VoicePathSummary::default()
            }),
            quality: Some(QualitySummary::default()),
            affected: Some(Ratio::ZERO),
            clock_error: Some(Duration::ZERO),
            schedule_error: delay,
            send_call: delay,
            ..FlowSummary::default()
        };
        let class = ClassSummary { loss: Some(Spread::default()), ..ClassSummary::default() };
        let mut names = Vec::new();
        figures(&serde_json::to_value(flow).unwrap(), &mut names);
        figures(&serde_json::to_value(class).unwrap(), &mut names);
        let no_figures = ["flow", "transport", "members", "channels", "measured", "sinks", "each", "codec"];
        names.retain(|name| !no_figures.contains(&name.as_str()));
        assert!(names.len() > 40, "{names:?}");
        for name in names {
            let heading = format!("{{#{name}}}");
            let inline = format!("<a id=\"{name}\"></a>");
            let anchors = DEFINITIONS.matches(&heading).count() + DEFINITIONS.matches(&inline).count();
            assert_eq!(anchors, 1, "docs/metrics.md needs one anchor `#{name}`");
        }
    }
}

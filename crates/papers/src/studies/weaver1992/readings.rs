//! Columns of the measured tables from summaries of flows, and those that follow from the size of a packet.

use trunkline_metrics::{DelaySummary, FlowSummary};

use crate::study::{Metric, Reading};
use crate::value::Keys;

/// One way of the throughput runs; the other is alike.
const EAST: &str = "east";
/// The flow whose round trip is measured.
pub(super) const PROBE: &str = "probe";
/// A voice channel, in bits per second (section 2).
const CHANNEL: f64 = 64_000.0;
/// Milliseconds of speech in a byte.
pub(super) const SAMPLE: f64 = 0.125;
/// Headers, trailer and framing of a voice packet as the study counts them (section 5.1).
const FRAMING: f64 = 69.0;

type Read = fn(&FlowSummary) -> Option<f64>;

const fn east(column: &'static str, decimals: usize, read: Read) -> Metric {
    Metric { column, decimals, reading: Reading::Flow(EAST, read) }
}

const fn formula(column: &'static str, decimals: usize, formula: fn(&Keys) -> Option<f64>) -> Metric {
    Metric { column, decimals, reading: Reading::Formula(formula) }
}

pub(super) const FRAME: Metric =
    formula("frame_bytes", 0, |keys| Some(keys.number("voice_data_bytes")? + FRAMING));
pub(super) const NEEDED_PERIOD: Metric =
    formula("needed_period_ms", 3, |keys| Some(keys.number("voice_data_bytes")? * SAMPLE));
pub(super) const PACKETS: Metric = east("packets_sent", 0, |flow| Some(flow.counts.sent as f64));
pub(super) const USER_MBPS: Metric = east("user_throughput_mbps", 3, |flow| Some(user(flow)? / 1e6));
pub(super) const USER_KBPS: Metric =
    east("user_throughput_kbps", 0, |flow| Some((user(flow)? / 1e3).floor()));
pub(super) const NETWORK_MBPS: Metric =
    east("network_throughput_mbps", 3, |flow| Some(flow.throughput.network?.bits_per_second() as f64 / 1e6));
pub(super) const TIME: Metric = east("total_time_s", 3, time);
pub(super) const RATE: Metric = east("packet_rate_pps", 0, rate);
pub(super) const PERIOD: Metric = east("generated_period_ms", 3, |flow| Some(1e3 / rate(flow)?));
pub(super) const CHANNELS: Metric = east("voice_channels", 0, |flow| Some((user(flow)? / CHANNEL).floor()));

/// Half of the mean round trip.
pub(super) const AVERAGE: Metric =
    Metric { column: "avg_latency_ms", decimals: 3, reading: Reading::Flow(PROBE, average) };
/// What 99.9 % of the halved round trips do not exceed.
pub(super) const P999: Metric =
    Metric { column: "p999_latency_ms", decimals: 3, reading: Reading::Flow(PROBE, p999) };

/// The same two of the answers of the voice station, one of two receivers.
pub(super) const GROUP_AVERAGE: Metric = Metric {
    column: "avg_latency_ms",
    decimals: 3,
    reading: Reading::Flow(PROBE, |flow| Some(to_station(flow)?.mean.as_nanos() as f64 / 2e6)),
};
pub(super) const GROUP_P999: Metric = Metric {
    column: "p999_latency_ms",
    decimals: 3,
    reading: Reading::Flow(PROBE, |flow| Some(to_station(flow)?.p999.as_nanos() as f64 / 2e6)),
};

/// The same two from the idle ring of the latency experiment, for tables of the throughput experiment.
pub(super) const AVERAGE_ELSEWHERE: Metric = Metric {
    column: "avg_latency_ms",
    decimals: 3,
    reading: Reading::Elsewhere(super::SPPT, PROBE, average),
};
pub(super) const P999_ELSEWHERE: Metric =
    Metric { column: "p999_latency_ms", decimals: 3, reading: Reading::Elsewhere(super::SPPT, PROBE, p999) };

/// Bits per second.
fn user(flow: &FlowSummary) -> Option<f64> {
    Some(flow.throughput.user.bits_per_second() as f64)
}

/// Seconds from the first packet to the last.
fn time(flow: &FlowSummary) -> Option<f64> {
    let time = flow.throughput.active.as_secs_f64();
    (time > 0.0).then_some(time)
}

/// Packets per second.
fn rate(flow: &FlowSummary) -> Option<f64> {
    Some(flow.counts.sent as f64 / time(flow)?)
}

fn average(flow: &FlowSummary) -> Option<f64> {
    Some(flow.latency.as_ref()?.mean.as_nanos() as f64 / 2e6)
}

fn to_station(flow: &FlowSummary) -> Option<DelaySummary> {
    flow.sinks.iter().find(|sink| sink.sink == "west")?.latency
}

fn p999(flow: &FlowSummary) -> Option<f64> {
    Some(flow.latency.as_ref()?.p999.as_nanos() as f64 / 2e6)
}

//! The answers that the study was after: channels by packet size, the margin to the deadline, the packet to use.

use trunkline_metrics::FlowSummary;

use super::readings::{self, SAMPLE};
use crate::results::{Results, Row, TableResults};
use crate::study::{Metric, Reading};
use crate::value::Keys;

/// The table of what a channel gets.
pub(super) const CHANNEL: &str = "channel";

/// Speech in a packet that the survey of section 10 calls good, in milliseconds.
const GOOD_FILL: core::ops::RangeInclusive<f64> = 20.0..=50.0;
/// The most jitter that it calls good, in milliseconds.
const GOOD_JITTER: f64 = 20.0;
/// The longest delay that it calls good, in milliseconds.
const GOOD_DELAY: f64 = 250.0;

/// Of a packet of n bytes: the time to fill it, the earliest, and the latest but one in a thousand (halved round trips).
pub(super) const CHANNEL_METRICS: &[Metric] = &[
    Metric { column: "fill_ms", decimals: 3, reading: Reading::Formula(fill) },
    Metric { column: "earliest_ms", decimals: 3, reading: probe(earliest) },
    Metric { column: "latest_ms", decimals: 3, reading: probe(latest) },
];

const fn probe(read: fn(&FlowSummary) -> Option<f64>) -> Reading {
    Reading::Flow(readings::PROBE, read)
}

fn fill(keys: &Keys) -> Option<f64> {
    Some(keys.number("voice_data_bytes")? * SAMPLE)
}

fn latest(flow: &FlowSummary) -> Option<f64> {
    Some(flow.latency.as_ref()?.p999.as_nanos() as f64 / 2e6)
}

fn earliest(flow: &FlowSummary) -> Option<f64> {
    Some(flow.latency.as_ref()?.min.as_nanos() as f64 / 2e6)
}

/// `4096 bytes`
pub(super) fn most_channels(results: &Results) -> Option<String> {
    let table = results.table("table03")?;
    let rows = table.rows.iter().filter_map(|row| Some((figure(table, row, "voice_channels")?, size(row)?)));
    let (_, bytes) = rows.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!("{bytes} bytes"))
}

/// `32 bytes`
pub(super) fn smallest_in_time(results: &Results) -> Option<String> {
    let table = results.table("table02")?;
    let in_time = |row: &&Row| {
        let [needed, reached] =
            ["needed_period_ms", "generated_period_ms"].map(|column| figure(table, row, column));
        needed >= reached
    };
    let bytes = table.rows.iter().filter(in_time).filter_map(size).min_by(f64::total_cmp)?;
    Some(format!("{bytes} bytes"))
}

/// `256 bytes: 13 channels, 32 ms of speech in a packet, jitter 5.1 ms, start-up delay 42.3 ms, margin to the deadline 26.9 ms`
///
/// The start-up delay is the time to fill a packet and one latency (section 5.2); jitter is how much later the latest comes
/// than the earliest without load; the margin is what a packet that is as late as that has left until its deadline, if the
/// first one was as early as can be.
pub(super) fn recommended(results: &Results) -> Option<String> {
    const IDLE: &[(&str, &str)] = &[("background_load_mbps", "0")];
    const LOADED: &[(&str, &str)] = &[("background_load_mbps", "75")];
    let (channel, channels) = (results.table(CHANNEL)?, results.table("table05")?);
    let of_row = |row: &Row| {
        let idle = channel.rows.iter().find(|idle| idle.keys.are(IDLE) && size(idle) == size(row))?;
        let (fill, latest) = (figure(channel, row, "fill_ms")?, figure(channel, row, "latest_ms")?);
        let jitter = latest - figure(channel, idle, "earliest_ms")?;
        let is_good = GOOD_FILL.contains(&fill) && jitter <= GOOD_JITTER && fill + latest <= GOOD_DELAY;
        let beside = channels.rows.iter().find(|other| other.keys == row.keys)?;
        is_good.then_some((figure(channels, beside, "voice_channels")?, size(row)?, fill, latest, jitter))
    };
    let good = channel.rows.iter().filter(|row| row.keys.are(LOADED)).filter_map(of_row);
    let best = good.max_by(|a, b| a.0.total_cmp(&b.0));
    Some(match best {
        Some((channels, bytes, fill, latest, jitter)) => format!(
            "{bytes} bytes: {channels} channels, {fill} ms of speech in a packet, jitter {jitter:.1} ms, start-up delay \
             {:.1} ms, margin to the deadline {:.1} ms",
            fill + latest,
            fill - jitter
        ),
        None => "no size is good".to_owned(),
    })
}

fn figure(table: &TableResults, row: &Row, column: &str) -> Option<f64> {
    row.cells.get(table.place(column)?)?.simulated
}

fn size(row: &Row) -> Option<f64> {
    row.keys.number("voice_data_bytes")
}

//! Traces: every message of a flow, thinned to what a chart can show.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use trunkline_core::{Bytes, Duration, Rate, Time};
use trunkline_metrics::{ConnectionSample, Fate, LinkSummary, Record, Retransmissions};
use trunkline_store::{LatencySeries, StoredRepetition, StoredRun};
use utoipa::IntoParams;

use super::results::download;
use crate::api::{ApiError, Cdf, FlowOverTime, OverTime, QueueOverTime};
use crate::app::{App, Shared};
use crate::extract::{Path, Query};
use crate::transfer;

/// Default number.
const BUCKETS: usize = 2000;
/// Default number.
const CDF_POINTS: usize = 1000;
/// Number of intervals of throughput.
const INTERVALS: u64 = 200;
/// The shortest of them.
const SHORTEST: Duration = Duration::from_millis(100);
/// Maximum number of points of a chart.
const MOST_POINTS: usize = 100_000;

/// A trace.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Which {
    /// The run's number.
    pub(crate) id: u64,
    /// The point, from 0.
    pub(crate) point: u32,
    /// The repetition, from 0.
    pub(crate) repetition: u32,
    /// The flow's name.
    pub(crate) flow: String,
}

/// A repetition.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Repetition {
    /// The run's number.
    pub(crate) id: u64,
    /// The point, from 0.
    pub(crate) point: u32,
    /// The repetition, from 0.
    pub(crate) repetition: u32,
}

/// Part of a trace, and its resolution.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Start of the part, in seconds since the start of the run [default: all].
    pub(crate) from: Option<f64>,
    /// End of the part.
    pub(crate) to: Option<f64>,
    /// Number of time intervals into which a long trace is divided [default: 2000].
    #[param(minimum = 1, maximum = 100_000)]
    pub(crate) buckets: Option<usize>,
    /// Width of the chart in pixels, as the default of `buckets`.
    #[param(minimum = 1, maximum = 100_000)]
    pub(crate) width: Option<usize>,
}

/// Resolution.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Fineness {
    /// Number of points [default: 1000].
    #[param(minimum = 2, maximum = 100_000)]
    pub(crate) points: Option<usize>,
}

/// The whole trace as a Parquet file.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/trace.parquet", tag = "runs", params(Which),
    responses((status = 200, body = String, content_type = "application/vnd.apache.parquet"))
)]
pub(crate) async fn parquet(State(app): Shared, Path(which): Path<Which>) -> Result<Response, ApiError> {
    let name =
        format!("run-{}-p{:03}-r{:02}-{}.parquet", which.id, which.point, which.repetition, which.flow);
    let path = app.blocking(move |app| app.trace(&which)).await?;
    let (length, body) = transfer::file(path).await?;
    let mut response = download(&name, "application/vnd.apache.parquet", body);
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    Ok(response)
}

/// The latency of every message, for a scatter chart, as little-endian binary data: a u32 n; a byte that is 1 if no message
/// was left out; n × f64, the send times in seconds; n × f32, the latencies in seconds; a u32 m; and m × f64, the send times
/// of lost messages. With more than 50,000 messages, each of `buckets` intervals is represented by its smallest and largest
/// latency and two other messages.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/latency", tag = "runs", params(Which, Part),
    responses((status = 200, body = String, content_type = "application/octet-stream"))
)]
pub(crate) async fn latency(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(part): Query<Part>,
) -> Result<Response, ApiError> {
    let buckets = part.buckets.or(part.width).unwrap_or(BUCKETS);
    if !(1..=MOST_POINTS).contains(&buckets) {
        return Err(ApiError::input(format_args!(
            "`buckets` must be from 1 to {MOST_POINTS}, not {buckets}"
        )));
    }
    let range = range(part.from, part.to)?;
    let bytes = app
        .blocking(move |app| {
            let path = app.trace(&which)?;
            Ok(packed(&trunkline_store::latency_series(&path, range, buckets, LatencySeries::EXACT_UP_TO)?))
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))], bytes)
        .into_response())
}

/// The latency distribution of all received messages.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/cdf", tag = "runs", params(Which, Fineness),
    responses((status = 200, body = Cdf))
)]
pub(crate) async fn cdf(
    State(app): Shared,
    Path(which): Path<Which>,
    Query(fineness): Query<Fineness>,
) -> Result<Json<Cdf>, ApiError> {
    let points = fineness.points.unwrap_or(CDF_POINTS);
    if !(2..=MOST_POINTS).contains(&points) {
        return Err(ApiError::input(format_args!("`points` must be from 2 to {MOST_POINTS}, not {points}")));
    }
    app.blocking(move |app| Ok(Json(distribution(&app.trace(&which)?, points)?))).await
}

/// The latency distribution of a trace, with at most this many points.
pub(super) fn distribution(trace: &FilePath, points: usize) -> Result<Cdf, ApiError> {
    let cdf = trunkline_store::latency_cdf(trace, points)?;
    Ok(Cdf {
        quantity: "latency".to_owned(),
        unit: "s".to_owned(),
        p: cdf.points.iter().map(|point| point.share).collect(),
        value: cdf.points.iter().map(|point| point.latency.as_secs_f64()).collect(),
    })
}

/// Throughput, retransmissions, congestion windows, backlogs and stalls of the machine over time.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/over-time", tag = "runs", params(Repetition),
    responses((status = 200, body = OverTime))
)]
pub(crate) async fn over_time(
    State(app): Shared,
    Path(which): Path<Repetition>,
) -> Result<Json<OverTime>, ApiError> {
    app.blocking(move |app| Ok(Json(shown(&app.repetition(which)?)?))).await
}

/// A repetition over time.
pub(super) fn shown(repetition: &StoredRepetition) -> Result<OverTime, ApiError> {
    let summary = repetition.summary.as_ref();
    let interval = SHORTEST.max(summary.map_or(SHORTEST, |summary| summary.duration / INTERVALS));
    let flow = |(name, trace): &(String, PathBuf)| {
        let mut received = Throughput { interval, bits: Vec::new() };
        if trace.exists() {
            trunkline_store::read_trace(trace, &mut |record| received.add(record))?;
            received.end(summary.map_or(Duration::ZERO, |summary| summary.duration));
        }
        let of_flow = summary.and_then(|summary| summary.flows.iter().find(|flow| flow.flow == *name));
        let samples = of_flow.map_or(&[][..], |flow| &flow.connection);
        Ok(FlowOverTime {
            flow: name.clone(),
            t: (0..received.bits.len()).map(|place| place as f64 * interval.as_secs_f64()).collect(),
            throughput: received.bits.iter().map(|bits| *bits as f64 / interval.as_secs_f64()).collect(),
            sampled: samples.iter().map(|sample| sample.at.as_secs_f64()).collect(),
            retransmissions: samples.iter().map(|sample| sample.retransmissions.all).collect(),
            retransmissions_by_cause: by_cause(samples),
            window: samples.iter().map(|sample| sample.congestion_window.count()).collect(),
            slow_start_threshold: samples
                .iter()
                .map(|sample| sample.slow_start_threshold.map(Bytes::count))
                .collect(),
            in_flight: samples.iter().map(|sample| sample.in_flight.count()).collect(),
            round_trip: samples
                .iter()
                .map(|sample| sample.smoothed_round_trip.map(Duration::as_secs_f64))
                .collect(),
            pacing_rate: samples.iter().map(|sample| sample.pacing_rate.map(Rate::bits_per_second)).collect(),
        })
    };
    let queue = |link: &LinkSummary| QueueOverTime {
        link: link.link.clone(),
        t: link.backlog_over_time.iter().map(|(at, _)| at.as_secs_f64()).collect(),
        bytes: link.backlog_over_time.iter().map(|(_, waiting)| waiting.count()).collect(),
    };
    let links = summary.into_iter().flat_map(|summary| &summary.links);
    let stalls = summary.and_then(|summary| summary.stalls.as_ref());
    let stalls = stalls.into_iter().flat_map(|stalls| &stalls.over_time);
    Ok(OverTime {
        flows: repetition.traces.iter().map(flow).collect::<Result<_, ApiError>>()?,
        queues: links.filter(|link| !link.backlog_over_time.is_empty()).map(queue).collect(),
        stalls: stalls
            .map(|(start, length)| [start.as_secs_f64(), (*start + *length).as_secs_f64()])
            .collect(),
    })
}

/// Retransmissions by cause over time, of the causes that occurred.
fn by_cause(samples: &[ConnectionSample]) -> BTreeMap<String, Vec<Option<u64>>> {
    let mut causes: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
    for sample in samples {
        for (cause, count) in Retransmissions::CAUSES.into_iter().zip(sample.retransmissions.by_cause()) {
            causes.entry(cause.to_owned()).or_default().push(count);
        }
    }
    causes.retain(|_, counts| counts.iter().any(|count| count.is_some_and(|count| count > 0)));
    causes
}

/// Payload received in equal intervals.
struct Throughput {
    interval: Duration,
    bits: Vec<u64>,
}

impl Throughput {
    /// Adds the intervals until `duration` in which nothing arrived, and the end.
    fn end(&mut self, duration: Duration) {
        let intervals = duration.as_nanos().div_ceil(self.interval.as_nanos()) as usize;
        self.bits.resize(self.bits.len().max(intervals) + 1, 0);
    }

    /// Adds a message in the interval in which it arrived, unless that is long after the end.
    fn add(&mut self, record: &Record) {
        let Some(received) = record.received.filter(|_| record.fate != Fate::Duplicate) else { return };
        let place = (received.since(Time::ZERO).as_nanos() / self.interval.as_nanos()) as usize;
        if place >= self.bits.len() && place < 2 * INTERVALS as usize {
            self.bits.resize(place + 1, 0);
        }
        if let Some(bits) = self.bits.get_mut(place) {
            *bits += 8 * u64::from(record.payload);
        }
    }
}

impl App {
    /// A repetition of a run.
    fn repetition(
        &self,
        Repetition { id, point, repetition }: Repetition,
    ) -> Result<StoredRepetition, ApiError> {
        let run = self.store.run(id)?;
        let mut points = run.points.into_iter().filter(|one| one.index == point);
        let found = points.find_map(|one| one.repetitions.into_iter().find(|one| one.index == repetition));
        found.ok_or_else(|| {
            ApiError::not_found(format_args!("run {id} has no repetition {repetition} of point {point}"))
        })
    }

    /// Location of a trace.
    pub(super) fn trace(&self, which: &Which) -> Result<PathBuf, ApiError> {
        trace(&self.store.run(which.id)?, which)
    }
}

/// Location of a trace of a run.
pub(super) fn trace(run: &StoredRun, which: &Which) -> Result<PathBuf, ApiError> {
    let point = run.points.iter().find(|point| point.index == which.point);
    let repetition = point.and_then(|p| p.repetitions.iter().find(|one| one.index == which.repetition));
    let trace = repetition.and_then(|one| one.traces.iter().find(|(flow, _)| *flow == which.flow));
    let Some((_, path)) = trace else {
        return Err(ApiError::not_found(format_args!(
            "run {} has no trace of flow `{}` in repetition {} of point {}",
            which.id,
            which.flow.escape_debug(),
            which.repetition,
            which.point
        )));
    };
    match path.exists() {
        true => Ok(path.clone()),
        false => Err(ApiError::not_found(
            "the trace is not on this server: it is on the host that measured the run, or not written yet",
        )),
    }
}

/// Time range.
fn range(from: Option<f64>, to: Option<f64>) -> Result<Option<(Time, Time)>, ApiError> {
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let time = |seconds: f64| match seconds.is_finite() {
        true => Ok(Time::from_nanos((seconds.max(0.0) * 1e9) as u64)),
        false => Err(ApiError::input("`from` and `to` must be numbers of seconds")),
    };
    let (from, to) = (time(from.unwrap_or(0.0))?, to.map_or(Ok(Time::MAX), time)?);
    match from < to {
        true => Ok(Some((from, to))),
        false => Err(ApiError::input("`from` must be less than `to`")),
    }
}

/// The format that `/latency` describes.
pub(super) fn packed(series: &LatencySeries) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9 + 12 * series.points.len() + 8 * series.lost.len());
    bytes.extend((series.points.len() as u32).to_le_bytes());
    bytes.push(u8::from(series.is_exact));
    for (at, _) in &series.points {
        bytes.extend(at.as_secs_f64().to_le_bytes());
    }
    for (_, latency) in &series.points {
        bytes.extend((latency.as_secs_f64() as f32).to_le_bytes());
    }
    bytes.extend((series.lost.len() as u32).to_le_bytes());
    for at in &series.lost {
        bytes.extend(at.as_secs_f64().to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_counts_where_it_arrives_and_once() {
        let record = |at_ms: u64, fate: Fate| Record {
            member: 0,
            channel: 0,
            sequence: 0,
            due: Time::ZERO,
            sent: Some(Time::ZERO),
            received: Some(Time::ZERO + Duration::from_millis(at_ms)),
            reflected: None,
            payload: 100,
            fate,
        };
        let mut received = Throughput { interval: SHORTEST, bits: Vec::new() };
        for (at_ms, fate) in
            [(250, Fate::Received), (299, Fate::Late), (260, Fate::Duplicate), (9_000_000, Fate::Received)]
        {
            received.add(&record(at_ms, fate));
        }
        received.add(&Record { received: None, ..record(0, Fate::Lost) });
        assert_eq!(received.bits, [0, 0, 1600]);
        received.end(Duration::from_millis(450));
        assert_eq!(received.bits, [0, 0, 1600, 0, 0, 0]);
        received.end(Duration::ZERO);
        assert_eq!(received.bits.len(), 7, "the end of what arrived after the end");
    }

    #[test]
    fn a_series_is_packed_as_described() {
        let points = vec![(Time::from_nanos(500_000_000), Duration::from_millis(3))];
        let lost = vec![Time::from_nanos(1_000_000_000), Time::from_nanos(2_000_000_000)];
        let series = LatencySeries { is_exact: true, counted: 1, points, lost, lost_counted: 2 };
        let mut expected = vec![1, 0, 0, 0, 1];
        expected.extend(0.5_f64.to_le_bytes());
        expected.extend(0.003_f32.to_le_bytes());
        expected.extend([2, 0, 0, 0]);
        expected.extend(1.0_f64.to_le_bytes());
        expected.extend(2.0_f64.to_le_bytes());
        assert_eq!(packed(&series), expected);
    }

    #[test]
    fn ranges_are_times_in_order() {
        assert_eq!(range(None, None).unwrap(), None);
        assert_eq!(range(Some(1.5), None).unwrap(), Some((Time::from_nanos(1_500_000_000), Time::MAX)));
        assert_eq!(range(Some(-3.0), Some(1.0)).unwrap().unwrap().0, Time::ZERO);
        assert!(range(Some(2.0), Some(1.0)).is_err());
        assert!(range(Some(f64::NAN), None).is_err());
    }
}

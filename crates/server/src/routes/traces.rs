//! Traces: every message of a flow, thinned to what a chart can show.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::unfinished;
use crate::api::{ApiError, Cdf};
use crate::app::Shared;
use crate::extract::{Path, Query};

/// Which trace.
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

/// Which part of a trace, and how finely.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// From when on, in seconds from the start [default: all].
    pub(crate) from: Option<f64>,
    /// Until when.
    pub(crate) to: Option<f64>,
    /// Into how many parts of equal length it is cut, if it has too many messages to show [default: 2000].
    #[param(minimum = 1, maximum = 100_000)]
    pub(crate) buckets: Option<usize>,
    /// How many pixels wide the chart is: for `buckets`, if that is missing.
    #[param(minimum = 1, maximum = 100_000)]
    pub(crate) width: Option<usize>,
}

/// How finely.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Fineness {
    /// How many points [default: 1000].
    #[param(minimum = 2, maximum = 100_000)]
    pub(crate) points: Option<usize>,
}

/// The whole trace as a Parquet file.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/trace.parquet", tag = "runs", params(Which),
    responses((status = 200, body = String, content_type = "application/vnd.apache.parquet"))
)]
pub(crate) async fn parquet(State(_app): Shared, Path(_which): Path<Which>) -> Result<Response, ApiError> {
    unfinished()
}

/// The latency of every message, for a scatter chart, as little-endian binary data: a u32 n, a byte that is 1 if these are all
/// messages, n × f64 (when each was sent, in seconds), n × f32 (its latency in seconds); then a u32 m and m × f64 (when
/// messages were sent that were lost). Of more than 50,000 messages the smallest and the largest latency of each of
/// `buckets`, and two others.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/latency", tag = "runs", params(Which, Part),
    responses((status = 200, body = String, content_type = "application/octet-stream"))
)]
pub(crate) async fn latency(
    State(_app): Shared,
    Path(_which): Path<Which>,
    Query(_part): Query<Part>,
) -> Result<Response, ApiError> {
    unfinished()
}

/// The distribution of the latency of all received messages.
#[utoipa::path(
    get, path = "/runs/{id}/points/{point}/repetitions/{repetition}/flows/{flow}/cdf", tag = "runs", params(Which, Fineness),
    responses((status = 200, body = Cdf))
)]
pub(crate) async fn cdf(
    State(_app): Shared,
    Path(_which): Path<Which>,
    Query(_fineness): Query<Fineness>,
) -> Result<Json<Cdf>, ApiError> {
    unfinished()
}

//! Runs beside each other.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::{ApiError, Comparison, Definition};
use crate::app::Shared;
use crate::extract::Query;
use crate::routes::unfinished;

/// Which runs are compared.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Pair {
    /// The first.
    pub(crate) run: u64,
    /// The second.
    pub(crate) with: u64,
}

/// Compares two runs, figure by figure.
#[utoipa::path(get, path = "/compare", tag = "runs", params(Pair), responses((status = 200, body = Comparison)))]
pub(crate) async fn compare(
    State(_app): Shared,
    Query(_pair): Query<Pair>,
) -> Result<Json<Comparison>, ApiError> {
    unfinished()
}

/// What the figures mean.
#[utoipa::path(get, path = "/definitions", tag = "runs", responses((status = 200, body = Vec<Definition>)))]
pub(crate) async fn definitions() -> Result<Json<Vec<Definition>>, ApiError> {
    unfinished()
}

//! Forms: what can be written into an experiment file, plans, and probes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api::{ApiError, FormSchema, JobStarted, NewPlan, NewProbe};
use crate::app::Shared;
use crate::extract::Body;
use crate::routes::unfinished;

/// All that can be written into an experiment file.
#[utoipa::path(get, path = "/schema", tag = "experiments", responses((status = 200, body = FormSchema)))]
pub(crate) async fn schema() -> Result<Json<FormSchema>, ApiError> {
    unfinished()
}

/// Searches the largest or the smallest value of a key that keeps the limits of an experiment file.
#[utoipa::path(post, path = "/plan", tag = "jobs", request_body = NewPlan, responses((status = 201, body = JobStarted)))]
pub(crate) async fn plan(
    State(_app): Shared,
    Body(_new): Body<NewPlan>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    unfinished()
}

/// Measures what the network does to audio on the way to a reflector, and says how to send it.
#[utoipa::path(post, path = "/probe", tag = "jobs", request_body = NewProbe, responses((status = 201, body = JobStarted)))]
pub(crate) async fn probe(
    State(_app): Shared,
    Body(_new): Body<NewProbe>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    unfinished()
}

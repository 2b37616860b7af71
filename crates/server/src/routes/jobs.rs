//! What the server executes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::unfinished;
use crate::api::{ApiError, Job, JobResult};
use crate::app::Shared;
use crate::extract::Path;

/// Lists what is executed, what waits, and the last that have ended; the newest first.
#[utoipa::path(get, path = "/jobs", tag = "jobs", responses((status = 200, body = Vec<Job>)))]
pub(crate) async fn list(State(_app): Shared) -> Result<Json<Vec<Job>>, ApiError> {
    unfinished()
}

/// A job.
#[utoipa::path(
    get, path = "/jobs/{id}", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 200, body = Job))
)]
pub(crate) async fn job(State(_app): Shared, Path(_id): Path<String>) -> Result<Json<Job>, ApiError> {
    unfinished()
}

/// Stops a job: what was measured is kept. One that has ended stays as it is.
#[utoipa::path(
    post, path = "/jobs/{id}/stop", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 202, body = Job))
)]
pub(crate) async fn stop(
    State(_app): Shared,
    Path(_id): Path<String>,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    unfinished()
}

/// What a job gave: of a plan, a probe or a study. Of a run `/runs/{id}` has it.
#[utoipa::path(
    get, path = "/jobs/{id}/result", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 200, body = JobResult))
)]
pub(crate) async fn result(
    State(_app): Shared,
    Path(_id): Path<String>,
) -> Result<Json<serde_json::Value>, ApiError> {
    unfinished()
}

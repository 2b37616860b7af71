//! What the server executes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api::{ApiError, Job, JobResult, PredictedLatency};
use crate::app::Shared;
use crate::extract::Path;
use crate::jobs;

/// Lists running and waiting jobs, and the last that have ended, newest first.
#[utoipa::path(get, path = "/jobs", tag = "jobs", responses((status = 200, body = Vec<Job>)))]
pub(crate) async fn list(State(app): Shared) -> Json<Vec<Job>> {
    Json(jobs::shown(&app.jobs.all()))
}

/// A job.
#[utoipa::path(
    get, path = "/jobs/{id}", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 200, body = Job))
)]
pub(crate) async fn job(State(app): Shared, Path(id): Path<String>) -> Result<Json<Job>, ApiError> {
    Ok(Json(app.jobs.find(&id)?.shown()))
}

/// Stops a job; its results so far are kept. Has no effect on a job that has ended.
#[utoipa::path(
    post, path = "/jobs/{id}/stop", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 202, body = Job))
)]
pub(crate) async fn stop(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    Ok((StatusCode::ACCEPTED, Json(app.jobs.stop(&id)?.shown())))
}

/// Result of a plan, probe or study. For the result of a run, use `/runs/{id}`.
#[utoipa::path(
    get, path = "/jobs/{id}/result", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 200, body = JobResult))
)]
pub(crate) async fn result(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let job = app.jobs.find(&id)?;
    match (job.result(), job.run()) {
        (Some(result), _) => Ok(Json(result)),
        (None, _) if !job.state().is_over() => {
            Err(ApiError::conflict(format_args!("job `{id}` has not ended yet, so it has no result")))
        }
        (None, Some(run)) => {
            Err(ApiError::not_found(format_args!("the result of job `{id}` is run {run}: /runs/{run}")))
        }
        (None, None) => Err(ApiError::not_found(format_args!("job `{id}` has ended without a result"))),
    }
}

/// Latencies that the simulator gives the flows of a run which is measured in real time, by point. They are known before the
/// job has a run; empty for other jobs.
#[utoipa::path(
    get, path = "/jobs/{id}/prediction", tag = "jobs", params(("id" = String, Path, description = "The job")),
    responses((status = 200, body = Vec<PredictedLatency>))
)]
pub(crate) async fn prediction(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<Vec<PredictedLatency>>, ApiError> {
    Ok(Json(app.jobs.find(&id)?.predicted().to_vec()))
}

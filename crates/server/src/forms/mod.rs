//! Forms: what can be written into an experiment file, plans, and probes.

mod advise;
mod search;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use trunkline_editor::form::FormSchema;

use crate::api::{ApiError, JobKind, JobStarted, NewPlan, NewProbe};
use crate::app::Shared;
use crate::extract::Body;
use crate::jobs::{Needs, NewJob};

/// Everything that can be written into an experiment file.
#[utoipa::path(get, path = "/schema", tag = "experiments", responses((status = 200, body = FormSchema)))]
pub(crate) async fn schema() -> Result<Json<FormSchema>, ApiError> {
    Ok(Json(trunkline_editor::form_schema()))
}

/// Searches the largest or the smallest value of a key that keeps the limits of an experiment file.
#[utoipa::path(post, path = "/plan", tag = "jobs", request_body = NewPlan, responses((status = 201, body = JobStarted)))]
pub(crate) async fn plan(
    State(app): Shared,
    Body(new): Body<NewPlan>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    // Everything is judged before there is a job: bad input starts nothing.
    let planned = app.blocking(move |app| search::Planned::new(app, new)).await?;
    let new = NewJob { kind: JobKind::Plan, title: planned.title(), needs: planned.needs() };
    let job = app.start(new, move |app, job| planned.search(app, job))?;
    Ok((StatusCode::CREATED, Json(JobStarted { job: job.id().to_owned() })))
}

/// Measures what the network does to audio on the way to a reflector, and recommends how to send it.
#[utoipa::path(post, path = "/probe", tag = "jobs", request_body = NewProbe, responses((status = 201, body = JobStarted)))]
pub(crate) async fn probe(
    State(app): Shared,
    Body(new): Body<NewProbe>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    let asked = advise::Asked::new(new)?;
    let new = NewJob { kind: JobKind::Probe, title: asked.title(), needs: Needs::Machine };
    let job = app.start(new, move |_, job| asked.measure(job))?;
    Ok((StatusCode::CREATED, Json(JobStarted { job: job.id().to_owned() })))
}

//! Experiment files: checked, drawn and changed.

use axum::Json;
use axum::extract::State;

use crate::api::{ApiError, Checked, Drawn, Edited, Edits, Example, Text};
use crate::app::Shared;
use crate::extract::Body;
use crate::routes::unfinished;

/// Whether an experiment file can be run, and what it would do.
#[utoipa::path(post, path = "/check", tag = "experiments", request_body = Text, responses((status = 200, body = Checked)))]
pub(crate) async fn check(State(_app): Shared, Body(_text): Body<Text>) -> Result<Json<Checked>, ApiError> {
    unfinished()
}

/// How an experiment file looks.
#[utoipa::path(post, path = "/drawing", tag = "experiments", request_body = Text, responses((status = 200, body = Drawn)))]
pub(crate) async fn drawing(State(_app): Shared, Body(_text): Body<Text>) -> Result<Json<Drawn>, ApiError> {
    unfinished()
}

/// Changes an experiment file; its comments and its layout are kept.
#[utoipa::path(post, path = "/edit", tag = "experiments", request_body = Edits, responses((status = 200, body = Edited)))]
pub(crate) async fn edit(State(_app): Shared, Body(_edits): Body<Edits>) -> Result<Json<Edited>, ApiError> {
    unfinished()
}

/// Experiment files to begin with.
#[utoipa::path(get, path = "/examples", tag = "experiments", responses((status = 200, body = Vec<Example>)))]
pub(crate) async fn examples() -> Result<Json<Vec<Example>>, ApiError> {
    unfinished()
}

//! Published studies.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::api::{ApiError, JobStarted, NewStudy, Paper, Study};
use crate::app::Shared;
use crate::extract::{Body, Path};
use crate::routes::unfinished;

/// Lists the studies that can be repeated.
#[utoipa::path(get, path = "/papers", tag = "studies", responses((status = 200, body = Vec<Paper>)))]
pub(crate) async fn list() -> Result<Json<Vec<Paper>>, ApiError> {
    unfinished()
}

/// A study with its tables: as published, and as we find them if that is kept.
#[utoipa::path(
    get, path = "/papers/{name}", tag = "studies", params(("name" = String, Path, description = "The study")),
    responses((status = 200, body = Study))
)]
pub(crate) async fn study(State(_app): Shared, Path(_name): Path<String>) -> Result<Json<Study>, ApiError> {
    unfinished()
}

/// Repeats a study in the simulator.
#[utoipa::path(
    post, path = "/papers/{name}", tag = "studies", params(("name" = String, Path, description = "The study")),
    request_body = NewStudy, responses((status = 201, body = JobStarted))
)]
pub(crate) async fn repeat(
    State(_app): Shared,
    Path(_name): Path<String>,
    Body(_new): Body<NewStudy>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    unfinished()
}

/// A figure of a study, if what we found is kept: `NAME.svg` or `NAME.png`.
#[utoipa::path(
    get, path = "/papers/{name}/figures/{file}", tag = "studies",
    params(
        ("name" = String, Path, description = "The study"),
        ("file" = String, Path, description = "The figure's name with `.svg` or `.png`"),
    ),
    responses((status = 200, content((String = "image/svg+xml"), (String = "image/png"))))
)]
pub(crate) async fn figure(
    State(_app): Shared,
    Path((_name, _file)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    unfinished()
}

/// A file of a study: an experiment file, or what one names.
#[utoipa::path(
    get, path = "/papers/{name}/files/{path}", tag = "studies",
    params(
        ("name" = String, Path, description = "The study"),
        ("path" = String, Path, description = "One of the study's `files`; slashes as %2F"),
    ),
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn file(Path((_name, _path)): Path<(String, String)>) -> Result<Response, ApiError> {
    unfinished()
}

//! Stored runs: listed, begun, resumed, shown, marked, taken elsewhere and removed.

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::unfinished;
use crate::api::{
    ApiError, Backend, FigureName, Imported, JobStarted, NewRun, Report, Run, RunList, RunStarted, Status,
};
use crate::app::Shared;
use crate::extract::{Body, Path, Query};

/// Which runs are listed.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// A part of the experiment's name, in whatever case.
    pub(crate) name: Option<String>,
    /// On what they were executed.
    #[param(inline)]
    pub(crate) backend: Option<Backend>,
    /// How far they are.
    #[param(inline)]
    pub(crate) status: Option<Status>,
    /// With what they are marked.
    pub(crate) tag: Option<String>,
    /// Started then or later.
    pub(crate) since: Option<jiff::Timestamp>,
    /// Started before.
    pub(crate) until: Option<jiff::Timestamp>,
    /// How many on a page [default: 50].
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<usize>,
    /// Only with smaller numbers than this: `next` of the page before.
    pub(crate) before: Option<u64>,
}

/// Lists runs, the newest first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(Wanted), responses((status = 200, body = RunList)))]
pub(crate) async fn list(
    State(_app): Shared,
    Query(_wanted): Query<Wanted>,
) -> Result<Json<RunList>, ApiError> {
    unfinished()
}

/// Begins a run.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = NewRun, responses((status = 201, body = RunStarted)))]
pub(crate) async fn begin(
    State(_app): Shared,
    Body(_new): Body<NewRun>,
) -> Result<(StatusCode, Json<RunStarted>), ApiError> {
    unfinished()
}

/// Takes in a run that another store has exported.
#[utoipa::path(
    post, path = "/runs/import", tag = "runs",
    request_body(content = String, content_type = "application/x-tar", description = "What `export` gives"),
    responses((status = 200, body = Imported))
)]
pub(crate) async fn import(State(_app): Shared, _archive: Bytes) -> Result<Json<Imported>, ApiError> {
    unfinished()
}

/// A run with its results.
#[utoipa::path(
    get, path = "/runs/{id}", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Run))
)]
pub(crate) async fn run(State(_app): Shared, Path(_id): Path<u64>) -> Result<Json<Run>, ApiError> {
    unfinished()
}

/// Removes a run with all its files.
#[utoipa::path(
    delete, path = "/runs/{id}", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 204))
)]
pub(crate) async fn remove(State(_app): Shared, Path(_id): Path<u64>) -> Result<StatusCode, ApiError> {
    unfinished()
}

/// Marks a run.
#[utoipa::path(
    put, path = "/runs/{id}/tags/{tag}", tag = "runs",
    params(("id" = u64, Path, description = "The run's number"), ("tag" = String, Path, description = "A word or two")),
    responses((status = 204))
)]
pub(crate) async fn tag(
    State(_app): Shared,
    Path((_id, _tag)): Path<(u64, String)>,
) -> Result<StatusCode, ApiError> {
    unfinished()
}

/// Takes a mark off.
#[utoipa::path(
    delete, path = "/runs/{id}/tags/{tag}", tag = "runs",
    params(("id" = u64, Path, description = "The run's number"), ("tag" = String, Path, description = "A mark of it")),
    responses((status = 204))
)]
pub(crate) async fn untag(
    State(_app): Shared,
    Path((_id, _tag)): Path<(u64, String)>,
) -> Result<StatusCode, ApiError> {
    unfinished()
}

/// Finishes a partial run: measures what it lacks.
#[utoipa::path(
    post, path = "/runs/{id}/resume", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 201, body = JobStarted))
)]
pub(crate) async fn resume(
    State(_app): Shared,
    Path(_id): Path<u64>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    unfinished()
}

/// Stops a run: what was measured is kept, and it can be resumed.
#[utoipa::path(
    post, path = "/runs/{id}/stop", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 202))
)]
pub(crate) async fn stop(State(_app): Shared, Path(_id): Path<u64>) -> Result<StatusCode, ApiError> {
    unfinished()
}

/// The report: one self-contained HTML file.
#[utoipa::path(
    get, path = "/runs/{id}/report", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub(crate) async fn report(State(_app): Shared, Path(_id): Path<u64>) -> Result<Response, ApiError> {
    unfinished()
}

/// The run with all its files as one archive, for `import` elsewhere.
#[utoipa::path(
    get, path = "/runs/{id}/export", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "application/x-tar"))
)]
pub(crate) async fn export(State(_app): Shared, Path(_id): Path<u64>) -> Result<Response, ApiError> {
    unfinished()
}

/// All tables as CSV files, in one archive.
#[utoipa::path(
    get, path = "/runs/{id}/csv", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "application/x-tar"))
)]
pub(crate) async fn csv(State(_app): Shared, Path(_id): Path<u64>) -> Result<Response, ApiError> {
    unfinished()
}

/// Every figure as JSON.
#[utoipa::path(
    get, path = "/runs/{id}/json", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Report))
)]
pub(crate) async fn json(State(_app): Shared, Path(_id): Path<u64>) -> Result<Response, ApiError> {
    unfinished()
}

/// The figures of the report.
#[utoipa::path(
    get, path = "/runs/{id}/figures", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Vec<FigureName>))
)]
pub(crate) async fn figures(
    State(_app): Shared,
    Path(_id): Path<u64>,
) -> Result<Json<Vec<FigureName>>, ApiError> {
    unfinished()
}

/// A figure of the report: `NAME.svg` or `NAME.png`.
#[utoipa::path(
    get, path = "/runs/{id}/figures/{file}", tag = "runs",
    params(
        ("id" = u64, Path, description = "The run's number"),
        ("file" = String, Path, description = "The figure's name with `.svg` or `.png`"),
    ),
    responses((status = 200, content((String = "image/svg+xml"), (String = "image/png"))))
)]
pub(crate) async fn figure(
    State(_app): Shared,
    Path((_id, _file)): Path<(u64, String)>,
) -> Result<Response, ApiError> {
    unfinished()
}

/// Received audio, as a run lists it.
#[utoipa::path(
    get, path = "/runs/{id}/files/{path}", tag = "runs",
    params(
        ("id" = u64, Path, description = "The run's number"),
        ("path" = String, Path, description = "One of `audio` of its repetitions"),
    ),
    responses((status = 200, body = String, content_type = "audio/wav"))
)]
pub(crate) async fn audio(
    State(_app): Shared,
    Path((_id, _path)): Path<(u64, String)>,
) -> Result<Response, ApiError> {
    unfinished()
}

//! What a run found: as a page, figures, tables, and with all its files.

use std::path::{Component, Path as FilePath};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use trunkline_store::StoredRun;
use utoipa::IntoParams;

use crate::access::report_policy;
use crate::api::{ApiError, FigureName, Report};
use crate::app::{App, Shared};
use crate::extract::{Path, Query};
use crate::transfer;

/// Choice of a table.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhichTable {
    /// Only this table, such as `repetitions`, as a CSV file instead of an archive.
    pub(crate) table: Option<String>,
}

/// The report: one self-contained HTML file.
#[utoipa::path(
    get, path = "/runs/{id}/report", tag = "runs",
    params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub(crate) async fn report(State(app): Shared, Path(id): Path<u64>) -> Result<Response, ApiError> {
    let html = app
        .blocking(move |app| app.with_counterpart(id, |run, other| Ok(trunkline_report::html(run, other))))
        .await?;
    Ok(([report_policy(), content("text/html; charset=utf-8")], html).into_response())
}

/// The run with all its files as a tar archive, for `import` into another store.
#[utoipa::path(
    get, path = "/runs/{id}/export", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = String, content_type = "application/x-tar"))
)]
pub(crate) async fn export(State(app): Shared, Path(id): Path<u64>) -> Result<Response, ApiError> {
    let name = app
        .blocking(move |app| {
            let info = app.store.run(id)?.info;
            if info.status == trunkline_store::Status::Running {
                return Err(trunkline_store::StoreError::InUse { id }.into());
            }
            Ok(info.directory.file_name().unwrap_or_default().to_string_lossy().into_owned())
        })
        .await?;
    let body = transfer::written(move |writer| app.store.export(id, writer));
    Ok(download(&format!("{name}.tar"), "application/x-tar", body))
}

/// All tables as CSV files in a tar archive, or one table.
#[utoipa::path(
    get, path = "/runs/{id}/csv", tag = "runs",
    params(("id" = u64, Path, description = "The run's number"), WhichTable),
    responses((status = 200, content((String = "application/x-tar"), (String = "text/csv"))))
)]
pub(crate) async fn csv(
    State(app): Shared,
    Path(id): Path<u64>,
    Query(which): Query<WhichTable>,
) -> Result<Response, ApiError> {
    app.blocking(move |app| {
        let run = app.store.run(id)?;
        let folder = tempfile::tempdir().map_err(ApiError::environment)?;
        let files = trunkline_report::csv(&run, folder.path()).map_err(ApiError::environment)?;
        match which.table {
            Some(table) => {
                let is_it = |file: &&std::path::PathBuf| file.file_stem().is_some_and(|stem| *stem == *table);
                let file = files.iter().find(is_it).ok_or_else(|| {
                    ApiError::not_found(format_args!("run {id} has no table `{}`", table.escape_debug()))
                })?;
                let bytes = std::fs::read(file).map_err(ApiError::environment)?;
                Ok(download(&format!("run-{id}-{table}.csv"), "text/csv; charset=utf-8", bytes.into()))
            }
            None => {
                let mut archive = tar::Builder::new(Vec::new());
                archive.mode(tar::HeaderMode::Deterministic);
                for file in &files {
                    let name = FilePath::new(file.file_name().unwrap_or_default());
                    archive.append_path_with_name(file, name).map_err(ApiError::environment)?;
                }
                let bytes = archive.into_inner().map_err(ApiError::environment)?;
                Ok(download(&format!("run-{id}-csv.tar"), "application/x-tar", bytes.into()))
            }
        }
    })
    .await
}

/// Every figure as JSON.
#[utoipa::path(
    get, path = "/runs/{id}/json", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Report))
)]
pub(crate) async fn json(State(app): Shared, Path(id): Path<u64>) -> Result<Response, ApiError> {
    let json = app
        .blocking(move |app| app.with_counterpart(id, |run, other| Ok(trunkline_report::json(run, other))))
        .await?;
    Ok(Json(json).into_response())
}

/// The figures of the report.
#[utoipa::path(
    get, path = "/runs/{id}/figures", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Vec<FigureName>))
)]
pub(crate) async fn figures(
    State(app): Shared,
    Path(id): Path<u64>,
) -> Result<Json<Vec<FigureName>>, ApiError> {
    app.blocking(move |app| {
        app.with_counterpart(id, |run, other| {
            let names = trunkline_report::figure_names(run, other);
            Ok(Json(names.into_iter().map(|(name, title)| FigureName { name, title }).collect()))
        })
    })
    .await
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
    State(app): Shared,
    Path((id, file)): Path<(u64, String)>,
) -> Result<Response, ApiError> {
    app.blocking(move |app| {
        let none = || ApiError::not_found(format_args!("run {id} has no figure `{}`", file.escape_debug()));
        let (name, ending) = file.rsplit_once('.').ok_or_else(none)?;
        app.with_counterpart(id, |run, other| {
            let svg = trunkline_report::figure_svg(run, other, name).ok_or_else(none)?;
            figure_file(svg, ending).ok_or_else(none)?
        })
    })
    .await
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
    State(app): Shared,
    Path((id, path)): Path<(u64, String)>,
) -> Result<Response, ApiError> {
    let found = app
        .blocking(move |app| {
            let run = app.store.run(id)?;
            let asked = FilePath::new(&path);
            let is_plain = asked.components().all(|part| matches!(part, Component::Normal(_)));
            let mut all = run.points.iter().flat_map(|point| &point.repetitions).flat_map(|one| &one.audio);
            let whole = run.info.directory.join(asked);
            all.find(|audio| is_plain && **audio == whole).cloned().ok_or_else(|| {
                ApiError::not_found(format_args!("run {id} has no file `{}`", path.escape_debug()))
            })
        })
        .await?;
    let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (length, body) = transfer::file(found).await?;
    let mut response = download(&name, "audio/wav", body);
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    Ok(response)
}

impl App {
    /// A run, together with a run of the same experiment on another backend if there is one.
    pub(super) fn with_counterpart<R>(
        &self,
        id: u64,
        show: impl FnOnce(&StoredRun, Option<&StoredRun>) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let run = self.store.run(id)?;
        let counterpart = self.store.counterpart(&run)?;
        show(&run, counterpart.as_ref())
    }
}

/// A figure as a file with this ending; `None` if there are no such files.
pub(crate) fn figure_file(svg: String, ending: &str) -> Option<Result<Response, ApiError>> {
    match ending {
        "svg" => Some(Ok(([content("image/svg+xml")], svg).into_response())),
        "png" => Some(match trunkline_report::chart::png(&svg) {
            Ok(png) => Ok(([content("image/png")], png).into_response()),
            Err(why) => Err(ApiError::environment(format_args!("the figure cannot be drawn: {why}"))),
        }),
        _ => None,
    }
}

/// A body that browsers keep as a file of that name.
pub(crate) fn download(name: &str, kind: &'static str, body: Body) -> Response {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    // These characters are fit for a header.
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"));
    ([content(kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response()
}

fn content(kind: &'static str) -> (HeaderName, HeaderValue) {
    (header::CONTENT_TYPE, HeaderValue::from_static(kind))
}

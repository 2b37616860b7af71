//! Published studies.

mod kept;
mod repeat;
mod shown;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use trunkline_papers::studies;

use crate::api::{ApiError, JobKind, JobStarted, NewStudy, Paper, PaperTable, Study};
use crate::app::{App, Shared};
use crate::extract::{Body, Path};
use crate::jobs::{Job, NewJob};

/// Lists the studies that can be repeated.
#[utoipa::path(get, path = "/papers", tag = "studies", responses((status = 200, body = Vec<Paper>)))]
pub(crate) async fn list(State(app): Shared) -> Result<Json<Vec<Paper>>, ApiError> {
    app.blocking(|app| {
        let shown = studies().iter().map(|study| Ok(paper(app, &kept::ours(app, study)?.0)));
        Ok(Json(shown.collect::<Result<_, ApiError>>()?))
    })
    .await
}

/// A study with its tables: the published values, and ours as they were found here last, or as the program came with them.
#[utoipa::path(
    get, path = "/papers/{name}", tag = "studies", params(("name" = String, Path, description = "The study")),
    responses((status = 200, body = Study))
)]
pub(crate) async fn study(State(app): Shared, Path(name): Path<String>) -> Result<Json<Study>, ApiError> {
    let study = find(&name)?;
    app.blocking(move |app| {
        let (results, kept) = kept::ours(app, study)?;
        let kept = kept.map_or_else(Vec::new, |kept| kept.tables);
        let is_here = |name: &str| kept.iter().any(|table| table.name == name && table.ours);
        let with_origin = |table: PaperTable| PaperTable { here: is_here(&table.name), ..table };
        Ok(Json(Study {
            paper: paper(app, &results),
            tables: shown::tables(&results).into_iter().map(with_origin).collect(),
            constants: study.constants(),
            assumed: study.elsewhere.len(),
            files: study.experiment_files().map(str::to_owned).collect(),
            words: shown::words(study),
            real_time: shown::real_time(study)?,
            job: at_work(app, study).map(|job| job.id().to_owned()),
        }))
    })
    .await
}

/// Repeats a study: simulates it, and measures the tables requested on the wire and those always measured.
#[utoipa::path(
    post, path = "/papers/{name}", tag = "studies", params(("name" = String, Path, description = "The study")),
    request_body = NewStudy, responses((status = 201, body = JobStarted))
)]
pub(crate) async fn repeat(
    State(app): Shared,
    Path(name): Path<String>,
    Body(new): Body<NewStudy>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    let study = find(&name)?;
    let wanted = repeat::Wanted::new(study, new)?;
    wanted.precheck(&app)?;
    if let Some(job) = at_work(&app, study) {
        return Err(ApiError::conflict(format_args!(
            "`{name}` is being repeated by job {}: wait until it ends, or stop it",
            job.id()
        )));
    }
    let new = NewJob { kind: JobKind::Paper, title: title(study), needs: wanted.needs() };
    let job = app.start(new, move |app, job| wanted.repeat(app, job))?;
    Ok((StatusCode::CREATED, Json(JobStarted { job: job.id().to_owned() })))
}

/// A figure of a study, if there are values of ours: `NAME.svg`, or `NAME.png` of one that was repeated here.
#[utoipa::path(
    get, path = "/papers/{name}/figures/{file}", tag = "studies",
    params(
        ("name" = String, Path, description = "The study"),
        ("file" = String, Path, description = "The figure's name with `.svg` or `.png`"),
    ),
    responses((status = 200, content((String = "image/svg+xml"), (String = "image/png"))))
)]
pub(crate) async fn figure(
    State(app): Shared,
    Path((name, file)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let study = find(&name)?;
    let (figure, kind) = match file.rsplit_once('.') {
        Some((figure, "svg")) => (figure, "image/svg+xml"),
        Some((figure, "png")) => (figure, "image/png"),
        _ => return Err(ApiError::not_found("a figure's name ends in `.svg` or `.png`")),
    };
    // A name that the study has is a name of a file of its folder.
    if !shown::figures(study).any(|(known, ..)| known == figure) {
        return Err(ApiError::not_found(format_args!(
            "`{name}` has no figure `{}`; `GET /papers/{name}` names them",
            figure.escape_debug()
        )));
    }
    let figure = figure.to_owned();
    let ending = if kind == "image/png" { "png" } else { "svg" };
    let bytes = app.blocking(move |app| kept::figure(app, study, &figure, ending)).await?;
    Ok(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}

/// A file of a study: an experiment file, or a file that one names.
#[utoipa::path(
    get, path = "/papers/{name}/files/{path}", tag = "studies",
    params(
        ("name" = String, Path, description = "The study"),
        ("path" = String, Path, description = "One of the study's `files`; slashes as %2F"),
    ),
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn file(Path((name, path)): Path<(String, String)>) -> Result<Response, ApiError> {
    let text = find(&name)?.file(&path).ok_or_else(|| {
        ApiError::not_found(format_args!(
            "`{name}` has no file `{}`; `GET /papers/{name}` names them",
            path.escape_debug()
        ))
    })?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

fn paper(app: &App, results: &trunkline_papers::Results) -> Paper {
    shown::paper(results, |figure| kept::has_figure(app, results.study, figure))
}

fn find(name: &str) -> Result<&'static trunkline_papers::Study, ApiError> {
    trunkline_papers::find(name).ok_or_else(|| {
        let known: Vec<String> = studies().iter().map(|study| format!("`{}`", study.name)).collect();
        let name = name.escape_debug();
        ApiError::not_found(format_args!("there is no study `{name}`; known: {}", known.join(", ")))
    })
}

/// The job that repeats a study now, or will.
fn at_work(app: &App, study: &trunkline_papers::Study) -> Option<std::sync::Arc<Job>> {
    let is_of = |job: &std::sync::Arc<Job>| {
        let shown = job.shown();
        shown.kind == JobKind::Paper && shown.title == title(study) && !shown.state.is_over()
    };
    app.jobs.all().into_iter().find(is_of)
}

fn title(study: &trunkline_papers::Study) -> String {
    format!("{} ({})", study.title, study.year)
}

#[cfg(test)]
mod tests;

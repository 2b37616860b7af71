//! Stored runs: listed, begun, resumed, stopped, marked, taken in and removed.

use std::path::Path as FilePath;
use std::time::Duration;

use axum::Json;
use axum::body::Body as RequestBody;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use serde::Deserialize;
use trunkline_experiment::{Experiment, Flow};
use trunkline_metrics::summary::FlowSummary;
use trunkline_store::{Imported as Taken, RunFilter, StoredRun};
use utoipa::IntoParams;

use crate::api::{
    self, ApiError, Backend, ErrorKind, FlowSound, Imported, JobStarted, NewRun, Run, RunInfo, RunList,
    RunStarted, Status,
};
use crate::app::{App, Shared};
use crate::extract::{Body, Path, Query};
use crate::jobs::Job;
use crate::measure;
use crate::transfer;

/// Default number of runs on a page.
const PAGE: usize = 50;
/// Maximum number of runs on a page.
const LONGEST_PAGE: usize = 1000;
/// How long a response waits for the number of a run that starts at once.
const BEGINS_WITHIN: Duration = Duration::from_millis(500);

/// Filters of runs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Part of the experiment's name, ignoring case.
    pub(crate) name: Option<String>,
    /// The backend.
    #[param(inline)]
    pub(crate) backend: Option<Backend>,
    /// The status.
    #[param(inline)]
    pub(crate) status: Option<Status>,
    /// A tag.
    pub(crate) tag: Option<String>,
    /// Only runs started at or after this time.
    pub(crate) since: Option<jiff::Timestamp>,
    /// Only runs started before this time.
    pub(crate) until: Option<jiff::Timestamp>,
    /// Number of runs on a page [default: 50].
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<usize>,
    /// Only runs with smaller numbers; pass `next` of the previous page.
    pub(crate) before: Option<u64>,
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(Wanted), responses((status = 200, body = RunList)))]
pub(crate) async fn list(
    State(app): Shared,
    Query(wanted): Query<Wanted>,
) -> Result<Json<RunList>, ApiError> {
    let limit = wanted.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(ApiError::input(format_args!("`limit` must be from 1 to {LONGEST_PAGE}, not {limit}")));
    }
    if let Some(before) = wanted.before.filter(|before| i64::try_from(*before).is_err()) {
        return Err(ApiError::input(format_args!("`before` is the number of a run, not {before}")));
    }
    let filter = RunFilter {
        name: wanted.name,
        backend: wanted.backend.map(Into::into),
        status: wanted.status.map(Into::into),
        tags: wanted.tag.into_iter().collect(),
        since: wanted.since,
        before: wanted.until,
    };
    app.blocking(move |app| {
        let mut runs = app.store.runs()?;
        runs.retain(|run| filter.matches(run));
        let total = runs.len();
        runs.reverse();
        runs.retain(|run| wanted.before.is_none_or(|before| run.id < before));
        let is_last = runs.len() <= limit;
        runs.truncate(limit);
        let answers = app.answers.of(&app.store, &runs);
        let page: Vec<RunInfo> =
            runs.iter().zip(answers).map(|(run, answer)| RunInfo { answer, ..app.shown(run) }).collect();
        let next = page.last().filter(|_| !is_last).map(|run| run.summary.id);
        Ok(Json(RunList { runs: page, total, next }))
    })
    .await
}

/// Starts a run.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = NewRun, responses((status = 201, body = RunStarted)))]
pub(crate) async fn begin(
    State(app): Shared,
    Body(new): Body<NewRun>,
) -> Result<(StatusCode, Json<RunStarted>), ApiError> {
    let wanted = app.blocking(move |app| measure::wanted(app, new)).await?;
    let job = measure::begin(&app, wanted)?;
    let run = begun(&job).await;
    Ok((StatusCode::CREATED, Json(RunStarted { job: job.id().to_owned(), run })))
}

/// Imports a run that was exported from another store.
#[utoipa::path(
    post, path = "/runs/import", tag = "runs",
    request_body(content = String, content_type = "application/x-tar", description = "An archive from `export`"),
    responses((status = 200, body = Imported))
)]
pub(crate) async fn import(
    State(app): Shared,
    headers: HeaderMap,
    archive: RequestBody,
) -> Result<Json<Imported>, ApiError> {
    // What no form of another site can send.
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !matches!(kind, "application/x-tar" | "application/octet-stream") {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::Input,
            "the body must be an archive: send it with `Content-Type: application/x-tar`",
        ));
    }
    let archive = transfer::reader(archive);
    app.blocking(move |app| {
        let (run, new) = match app.store.import(archive)? {
            Taken::New(run) => (run, true),
            Taken::Known(run) => (run, false),
        };
        Ok(Json(Imported { run, new }))
    })
    .await
}

/// A run with its results.
#[utoipa::path(
    get, path = "/runs/{id}", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 200, body = Run))
)]
pub(crate) async fn run(State(app): Shared, Path(id): Path<u64>) -> Result<Json<Run>, ApiError> {
    app.blocking(move |app| {
        let run = app.store.run(id)?;
        let counterpart = app.store.counterpart(&run)?;
        Ok(Json(Run {
            info: app.shown(&run.info),
            ..whole(&run, counterpart.as_ref(), app.stored_experiment(&run).ok().as_ref())
        }))
    })
    .await
}

/// A run with its results, without the job that executes it.
pub(super) fn whole(
    run: &StoredRun,
    counterpart: Option<&StoredRun>,
    experiment: Option<&Experiment>,
) -> Run {
    let audible = experiment.map(audible).unwrap_or_default();
    let points = run.points.iter().map(|point| api::RunPoint {
        index: point.index,
        choice: point.choice.clone(),
        values: trunkline_report::shown_values(point, &run.axes),
        repetitions: point
            .repetitions
            .iter()
            .map(|one| repetition(one, &run.info.directory, &audible))
            .collect(),
    });
    Run {
        info: RunInfo { summary: (&run.info).into(), job: None, answer: None },
        axes: run.axes.iter().map(Into::into).collect(),
        limits: run.limits.iter().map(Into::into).collect(),
        points: points.collect(),
        counterpart: counterpart.map(|other| other.info.id),
        figures: trunkline_report::json(run, counterpart),
        text: run.text.clone(),
    }
}

/// Removes a run with all its files.
#[utoipa::path(
    delete, path = "/runs/{id}", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 204))
)]
pub(crate) async fn remove(State(app): Shared, Path(id): Path<u64>) -> Result<StatusCode, ApiError> {
    app.blocking(move |app| {
        app.store.remove(id)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Adds a tag to a run.
#[utoipa::path(
    put, path = "/runs/{id}/tags/{tag}", tag = "runs",
    params(("id" = u64, Path, description = "The run's number"), ("tag" = String, Path, description = "A word or two")),
    responses((status = 204))
)]
pub(crate) async fn tag(
    State(app): Shared,
    Path((id, tag)): Path<(u64, String)>,
) -> Result<StatusCode, ApiError> {
    let tag = measure::tag(&tag)?;
    app.blocking(move |app| {
        app.store.tag(id, &tag, true)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Removes a tag from a run.
#[utoipa::path(
    delete, path = "/runs/{id}/tags/{tag}", tag = "runs",
    params(("id" = u64, Path, description = "The run's number"), ("tag" = String, Path, description = "One of its tags")),
    responses((status = 204))
)]
pub(crate) async fn untag(
    State(app): Shared,
    Path((id, tag)): Path<(u64, String)>,
) -> Result<StatusCode, ApiError> {
    app.blocking(move |app| {
        app.store.tag(id, tag.trim(), false)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Resumes a partial run and measures the missing repetitions.
#[utoipa::path(
    post, path = "/runs/{id}/resume", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 201, body = JobStarted))
)]
pub(crate) async fn resume(
    State(app): Shared,
    Path(id): Path<u64>,
) -> Result<(StatusCode, Json<JobStarted>), ApiError> {
    if let Some(job) = app.jobs.of_run(id) {
        return Err(ApiError::conflict(format_args!(
            "run {id} is being measured already, by job `{}`",
            job.id()
        )));
    }
    let wanted = app.blocking(move |app| measure::lacking(app, id)).await?;
    let job = measure::begin(&app, wanted)?;
    Ok((StatusCode::CREATED, Json(JobStarted { job: job.id().to_owned() })))
}

/// Stops a run. Its results so far are kept, and it can be resumed.
#[utoipa::path(
    post, path = "/runs/{id}/stop", tag = "runs", params(("id" = u64, Path, description = "The run's number")),
    responses((status = 202))
)]
pub(crate) async fn stop(State(app): Shared, Path(id): Path<u64>) -> Result<StatusCode, ApiError> {
    if let Some(job) = app.jobs.of_run(id) {
        app.jobs.stop(job.id())?;
        return Ok(StatusCode::ACCEPTED);
    }
    app.blocking(move |app| {
        let status = app.store.run(id)?.info.status;
        Err(ApiError::conflict(match status {
            trunkline_store::Status::Running => {
                format!("run {id} is being measured by another process, which must stop it")
            }
            _ => format!("run {id} is not being measured"),
        }))
    })
    .await
}

impl App {
    /// A run as clients see it.
    pub(crate) fn shown(&self, info: &trunkline_store::RunInfo) -> RunInfo {
        let job = match info.status {
            trunkline_store::Status::Running => self.jobs.of_run(info.id).map(|job| job.id().to_owned()),
            _ => None,
        };
        RunInfo { summary: info.into(), job, answer: None }
    }
}

/// The number of the job's run, if the job starts at once.
async fn begun(job: &Job) -> Option<u64> {
    let mut watching = job.watch(Some(0));
    let begins = async {
        loop {
            // Asked after the wait has been prepared, so that nothing is missed.
            watching.news();
            if let Some(run) = job.run() {
                return Some(run);
            }
            if job.state().is_over() {
                return None;
            }
            watching.changed().await;
        }
    };
    tokio::time::timeout(BEGINS_WITHIN, begins).await.unwrap_or_default()
}

/// The flows of an experiment whose channels have sound, with their numbers of sinks.
pub(super) fn audible(experiment: &Experiment) -> Vec<(String, u32)> {
    let flows = &experiment.points.first().scenario.flows;
    let audible = flows.iter().filter(|flow| trunkline_runner::has_sound(flow));
    audible.map(|Flow { meta, .. }| (meta.name.clone(), meta.ids() / meta.members.max(1))).collect()
}

fn repetition(
    one: &trunkline_store::StoredRepetition,
    folder: &FilePath,
    audible: &[(String, u32)],
) -> api::RunRepetition {
    let sound = |flow: &FlowSummary| {
        let (name, sinks) = audible.iter().find(|(name, _)| *name == flow.flow)?;
        let has_trace = one.traces.iter().any(|(flow, _)| flow == name);
        has_trace.then(|| FlowSound {
            flow: name.clone(),
            members: flow.members.saturating_mul(*sinks),
            channels: flow.channels as u16, // As many as the file may ask for.
        })
    };
    let inside =
        |path: &FilePath| path.strip_prefix(folder).ok().map(|path| path.to_string_lossy().into_owned());
    api::RunRepetition {
        index: one.index,
        partial: one.partial,
        summarised: one.summary.is_some(),
        traces: one.traces.iter().map(|(flow, _)| api::TraceName { flow: flow.clone() }).collect(),
        sounds: one.summary.iter().flat_map(|summary| &summary.flows).filter_map(sound).collect(),
        audio: one.audio.iter().filter_map(|path| inside(path)).collect(),
    }
}

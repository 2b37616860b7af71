//! Watching jobs.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::unfinished;
use crate::api::ApiError;
use crate::app::Shared;
use crate::extract::Query;

/// What to watch.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watched {
    /// A job; all of them if missing, but then only their `job` events.
    pub(crate) job: Option<String>,
}

/// Server-sent events of a job, at most ten of each kind a second: `job` (a Job), `records` (Records), `repetition`
/// (RepetitionDone), `warning` (Warning) and `end` (End), which is the last. Whoever comes back with `Last-Event-ID` misses
/// nothing that is still kept; whoever is too slow is told the newest.
#[utoipa::path(
    get, path = "/events", tag = "jobs", params(Watched),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(_app): Shared,
    Query(_watched): Query<Watched>,
) -> Result<Response, ApiError> {
    unfinished()
}

//! Watching jobs.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::api::{self, ApiError};
use crate::app::{App, Shared};
use crate::extract::Query;
use crate::jobs::{Job, Watching};

/// Interval between events.
const EVERY: Duration = Duration::from_millis(100);
/// Interval between events if all jobs are watched.
const EVERY_OF_ALL: Duration = Duration::from_millis(500);
/// Interval of keep-alives, by which proxies and this server detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Filter of events.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Watched {
    /// The job to watch. Without it, the `job` events of all jobs.
    pub(crate) job: Option<String>,
}

/// Server-sent events of a job, at most ten of each kind per second: `job` (a Job), `records` (Records), `repetition`
/// (RepetitionDone), `warning` (Warning) and, last, `end` (End). A client that reconnects with `Last-Event-ID` receives the
/// buffered events that it missed. A slow client skips to the newest events.
#[utoipa::path(
    get, path = "/events", tag = "jobs", params(Watched),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): Shared,
    Query(watched): Query<Watched>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let place = Arc::clone(&app.watchers)
        .try_acquire_owned()
        .map_err(|_| ApiError::busy("too many clients are watching: close some of the page's tabs"))?;
    let closing = app.closing.subscribe();
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let Some(id) = watched.job else {
        let watcher =
            AllWatcher { app, told: HashMap::new(), pending: VecDeque::new(), closing, _place: place };
        let events = stream::unfold(watcher, AllWatcher::next);
        return Ok(Sse::new(events).keep_alive(keep_alive).into_response());
    };
    let job = app.jobs.find(&id)?;
    let last = headers.get("last-event-id").and_then(|last| last.to_str().ok()?.parse().ok());
    let watching = job.watch(last);
    let watcher = Watcher {
        job,
        watching,
        pending: VecDeque::new(),
        shown: None,
        told_at: None,
        is_over: false,
        closing,
        _place: place,
    };
    Ok(Sse::new(stream::unfold(watcher, Watcher::next)).keep_alive(keep_alive).into_response())
}

type Told<W> = Option<(Result<Event, Infallible>, W)>;

/// One client that watches one job.
struct Watcher {
    job: Arc<Job>,
    watching: Watching,
    pending: VecDeque<Event>,
    /// The last state of the job that was sent.
    shown: Option<api::Job>,
    told_at: Option<Instant>,
    is_over: bool,
    closing: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Watcher {
    async fn next(mut self) -> Told<Watcher> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((Ok(event), self));
            }
            if self.is_over || *self.closing.borrow() {
                return None;
            }
            if let Some(at) = self.told_at {
                tokio::time::sleep_until(at + EVERY).await;
            }
            self.gather();
            if self.pending.is_empty() {
                tokio::select! {
                    () = self.watching.changed() => {}
                    _ = self.closing.changed() => {}
                }
            } else {
                self.told_at = Some(Instant::now());
            }
        }
    }

    /// Events to send now. The end follows the final state of the job.
    fn gather(&mut self) {
        let news = self.watching.news();
        let is_over = self.job.state().is_over();
        let shown = self.job.shown();
        if self.shown.as_ref() != Some(&shown) {
            self.pending.extend(Event::default().event("job").json_data(&shown).ok());
            self.shown = Some(shown);
        }
        for event in &news {
            self.pending.push_back(
                Event::default().id(event.id.to_string()).event(event.name).data(event.data.as_str()),
            );
        }
        // Whoever comes back after the end has seen it.
        self.is_over = is_over && (news.is_empty() || news.iter().any(|event| event.name == "end"));
    }
}

/// One client that watches all jobs.
struct AllWatcher {
    app: Arc<App>,
    told: HashMap<String, api::Job>,
    pending: VecDeque<Event>,
    closing: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl AllWatcher {
    async fn next(mut self) -> Told<AllWatcher> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((Ok(event), self));
            }
            if *self.closing.borrow() {
                return None;
            }
            let mut jobs = crate::jobs::shown(&self.app.jobs.all());
            // The oldest first.
            jobs.reverse();
            self.told.retain(|id, _| jobs.iter().any(|job| job.id == *id));
            for job in jobs {
                if self.told.get(&job.id) != Some(&job) {
                    self.pending.extend(Event::default().event("job").json_data(&job).ok());
                    self.told.insert(job.id.clone(), job);
                }
            }
            if self.pending.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(EVERY_OF_ALL) => {}
                    _ = self.closing.changed() => {}
                }
            }
        }
    }
}

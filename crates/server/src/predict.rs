//! Predictions for a drawing: a short simulation at every edit, which the next edit ends.
//!
//! Its simulation is bounded in wall time, in hosts and members of the file, and in the number of predictions at once. It is not
//! a job, and the store does not keep it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trunkline_experiment::{Experiment, Progress, Scenario, Supervisor};

use crate::api::{ApiError, NewPrediction, PredictedLatency, PredictedPoint, Prediction};
use crate::app::{App, Shared};
use crate::extract::Body;
use crate::jobs::Job;

/// Wall time for a prediction without a budget, in milliseconds.
const BUDGET_MS: u32 = 120;
/// The largest budget, in milliseconds.
const LARGEST_BUDGET_MS: u32 = 10_000;
/// Predictions that wait for the one at work.
const MAX_WAITING: usize = 16;
/// Members of flows, and hosts, up to which a file is simulated without being asked for.
const MAX_UNASKED: u64 = 5_000;
/// The same of one that is asked for, by a budget of its own.
pub(crate) const MAX_ASKED: u64 = 100_000;
/// Points of which the names are given.
const MAX_NAMED: usize = 1_000;
/// Wall time for the predictions before a measurement, and the most and the least of it for a point. With many points, only the
/// first ones are predicted.
const BEFORE: Duration = Duration::from_secs(4);
const MOST_FOR_POINT: Duration = Duration::from_millis(400);
const LEAST_FOR_POINT: Duration = Duration::from_millis(40);

/// The place of the one simulation of a kind that is at work.
#[derive(Debug)]
pub(crate) struct Predictions {
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Predictions {
    pub(crate) fn new() -> Predictions {
        Predictions { turn: Arc::new(Semaphore::new(1)), waiting: AtomicUsize::new(0) }
    }

    /// Waits until no other simulation of this kind is at work. Its place is that of what is returned.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let _waits = Waits::begin(&self.waiting)?;
        let closed = |_| ApiError::busy("the server is shutting down");
        Arc::clone(&self.turn).acquire_owned().await.map_err(closed)
    }
}

/// Simulates one repetition of a point for a moment, and stores nothing. The simulation ends when its client closes the
/// connection, when the budget is used up, or when a measurement in real time begins; its figures are of the time that was
/// simulated until then.
#[utoipa::path(
    post, path = "/predict", tag = "experiments", request_body = NewPrediction, responses((status = 200, body = Prediction))
)]
pub(crate) async fn predict(
    State(app): Shared,
    Body(new): Body<NewPrediction>,
) -> Result<Json<Prediction>, ApiError> {
    // Dropped with this request: when its client is gone, nobody waits for the simulation.
    let (_gone, stop) = Gone::new();
    let turn = app.predictions.turn().await?;
    app.blocking(move |app| {
        // Kept until the simulation has ended, also if nobody waits for it any more.
        let _turn = turn;
        predicted(app, &new, &stop).map(Json)
    })
    .await
}

fn predicted(app: &App, new: &NewPrediction, stop: &AtomicBool) -> Result<Prediction, ApiError> {
    let budget = new.budget_ms.unwrap_or(BUDGET_MS);
    if !(1..=LARGEST_BUDGET_MS).contains(&budget) {
        return Err(ApiError::input(format_args!(
            "`budget_ms` must be from 1 to {LARGEST_BUDGET_MS}, not {budget}"
        )));
    }
    let experiment = app.experiment(&new.text)?;
    // The last point of a sweep has its largest values, mostly: there it shows what is too much.
    let point = new.point.unwrap_or(experiment.points.len().saturating_sub(1));
    let scenario = match experiment.points.get(point) {
        Some(found) => found.scenario,
        None => {
            return Err(ApiError::input(format_args!(
                "the experiment has {} points: `point` must be smaller, not {point}",
                experiment.points.len()
            )));
        }
    };
    let most = if new.budget_ms.is_some() { MAX_ASKED } else { MAX_UNASKED };
    let size = size(&scenario);
    if size > most {
        return Err(ApiError::conflict(format_args!(
            "the experiment is large: it has {size} hosts and members of flows, and at most {most} are predicted"
        )));
    }
    let until = Instant::now() + Duration::from_millis(budget.into());
    let mut watch = Watch { beside: Some(app), stop, until };
    if watch.progress(trunkline_core::Duration::ZERO) == Progress::Stop {
        return Err(ApiError::conflict(
            "a measurement in real time is running: predictions wait for its end",
        ));
    }
    let started = Instant::now();
    let points = names(&experiment);
    let run = trunkline_runner::predict(experiment, point, &mut watch)?;
    let simulated =
        run.points.iter().flat_map(|point| &point.repetitions).filter_map(|one| one.summary.as_ref());
    Ok(Prediction {
        point,
        points,
        whole: run.info.status == trunkline_store::Status::Complete,
        simulated_s: simulated.map(|summary| summary.duration.as_secs_f64()).sum(),
        length_s: run.info.repetition_length.as_secs_f64(),
        took_ms: started.elapsed().as_secs_f64() * 1e3,
        report: trunkline_report::report(&run, None),
    })
}

/// The latencies that the simulator gives the flows of each point of an experiment that `job` is about to measure. Nothing for
/// points that cannot be simulated, or for which there is no time.
pub(crate) fn latencies(experiment: &Experiment, job: &Job) -> Vec<PredictedLatency> {
    let end = Instant::now() + BEFORE;
    let names = names(experiment);
    let count = u32::try_from(experiment.points.len()).unwrap_or(u32::MAX);
    let budget = (BEFORE / count.max(1)).clamp(LEAST_FOR_POINT, MOST_FOR_POINT);
    let mut found = Vec::new();
    for point in 0..experiment.points.len() {
        let until = (Instant::now() + budget).min(end);
        let mut watch = Watch { beside: None, stop: job.stop(), until };
        let scenario = experiment.points.at(point).scenario;
        if watch.progress(trunkline_core::Duration::ZERO) == Progress::Stop || size(&scenario) > MAX_ASKED {
            break;
        }
        let Ok(run) = trunkline_runner::predict(experiment.clone(), point, &mut watch) else { break };
        let summaries = run.points.iter().flat_map(|point| &point.repetitions);
        let flows = summaries.filter_map(|one| one.summary.as_ref()).flat_map(|summary| &summary.flows);
        let values = names.get(point).map_or_else(Vec::new, |point| point.values.clone());
        found.extend(flows.filter_map(|flow| {
            let latency = flow.latency?;
            Some(PredictedLatency {
                values: values.clone(),
                flow: flow.flow.clone(),
                least_s: latency.min.as_secs_f64(),
                most_s: latency.p999.as_secs_f64(),
            })
        }));
    }
    found
}

/// Hosts, and members of flows, of a scenario.
pub(crate) fn size(scenario: &Scenario) -> u64 {
    let members = scenario.flows.iter().map(|flow| u64::from(flow.meta.ids()));
    scenario.hosts.len() as u64 + members.sum::<u64>()
}

/// The points of a sweep; nothing without one.
fn names(experiment: &Experiment) -> Vec<PredictedPoint> {
    let axes = &experiment.axes;
    let value =
        |(axis, chosen): (&trunkline_experiment::Axis, &usize)| axis.shown(*chosen).unwrap_or_default();
    let named = experiment.points.choices().take(if axes.is_empty() { 0 } else { MAX_NAMED });
    named.map(|choice| PredictedPoint { values: axes.iter().zip(&choice).map(value).collect() }).collect()
}

/// Ends a simulation whose client is gone, whose budget is used up, or beside which something is measured.
struct Watch<'w> {
    /// The server whose measurements it makes room for.
    beside: Option<&'w App>,
    stop: &'w AtomicBool,
    until: Instant,
}

impl Supervisor for Watch<'_> {
    fn progress(&mut self, _: trunkline_core::Duration) -> Progress {
        let is_over = self.stop.load(Ordering::Relaxed) || Instant::now() >= self.until;
        let is_in_the_way = self.beside.is_some_and(|app| app.jobs.measures());
        if is_over || is_in_the_way { Progress::Stop } else { Progress::Continue }
    }
}

/// Tells the simulation when its request is dropped.
pub(crate) struct Gone(Arc<AtomicBool>);

impl Gone {
    /// The guard of a request, and what becomes true when it is dropped.
    pub(crate) fn new() -> (Gone, Arc<AtomicBool>) {
        let gone = Arc::new(AtomicBool::new(false));
        (Gone(Arc::clone(&gone)), gone)
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A place among those that wait.
struct Waits<'w>(&'w AtomicUsize);

impl Waits<'_> {
    fn begin(waiting: &AtomicUsize) -> Result<Waits<'_>, ApiError> {
        let waits = Waits(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) {
            // Without a place it is counted until `waits` is dropped.
            before if before > MAX_WAITING => Err(ApiError::busy("too many predictions at once: try again")),
            _ => Ok(waits),
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

//! Simulates points of experiments on several cores, and measures others on real sockets one after the other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Point, Progress, Scenario, Supervisor};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::{BundleSummary, FlowMeta, FlowSummary, MediumSummary, Meter, RepetitionSummary};
use trunkline_runner::{Hear, Request};
use trunkline_store::Backend;

use crate::reading::Summaries;
use crate::results::Scattered;
use crate::run::{How, Observer, PaperError, Prepared, Source};
use crate::study::Scatter;

/// What one repetition of one point gave.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The experiment's file.
    pub(crate) file: &'static str,
    flows: Vec<FlowSummary>,
    bundles: Vec<BundleSummary>,
    media: Vec<MediumSummary>,
    pub(crate) scatters: Vec<Scattered>,
}

impl Measured {
    /// What readings are of.
    pub(crate) fn summaries(&self) -> Summaries<'_> {
        Summaries { flows: &self.flows, bundles: &self.bundles, media: &self.media }
    }
}

/// One repetition of one point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) source: usize,
    pub(crate) point: usize,
    pub(crate) repetition: u32,
}

impl Task {
    pub(crate) fn point(&self) -> (usize, usize) {
        (self.source, self.point)
    }

    fn of(&self, sources: &[Source]) -> Point {
        sources[self.source].experiment.points.at(self.point)
    }

    /// How long it lasts at most: less if it ends with a flow.
    pub(crate) fn length(&self, sources: &[Source]) -> Duration {
        sources[self.source].experiment.points.length(self.point)
    }
}

/// The outcome of every task, in the tasks' order; `None` for what was not measured because it was stopped. What is
/// simulated stands first among them.
pub(crate) fn all(
    tasks: &[Task],
    prepared: &Prepared,
    how: How<'_>,
    observer: &dyn Observer,
) -> Result<Vec<Option<Measured>>, PaperError> {
    let sources = &prepared.sources;
    let nowhere = LiveOptions::new(FarEnd::Process { program: Default::default(), arguments: Vec::new() });
    let hear = Hear::default();
    let request = |source: usize| {
        let Source { file, experiment, on, .. } = &sources[source];
        let (live, wire) = (how.live.unwrap_or(&nowhere), how.wire);
        Request {
            experiment,
            file: Path::new(file),
            backend: *on,
            jobs: how.jobs,
            live,
            wire,
            tap: None,
            kernels: None,
            fleet: None,
            hear: &hear,
        }
    };
    let mut checked = None;
    for task in tasks {
        if checked.replace(task.source) != Some(task.source) {
            trunkline_runner::precheck(&request(task.source))?;
        }
    }
    let is_simulated = |task: &Task| sources[task.source].on == Backend::Sim;
    let (simulated, measured) = tasks.split_at(tasks.partition_point(is_simulated));
    let work = |task: &Task| one(*task, request(task.source), prepared, how.stop, observer);
    let mut outcomes = Vec::with_capacity(tasks.len());
    for (tasks, jobs) in [(simulated, how.jobs), (measured, 1)] {
        // Nobody waits for nothing.
        if !tasks.is_empty() {
            let lengths = tasks.iter().map(|task| task.length(sources));
            let length = lengths.fold(Duration::ZERO, |sum, length| sum + length);
            observer.planned(&prepared.study.name, tasks.len(), length);
        }
        outcomes.extend(trunkline_runner::in_parallel(tasks, jobs, how.stop, work)?);
    }
    Ok(outcomes.into_iter().map(Option::flatten).collect())
}

/// A simulation that was stopped gives nothing, a measurement what it has.
fn one(
    task: Task,
    request: Request<'_>,
    prepared: &Prepared,
    stop: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Option<Measured>, PaperError> {
    let sources = &prepared.sources;
    let point = task.of(sources);
    let scenario: &Scenario = &point.scenario;
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut no_trace = ();
    let mut meter = Meter::new(&metas, &mut no_trace).with_bundles(&scenario.bundles);
    let mut teller = Teller { observer, stop, told: Duration::ZERO };
    let seed = Seed::new(request.experiment.seed, task.repetition);
    let (outcome, failed) = trunkline_runner::drive(request, &point, seed, &mut meter, &mut teller)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let RepetitionSummary { mut flows, bundles, media, partial, .. } = meter.finish(outcome);
    if partial && request.backend == Backend::Sim {
        return Ok(None);
    }
    let scatters =
        prepared.scatters(task).into_iter().filter_map(|scatter| scattered(scatter, &flows)).collect();
    for flow in &mut flows {
        // What figures of runs are drawn from; some kilobytes that nobody asks for here.
        flow.latency_cdf = Vec::new();
        flow.latency_over_time = Vec::new();
        flow.connection = Vec::new();
    }
    let told = teller.told;
    observer.advanced(task.length(sources) - told);
    observer.simulation_done();
    Ok(Some(Measured { file: sources[task.source].file, flows, bundles, media, scatters }))
}

/// The messages of a scatter. Runs of more than 2,000 messages have a sample of them.
fn scattered(scatter: &'static Scatter, flows: &[FlowSummary]) -> Option<Scattered> {
    let flow = flows.iter().find(|flow| flow.flow == scatter.flow)?;
    let shown = if scatter.halved { 0.5 } else { 1.0 };
    let latencies = flow.latency_over_time.iter().map(|(_, latency)| latency.as_secs_f64() * shown);
    Some(Scattered { scatter, latencies: latencies.collect() })
}

/// Passes progress on.
struct Teller<'o> {
    observer: &'o dyn Observer,
    stop: &'o AtomicBool,
    told: Duration,
}

impl Supervisor for Teller<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        self.observer.advanced(done - self.told);
        self.told = self.told.max(done);
        if self.stop.load(Ordering::Relaxed) { Progress::Stop } else { Progress::Continue }
    }
}

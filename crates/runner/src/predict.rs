//! A prediction: one repetition of one point, simulated and not stored.

use std::path::{Path, PathBuf};

use trunkline_core::Seed;
use trunkline_experiment::{Experiment, Points, Supervisor};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::{Meter, RepetitionSummary};
use trunkline_store::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun};

use crate::drive::drive;
use crate::error::RunnerError;
use crate::hearing::Hear;
use crate::repetition::{metas, say_what_cuts};
use crate::request::Request;
use crate::schedule::{precheck, repetition_length};

/// Simulates the first repetition of a point, and returns it as a run that no store has. If `supervisor` stops it early, its
/// figures are of the time that was simulated, and it is partial.
///
/// # Errors
/// If the simulator refuses the experiment.
///
/// # Panics
/// If the experiment has no such point.
pub fn predict(
    mut experiment: Experiment,
    point: usize,
    supervisor: &mut (dyn Supervisor + Send),
) -> Result<StoredRun, RunnerError> {
    let hear = Hear::default();
    let live = LiveOptions::new(FarEnd::Process { program: PathBuf::new(), arguments: Vec::new() });
    experiment.points = Points::only(experiment.points.at(point));
    let request = Request {
        experiment: &experiment,
        file: Path::new(""),
        backend: Backend::Sim,
        jobs: 1,
        live: &live,
        wire: None,
        hear: &hear,
        tap: None,
        kernels: None,
        fleet: None,
    };
    precheck(&request)?;
    let point = experiment.points.first();
    let scenario = &point.scenario;
    let flows = metas(scenario.flows.iter().map(|flow| flow.meta.clone()), Backend::Sim);
    let mut no_trace = ();
    let mut meter =
        Meter::new(&flows, &mut no_trace).with_bundles(&scenario.bundles).with_drain(scenario.drain);
    let started = jiff::Timestamp::now();
    let (outcome, failed) = drive(request, point, Seed::new(experiment.seed, 0), &mut meter, supervisor)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let mut summary = meter.finish(outcome);
    say_what_cuts(scenario, &mut summary);
    Ok(unstored(&experiment, started, summary))
}

/// A run as a store would give it back, with this repetition of its only point.
fn unstored(experiment: &Experiment, started: jiff::Timestamp, summary: RepetitionSummary) -> StoredRun {
    let partial = summary.partial;
    StoredRun {
        info: RunInfo {
            id: 0,
            name: experiment.name.clone(),
            backend: Backend::Sim,
            status: if partial { Status::Partial } else { Status::Complete },
            started,
            finished: Some(jiff::Timestamp::now()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: String::new(),
            seed: experiment.seed,
            repetitions: 1,
            points: 1,
            repetitions_done: u32::from(!partial),
            repetition_length: repetition_length(experiment),
            directory: PathBuf::new(),
            file: PathBuf::new(),
            experiment_hash: String::new(),
            tags: Vec::new(),
            key: String::new(),
            settings: Vec::new(),
            shard: None,
        },
        text: String::new(),
        axes: experiment.axes.clone(),
        limits: experiment.limits.clone(),
        points: vec![StoredPoint {
            index: 0,
            choice: experiment.points.first().choice.clone(),
            repetitions: vec![StoredRepetition {
                index: 0,
                partial,
                summary: Some(summary),
                traces: Vec::new(),
                audio: Vec::new(),
            }],
        }],
    }
}

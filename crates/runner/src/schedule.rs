//! Which repetition of which point is measured when, and on how many cores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline_agent::controller::{Fleet, PartKey};
use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Axis, Experiment, Point, Progress, Scenario, Supervisor};
use trunkline_metrics::RepetitionSummary;
use trunkline_simulator::SimulationError;
use trunkline_store::{Backend, NewRun, RunInfo, RunWriter, Shard, Status, Store};

use crate::backend;
use crate::congestion;
use crate::error::RunnerError;
use crate::kernels;
use crate::parallel::in_parallel;
use crate::repetition;
use crate::request::{Observer, Plan, Request};
use crate::task::Task;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run as it is stored now.
    pub run: RunInfo,
    /// True if it was stopped before its end.
    pub stopped: bool,
}

/// Finds what would stop the run at once, before anything is written: a port in use, a transport option that this
/// machine or the simulator does not have.
pub fn precheck(request: &Request<'_>) -> Result<(), RunnerError> {
    let (is_elsewhere, driver) = (request.is_elsewhere()?, backend::driver(request.backend));
    for point in request.experiment.points.iter() {
        if point.scenario.flows.is_empty() {
            return Err(RunnerError::NoFlows);
        }
        kernels::check(request, &point.scenario)?;
        if let Some((key, reason)) = backend::refused_custom(request.backend, &point.scenario) {
            return Err(request.wrong(&key.0, "custom", &format!("{key}: {reason}")));
        }
        let refused = if is_elsewhere {
            driver.refuse(&point.scenario)
        } else {
            congestion::check(request, &point.scenario)?;
            driver.check(request, &point.scenario)
        };
        refused.map_err(|error| request.placed(&point.scenario, error))?;
    }
    if request.backend == Backend::Live {
        check_agents(request)?;
    }
    Ok(request.hear.check(request.experiment, request.file)?)
}

impl Request<'_> {
    /// The error at the place in the file of the key that it is about, if there is one.
    fn placed(&self, scenario: &Scenario, error: RunnerError) -> RunnerError {
        let (place, hint) = match &error {
            RunnerError::Live(error) => (error.place(), String::new()),
            RunnerError::Fleet(error) => (error.place(), String::new()),
            RunnerError::Simulation(SimulationError::Flow { flow, .. }) => {
                (Some((flow.as_str(), "transport")), self.elsewhere())
            }
            _ => return error,
        };
        let Some((flow, key)) = place else { return error };
        // Where transports are swept, this is the one.
        let transport = scenario.flows.iter().find(|other| other.meta.name == flow && key == "transport");
        let written = transport.map_or("", |flow| &flow.meta.transport);
        self.wrong(&["flow", flow, key], written, &format!("{error}{hint}"))
    }

    /// The backends that do not refuse the experiment, as the end of a sentence.
    fn elsewhere(&self) -> String {
        let refused = |backend, point: &Point| crate::backend::refused(backend, &point.scenario).is_some();
        let takes = |backend: &Backend| !self.experiment.points.iter().any(|point| refused(*backend, &point));
        let others: Vec<&str> =
            Backend::ALL.into_iter().filter(takes).map(|backend| backend.name()).collect();
        match others.as_slice() {
            [] => String::new(),
            others => format!("; not refused with `--on {}`", others.join("` or `--on ")),
        }
    }

    /// True if agents measure on other hosts and are not connected, so that this machine cannot check them.
    fn is_elsewhere(&self) -> Result<bool, RunnerError> {
        Ok(self.backend == Backend::Live
            && self.fleet.is_none()
            && !trunkline_agent::controller::agents_of(self.experiment)?.is_empty())
    }
}

/// Finds what cannot be measured because the experiment names agents, or because it is measured through them.
fn check_agents(request: &Request<'_>) -> Result<(), RunnerError> {
    if request.fleet.is_none() {
        return match trunkline_agent::controller::agents_of(request.experiment)?.is_empty() {
            true => Ok(()),
            false => Err(RunnerError::AgentsUnused),
        };
    }
    for point in request.experiment.points.iter() {
        let heard = request.hear.listening_to(&point);
        let flows = point.scenario.flows.iter().zip(&heard.scenario.flows);
        if let Some((flow, _)) = flows.into_iter().find(|(own, heard)| own.meta != heard.meta) {
            return Err(RunnerError::HearThroughAgents { flow: flow.meta.name.clone() });
        }
    }
    Ok(())
}

/// Runs an experiment from its first point and stores it. `stop` is looked at many times a second: once it is set, the
/// run ends, keeps what it has and is marked partial.
pub fn run(
    store: &Store,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    begun(store, request, None, observer, stop)
}

/// Measures a part of an experiment as a run of its own. The run is complete once its part is.
///
/// # Errors
/// As [`run`].
pub fn run_shard(
    store: &Store,
    request: Request<'_>,
    shard: Shard,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    begun(store, request, Some(shard), observer, stop)
}

fn begun(
    store: &Store,
    request: Request<'_>,
    shard: Option<Shard>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    if let Some(fleet) = request.fleet {
        forget_stored(store, None, fleet)?;
    }
    let points = (0..).zip(request.experiment.points.choices());
    let writer = store.begin(NewRun { shard, ..new_run(&request, points.collect()) })?;
    finish_measuring(writer, request, |stored, _| Some(stored as usize), observer, stop)
}

/// Begins a run of all points and measures nothing: what others measure can be
/// [taken over](trunkline_store::RunWriter::adopt).
///
/// # Errors
/// If the store cannot be written.
pub fn begin(store: &Store, request: &Request<'_>) -> Result<RunWriter, RunnerError> {
    let points = (0..).zip(request.experiment.points.choices());
    Ok(store.begin(new_run(request, points.collect()))?)
}

/// Measures these repetitions as a run that has their points only, under the indices that they are to be stored by: it is made
/// to be [taken over](trunkline_store::RunWriter::adopt_archive) by a run of all points, whose number it does not depend on.
///
/// # Errors
/// As [`run`].
pub fn run_some(
    store: &Store,
    request: Request<'_>,
    wanted: &[Task],
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let all = &request.experiment.points;
    let wanted = wanted.iter().filter(|task| task.point < all.len());
    let points: BTreeMap<u32, Vec<usize>> =
        wanted.clone().map(|task| (task.stored, all.at(task.point).choice)).collect();
    let places: BTreeMap<(u32, u32), usize> =
        wanted.map(|task| ((task.stored, task.repetition), task.point)).collect();
    // A search measures more of them than the file says.
    let last = places.keys().map(|(_, repetition)| repetition + 1).max();
    let (points, experiment) = (points.into_iter().collect(), request.experiment);
    let begun = NewRun {
        repetitions: experiment.repetitions.max(last.unwrap_or(0)),
        // Their values are those of the run of all points: a sweep may have many.
        axes: experiment.axes.iter().map(without_values).collect(),
        limits: Vec::new(),
        ..of_points(&request, points, Duration::ZERO)
    };
    let place = |stored: u32, repetition: u32| places.get(&(stored, repetition)).copied();
    finish_measuring(store.begin(begun)?, request, place, observer, stop)
}

/// Finishes a partial run, or part of a run: measures what it lacks. `request.backend` must be the run's.
pub fn resume(
    store: &Store,
    id: u64,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let writer = store.resume(id)?;
    if let Some(fleet) = request.fleet {
        forget_stored(store, Some(&writer), fleet)?;
    }
    let mut choices: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    store.walk(id, |point| _ = choices.insert(point.index, point.choice))?;
    let place = |stored: u32, _: u32| request.experiment.points.place_of(choices.get(&stored)?);
    finish_measuring(writer, request, place, observer, stop)
}

fn without_values(axis: &Axis) -> Axis {
    Axis { key: axis.key.clone(), values: Vec::new(), numbers: None, unit: axis.unit.clone() }
}

/// Discards parts on the agents whose repetitions are stored, of complete runs and of the one that is resumed: an agent or a
/// controller that dies at the end of a run leaves such parts.
fn forget_stored(store: &Store, resumed: Option<&RunWriter>, fleet: &Fleet) -> Result<(), RunnerError> {
    let kept = fleet.kept()?;
    let resumed = match resumed {
        Some(writer) => Some((writer.info()?.key, writer.missing()?)),
        None => None,
    };
    let runs = store.runs()?;
    let is_complete =
        |run: &String| runs.iter().any(|info| info.key == *run && info.status == Status::Complete);
    let is_stored = |at: &PartKey| match &resumed {
        Some((own, missing)) if at.run == *own => !missing.contains(&(at.point, at.repetition)),
        _ => is_complete(&at.run),
    };
    kept.iter().filter(|kept| is_stored(&kept.at)).for_each(|kept| fleet.forget(&kept.at));
    Ok(())
}

/// What the store is told of a run of these points.
pub(crate) fn new_run(request: &Request<'_>, points: Vec<(u32, Vec<usize>)>) -> NewRun {
    of_points(request, points, repetition_length(request.experiment))
}

fn of_points(request: &Request<'_>, points: Vec<(u32, Vec<usize>)>, repetition_length: Duration) -> NewRun {
    let experiment = request.experiment;
    NewRun {
        name: experiment.name.clone(),
        backend: request.backend,
        text: experiment.text.clone(),
        file: request.file.to_path_buf(),
        named: experiment.files.clone(),
        settings: experiment.settings.iter().map(ToString::to_string).collect(),
        shard: None,
        axes: experiment.axes.clone(),
        limits: experiment.limits.clone(),
        seed: experiment.seed,
        repetitions: experiment.repetitions,
        points,
        repetition_length,
        machine: trunkline_live::machine_description(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Measures what a run lacks; `place` finds the point of a stored point's repetition in the experiment, if that is to be measured.
fn finish_measuring(
    writer: RunWriter,
    request: Request<'_>,
    place: impl Fn(u32, u32) -> Option<usize>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let info = writer.info()?;
    observer.begun(&info);
    let is_own = |point, repetition| info.shard.is_none_or(|shard| shard.has(info.points, point, repetition));
    let place = |stored, repetition| place(stored, repetition).filter(|_| is_own(stored, repetition));
    let missing = writer.missing()?.into_iter();
    let tasks: Vec<Task> = missing
        .filter_map(|(stored, repetition)| {
            Some(Task { point: place(stored, repetition)?, stored, repetition })
        })
        .collect();
    backend::notes(points(request.experiment, &tasks), request.backend)
        .iter()
        .for_each(|note| observer.warning(note));
    let measured = measure(&writer, request, &request.experiment.name, &tasks, |_, _| (), observer, stop);
    let stopped = stop.load(Ordering::Relaxed);
    let missing = writer.missing()?;
    let is_done = !missing.iter().any(|(stored, repetition)| place(*stored, *repetition).is_some());
    let complete =
        measured.is_ok() && !missing.iter().any(|(stored, repetition)| is_own(*stored, *repetition));
    let status = if complete { Status::Complete } else { Status::Partial };
    let ended = writer.finish_telling(status, &|message| observer.warning(message));
    // What went wrong first says more: a database that is gone cannot be told of the end either.
    measured?;
    Ok(Outcome { run: ended?, stopped: stopped && !is_done })
}

/// Measures and stores these repetitions, and gives what `keep` takes from their summaries and the wall time that each took,
/// in their order.
///
/// Simulated repetitions do not disturb each other: they share the cores, and the results do not depend on how many there
/// are. Measured ones follow each other.
pub(crate) fn measure<R: Send>(
    writer: &RunWriter,
    request: Request<'_>,
    name: &str,
    tasks: &[Task],
    keep: impl Fn(&RepetitionSummary, std::time::Duration) -> R + Sync,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Vec<Option<Option<R>>>, RunnerError> {
    let lacking = announce(request.experiment, name, tasks, observer);

    // Whatever fits: a file that cannot be opened says so itself.
    let _ = trunkline_io::process::raise_open_files(open_files(&request, tasks));

    let jobs = if request.backend.is_simulated() { request.jobs } else { 1 };
    let key = writer.info()?.key;
    let lacking = Mutex::new(lacking);
    in_parallel(tasks, jobs, stop, |task| {
        let begun = std::time::Instant::now();
        let point = request.experiment.points.at(task.point);
        let summary = one((writer, &key), request, (*task, &point), observer, stop)?;
        let took = begun.elapsed();
        if let Some(summary) = &summary {
            observer.measured(request.experiment, &point, summary);
            observer.repetition_done();
            let mut lacking = lacking.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(left) = lacking.get_mut(&task.point) {
                *left -= 1;
                if *left == 0 {
                    observer.point_done();
                }
            }
        }
        Ok(summary.as_ref().map(|summary| keep(summary, took)))
    })
}

/// Tells the observer what lies ahead. Returns how many repetitions each point lacks.
pub(crate) fn announce(
    experiment: &Experiment,
    name: &str,
    tasks: &[Task],
    observer: &dyn Observer,
) -> BTreeMap<usize, usize> {
    let mut lacking: BTreeMap<usize, usize> = BTreeMap::new();
    for task in tasks {
        *lacking.entry(task.point).or_default() += 1;
    }
    let lengths = tasks.iter().map(|task| experiment.points.length(task.point));
    observer.planned(&Plan {
        name: name.to_owned(),
        points: lacking.len(),
        repetitions: tasks.len(),
        length: lengths.fold(Duration::ZERO, |sum, length| sum + length),
    });
    lacking
}

/// The points of some repetitions.
fn points(experiment: &Experiment, tasks: &[Task]) -> impl Iterator<Item = Point> {
    let places: BTreeSet<usize> = tasks.iter().map(|task| task.point).collect();
    places.into_iter().map(|place| experiment.points.at(place))
}

/// How many files may be open at once: three for each trace that is written, one for each channel of received audio, and
/// some for everything else.
fn open_files(request: &Request<'_>, tasks: &[Task]) -> u64 {
    let of_scenario = |scenario: &trunkline_experiment::Scenario| -> u64 {
        let audio = |flow: &trunkline_experiment::Flow| match flow.meta.keeps_payload {
            true => u64::from(flow.meta.ids()) * u64::from(flow.meta.channels),
            false => 0,
        };
        scenario.flows.iter().map(|flow| 3 + audio(flow)).sum()
    };
    let most = points(request.experiment, tasks).map(|point| of_scenario(&point.scenario)).max().unwrap_or(0);
    most * request.jobs as u64 + 100
}

/// Measures and stores one repetition; `None` if it was stopped before its end.
fn one(
    (writer, run): (&RunWriter, &str),
    request: Request<'_>,
    (task, point): (Task, &Point),
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Option<RepetitionSummary>, RunnerError> {
    let experiment = request.experiment;
    let mut supervisor = StopOrGoOn { observer, stop, told: Duration::ZERO };
    let seed = Seed::new(experiment.seed, task.repetition);
    let measured = repetition::measure((writer, run), point, task, seed, request, &mut supervisor);
    if let Some(fleet) = request.fleet {
        fleet.notes().iter().for_each(|note| observer.warning(note));
    }
    let (summary, heard, consoles) = measured?;
    consoles.iter().for_each(|(host, file)| observer.console(host, file));
    heard.iter().for_each(|heard| observer.heard(heard));
    if summary.partial {
        return Ok(None);
    }
    if let Some(tap) = request.tap {
        tap.finished(task.stored, task.repetition, &summary);
    }
    observer.advanced(experiment.points.length(task.point) - supervisor.told);
    Ok(Some(summary))
}

/// The longest repetition of any point.
pub(crate) fn repetition_length(experiment: &Experiment) -> Duration {
    experiment.points.lengths().max().unwrap_or_default()
}

/// Passes progress on and the wish to stop back.
struct StopOrGoOn<'o> {
    observer: &'o dyn Observer,
    stop: &'o AtomicBool,
    told: Duration,
}

impl Supervisor for StopOrGoOn<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        self.observer.advanced(done - self.told);
        self.told = self.told.max(done);
        if self.stop.load(Ordering::Relaxed) { Progress::Stop } else { Progress::Continue }
    }

    fn warning(&mut self, message: &str) {
        self.observer.warning(message);
    }
}

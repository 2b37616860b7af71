//! Which repetition of which point is measured when, and on how many cores.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Progress, Supervisor};
use trunkline_live::LiveOptions;
use trunkline_metrics::RepetitionSummary;
use trunkline_store::{Backend, NewRun, RunInfo, RunWriter, Status, Store, StoreError};

use crate::hearing::{Hear, HearError, Heard};
use crate::parallel::in_parallel;
use crate::repetition;
use crate::tap::Tap;
use crate::wire::{self, WireMeans};

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The experiment.
    pub experiment: &'r Experiment,
    /// The file it came from.
    pub file: &'r Path,
    /// Where it runs.
    pub backend: Backend,
    /// How many repetitions are simulated at once; `wire` and `live` measure one after the other.
    pub jobs: usize,
    /// How `wire` and `live` measure.
    pub live: &'r LiveOptions,
    /// With what `wire` is made; nothing else needs it.
    pub wire: Option<&'r WireMeans>,
    /// What is to be heard of it.
    pub hear: &'r Hear,
    /// Who listens to what is measured, while it is.
    pub tap: Option<&'r dyn Tap>,
}

/// What lies ahead, told before the first repetition.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment's name, or what of it is measured now.
    pub name: String,
    /// How many points are measured now: without those that a resumed run already has.
    pub points: usize,
    /// How many repetitions of them.
    pub repetitions: usize,
    /// How long they last together: virtual time in `sim`.
    pub length: Duration,
}

/// Is told how far a run is; from several threads.
pub trait Observer: Sync {
    /// Before the first repetition.
    fn planned(&self, plan: &Plan);
    /// So much more of the plan's length has passed.
    fn advanced(&self, by: Duration);
    /// A repetition was measured to its end and stored.
    fn repetition_done(&self);
    /// It was the last one that its point lacked.
    fn point_done(&self);
    /// What a listener heard was written.
    fn heard(&self, _heard: &Heard) {}
    /// Something that the user should know and that does not end the run.
    fn warning(&self, message: &str);
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run as it is stored now.
    pub run: RunInfo,
    /// True if it was told to stop before its end.
    pub stopped: bool,
}

/// Why a run failed. What was measured until then is kept, and the run is marked partial.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of hosts and links, with nothing to be measured: bad input.
    #[error(
        "the experiment has no flows, so there is nothing to measure: add a table `[flow.NAME]`, or run programs behind its \
         links with `trunkline wire FILE -- COMMAND`"
    )]
    NoFlows,
    /// The experiment asks for what a simulation does not have: bad input.
    #[error(transparent)]
    Simulation(#[from] trunkline_simulator::SimulationError),
    /// Sockets, the far end, the network.
    #[error(transparent)]
    Live(#[from] trunkline_live::LiveError),
    /// Namespaces, interfaces, relays.
    #[error(transparent)]
    Wire(#[from] trunkline_wire::WireError),
    /// The received audio could not be written.
    #[error("the received audio cannot be written: {0}; free some space or set `audio = false` in the flow")]
    Audio(std::io::Error),
    /// What was heard could not be written, or there is nothing to hear.
    #[error(transparent)]
    Hear(#[from] HearError),
}

impl RunnerError {
    /// Whether the user can mend it by another file or other options (exit code 2), rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            RunnerError::NoFlows | RunnerError::Simulation(_) => true,
            RunnerError::Hear(error) => error.is_bad_input(),
            RunnerError::Live(error) => error.is_bad_input(),
            RunnerError::Wire(error) => error.is_bad_input(),
            RunnerError::Store(_) | RunnerError::Audio(_) => false,
        }
    }
}

/// Finds what would stop the run at once, before anything is written: a port in use, a transport option that this
/// machine or the simulator does not have.
pub fn precheck(request: &Request<'_>) -> Result<(), RunnerError> {
    for point in &request.experiment.points {
        if point.scenario.flows.is_empty() {
            return Err(RunnerError::NoFlows);
        }
        match request.backend {
            Backend::Sim => trunkline_simulator::check(&point.scenario)?,
            Backend::Wire => wire::check(&point.scenario, request.live)?,
            Backend::Live => trunkline_live::check(&point.scenario, request.live)?,
        }
    }
    Ok(request.hear.check(request.experiment)?)
}

/// Runs an experiment from its first point and stores it. `stop` is looked at many times a second: once it is set, the
/// run ends, keeps what it has and is marked partial.
pub fn run(
    store: &Store,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let choices = request.experiment.points.iter().map(|point| point.choice.clone()).collect();
    let writer = store.begin(new_run(&request, choices))?;
    finish_measuring(writer, request, |stored| Some(stored as usize), observer, stop)
}

/// Finishes a partial run: measures what it lacks. `request.backend` must be the run's.
pub fn resume(
    store: &Store,
    id: u64,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let writer = store.resume(id)?;
    let choices: BTreeMap<u32, Vec<usize>> =
        store.run(id)?.points.into_iter().map(|point| (point.index, point.choice)).collect();
    let place = |stored: u32| {
        let choice = choices.get(&stored)?;
        request.experiment.points.iter().position(|point| point.choice == *choice)
    };
    finish_measuring(writer, request, place, observer, stop)
}

/// What the store is told of a run of these points.
pub(crate) fn new_run(request: &Request<'_>, points: Vec<Vec<usize>>) -> NewRun {
    let experiment = request.experiment;
    NewRun {
        name: experiment.name.clone(),
        backend: request.backend,
        text: experiment.text.clone(),
        file: request.file.to_path_buf(),
        axes: experiment.axes.clone(),
        limits: experiment.limits.clone(),
        seed: experiment.seed,
        repetitions: experiment.repetitions,
        points,
        repetition_length: repetition_length(experiment),
        machine: trunkline_live::machine_description(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// One repetition of one point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The point's index in the experiment.
    pub(crate) point: usize,
    /// Its index in the stored run.
    pub(crate) stored: u32,
    /// From 0.
    pub(crate) repetition: u32,
}

/// Measures what a run lacks; `place` finds a stored point in the experiment.
fn finish_measuring(
    writer: RunWriter,
    request: Request<'_>,
    place: impl Fn(u32) -> Option<usize>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let missing = writer.missing()?.into_iter();
    let tasks: Vec<Task> = missing
        .filter_map(|(stored, repetition)| Some(Task { point: place(stored)?, stored, repetition }))
        .collect();
    if request.backend == Backend::Wire {
        wire::changes(request.experiment).iter().for_each(|note| observer.warning(note));
    }
    let measured = measure(&writer, request, &request.experiment.name, &tasks, |_| (), observer, stop);
    let stopped = stop.load(Ordering::Relaxed);
    let complete = measured.is_ok() && writer.missing()?.is_empty();
    let run = writer.finish(if complete { Status::Complete } else { Status::Partial })?;
    measured.map(|_| Outcome { run, stopped: stopped && !complete })
}

/// Measures and stores these repetitions, and gives what `keep` takes from their summaries, in their order.
///
/// Simulated repetitions do not disturb each other: they share the cores, and the results do not depend on how many there
/// are. Measured ones follow each other.
pub(crate) fn measure<R: Send>(
    writer: &RunWriter,
    request: Request<'_>,
    name: &str,
    tasks: &[Task],
    keep: impl Fn(&RepetitionSummary) -> R + Sync,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Vec<Option<Option<R>>>, RunnerError> {
    let mut lacking: BTreeMap<usize, usize> = BTreeMap::new();
    for task in tasks {
        *lacking.entry(task.point).or_default() += 1;
    }
    let lengths = tasks.iter().map(|task| length(request.experiment, task.point));
    observer.planned(&Plan {
        name: name.to_owned(),
        points: lacking.len(),
        repetitions: tasks.len(),
        length: lengths.fold(Duration::ZERO, |sum, length| sum + length),
    });

    // Whatever fits: a file that cannot be opened says so itself.
    let _ = trunkline_io::process::raise_open_files(open_files(&request));

    let jobs = match request.backend {
        Backend::Sim => request.jobs,
        Backend::Wire | Backend::Live => 1,
    };
    let lacking = Mutex::new(lacking);
    in_parallel(tasks, jobs, stop, |task| {
        let summary = one(writer, request, *task, observer, stop)?;
        if summary.is_some() {
            observer.repetition_done();
            let mut lacking = lacking.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(left) = lacking.get_mut(&task.point) {
                *left -= 1;
                if *left == 0 {
                    observer.point_done();
                }
            }
        }
        Ok(summary.as_ref().map(&keep))
    })
}

/// How many files may be open at once: three for each trace that is written, one for each channel of received audio, and
/// some for everything else.
fn open_files(request: &Request<'_>) -> u64 {
    let of_scenario = |scenario: &trunkline_experiment::Scenario| -> u64 {
        let audio = |flow: &trunkline_experiment::Flow| match flow.meta.keeps_payload {
            true => u64::from(flow.meta.ids()) * u64::from(flow.meta.channels),
            false => 0,
        };
        scenario.flows.iter().map(|flow| 3 + audio(flow)).sum()
    };
    let most = request.experiment.points.iter().map(|point| of_scenario(&point.scenario)).max().unwrap_or(0);
    most * request.jobs as u64 + 100
}

/// Measures and stores one repetition; `None` if it was stopped before its end.
fn one(
    writer: &RunWriter,
    request: Request<'_>,
    task: Task,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Option<RepetitionSummary>, RunnerError> {
    let experiment = request.experiment;
    let mut supervisor = StopOrGoOn { observer, stop, told: Duration::ZERO };
    let seed = Seed::new(experiment.seed, task.repetition);
    let scenario = &experiment.points[task.point].scenario;
    let (summary, heard) = repetition::measure(writer, scenario, task, seed, request, &mut supervisor)?;
    heard.iter().for_each(|heard| observer.heard(heard));
    if summary.partial {
        return Ok(None);
    }
    if let Some(tap) = request.tap {
        tap.finished(task.stored, task.repetition, &summary);
    }
    observer.advanced(length(experiment, task.point) - supervisor.told);
    Ok(Some(summary))
}

fn length(experiment: &Experiment, point: usize) -> Duration {
    let scenario = &experiment.points[point].scenario;
    scenario.duration + scenario.drain
}

/// The longest repetition of any point.
pub(crate) fn repetition_length(experiment: &Experiment) -> Duration {
    (0..experiment.points.len()).map(|point| length(experiment, point)).max().unwrap_or_default()
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
}

//! Which repetition of which point is measured when, and on how many cores.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Progress, Supervisor};
use trunkline_live::LiveOptions;
use trunkline_store::{Backend, NewRun, RunInfo, RunWriter, Status, Store, StoreError};

use crate::repetition;

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The experiment.
    pub experiment: &'r Experiment,
    /// The file it came from.
    pub file: &'r Path,
    /// Where it runs.
    pub backend: Backend,
    /// How many repetitions are simulated at once; `live` measures one after the other.
    pub jobs: usize,
    /// How `live` measures.
    pub live: &'r LiveOptions,
}

/// What lies ahead, told before the first repetition.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The run as it was stored.
    pub run: RunInfo,
    /// How many repetitions are measured now: of all points, without those that a resumed run already has.
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
    /// The experiment asks for what a simulation does not have: bad input.
    #[error(transparent)]
    Simulation(#[from] trunkline_simulator::SimulationError),
    /// Sockets, the far end, the network.
    #[error(transparent)]
    Live(#[from] trunkline_live::LiveError),
    /// The received audio could not be written.
    #[error("the received audio cannot be written: {0}; free some space or set `audio = false` in the flow")]
    Audio(std::io::Error),
}

impl RunnerError {
    /// Whether the user can mend it by another file or other options (exit code 2), rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            RunnerError::Simulation(_) => true,
            RunnerError::Live(error) => error.is_bad_input(),
            RunnerError::Store(_) | RunnerError::Audio(_) => false,
        }
    }
}

/// Finds what would stop the run at once, before anything is written: a port in use, a transport option that this
/// machine or the simulator does not have.
pub fn precheck(request: &Request<'_>) -> Result<(), RunnerError> {
    for point in &request.experiment.points {
        match request.backend {
            Backend::Sim => trunkline_simulator::check(&point.scenario)?,
            Backend::Live => trunkline_live::check(&point.scenario, request.live)?,
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
    let experiment = request.experiment;
    let writer = store.begin(NewRun {
        name: experiment.name.clone(),
        backend: request.backend,
        text: experiment.text.clone(),
        file: request.file.to_path_buf(),
        axes: experiment.axes.clone(),
        limits: experiment.limits.clone(),
        seed: experiment.seed,
        repetitions: experiment.repetitions,
        points: experiment.points.iter().map(|point| point.choice.clone()).collect(),
        repetition_length: repetition_length(experiment),
        machine: trunkline_live::machine_description(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    measure(writer, request, observer, stop)
}

/// Finishes a partial run: measures what it lacks. `request.backend` must be the run's.
pub fn resume(
    store: &Store,
    id: u64,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    measure(store.resume(id)?, request, observer, stop)
}

/// One repetition of one point.
#[derive(Clone, Copy, Debug)]
struct Task {
    point: usize,
    repetition: u32,
}

fn measure(
    writer: RunWriter,
    request: Request<'_>,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Outcome, RunnerError> {
    let tasks: Vec<Task> = writer
        .missing()?
        .into_iter()
        .map(|(point, repetition)| Task { point: point as usize, repetition })
        .collect();
    let lengths = tasks.iter().map(|task| length(request.experiment, task.point));
    let length = lengths.fold(Duration::ZERO, |sum, length| sum + length);
    observer.planned(&Plan { run: writer.info()?, repetitions: tasks.len(), length });

    // Whatever fits: a file that cannot be opened says so itself.
    let _ = trunkline_io::process::raise_open_files(open_files(&request));

    let measured = match request.backend {
        Backend::Sim => in_parallel(&writer, request, &tasks, observer, stop),
        Backend::Live => one_by_one(&writer, request, &tasks, observer, stop),
    };
    let stopped = stop.load(Ordering::Relaxed);
    let complete = measured.is_ok() && writer.missing()?.is_empty();
    let run = writer.finish(if complete { Status::Complete } else { Status::Partial })?;
    measured.map(|()| Outcome { run, stopped: stopped && !complete })
}

/// How many files may be open at once: three for each trace that is written, one for each channel of received audio, and
/// some for everything else.
fn open_files(request: &Request<'_>) -> u64 {
    let of_scenario = |scenario: &trunkline_experiment::Scenario| -> u64 {
        let audio = |flow: &trunkline_experiment::Flow| match flow.meta.keeps_payload {
            true => u64::from(flow.meta.members) * u64::from(flow.meta.channels),
            false => 0,
        };
        scenario.flows.iter().map(|flow| 3 + audio(flow)).sum()
    };
    let most = request.experiment.points.iter().map(|point| of_scenario(&point.scenario)).max().unwrap_or(0);
    most * request.jobs as u64 + 100
}

fn one_by_one(
    writer: &RunWriter,
    request: Request<'_>,
    tasks: &[Task],
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<(), RunnerError> {
    for &task in tasks {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        one(writer, request, task, observer, stop)?;
    }
    Ok(())
}

/// Simulated repetitions do not disturb each other: they share the cores. Results do not depend on how many there are.
fn in_parallel(
    writer: &RunWriter,
    request: Request<'_>,
    tasks: &[Task],
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<(), RunnerError> {
    let ahead = Mutex::new(tasks.iter().copied());
    let failed: Mutex<Option<RunnerError>> = Mutex::new(None);
    let give_up = AtomicBool::new(false);
    let next = || ahead.lock().ok().and_then(|mut tasks| tasks.next());
    std::thread::scope(|scope| {
        for _ in 0..request.jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed)
                    && !give_up.load(Ordering::Relaxed)
                    && let Some(task) = next()
                {
                    if let Err(error) = one(writer, request, task, observer, stop) {
                        give_up.store(true, Ordering::Relaxed);
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}

fn one(
    writer: &RunWriter,
    request: Request<'_>,
    task: Task,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<(), RunnerError> {
    let experiment = request.experiment;
    let mut supervisor = StopOrGoOn { observer, stop, told: Duration::ZERO };
    let complete = repetition::measure(
        writer,
        &experiment.points[task.point],
        task.repetition,
        Seed::new(experiment.seed, task.repetition),
        request,
        &mut supervisor,
    )?;
    if complete {
        observer.advanced(length(experiment, task.point) - supervisor.told);
        observer.repetition_done();
    }
    Ok(())
}

fn length(experiment: &Experiment, point: usize) -> Duration {
    let scenario = &experiment.points[point].scenario;
    scenario.duration + scenario.drain
}

/// The longest repetition of any point.
fn repetition_length(experiment: &Experiment) -> Duration {
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

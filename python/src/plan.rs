//! Searches for the largest or smallest value of a key that keeps the limits, in this process or on an executor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use trunkline_planner::{Forecast, Found, Goal, Nearness, Plan, PlanError, Question};
use trunkline_runner::{Elsewhere, RunnerError, Take, Task};
use trunkline_store::{Backend, RunInfo};

use crate::collect::Numbers;
use crate::errors;
use crate::experiment::{Experiment, backend};
use crate::measure::{Done, Means, Watch, cores, watched};
use crate::store::Store;

/// A question, as Python asks it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    maximise: bool,
    key: String,
    against: Option<(String, Vec<String>)>,
    at_least: Option<String>,
    at_most: Option<String>,
    step: Option<String>,
    precision: Option<f64>,
    repetitions: Option<u32>,
    most_repetitions: Option<u32>,
    confidence: f64,
}

impl Asked {
    fn plan(&self, py: Python<'_>, experiment: &Experiment) -> PyResult<Plan> {
        let nearness = match (&self.step, self.precision) {
            (Some(_), Some(_)) => return Err(errors::bad_input("`step` and `precision` exclude each other")),
            (Some(step), None) => Nearness::Step(step),
            (None, Some(share)) => Nearness::Share(share),
            (None, None) => Nearness::Default,
        };
        let question = Question {
            goal: if self.maximise { Goal::Maximise } else { Goal::Minimise },
            key: &self.key,
            against: self.against.as_ref().map(|(key, values)| (key.as_str(), values.as_slice())),
            from: self.at_least.as_deref(),
            to: self.at_most.as_deref(),
            nearness,
            repetitions: self.repetitions,
            most: self.most_repetitions,
            confidence: self.confidence,
        };
        let read = experiment.read(py)?;
        Plan::with_files(&read, &experiment.path(), experiment.files(), &question).map_err(failure)
    }
}

/// The run's number, true if it is complete, the plan as JSON, cautions and warnings.
type Planned = (u64, bool, String, Vec<String>);

/// Carries a plan out in a new run, or in a partial one that is resumed. With `measure`, repetitions are measured by it:
/// a function of a text, its file, the files that it names, and a [`Round`]; otherwise in this process.
#[pyfunction]
#[pyo3(signature = (experiment, store, asked, on, resume = None, jobs = None, progress = None, measure = None))]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's")]
pub(crate) fn plan(
    py: Python<'_>,
    experiment: &Experiment,
    store: &Store,
    asked: Asked,
    on: &str,
    resume: Option<u64>,
    jobs: Option<i64>,
    progress: Option<Bound<'_, PyAny>>,
    measure: Option<Py<PyAny>>,
) -> PyResult<Planned> {
    let (plan, backend) = (asked.plan(py, experiment)?, backend(on)?);
    if backend == Backend::Wire {
        return Err(errors::bad_input(
            "plans run on `sim` or `live` here; `trunkline plan --on wire` searches on the wire",
        ));
    }
    let (means, watch, stop) =
        (Means::of_run(backend)?, Arc::new(PlanWatch::default()), AtomicBool::new(false));
    let workers = measure.map(|measure| Workers {
        measure,
        file: experiment.named_file().to_owned(),
        watch: Arc::clone(&watch),
        stop: &stop,
        raised: Mutex::new(None),
    });
    let means = trunkline_planner::Means {
        backend,
        jobs: cores(jobs)?,
        live: &means.live,
        wire: None,
        tap: None,
        fleet: None,
        elsewhere: workers.as_ref().map(|workers| workers as &dyn Elsewhere),
    };
    let named = std::path::Path::new(experiment.named_file());
    py.detach(|| plan.precheck(&means, Some(named))).map_err(failure)?;
    let run = |stop: &AtomicBool| trunkline_planner::run(&store.store, &plan, resume, &means, &*watch, stop);
    let found = match &workers {
        // On this thread, where Python receives signals while it distributes a round.
        Some(_) => py.detach(|| run(&stop)),
        None => watched(py, progress, || watch.state(), run)?,
    };
    let found = found.map_err(failure)?;
    match workers.as_ref().and_then(|workers| workers.raised().take()) {
        Some(error) => Err(error),
        None => answered(&plan, &found, &watch),
    }
}

fn answered(plan: &Plan, found: &Found, watch: &PlanWatch) -> PyResult<Planned> {
    let json =
        serde_json::to_string(&trunkline_planner::of_plan(plan, found)).map_err(errors::environment)?;
    let mut told = watch.watch.warnings();
    told.extend(trunkline_planner::cautions(plan, found));
    Ok((found.run.id, !found.stopped, json, told))
}

fn failure(error: PlanError) -> PyErr {
    match error {
        PlanError::Load(error) => errors::load(&error),
        PlanError::Runner(error) => errors::runner(error),
        error @ PlanError::Question(_) => errors::bad_input(error),
    }
}

/// Progress of a plan: repetitions that were measured, of all that are expected.
#[derive(Debug, Default)]
struct PlanWatch {
    watch: Watch,
    run: AtomicU64,
    done: AtomicUsize,
    of: AtomicUsize,
}

impl PlanWatch {
    fn state(&self) -> Done {
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        let (done, of) = (count(&self.done), count(&self.of));
        let share = if of == 0 { 0.0 } else { done as f64 / of.max(done) as f64 };
        (share, done, of.max(done), self.run.load(Ordering::Relaxed))
    }
}

impl trunkline_runner::Observer for PlanWatch {
    fn begun(&self, run: &RunInfo) {
        self.run.store(run.id, Ordering::Relaxed);
    }

    fn planned(&self, _: &trunkline_runner::Plan) {}

    fn advanced(&self, _: trunkline_core::Duration) {}

    fn repetition_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn point_done(&self) {}

    fn warning(&self, message: &str) {
        self.watch.warning(message);
    }
}

impl trunkline_planner::Observer for PlanWatch {
    fn judged(&self, _: &str) {}

    fn estimated(&self, forecast: &Forecast) {
        self.forecast(forecast);
    }

    fn forecast(&self, forecast: &Forecast) {
        let left = usize::try_from(forecast.repetitions).unwrap_or(usize::MAX);
        self.of.store(self.done.load(Ordering::Relaxed).saturating_add(left), Ordering::Relaxed);
    }
}

/// Workers that a function of Python's distributes repetitions to.
struct Workers<'w> {
    measure: Py<PyAny>,
    file: String,
    watch: Arc<PlanWatch>,
    stop: &'w AtomicBool,
    /// The exception with which the function has ended.
    raised: Mutex<Option<PyErr>>,
}

impl std::fmt::Debug for Workers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

impl Workers<'_> {
    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, experiment: &trunkline_experiment::Experiment, round: Round) {
        let called = Python::attach(|py| {
            let named: BTreeMap<String, Vec<u8>> = experiment.files.by_path().clone();
            let round = Py::new(py, round)?;
            let called = self.measure.call1(py, (&experiment.text, &self.file, named, &round));
            // The thread that stores archives ends, even if Python keeps the round.
            round.get().channel().take();
            called.map(drop)
        });
        if let Err(error) = called {
            self.stop.store(true, Ordering::Relaxed);
            self.raised().get_or_insert(error);
        }
    }
}

impl Elsewhere for Workers<'_> {
    fn measure(
        &self,
        experiment: &trunkline_experiment::Experiment,
        tasks: &[Task],
        take: &mut Take<'_>,
    ) -> Result<(), RunnerError> {
        // Archives are stored on a thread of their own, since Python cannot keep `take`.
        let (archives, arrived) = sync_channel::<(Vec<u8>, Duration)>(0);
        let (left, replies) = channel();
        let round = Round {
            channel: Mutex::new(Some((archives, replies))),
            missing: Mutex::new(tasks.iter().map(numbers).collect()),
            watch: Arc::clone(&self.watch),
        };
        std::thread::scope(|scope| {
            let storing = scope.spawn(move || -> Result<(), RunnerError> {
                for (archive, took) in arrived {
                    // Without a receiver the function has ended.
                    let _ = left.send(take(&archive, took)?);
                }
                Ok(())
            });
            self.call(experiment, round);
            match storing.join() {
                Ok(stored) => stored,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

fn numbers(task: &Task) -> Numbers {
    (u32::try_from(task.point).unwrap_or(u32::MAX), task.repetition, task.stored)
}

/// The way of an archive to the thread that stores it, and of the repetitions that are missing then.
type Channel = (SyncSender<(Vec<u8>, Duration)>, Receiver<Vec<Task>>);

/// Repetitions that a plan waits for.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Round {
    /// None when the round is over.
    channel: Mutex<Option<Channel>>,
    missing: Mutex<Vec<Numbers>>,
    watch: Arc<PlanWatch>,
}

impl Round {
    fn channel(&self) -> MutexGuard<'_, Option<Channel>> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Round {
    /// Progress of the plan: the share that is done, repetitions, all that are expected, the run's number.
    fn progress(&self) -> Done {
        self.watch.state()
    }

    /// The repetitions that are missing.
    fn missing(&self) -> Vec<Numbers> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores what `measure_part` returned, each repetition of which took this long. Returns the number of repetitions that were
    /// missing until now.
    fn take(&self, py: Python<'_>, measured: &[u8], seconds: f64) -> PyResult<usize> {
        let (measured, took) = (measured.to_vec(), Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let left = py.detach(|| {
            let channel = self.channel();
            let (archives, replies) = channel.as_ref()?;
            archives.send((measured, took)).ok()?;
            replies.recv().ok()
        });
        // The plan reports why.
        let left = left.ok_or_else(|| errors::environment("the plan cannot store what was measured"))?;
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *missing, left.iter().map(numbers).collect()).len();
        Ok(before - missing.len())
    }
}

//! Running an experiment without holding Python's lock.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use trunkline_experiment as model;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_runner::{DirectoryFiles, Hear, Observer, Outcome, Plan, Request, RunnerError, WireMeans};
use trunkline_store::{Backend, RunInfo};

use crate::errors;
use crate::experiment::{Experiment, backend};
use crate::store::Store;

/// Interval at which Python checks for signals and shows progress.
const EVERY: Duration = Duration::from_millis(100);

/// The means of this machine for a run.
pub(crate) struct Means {
    pub(crate) live: LiveOptions,
    wire: Option<WireMeans>,
}

impl Means {
    /// The means of a check, which makes no wires.
    pub(crate) fn of_check() -> PyResult<Means> {
        Means::gain(false)
    }

    /// The means of a run.
    pub(crate) fn of_run(backend: Backend) -> PyResult<Means> {
        Means::gain(backend == Backend::Wire)
    }

    fn gain(wire: bool) -> PyResult<Means> {
        let program = interpreter()?;
        let again = |module: &str| vec!["-m".to_owned(), module.to_owned()];
        let far_end = FarEnd::Process {
            program: program.clone(),
            arguments: again("trunkline._far_end").into_iter().map(Into::into).collect(),
        };
        let wire = wire.then(|| WireMeans::gain(program, again("trunkline._wire_init")));
        let wire = wire.transpose().map_err(errors::environment)?;
        Ok(Means { live: LiveOptions::new(far_end), wire })
    }

    pub(crate) fn request<'r>(
        &'r self,
        experiment: &'r model::Experiment,
        file: &'r Path,
        backend: Backend,
        jobs: usize,
    ) -> Request<'r> {
        Request {
            experiment,
            file,
            backend,
            jobs,
            live: &self.live,
            wire: self.wire.as_ref(),
            hear: Hear::nothing(),
            tap: None,
            kernels: None,
            fleet: None,
        }
    }
}

/// Python's own program, which serves the other end of a live run.
fn interpreter() -> PyResult<PathBuf> {
    Python::attach(|py| py.import("sys")?.getattr("executable")?.extract())
}

/// Runs an experiment and stores it. Returns the run's number, whether all of it was measured, and the warnings.
/// `progress` is called with what is done: the share of the length, repetitions, all repetitions, the run's number.
#[pyfunction]
#[pyo3(signature = (experiment, store, on, jobs = None, progress = None))]
pub(crate) fn run(
    py: Python<'_>,
    experiment: &Experiment,
    store: &Store,
    on: &str,
    jobs: Option<i64>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Ran> {
    let backend = backend(on)?;
    let means = Means::of_run(backend)?;
    let path = experiment.path();
    experiment.measured(py, |read| {
        let request = means.request(read, &path, backend, cores(jobs)?);
        let as_named = Request { file: Path::new(experiment.named_file()), ..request };
        py.detach(|| trunkline_runner::precheck(&as_named)).map_err(errors::runner)?;
        let watch = Watch::default();
        let run = |stop: &AtomicBool| trunkline_runner::run(&store.store, request, &watch, stop);
        ran(watched(py, progress, || watch.state(), run)?, &watch)
    })
}

/// Measures what a partial run lacks.
#[pyfunction]
#[pyo3(signature = (store, id, jobs = None, progress = None))]
pub(crate) fn resume(
    py: Python<'_>,
    store: &Store,
    id: u64,
    jobs: Option<i64>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Ran> {
    let stored = store.store.run(id).map_err(errors::store)?;
    let file = &stored.info.file;
    let beside = DirectoryFiles::beside(file);
    let experiment = trunkline_runner::stored(&store.store, &stored, &file.display().to_string(), &beside);
    let experiment = experiment.map_err(|problems| errors::invalid(&problems))?;
    let means = Means::of_run(stored.info.backend)?;
    let request = means.request(&experiment, file, stored.info.backend, cores(jobs)?);
    let watch = Watch::default();
    let run = |stop: &AtomicBool| trunkline_runner::resume(&store.store, id, request, &watch, stop);
    ran(watched(py, progress, || watch.state(), run)?, &watch)
}

fn ran(outcome: Result<Outcome, RunnerError>, watch: &Watch) -> PyResult<Ran> {
    let run = outcome.map_err(errors::runner)?.run;
    Ok((run.id, run.status == trunkline_store::Status::Complete, watch.warnings()))
}

/// The run's number, true if it is complete, and the warnings.
type Ran = (u64, bool, Vec<String>);

/// Repetitions that are measured at once: `jobs`, with the bounds of `--jobs`; as many as there are cores without it.
pub(crate) fn cores(jobs: Option<i64>) -> PyResult<usize> {
    let Some(jobs) = jobs else {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    };
    let bounded = usize::try_from(jobs).ok().filter(|jobs| (1..=1024).contains(jobs));
    bounded.ok_or_else(|| errors::bad_input(format_args!("`jobs` must be 1 to 1024, not {jobs}")))
}

/// Runs on another thread, while this one shows progress and receives signals. A signal stops the run, which keeps what it
/// has; then it is raised.
pub(crate) fn watched<R: Send>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    state: impl Fn() -> Done,
    run: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    // Nothing is sent: it is closed when the thread ends, even by a panic.
    let (sender, over) = channel::<()>();
    let mut raised = None;
    let ended = std::thread::scope(|scope| {
        let stop_it = &stop;
        let thread = scope.spawn(move || {
            let _open = sender;
            run(stop_it)
        });
        let over = Mutex::new(over);
        loop {
            let next = py.detach(|| over.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(EVERY));
            let shown = progress.as_ref().map(|progress| progress.call1(state())).transpose();
            if let Err(error) = py.check_signals().and(shown.map(|_| ())) {
                stop.store(true, Ordering::Relaxed);
                raised.get_or_insert(error);
            }
            if next != Err(RecvTimeoutError::Timeout) {
                // Joined here, so that a panic becomes an exception of the package.
                return py.detach(|| thread.join().ok());
            }
        }
    });
    match raised {
        Some(error) => Err(error),
        None => ended.ok_or_else(|| errors::environment("the run's thread panicked")),
    }
}

/// Progress of a run: the share of its length, repetitions, all repetitions, the run's number.
pub(crate) type Done = (f64, usize, usize, u64);

/// Progress, as the threads of a run report it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    run: AtomicU64,
    length: AtomicU64,
    passed: AtomicU64,
    planned: AtomicUsize,
    done: AtomicUsize,
    warnings: Mutex<Vec<String>>,
}

impl Watch {
    /// The warnings so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn state(&self) -> Done {
        let length = self.length.load(Ordering::Relaxed).max(1);
        let share = self.passed.load(Ordering::Relaxed) as f64 / length as f64;
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        (share.min(1.0), count(&self.done), count(&self.planned), self.run.load(Ordering::Relaxed))
    }
}

impl Observer for Watch {
    fn begun(&self, run: &RunInfo) {
        self.run.store(run.id, Ordering::Relaxed);
    }

    fn planned(&self, plan: &Plan) {
        self.length.store(plan.length.as_nanos(), Ordering::Relaxed);
        self.planned.store(plan.repetitions, Ordering::Relaxed);
    }

    fn advanced(&self, by: trunkline_core::Duration) {
        self.passed.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }

    fn repetition_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn point_done(&self) {}

    fn warning(&self, message: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
    }
}

//! A run whose repetitions are measured elsewhere: by processes of an executor, on this machine or on many.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_runner::{Request, RunnerError};
use trunkline_store::{RunWriter, Status};

use crate::errors;
use crate::experiment::{Experiment, backend};
use crate::measure::{Means, Watch};
use crate::store::Store;

/// A run that is being collected. Dropped without `finish`, it becomes partial.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Collector {
    writer: Mutex<Option<RunWriter>>,
    #[pyo3(get)]
    id: u64,
}

impl Collector {
    fn of(writer: RunWriter) -> PyResult<Collector> {
        let id = writer.info().map_err(errors::store)?.id;
        Ok(Collector { writer: Mutex::new(Some(writer)), id })
    }

    fn writer(&self) -> MutexGuard<'_, Option<RunWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, act: impl FnOnce(&RunWriter) -> PyResult<R>) -> PyResult<R> {
        self.writer().as_ref().map_or_else(|| Err(errors::environment("the run is finished")), act)
    }
}

#[pymethods]
impl Collector {
    /// Begins a run of all points, after the same checks as before a run on this machine.
    #[staticmethod]
    fn begin(py: Python<'_>, experiment: &Experiment, store: &Store, on: &str) -> PyResult<Collector> {
        let (read, backend) = (experiment.read()?, backend(on)?);
        let (means, path) = (Means::of_check()?, experiment.path());
        let request = means.request(&read, &path, backend, 1);
        py.detach(|| {
            trunkline_runner::precheck(&request)?;
            trunkline_runner::begin(&store.store, &request)
        })
        .map_err(|error: RunnerError| errors::runner(&error))
        .and_then(Collector::of)
    }

    /// Goes on with a partial run.
    #[staticmethod]
    fn resume(py: Python<'_>, store: &Store, id: u64) -> PyResult<Collector> {
        py.detach(|| store.store.resume(id)).map_err(errors::store).and_then(Collector::of)
    }

    /// The repetitions that are missing: point and repetition, both from 0.
    fn missing(&self) -> PyResult<Vec<(u32, u32)>> {
        self.with(|writer| writer.missing().map_err(errors::store))
    }

    /// Stores what `measure` returned. Returns the number of repetitions that were missing until now.
    fn take(&self, py: Python<'_>, measured: &[u8]) -> PyResult<u64> {
        py.detach(|| self.with(|writer| writer.adopt_archive(measured).map_err(errors::store)))
            .map(|adopted| adopted.taken)
    }

    /// Ends the run. Returns true if it is complete.
    fn finish(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(writer) = self.writer().take() else { return Ok(false) };
        py.detach(|| {
            let complete = writer.missing()?.is_empty();
            writer.finish(if complete { Status::Complete } else { Status::Partial })?;
            Ok(complete)
        })
        .map_err(errors::store)
    }
}

/// Measures these repetitions (point and repetition, both from 0) in a store that goes when this returns, and returns them as
/// an archive for [`Collector::take`], with the warnings.
#[pyfunction]
pub(crate) fn measure_part<'p>(
    py: Python<'p>,
    experiment: &Experiment,
    on: &str,
    tasks: Vec<(u32, u32)>,
    jobs: usize,
) -> PyResult<(Bound<'p, PyBytes>, Vec<String>)> {
    let (read, backend) = (experiment.read()?, backend(on)?);
    let (means, path) = (Means::of_run(backend)?, experiment.path());
    let request: Request<'_> = means.request(&read, &path, backend, jobs);
    let watch = Watch::default();
    let archive = py.detach(|| {
        let folder = tempfile::tempdir().map_err(errors::environment)?;
        let store = Arc::new(trunkline_store::Store::open(folder.path()).map_err(errors::store)?);
        let (wanted, stop) =
            (|point, repetition| tasks.contains(&(point, repetition)), AtomicBool::new(false));
        let ran = trunkline_runner::run_part(&store, request, wanted, &watch, &stop);
        let id = ran.map_err(|error| errors::runner(&error))?.run.id;
        let mut archive = Vec::new();
        store.export_measured(id, &mut archive).map_err(errors::store)?;
        Ok::<_, PyErr>(archive)
    })?;
    Ok((PyBytes::new(py, &archive), watch.warnings()))
}

//! A run whose repetitions are measured elsewhere: by processes of an executor, on this machine or on many.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_runner::{Request, Task};
use trunkline_store::{RunWriter, Status, StoreError};

use crate::errors;
use crate::experiment::{Experiment, backend};
use crate::measure::{Means, Watch, cores};
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

    /// Locks the writer: only for threads that have detached from Python, since others wait for the writer there.
    fn writer(&self) -> MutexGuard<'_, Option<RunWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&RunWriter) -> Result<R, StoreError> + Send,
    ) -> PyResult<R> {
        let acted = py.detach(|| self.writer().as_ref().map(act));
        acted.ok_or_else(|| errors::environment("the run is finished"))?.map_err(errors::store)
    }
}

#[pymethods]
impl Collector {
    /// Begins a run of all points, after the same checks as before a run on this machine.
    #[staticmethod]
    fn begin(py: Python<'_>, experiment: &Experiment, store: &Store, on: &str) -> PyResult<Collector> {
        let (read, backend) = (experiment.read(py)?, backend(on)?);
        let (means, path) = (Means::of_check()?, experiment.path());
        let request = means.request(&read, &path, backend, 1);
        let as_named = Request { file: Path::new(experiment.named_file()), ..request };
        py.detach(|| {
            trunkline_runner::precheck(&as_named)?;
            trunkline_runner::begin(&store.store, &request)
        })
        .map_err(errors::runner)
        .and_then(Collector::of)
    }

    /// Goes on with a partial run.
    #[staticmethod]
    fn resume(py: Python<'_>, store: &Store, id: u64) -> PyResult<Collector> {
        py.detach(|| store.store.resume(id)).map_err(errors::store).and_then(Collector::of)
    }

    /// The repetitions that are missing.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<Numbers>> {
        let missing = self.with(py, RunWriter::missing)?;
        Ok(missing.into_iter().map(|(point, repetition)| (point, repetition, point)).collect())
    }

    /// Stores what `measure_part` returned. Returns the number of repetitions that were missing until now. How long they took
    /// is of no interest here.
    fn take(&self, py: Python<'_>, measured: &[u8], seconds: f64) -> PyResult<u64> {
        let _ = seconds;
        self.with(py, |writer| writer.adopt_archive(measured)).map(|adopted| adopted.taken)
    }

    /// Ends the run. Returns true if it is complete.
    fn finish(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            let Some(writer) = self.writer().take() else { return Ok(false) };
            let complete = writer.missing()?.is_empty();
            writer.finish(if complete { Status::Complete } else { Status::Partial })?;
            Ok(complete)
        })
        .map_err(errors::store)
    }
}

/// A repetition: its point, its number, and the point's number in the stored run, all from 0.
pub(crate) type Numbers = (u32, u32, u32);

/// Measures these repetitions in a store that goes when this returns, and returns them as
/// an archive for [`Collector::take`], with the warnings.
#[pyfunction]
pub(crate) fn measure_part<'p>(
    py: Python<'p>,
    experiment: &Experiment,
    on: &str,
    tasks: Vec<Numbers>,
    jobs: i64,
) -> PyResult<(Bound<'p, PyBytes>, Vec<String>)> {
    let backend = backend(on)?;
    let (means, path, watch) = (Means::of_run(backend)?, experiment.path(), Watch::default());
    let jobs = cores(Some(jobs))?;
    let measure = |read: &_| {
        let request: Request<'_> = means.request(read, &path, backend, jobs);
        let folder = tempfile::tempdir().map_err(errors::environment)?;
        let store = Arc::new(trunkline_store::Store::scratch(folder.path()).map_err(errors::store)?);
        let task = |(point, repetition, stored)| Task { point: point as usize, stored, repetition };
        let wanted: Vec<Task> = tasks.into_iter().map(task).collect();
        let ran = trunkline_runner::run_some(&store, request, &wanted, &watch, &AtomicBool::new(false));
        let id = ran.map_err(errors::runner)?.run.id;
        let mut archive = Vec::new();
        store.export_measured(id, &mut archive).map_err(errors::store)?;
        Ok(archive)
    };
    let archive = experiment.measured(py, |read| py.detach(|| measure(read)))?;
    Ok((PyBytes::new(py, &archive), watch.warnings()))
}

//! A stored run and its tables.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use trunkline_runner::DirectoryFiles;
use trunkline_store::{RunInfo, Store, StoredPoint, StoredRun};

use crate::errors;
use crate::experiment::Experiment;
use crate::table::{self, Table};

/// A swept key: its name, the values as written and as numbers, and the unit of those.
type Axis = (String, Vec<String>, Option<Vec<f64>>, String);

/// A stored run. Its results are read when they are asked for.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Run {
    store: Arc<Store>,
    /// The run without its points, as it was when this was made.
    run: StoredRun,
}

impl Run {
    pub(crate) fn read(store: &Arc<Store>, id: u64) -> PyResult<Run> {
        let run = store.outline(id).map_err(errors::store)?;
        Ok(Run { store: Arc::clone(store), run })
    }

    /// Gives `point` the points with their results one by one.
    pub(crate) fn walk(&self, point: impl FnMut(StoredPoint)) -> PyResult<()> {
        self.store.walk(self.run.info.id, point).map_err(errors::store)
    }

    /// The run without its points.
    pub(crate) fn outline(&self) -> &StoredRun {
        &self.run
    }

    /// The run with all of its results.
    pub(crate) fn whole(&self) -> PyResult<StoredRun> {
        self.store.run(self.run.info.id).map_err(errors::store)
    }
}

#[pymethods]
impl Run {
    /// The facts about the run, as JSON.
    fn info(&self) -> PyResult<String> {
        json(&self.run.info)
    }

    /// The experiment file's text as it was run.
    #[getter]
    fn text(&self) -> &str {
        &self.run.text
    }

    /// The swept keys with their values.
    #[getter]
    fn axes(&self) -> Vec<Axis> {
        let axes = self.run.axes.iter();
        axes.map(|axis| (axis.key.clone(), axis.values.clone(), axis.numbers.clone(), axis.unit.clone()))
            .collect()
    }

    /// The experiment of the run, with the files that it names as they were.
    fn experiment(&self, py: Python<'_>) -> PyResult<Experiment> {
        let (info, file) = (&self.run.info, self.run.info.file.display().to_string());
        let read = py.detach(|| {
            let beside = DirectoryFiles::beside(&info.file);
            trunkline_runner::stored(&self.store, &self.run, &file, &beside)
        });
        let read = read.map_err(|problems| errors::invalid(&problems))?;
        Ok(Experiment::of(read, file))
    }

    fn summary(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::flows(self))
    }

    fn sinks(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::sinks(self))
    }

    fn bundles(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::bundles(self))
    }

    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::links(self))
    }

    fn stalls(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::stalls(self))
    }

    fn limits(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::limits(&self.whole()?))
    }

    /// Point, repetition and trace of every measurement of a flow. Gets the files from the bucket if they are elsewhere.
    fn traces(&self, py: Python<'_>, flow: &str) -> PyResult<Vec<(u32, u32, PathBuf)>> {
        py.detach(|| {
            let mut found = Vec::new();
            self.walk(|point| {
                for repetition in point.repetitions {
                    let traces = repetition.traces.into_iter().filter(|(name, _)| name == flow);
                    found.extend(traces.map(|(_, path)| (point.index, repetition.index, path)));
                }
            })?;
            for (_, _, path) in &found {
                self.store.fetch(&self.run.info, path).map_err(errors::store)?;
            }
            Ok(found)
        })
    }

    /// The names of the run's flows.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| {
            let mut names: Vec<String> = Vec::new();
            self.walk(|point| {
                for (name, _) in point.repetitions.into_iter().flat_map(|repetition| repetition.traces) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            })?;
            Ok(names)
        })
    }

    /// Name and title of each figure of the report.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        py.detach(|| Ok(trunkline_report::figure_names(&self.whole()?, None)))
    }

    /// A figure of the report as SVG.
    fn svg(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        py.detach(|| Ok(trunkline_report::figure_svg(&self.whole()?, None, name)))
    }

    /// The report: one self-contained HTML file.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(trunkline_report::html(&self.whole()?, None)))
    }

    /// The report as JSON, as `trunkline report --json` prints it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let report = trunkline_report::report(&self.whole()?, None);
            serde_json::to_string(&report).map_err(errors::environment)
        })
    }

    /// True if all limits hold; `None` without limits.
    fn limits_hold(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        py.detach(|| Ok(trunkline_report::limits_hold(&self.whole()?)))
    }
}

/// The facts about a run as JSON.
pub(crate) fn json(info: &RunInfo) -> PyResult<String> {
    serde_json::to_string(info).map_err(errors::environment)
}

//! A stored run and its tables.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use trunkline_runner::DirectoryFiles;
use trunkline_store::{RunInfo, Store, StoredRun};

use crate::errors;
use crate::experiment::Experiment;
use crate::table::{self, Table};

/// A swept key: its name, the values as written and as numbers, and the unit of those.
type Axis = (String, Vec<String>, Option<Vec<f64>>, String);

/// A run as it was stored when it was read.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Run {
    store: Arc<Store>,
    run: StoredRun,
}

impl Run {
    pub(crate) fn read(store: &Arc<Store>, id: u64) -> PyResult<Run> {
        let run = store.run(id).map_err(errors::store)?;
        Ok(Run { store: Arc::clone(store), run })
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
        py.detach(|| table::flows(&self.run))
    }

    fn sinks(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::sinks(&self.run))
    }

    fn bundles(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::bundles(&self.run))
    }

    fn links(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::links(&self.run))
    }

    fn stalls(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::stalls(&self.run))
    }

    fn limits(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| table::limits(&self.run))
    }

    /// Point, repetition and trace of every measurement of a flow. Gets the files from the bucket if they are elsewhere.
    fn traces(&self, py: Python<'_>, flow: &str) -> PyResult<Vec<(u32, u32, PathBuf)>> {
        py.detach(|| {
            let mut found = Vec::new();
            for point in &self.run.points {
                for repetition in &point.repetitions {
                    for (_, path) in repetition.traces.iter().filter(|(name, _)| name == flow) {
                        self.store.fetch(&self.run.info, path).map_err(errors::store)?;
                        found.push((point.index, repetition.index, path.clone()));
                    }
                }
            }
            Ok(found)
        })
    }

    /// The names of the run's flows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.run.points.iter().flat_map(|p| &p.repetitions).flat_map(|r| &r.traces) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Name and title of each figure of the report.
    fn figures(&self, py: Python<'_>) -> Vec<(String, String)> {
        py.detach(|| trunkline_report::figure_names(&self.run, None))
    }

    /// A figure of the report as SVG.
    fn svg(&self, py: Python<'_>, name: &str) -> Option<String> {
        py.detach(|| trunkline_report::figure_svg(&self.run, None, name))
    }

    /// The report: one self-contained HTML file.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| trunkline_report::html(&self.run, None))
    }

    /// The report as JSON, as `trunkline report --json` prints it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&trunkline_report::report(&self.run, None)))
            .map_err(errors::environment)
    }

    /// True if all limits hold; `None` without limits.
    fn limits_hold(&self) -> Option<bool> {
        trunkline_report::limits_hold(&self.run)
    }
}

/// The facts about a run as JSON.
pub(crate) fn json(info: &RunInfo) -> PyResult<String> {
    serde_json::to_string(info).map_err(errors::environment)
}

//! Descriptions of links out of recordings, as `trunkline learn --from` makes them.

use std::borrow::Cow;
use std::path::PathBuf;

use pyo3::prelude::*;
use trunkline_learn::import::{self, Clocks, FilesError};

use crate::errors;

/// A link as it was learned.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Learned(import::Learned);

/// Learns from one recording or two.
#[pyfunction]
pub(crate) fn learn(py: Python<'_>, files: Vec<PathBuf>, one_clock: bool) -> PyResult<Learned> {
    let clocks = if one_clock { Clocks::Same } else { Clocks::Apart };
    let read_trace = |path: &std::path::Path, take: &mut dyn FnMut(&trunkline_metrics::Record)| {
        trunkline_store::read_trace(path, take).map_err(|error| error.to_string())
    };
    py.detach(|| import::from_files(&files, clocks, &read_trace)).map(Learned).map_err(failure)
}

fn failure(error: FilesError) -> PyErr {
    match error {
        FilesError::Unwritable { .. } => errors::environment(error),
        error => errors::bad_input(error),
    }
}

#[pymethods]
impl Learned {
    /// Reads what [`Learned::to_json`] has returned, in this process or another.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Learned> {
        serde_json::from_str(text).map(Learned).map_err(errors::bad_input)
    }

    /// The whole of it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(errors::bad_input)
    }

    /// The description as TOML.
    fn text(&self, name: &str, when: &str) -> String {
        self.0.to_toml(name, when)
    }

    /// Direction (empty for both), key, value as text, and evidence.
    fn known(&self, name: &str) -> Vec<(&'static str, Cow<'static, str>, String, String)> {
        let of = |(way, side): (&'static str, &import::Side)| {
            let known = side.known.iter();
            known
                .map(|known| (way, known.key.clone(), known.value.text(name), known.evidence.clone()))
                .collect::<Vec<_>>()
        };
        self.sides().into_iter().flat_map(of).collect()
    }

    /// Direction (empty for both), key, and why it cannot be known.
    fn unknown(&self) -> Vec<(&'static str, Cow<'static, str>, String)> {
        let of = |(way, side): (&'static str, &import::Side)| {
            side.unknown
                .iter()
                .map(|unknown| (way, unknown.key.clone(), unknown.why.clone()))
                .collect::<Vec<_>>()
        };
        self.sides().into_iter().flat_map(of).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    /// Writes the description and the files beside it. Returns all of them.
    fn write(&self, py: Python<'_>, target: PathBuf, when: &str) -> PyResult<Vec<PathBuf>> {
        py.detach(|| self.0.write(&target, when)).map_err(failure)
    }
}

impl Learned {
    fn sides(&self) -> [(&'static str, &import::Side); 3] {
        [("", &self.0.both), ("forward", &self.0.forward), ("backward", &self.0.backward)]
    }
}

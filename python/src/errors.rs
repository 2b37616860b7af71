//! Errors as Python raises them. The classes are Python's own (`trunkline/_errors.py`), so that they can be pickled.

use std::fmt::Display;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use trunkline_experiment::Problems;
use trunkline_runner::{LoadError, RunnerError};
use trunkline_store::StoreError;

/// `trunkline.ExperimentError` with every problem of a file.
pub(crate) fn invalid(problems: &Problems) -> PyErr {
    let each: Vec<_> = problems
        .iter()
        .map(|p| (p.file.to_string(), p.line, p.column, p.message.clone(), p.to_string(), p.is_setting()))
        .collect();
    raise("ExperimentError", |py| (problems.to_string(), each).into_pyobject(py))
}

/// `trunkline.ExperimentError` about input that has no place in a file.
pub(crate) fn bad_input(error: impl Display) -> PyErr {
    raise("ExperimentError", |py| (error.to_string(),).into_pyobject(py))
}

/// `trunkline.TrunklineError`: the machine, the network or the store refuses.
pub(crate) fn environment(error: impl Display) -> PyErr {
    raise("TrunklineError", |py| (error.to_string(),).into_pyobject(py))
}

pub(crate) fn load(error: &LoadError) -> PyErr {
    match error {
        LoadError::Invalid(problems) => invalid(problems),
        LoadError::Unreadable { .. } => bad_input(error),
    }
}

pub(crate) fn runner(error: RunnerError) -> PyErr {
    match error {
        RunnerError::Key(problems) => invalid(&problems),
        RunnerError::Store(error) => store(error),
        error if error.is_bad_input() => bad_input(error),
        error => environment(error),
    }
}

pub(crate) fn store(error: StoreError) -> PyErr {
    if error.is_bad_input() {
        raise("StoreError", |py| (error.to_string(),).into_pyobject(py))
    } else {
        environment(error)
    }
}

fn raise(class: &str, arguments: impl for<'p> FnOnce(Python<'p>) -> PyResult<Bound<'p, PyTuple>>) -> PyErr {
    Python::attach(|py| {
        let made = || py.import("trunkline._errors")?.getattr(class)?.call1(arguments(py)?);
        made().map_or_else(|error| error, PyErr::from_value)
    })
}

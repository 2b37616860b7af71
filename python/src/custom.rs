//! Sources and loss models that are functions of Python. They are called with Python's lock once for each batch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use trunkline_core::custom::{Batches, Function};
use trunkline_core::{Custom, Duration};
use trunkline_experiment::{self as model, Loss, Scenario};

use crate::errors;

/// The functions of an experiment, by the key in the file whose kind is `custom`: `flow.voice.source`.
pub(crate) type Functions = BTreeMap<String, Py<PyAny>>;

/// The first exception of a function, and where it was raised.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<(String, PyErr)>>>);

impl Failure {
    fn with<R>(&self, act: impl FnOnce(&mut Option<(String, PyErr)>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The exception that the program of Python gets: `ExperimentError`, caused by that of the function.
    pub(crate) fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        let (text, cause) =
            self.with(|failed| failed.as_ref().map(|(text, error)| (text.clone(), error.clone_ref(py))))?;
        let raised = errors::bad_input(text);
        raised.set_cause(py, Some(cause));
        Some(raised)
    }
}

/// Puts functions into the scenarios of an experiment. Returns what they will raise.
pub(crate) fn provide(py: Python<'_>, experiment: &mut model::Experiment, functions: &Functions) -> Failure {
    let failure = Failure::default();
    let shared = |(key, function): (&String, &Py<PyAny>)| (key.clone(), Arc::new(function.clone_ref(py)));
    let functions: BTreeMap<String, Arc<Py<PyAny>>> = functions.iter().map(shared).collect();
    let of_all = failure.clone();
    experiment.points.change(move |scenario| put(scenario, &functions, &of_all));
    failure
}

/// Puts functions into a scenario.
fn put(scenario: &mut Scenario, functions: &BTreeMap<String, Arc<Py<PyAny>>>, failure: &Failure) {
    let call = |key: &str, helper, largest| {
        let function = Arc::clone(functions.get(key)?);
        Some(Call { helper, function, largest, failure: failure.clone() })
    };
    for flow in &mut scenario.flows {
        let largest = trunkline_traffic::KINDS[flow.source.kind].max_message;
        let name = &flow.meta.name;
        let call = call(&format!("flow.{name}.source"), "messages", largest(&flow.source.values));
        flow.source.custom =
            call.map(|call| call.custom(format!("flow `{name}`, source"))).unwrap_or_default();
    }
    for link in &mut scenario.links {
        let name = &link.name;
        for (port, direction) in link.directions.iter_mut().enumerate() {
            let Loss::Custom(custom) = &mut direction.impairments.loss else { continue };
            let of_direction = ["forward", "backward"].get(port).map(|way| format!("link.{name}.{way}.loss"));
            let mut keys = of_direction.into_iter().chain([format!("link.{name}.loss")]);
            let call = keys.find_map(|key| call(&key, "losses", 0));
            *custom = call.map(|call| call.custom(format!("link `{name}`, loss"))).unwrap_or_default();
        }
    }
}

/// A function, and the helper of `_custom.py` that calls it and checks each batch.
struct Call {
    helper: &'static str,
    function: Arc<Py<PyAny>>,
    largest: u64,
    failure: Failure,
}

impl Call {
    fn custom<T: Draw>(self, place: String) -> Custom<T> {
        Custom::new(Placed { place, call: self })
    }
}

/// A call for one flow or link.
struct Placed {
    place: String,
    call: Call,
}

impl<T: Draw> Function<T> for Placed {
    fn batches(&self, seed: u64) -> Batches<T> {
        let Call { helper, function, largest, failure } = &self.call;
        let begun = Python::attach(|py| {
            let helper = py.import("trunkline._custom")?.getattr(*helper)?;
            Ok(helper.call1((function.bind(py), seed, *largest))?.unbind())
        });
        let (place, failure) = (self.place.clone(), failure.clone());
        let failed = move |error: PyErr| {
            let text = format!("{place}: {}", Python::attach(|py| one_line(py, &error)));
            failure.with(|first| {
                first.get_or_insert((text, error));
            });
        };
        let iterator: Py<PyAny> = match begun {
            Ok(iterator) => iterator,
            Err(error) => {
                failed(error);
                return Box::new(std::iter::empty());
            }
        };
        Box::new(std::iter::from_fn(move || {
            let next = Python::attach(|py| {
                let batch = iterator.bind(py).try_iter()?.next().transpose()?;
                batch.map(|batch| T::batch(&batch)).transpose()
            });
            next.map_err(&failed).unwrap_or_default()
        }))
    }

    fn failure(&self) -> Option<String> {
        self.call.failure.with(|failed| failed.as_ref().map(|(text, _)| text.clone()))
    }
}

/// The exception as the last line of a traceback says it.
fn one_line(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    let class = error.get_type(py);
    match class.name() {
        Ok(name) if name != "ExperimentError" => format!("{name}: {text}"),
        _ => text,
    }
}

/// A draw of a function.
trait Draw: Sized + Send + 'static {
    /// A batch as the helper gives it.
    fn batch(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Self>>;
}

/// The nanoseconds after the message before (64-bit), and the size in bytes (32-bit), as arrays in the machine's byte order.
impl Draw for (Duration, u32) {
    fn batch(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let (intervals, sizes): (Bound<'_, PyBytes>, Bound<'_, PyBytes>) = batch.extract()?;
        let intervals = intervals.as_bytes().as_chunks().0.iter();
        let intervals = intervals.map(|bytes| Duration::from_nanos(u64::from_ne_bytes(*bytes)));
        let sizes = sizes.as_bytes().as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes));
        Ok(intervals.zip(sizes).collect())
    }
}

/// A byte for each packet, 1 if it is lost.
impl Draw for bool {
    fn batch(batch: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let lost: Bound<'_, PyBytes> = batch.extract()?;
        Ok(lost.as_bytes().iter().map(|byte| *byte != 0).collect())
    }
}

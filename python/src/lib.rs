//! The native half of the Python package `trunkline`: experiments, runs and parts as Python objects. What Python can do itself
//! (plots, executors, progress bars) is in `trunkline/`; this half is thin over the crates of the product.

#![cfg(feature = "module")]

mod bottleneck;
mod collect;
mod custom;
mod endpoint;
mod errors;
mod experiment;
mod learn;
mod link;
mod measure;
mod meter;
mod parts;
mod plan;
mod run;
mod store;
mod table;
mod timed;
mod traffic;

use pyo3::prelude::*;

/// Serves the far end of a live run on standard input and output, as `trunkline far-end` does.
#[pyfunction]
fn far_end(py: Python<'_>) -> PyResult<()> {
    py.detach(trunkline_live::far_end::serve_standard_streams).map_err(errors::environment)
}

/// Serves a host of a wire on standard input and output, as `trunkline wire init` does.
#[pyfunction]
fn wire_init(py: Python<'_>) -> PyResult<()> {
    #[cfg(target_os = "linux")]
    return py.detach(trunkline_wire::ground::serve_init).map_err(errors::environment);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = py;
        Err(errors::environment("the wire needs Linux network namespaces"))
    }
}

/// Gains the right to make wires for this process, which must have a single thread: without privileges it enters a user
/// namespace.
#[pyfunction]
fn enter_wire() -> PyResult<()> {
    measure::Means::of_run(trunkline_store::Backend::Wire).map(drop)
}

#[pymodule]
fn _trunkline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<experiment::Experiment>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<collect::Collector>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<parts::Queue>()?;
    module.add_class::<link::Link>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<traffic::Source>()?;
    module.add_class::<traffic::Loss>()?;
    module.add_class::<meter::Meter>()?;
    module.add_class::<meter::ClockOffset>()?;
    module.add_class::<bottleneck::Bottleneck>()?;
    module.add_class::<learn::Learned>()?;
    module.add_class::<plan::Round>()?;
    module.add_function(wrap_pyfunction!(learn::learn, module)?)?;
    module.add_function(wrap_pyfunction!(endpoint::endpoints, module)?)?;
    module.add_function(wrap_pyfunction!(parts::e_model, module)?)?;
    module.add_function(wrap_pyfunction!(far_end, module)?)?;
    module.add_function(wrap_pyfunction!(wire_init, module)?)?;
    module.add_function(wrap_pyfunction!(enter_wire, module)?)?;
    module.add_function(wrap_pyfunction!(collect::measure_part, module)?)?;
    module.add_function(wrap_pyfunction!(measure::run, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(measure::resume, module)?)
}

//! The backends: each is a file with its [`Driver`], and a line in [`driver`].

mod live;
mod sim;
mod wire;

use std::collections::BTreeSet;

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{Experiment, Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_store::Backend;

use crate::congestion;
use crate::driven::Driven;
use crate::error::RunnerError;
use crate::request::Request;

/// A way to measure the points of an experiment.
pub(crate) trait Driver: Sync {
    /// Refuses what this backend cannot measure on any machine.
    fn refuse(&self, scenario: &Scenario) -> Result<(), RunnerError>;

    /// Refuses also what would stop this request at once, such as a port in use.
    fn check(&self, request: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError>;

    /// Differences from the experiment, in sentences.
    fn notes(&self, experiment: &Experiment) -> BTreeSet<String>;

    /// Measures a repetition of a point; `at` is what agents call it.
    fn drive(
        &self,
        request: Request<'_>,
        point: &Point,
        seed: Seed,
        at: &PartKey,
        recorder: &mut (dyn Recorder + Send),
        supervisor: &mut (dyn Supervisor + Send),
    ) -> Driven;
}

/// The driver of a backend.
pub(crate) fn driver(backend: Backend) -> &'static dyn Driver {
    match backend {
        Backend::Sim => &sim::Sim,
        Backend::Wire => &wire::Wire,
        Backend::Live => &live::Live,
    }
}

/// The reason why a backend cannot measure a scenario on any machine; `None` if it can.
pub fn refused(backend: Backend, scenario: &Scenario) -> Option<String> {
    let refused = driver(backend).refuse(scenario).and_then(|()| refuse_custom(backend, scenario));
    let refused = refused.err().map(|error| error.to_string());
    match backend.is_simulated() {
        true => refused,
        false => refused.or_else(|| congestion::unknown_everywhere(scenario)),
    }
}

/// Refuses custom sources and loss models on a backend whose time does not wait for their functions.
pub(crate) fn refuse_custom(backend: Backend, scenario: &Scenario) -> Result<(), RunnerError> {
    let first = scenario.custom().next().filter(|_| !backend.is_simulated());
    first.map_or(Ok(()), |(what, _)| Err(RunnerError::Custom(what)))
}

/// Differences from the experiment, in sentences: messages that are larger than asked for, and on the wire also the kernel's
/// substitutes.
pub fn notes(experiment: &Experiment, backend: Backend) -> BTreeSet<String> {
    driver(backend).notes(experiment)
}

//! The backends: each is a file with its [`Driver`], and a line in [`driver`].

mod live;
mod sim;
mod wire;

use std::collections::BTreeSet;

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{CustomKey, Experiment, Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_store::Backend;

use crate::congestion;
use crate::drain::ShortDrains;
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
    fn notes(&self, scenario: &Scenario) -> BTreeSet<String>;

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

/// Each backend with the reason why it cannot measure an experiment on any machine, if there is one.
pub fn refusals(experiment: &Experiment) -> [(Backend, Option<String>); 3] {
    let mut refusals = Backend::ALL.map(|backend| (backend, None));
    for point in experiment.points.iter() {
        for (backend, reason) in refusals.iter_mut().filter(|(_, reason)| reason.is_none()) {
            *reason = refused(*backend, &point.scenario);
        }
    }
    refusals
}

/// The reason why a backend cannot measure a scenario on any machine; `None` if it can.
pub fn refused(backend: Backend, scenario: &Scenario) -> Option<String> {
    let custom = || refused_custom(backend, scenario).map(|(key, reason)| format!("{key}: {reason}"));
    let refused = driver(backend).refuse(scenario).err().map(|error| error.to_string()).or_else(custom);
    match backend.is_simulated() {
        true => refused,
        false => refused.or_else(|| congestion::unknown_everywhere(scenario)),
    }
}

/// The first custom source or loss model that cannot be used, with the reason: it has no function, or the time of the backend does
/// not wait for functions.
pub(crate) fn refused_custom(backend: Backend, scenario: &Scenario) -> Option<(CustomKey<'_>, String)> {
    scenario.custom().find_map(|(key, problem)| match backend.is_simulated() {
        true => Some((key, problem?)),
        false => Some((key, "`custom` works in `sim` only; use `--on sim`".to_owned())),
    })
}

/// Differences from the experiment, in sentences: messages that are larger than asked for, and on the wire also the kernel's
/// substitutes. Where packets cross the links of the file, also the flows whose path takes longer than the drain time.
pub fn notes(points: impl Iterator<Item = Point>, backend: Backend) -> BTreeSet<String> {
    let mut short = ShortDrains::default();
    let of_point = |point: Point| {
        if backend.has_links_of_file() {
            short.look_at(&point.scenario);
        }
        driver(backend).notes(&point.scenario)
    };
    let mut notes: BTreeSet<String> = points.flat_map(of_point).collect();
    notes.extend(short.sentences());
    notes
}

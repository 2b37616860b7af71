//! Virtual time, over the links of the file.

use std::collections::BTreeSet;

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;

use super::Driver;
use crate::driven::Driven;
use crate::error::RunnerError;
use crate::kernels;
use crate::request::Request;
use crate::wire;

pub(super) struct Sim;

impl Driver for Sim {
    fn refuse(&self, scenario: &Scenario) -> Result<(), RunnerError> {
        Ok(trunkline_simulator::check(scenario)?)
    }

    fn check(&self, _: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError> {
        self.refuse(scenario)
    }

    fn notes(&self, scenario: &Scenario) -> BTreeSet<String> {
        wire::sizes(scenario, false)
    }

    fn drive(
        &self,
        request: Request<'_>,
        point: &Point,
        seed: Seed,
        _: &PartKey,
        recorder: &mut (dyn Recorder + Send),
        supervisor: &mut (dyn Supervisor + Send),
    ) -> Driven {
        kernels::run(request, point, seed, recorder, supervisor)
    }
}

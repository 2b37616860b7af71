//! Real time, over the links of the file between namespaces of one machine.

use std::collections::BTreeSet;

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_store::Backend;

use super::Driver;
use crate::driven::Driven;
use crate::error::RunnerError;
use crate::kernels;
use crate::request::Request;
use crate::wire;

pub(super) struct Wire;

impl Driver for Wire {
    fn refuse(&self, scenario: &Scenario) -> Result<(), RunnerError> {
        kernels::refuse(Backend::Wire, scenario)?;
        wire::refuse_unwired(scenario)
    }

    fn check(&self, request: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError> {
        wire::check(scenario, request.live)
    }

    fn notes(&self, scenario: &Scenario) -> BTreeSet<String> {
        wire::changes(scenario)
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
        wire::run(request, point, seed, recorder, supervisor)
    }
}

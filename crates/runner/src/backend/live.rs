//! Real hosts and the network as it is: this machine, or those of agents.

use std::collections::BTreeSet;

use trunkline_agent::controller::{FleetError, PartKey};
use trunkline_core::Seed;
use trunkline_experiment::{Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_store::Backend;

use super::Driver;
use crate::driven::{Driven, kept};
use crate::error::RunnerError;
use crate::kernels;
use crate::request::Request;
use crate::wire;

pub(super) struct Live;

impl Driver for Live {
    fn refuse(&self, scenario: &Scenario) -> Result<(), RunnerError> {
        kernels::refuse(Backend::Live, scenario)?;
        Ok(trunkline_live::refuse_simulated(scenario)?)
    }

    fn check(&self, request: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError> {
        match request.fleet {
            Some(fleet) => Ok(fleet.check(scenario)?),
            None => Ok(trunkline_live::check(scenario, request.live)?),
        }
    }

    fn notes(&self, scenario: &Scenario) -> BTreeSet<String> {
        let sizes = wire::sizes(scenario, true);
        let others = wire::congestion_controls(scenario).into_iter().chain(wire::differences(scenario));
        sizes.into_iter().chain(others).collect()
    }

    fn drive(
        &self,
        request: Request<'_>,
        point: &Point,
        seed: Seed,
        at: &PartKey,
        recorder: &mut (dyn Recorder + Send),
        supervisor: &mut (dyn Supervisor + Send),
    ) -> Driven {
        let Some(fleet) = request.fleet else {
            return kept(trunkline_live::run(&point.scenario, seed, request.live, recorder, supervisor));
        };
        match fleet.run(at, request.experiment, point, recorder, supervisor) {
            Ok(outcome) => Ok((outcome, None)),
            // The next repetition can be tried; the user hears of this one by the fleet's notes.
            Err(FleetError::Part { outcome, goes_on: true, .. }) => Ok((*outcome, None)),
            Err(error) => match error.outcome().cloned() {
                Some(outcome) => Ok((outcome, Some(error.into()))),
                None => Err(error.into()),
            },
        }
    }
}

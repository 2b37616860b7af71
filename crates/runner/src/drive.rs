//! One repetition of one point on whichever backend.

use trunkline_agent::controller::{FleetError, PartKey};
use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::{DriverOutcome, Recorder};
use trunkline_store::Backend;

use crate::repetition::kept;
use crate::schedule::{Request, RunnerError};
use crate::wire;

/// What was measured, and why not more of it; an error if nothing was.
pub type Driven = Result<(DriverOutcome, Option<RunnerError>), RunnerError>;

/// Measures a repetition of a point where the request says (but not through agents, which keep what they measure for a
/// run), and stores nothing.
///
/// # Errors
/// If nothing was measured.
pub fn drive(
    request: Request<'_>,
    point: &Point,
    seed: Seed,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    let at = PartKey { run: String::new(), point: 0, repetition: 0 };
    drive_at(Request { fleet: None, ..request }, point, seed, &at, recorder, supervisor)
}

/// As [`drive`], also through agents: `at` is what they call the repetition.
pub(crate) fn drive_at(
    request: Request<'_>,
    point: &Point,
    seed: Seed,
    at: &PartKey,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    match request.backend {
        Backend::Sim => {
            let outcome = trunkline_simulator::run(&point.scenario, seed, recorder, supervisor)?;
            Ok((outcome, None))
        }
        Backend::Wire => wire::run(request, point, seed, recorder, supervisor),
        Backend::Live => match request.fleet {
            None => kept(trunkline_live::run(&point.scenario, seed, request.live, recorder, supervisor)),
            Some(fleet) => match fleet.run(at, request.experiment, point, recorder, supervisor) {
                Ok(outcome) => Ok((outcome, None)),
                // The next repetition can be tried; the user hears of this one by the fleet's notes.
                Err(FleetError::Part { outcome, goes_on: true, .. }) => Ok((*outcome, None)),
                Err(error) => match error.outcome().cloned() {
                    Some(outcome) => Ok((outcome, Some(error.into()))),
                    None => Err(error.into()),
                },
            },
        },
    }
}

//! One repetition of one point on whichever backend.

use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::{DriverOutcome, Recorder};
use trunkline_store::Backend;

use crate::repetition::kept;
use crate::schedule::{Request, RunnerError};
use crate::wire;

/// What was measured, and why not more of it; an error if nothing was.
pub type Driven = Result<(DriverOutcome, Option<RunnerError>), RunnerError>;

/// Measures a repetition of a point where the request says, and stores nothing.
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
    match request.backend {
        Backend::Sim => {
            let outcome = trunkline_simulator::run(&point.scenario, seed, recorder, supervisor)?;
            Ok((outcome, None))
        }
        Backend::Wire => wire::run(request, point, seed, recorder, supervisor),
        Backend::Live => kept(trunkline_live::run(&point.scenario, seed, request.live, recorder, supervisor)),
    }
}

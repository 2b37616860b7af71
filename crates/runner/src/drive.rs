//! One repetition of one point on whichever backend.

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::{DriverOutcome, Recorder};

use crate::backend;
use crate::schedule::{Request, RunnerError};

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
    let request = Request { fleet: None, ..request };
    backend::driver(request.backend).drive(request, point, seed, &at, recorder, supervisor)
}

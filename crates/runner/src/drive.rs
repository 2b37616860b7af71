//! One repetition of one point on whichever backend.

use trunkline_agent::controller::PartKey;
use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::Recorder;

use crate::backend;
use crate::driven::Driven;
use crate::request::Request;

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

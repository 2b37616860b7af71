//! Where there are no namespaces.

use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_wire::WireError;

use crate::driven::Driven;
use crate::request::Request;

pub(crate) fn run(
    _: Request<'_>,
    _: &Point,
    _: Seed,
    _: &mut (dyn Recorder + Send),
    _: &mut (dyn Supervisor + Send),
) -> Driven {
    Err(WireError::Forbidden("the wire needs Linux network namespaces".to_owned()).into())
}

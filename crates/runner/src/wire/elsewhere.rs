//! Where there are no namespaces.

use std::path::PathBuf;

use trunkline_core::Seed;
use trunkline_experiment::{Point, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_wire::WireError;

use crate::drive::Driven;
use crate::schedule::Request;

/// With what wires are made: there is nothing.
#[derive(Clone, Debug)]
pub enum WireMeans {}

impl WireMeans {
    /// Does not gain it.
    ///
    /// # Errors
    /// Always.
    pub fn gain(_program: PathBuf, _arguments: Vec<String>) -> Result<WireMeans, WireError> {
        Err(WireError::Forbidden("the wire needs Linux network namespaces".to_owned()))
    }
}

pub(crate) fn run(
    _: Request<'_>,
    _: &Point,
    _: Seed,
    _: &mut (dyn Recorder + Send),
    _: &mut (dyn Supervisor + Send),
) -> Driven {
    Err(WireError::Forbidden("the wire needs Linux network namespaces".to_owned()).into())
}

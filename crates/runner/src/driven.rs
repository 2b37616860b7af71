//! The result of a backend for one repetition.

use trunkline_live::LiveError;
use trunkline_metrics::DriverOutcome;

use crate::error::RunnerError;

/// What was measured, and why not more of it; an error if nothing was.
pub type Driven = Result<(DriverOutcome, Option<RunnerError>), RunnerError>;

/// The result of real sockets: an error keeps the part that was measured.
pub(crate) fn kept(measured: Result<DriverOutcome, LiveError>) -> Driven {
    match measured {
        Ok(outcome) => Ok((outcome, None)),
        Err(error) => match error.outcome().cloned() {
            Some(outcome) => Ok((outcome, Some(error.into()))),
            None => Err(error.into()),
        },
    }
}

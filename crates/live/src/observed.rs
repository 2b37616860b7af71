//! The machine while it measures.

use trunkline_core::Ratio;
use trunkline_io::{StallProbe, Stalls, process};
use trunkline_metrics::{DriverOutcome, StallSummary};

use crate::error::LiveError;

/// Has an eye on the machine while something is measured, and adds what it sees.
pub(crate) fn observed(
    measure: impl FnOnce() -> Result<DriverOutcome, LiveError>,
) -> Result<DriverOutcome, LiveError> {
    let cpu_before = process::cpu_time();
    let probe = StallProbe::start().map_err(LiveError::system("cannot start the stall probe"))?;
    let mut result = measure();
    let stalls = probe.finish();
    let outcome = match &mut result {
        Ok(outcome) => Some(outcome),
        Err(LiveError::FarEndLost { outcome, .. } | LiveError::ClockJumped { outcome, .. }) => {
            Some(&mut **outcome)
        }
        Err(_) => None,
    };
    if let Some(outcome) = outcome {
        outcome.stalls = Some(stall_summary(&stalls));
        outcome.cpu = Some(process::cpu_time().saturating_sub(cpu_before));
    }
    result
}

fn stall_summary(stalls: &Stalls) -> StallSummary {
    let share =
        if stalls.watched.is_zero() { 0.0 } else { stalls.lost.as_secs_f64() / stalls.watched.as_secs_f64() };
    StallSummary {
        probe: StallProbe::NAME.to_owned(),
        watched: stalls.watched,
        gaps: stalls.gaps.to_vec(),
        share: Ratio::new(share.min(1.0)).unwrap_or_default(),
        longest: stalls.longest,
    }
}

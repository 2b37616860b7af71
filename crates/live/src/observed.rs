//! The machine while it measures.

use std::sync::atomic::Ordering;

use trunkline_core::{Duration, Ratio, Time};
use trunkline_io::{StallProbe, Stalls, process};
use trunkline_metrics::{DriverOutcome, StallSummary};

use crate::error::LiveError;
use crate::start::Start;

/// Watches the machine while something is measured, and adds its stalls and CPU time.
pub(crate) fn observed(
    start: &Start,
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
        outcome.stalls = Some(stall_summary(&stalls, start.epoch.load(Ordering::Relaxed)));
        outcome.cpu = Some(process::cpu_time().saturating_sub(cpu_before));
    }
    result
}

fn stall_summary(stalls: &Stalls, epoch: u64) -> StallSummary {
    let share =
        if stalls.watched.is_zero() { 0.0 } else { stalls.lost.as_secs_f64() / stalls.watched.as_secs_f64() };
    StallSummary {
        probe: StallProbe::NAME.to_owned(),
        watched: stalls.watched,
        gaps: stalls.gaps.to_vec(),
        share: Ratio::new(share.min(1.0)).unwrap_or_default(),
        longest: stalls.longest,
        over_time: stalls.long.iter().filter_map(|gap| since(epoch, *gap)).collect(),
    }
}

/// A gap by the clock of the run; `None` of one that was over before the run began.
fn since(epoch: u64, (start, length): (u64, Duration)) -> Option<(Time, Duration)> {
    let end = (start + length.as_nanos()).checked_sub(epoch).filter(|end| *end > 0 && epoch > 0)?;
    let start = start.saturating_sub(epoch);
    Some((Time::from_nanos(start), Duration::from_nanos(end - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_by_the_clock_of_the_run() {
        let nanos = |(start, length): (u64, u64)| (Time::from_nanos(start), Duration::from_nanos(length));
        assert_eq!(since(1_000, (1_500, Duration::from_nanos(20))), Some(nanos((500, 20))));
        assert_eq!(since(1_000, (990, Duration::from_nanos(20))), Some(nanos((0, 10))), "it began before");
        assert_eq!(since(1_000, (900, Duration::from_nanos(20))), None, "over before the start");
        assert_eq!(since(0, (900, Duration::from_nanos(20))), None, "the run never began");
    }
}

//! Percentiles that the histogram gave within 0.1 % are made exact from the stored trace, in bounded memory.

use trunkline_core::Duration;
use trunkline_metrics::{DelaySummary, Fate, PercentileSelector, RepetitionSummary};
use trunkline_store::{Arrival, ClosedRepetition, StoreError, read_latencies};

/// Replaces every inexact percentile of latency. A trace that no longer holds what was summarised (a disk that ran full)
/// leaves the histogram's figures, which say of themselves that they are not exact.
pub(crate) fn percentiles(
    summary: &mut RepetitionSummary,
    repetition: &ClosedRepetition,
) -> Result<(), StoreError> {
    for flow in &mut summary.flows {
        let Some((_, trace)) = repetition.traces().iter().find(|(name, _)| *name == flow.flow) else {
            continue;
        };
        let select = |delays: &DelaySummary, of: fn(&Arrival) -> Duration| -> Result<_, StoreError> {
            let mut selector = delays.selector();
            while selector.wants_pass() {
                read_latencies(trace, &mut |arrival| {
                    // A message has one latency, that of its first copy.
                    if arrival.fate != Fate::Duplicate {
                        selector.push(of(&arrival));
                    }
                })?;
                if selector.end_pass().is_err() {
                    return Ok(None);
                }
            }
            Ok(Some(selector))
        };
        let inexact = |delays: &Option<DelaySummary>| delays.filter(|delays| !delays.exact);
        let mut found: [Option<PercentileSelector>; 2] = [None, None];
        if let Some(latency) = inexact(&flow.latency) {
            found[0] = select(&latency, |arrival| arrival.received.since(arrival.sent))?;
        }
        if let Some(from_due) = inexact(&flow.latency_from_due) {
            found[1] = select(&from_due, |arrival| arrival.received.since(arrival.due))?;
        }
        // A finished selector of the right count cannot be refused; were it, the histogram's figures would stand.
        if let Some(selector) = &found[0] {
            let _ = flow.set_exact_latency(selector);
        }
        if let (Some(selector), Some(from_due)) = (&found[1], &mut flow.latency_from_due) {
            let _ = from_due.set_exact(selector);
        }
    }
    Ok(())
}

//! Percentiles that the histogram gave within 0.1 % are made exact from the stored trace, in bounded memory.

use trunkline_metrics::{Fate, FlowSummary, PercentileSelector, RepetitionSummary};
use trunkline_store::{ClosedRepetition, StoreError, read_latencies};

/// Replaces every inexact percentile of latency. A trace that no longer holds what was summarised (a disk that ran full)
/// leaves the histogram's figures, which say of themselves that they are not exact.
pub(crate) fn percentiles(
    summary: &mut RepetitionSummary,
    repetition: &ClosedRepetition,
) -> Result<(), StoreError> {
    for flow in &mut summary.flows {
        if let Some((_, trace)) = repetition.traces().iter().find(|(name, _)| *name == flow.flow) {
            of_flow(flow, trace)?;
        }
    }
    Ok(())
}

fn of_flow(flow: &mut FlowSummary, trace: &std::path::Path) -> Result<(), StoreError> {
    let selector = |delays: Option<trunkline_metrics::DelaySummary>| {
        delays.filter(|delays| !delays.exact).map(|delays| delays.selector())
    };
    let (mut latency, mut from_due) = (selector(flow.latency), selector(flow.latency_from_due));
    let wants =
        |selector: &Option<PercentileSelector>| selector.as_ref().is_some_and(PercentileSelector::wants_pass);
    while wants(&latency) || wants(&from_due) {
        // Both look at the same pass: reading the trace is what costs.
        let mut first = latency.as_mut().filter(|selector| selector.wants_pass());
        let mut second = from_due.as_mut().filter(|selector| selector.wants_pass());
        read_latencies(trace, &mut |arrival| {
            // A message has one latency, that of its first copy.
            if arrival.fate == Fate::Duplicate {
                return;
            }
            if let Some(selector) = &mut first {
                selector.push(arrival.received.since(arrival.sent));
            }
            if let Some(selector) = &mut second {
                selector.push(arrival.received.since(arrival.due));
            }
        })?;
        let ended = [first, second].into_iter().flatten().try_for_each(PercentileSelector::end_pass);
        if ended.is_err() {
            return Ok(());
        }
    }
    // A finished selector of the right count cannot be refused; were it, the histogram's figures would stand.
    if let Some(selector) = &latency {
        let _ = flow.set_exact_latency(selector);
    }
    if let (Some(selector), Some(delays)) = (&from_due, &mut flow.latency_from_due) {
        let _ = delays.set_exact(selector);
    }
    Ok(())
}

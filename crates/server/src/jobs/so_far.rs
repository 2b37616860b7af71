//! Figures and limits of a repetition while it is measured.

use std::time::{Duration, Instant};

use trunkline_experiment::{Figure, Limit, Subject};
use trunkline_metrics::figures::{self, FigureKind};
use trunkline_metrics::{Estimate, FlowMeta, FlowSummary, Measured, Record, RepetitionSummary, SoFar};

use crate::api::{FlowSoFar, LimitSoFar};

/// Records that may wait to be counted. After more of them, there are no figures until the next repetition.
pub(super) const MOST_COUNTED: usize = 1 << 20;
/// Interval between figures.
const EVERY: Duration = Duration::from_millis(500);

/// The figures of a repetition so far.
#[derive(Debug)]
pub(super) struct Figures {
    flows: Vec<SoFar>,
    /// True for flows whose messages have playout deadlines.
    deadlines: Vec<bool>,
    limits: Vec<Limit>,
    told: Option<Instant>,
    /// Records are missing: the figures would be wrong.
    is_cut: bool,
}

impl Figures {
    pub(super) fn new(flows: &[FlowMeta], limits: &[Limit]) -> Figures {
        Figures {
            flows: flows.iter().map(SoFar::new).collect(),
            deadlines: flows.iter().map(|flow| flow.playout.is_some()).collect(),
            limits: limits.to_vec(),
            told: None,
            is_cut: false,
        }
    }

    /// Adds records. Returns the figures with them if it is time for that, or if they are the last.
    pub(super) fn with(
        &mut self,
        records: &[(u32, Record)],
        are_last: bool,
    ) -> Option<(Vec<FlowSoFar>, Vec<LimitSoFar>)> {
        self.is_cut |= records.len() > MOST_COUNTED;
        for (flow, record) in records {
            if let Some(flow) = self.flows.get_mut(*flow as usize) {
                flow.record(record);
            }
        }
        let is_time = are_last || self.told.is_none_or(|told| told.elapsed() >= EVERY);
        if self.is_cut || !is_time {
            return None;
        }
        self.told = Some(Instant::now());
        let flows = self.flows.iter_mut().map(SoFar::summary).collect();
        let summary = RepetitionSummary { flows, ..RepetitionSummary::default() };
        let limits = self.limits.iter().map(|limit| limit_so_far(limit, &summary)).collect();
        let measured = summary.flows.iter().zip(0..).zip(&self.deadlines);
        let measured = measured.filter(|((flow, _), _)| flow.measured != Measured::Nothing);
        Some((measured.map(|((flow, index), late)| flow_so_far(flow, index, *late)).collect(), limits))
    }
}

fn flow_so_far(summary: &FlowSummary, flow: u32, has_deadline: bool) -> FlowSoFar {
    FlowSoFar {
        flow,
        round_trip: summary.measured == Measured::RoundTrip,
        latency_p99: figures::flow("latency_p99").value(summary),
        loss: figures::flow("loss").value(summary),
        late: figures::flow("late").value(summary).filter(|_| has_deadline),
        mos: figures::flow("mos").value(summary),
    }
}

fn limit_so_far(limit: &Limit, summary: &RepetitionSummary) -> LimitSoFar {
    let of_flow: Option<(usize, &FigureKind)> = match &limit.subject {
        Subject::Flow { flow, sink: None, metric } => Some((*flow, metric)),
        _ => None,
    };
    let known = of_flow.is_some_and(|(_, metric)| SoFar::FIGURES.contains(&metric.id));
    let value = known.then(|| limit.figure(summary)).and_then(|figure| match figure {
        Figure::Value(value) => Some(value),
        _ => None,
    });
    let is_latency = of_flow.is_some_and(|(_, metric)| metric.id.starts_with("latency_"));
    let shown = |mean| trunkline_report::limit_figure(limit, &Estimate { mean, ..Estimate::default() });
    LimitSoFar {
        key: limit.key.clone(),
        condition: limit.condition.clone(),
        flow: of_flow.and_then(|(flow, _)| u32::try_from(flow).ok()),
        latency: is_latency.then_some(limit.bound),
        value: value.map(shown),
        holds: value.map(|value| limit.operator.holds(value, limit.bound)),
    }
}

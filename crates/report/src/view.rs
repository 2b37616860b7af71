//! A run, and perhaps its counterpart, as the report sees them: sides, points, flows and figures over repetitions.

use trunkline_core::Duration;
use trunkline_experiment::{Axis, Limit};
use trunkline_metrics::figures::{self, FigureKind};
use trunkline_metrics::{Estimate, FlowSummary, LinkSummary, Measured, RepetitionSummary, StallSummary};
use trunkline_store::{RunInfo, Status, StoredPoint, StoredRun};

use crate::units::{Quantity, Scale};

/// What is shown: one side, or two side by side.
pub(crate) struct View<'a> {
    pub(crate) sides: Vec<Side<'a>>,
    /// Every flow that has a summary anywhere, in the file's order.
    pub(crate) flows: Vec<&'a str>,
    /// The points that the run measures: of a part of a run, those of the part.
    points: Vec<&'a StoredPoint>,
    /// Why a counterpart that was offered is not shown.
    pub(crate) refused_counterpart: Option<&'static str>,
}

/// One run.
pub(crate) struct Side<'a> {
    pub(crate) run: &'a StoredRun,
    /// `sim`, or `sim (run 3)` if both sides ran on the same backend.
    pub(crate) label: String,
}

impl<'a> View<'a> {
    pub(crate) fn new(run: &'a StoredRun, counterpart: Option<&'a StoredRun>) -> View<'a> {
        let refused_counterpart = counterpart.and_then(|other| why_not_beside(run, other));
        let counterpart = counterpart.filter(|_| refused_counterpart.is_none());
        let same_backend = counterpart.is_some_and(|other| other.info.backend == run.info.backend);
        let sides: Vec<Side<'a>> = [Some(run), counterpart]
            .into_iter()
            .flatten()
            .map(|run| {
                let name = run.info.backend.name();
                let label =
                    if same_backend { format!("{name} (run {})", run.info.id) } else { name.to_owned() };
                Side { run, label }
            })
            .collect();
        let mut flows: Vec<&'a str> = Vec::new();
        let summaries = sides.iter().flat_map(|side| &side.run.points).flat_map(|p| &p.repetitions);
        for flow in summaries.filter_map(|r| r.summary.as_ref()).flat_map(|s| &s.flows) {
            if !flows.contains(&flow.flow.as_str()) {
                flows.push(&flow.flow);
            }
        }
        let points = run.points.iter().filter(|point| run.info.has(point.index)).collect();
        View { sides, flows, points, refused_counterpart }
    }

    /// The run that the report is about.
    pub(crate) fn run(&self) -> &'a StoredRun {
        self.sides[0].run
    }

    pub(crate) fn axes(&self) -> &'a [Axis] {
        &self.run().axes
    }

    pub(crate) fn limits(&self) -> &'a [Limit] {
        &self.run().limits
    }

    /// True if anything was swept.
    pub(crate) fn is_swept(&self) -> bool {
        !self.axes().is_empty()
    }

    /// True if points differ in the draws of learned paths only.
    pub(crate) fn is_drawn_only(&self) -> bool {
        self.is_swept() && self.axes().iter().all(Axis::is_draws)
    }

    /// `at 7 of 64 points`, or `in 19 of 20 draws` if points differ in draws only.
    pub(crate) fn at_points(&self, n: usize) -> String {
        let all = self.points().len();
        let (at, points) = if self.is_drawn_only() { ("in", "draws") } else { ("at", "points") };
        match n {
            0 => format!("{at} none of {all} {points}"),
            n if n == all => format!("{at} all {all} {points}"),
            n => format!("{at} {n} of {all} {points}"),
        }
    }

    /// The points by their indices in the run that the report is about.
    pub(crate) fn points(&self) -> &[&'a StoredPoint] {
        &self.points
    }

    /// What is common to all latencies of a flow: one way or round trip.
    pub(crate) fn measured(&self, flow: &str) -> Measured {
        self.sides
            .iter()
            .flat_map(|side| &side.run.points)
            .flat_map(counted)
            .flat_map(|s| &s.flows)
            .find(|f| f.flow == flow)
            .map_or(Measured::OneWay, |f| f.measured)
    }

    /// The value that chooses the unit of these metrics' column or axis, whatever its sign: the largest, but no more than
    /// 10,000 times the smallest but zero. In the unit of the largest, a voice channel beside bulk on loopback would be
    /// 0.000256 Gbit/s.
    pub(crate) fn telling(&self, metrics: &[&FigureKind]) -> f64 {
        telling(self.values(metrics))
    }

    /// How these metrics are written in columns that are read together.
    pub(crate) fn scale(&self, metrics: &[&FigureKind]) -> Scale {
        let quantity = metrics.first().map_or(Quantity::Number, |metric| metric.quantity);
        Scale::of(quantity, self.values(metrics))
    }

    /// Whether this metric is anywhere and not zero everywhere.
    pub(crate) fn has_any(&self, metric: &FigureKind) -> bool {
        self.values(&[metric]).any(|value| value != 0.0)
    }

    fn values(&self, metrics: &[&FigureKind]) -> impl Iterator<Item = f64> {
        let points = self.sides.iter().flat_map(|side| &side.run.points);
        let flows = points.flat_map(counted).flat_map(|summary| &summary.flows);
        flows.flat_map(|flow| metrics.iter().filter_map(|metric| metric.value(flow)))
    }
}

/// The same of these values.
fn telling(values: impl Iterator<Item = f64>) -> f64 {
    let (mut smallest, mut largest) = (f64::INFINITY, 0.0f64);
    for value in values.map(f64::abs).filter(|value| *value > 0.0) {
        (smallest, largest) = (smallest.min(value), largest.max(value));
    }
    largest.min(1e4 * smallest)
}

/// What decides which sinks fare worst, the first figure first.
const WORST_BY: [&FigureKind; 2] = [figures::flow("loss_and_late"), figures::flow("latency_p999")];

/// What figures are about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) flow: &'a str,
    /// One of its sinks, or of the flows that it is made as for several hosts; `None` for the flow as a whole.
    pub(crate) sink: Option<&'a str>,
    /// Whether it fares worse than all others of them.
    pub(crate) is_worst: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn flow(flow: &'a str) -> Subject<'a> {
        Subject { flow, sink: None, is_worst: false }
    }

    /// `programme`, or `programme → far`.
    pub(crate) fn name(&self) -> String {
        self.sink.map_or_else(|| self.flow.to_owned(), |sink| sink_name(self.flow, sink))
    }
}

/// `programme → far`; of one of the flows that a flow is made as its own name, `up-7`.
pub(crate) fn sink_name(flow: &str, sink: &str) -> String {
    let number = sink.strip_prefix(flow).and_then(|rest| rest.strip_prefix('-'));
    match number.is_some_and(|number| number.parse::<u32>().is_ok()) {
        true => sink.to_owned(),
        false => format!("{flow} → {sink}"),
    }
}

impl<'a> Side<'a> {
    pub(crate) fn info(&self) -> &'a RunInfo {
        &self.run.info
    }

    /// The point with this index, if the run has it.
    pub(crate) fn point(&self, index: u32) -> Option<&'a StoredPoint> {
        self.run.points.iter().find(|p| p.index == index)
    }

    /// What was measured of a flow at a point: one summary per repetition that counts.
    pub(crate) fn flow(&self, point: u32, flow: &str) -> Vec<&'a FlowSummary> {
        let Some(point) = self.point(point) else { return Vec::new() };
        counted(point).filter_map(|s| s.flows.iter().find(|f| f.flow == flow)).collect()
    }

    /// A figure of a flow at a point over its repetitions; `None` if no repetition has it.
    pub(crate) fn estimate(&self, point: u32, flow: &str, metric: &FigureKind) -> Option<Estimate> {
        self.estimate_of(point, Subject::flow(flow), metric)
    }

    /// Returns true if a figure of a flow at a point was extrapolated beyond the E-model's range in any repetition.
    pub(crate) fn is_outside_model(&self, point: u32, flow: &str, metric: &FigureKind) -> bool {
        self.flow(point, flow).iter().any(|flow| flow.is_outside_model(metric))
    }

    /// The mark of a figure: `≈` if it is a percentile from a histogram, `?` if it is outside the E-model's range, or nothing.
    pub(crate) fn mark(&self, point: u32, subject: Subject, metric: &FigureKind) -> &'static str {
        let is_inexact = |flow: &FlowSummary| metric.is_from_histogram(flow, subject.sink);
        match self.flow(point, subject.flow).into_iter().any(is_inexact) {
            true => "≈",
            false if self.is_outside_model(point, subject.flow, metric) => "?",
            false => "",
        }
    }

    /// A figure of a flow or one of its sinks at a point over its repetitions; `None` if no repetition has it.
    pub(crate) fn estimate_of(&self, point: u32, subject: Subject, metric: &FigureKind) -> Option<Estimate> {
        let value = |flow| match subject.sink {
            Some(sink) => metric.value_at(flow, sink),
            None => metric.value(flow),
        };
        over_repetitions(self.flow(point, subject.flow).into_iter().map(value))
    }

    /// The sinks of a flow, or the flows that it is made as for several hosts, of which those are shown that fare worst; and how
    /// many are not shown.
    pub(crate) fn shown(&self, point: u32, flow: &'a str) -> (Vec<Subject<'a>>, usize) {
        /// So many of the flows that are alike are shown.
        const ALIKE: usize = 5;
        let mut all = self.sinks(point, flow);
        let is_made = self.flow(point, flow).first().is_some_and(|first| !first.each.is_empty());
        let left = if is_made { all.len().saturating_sub(ALIKE) } else { 0 };
        all.truncate(all.len() - left);
        (all, left)
    }

    /// The sinks of a flow at a point, if it has several and members, or the flows that it is made as for several hosts: those
    /// that fare worst first, by loss and late messages, and then by latency p99.9.
    pub(crate) fn sinks(&self, point: u32, flow: &'a str) -> Vec<Subject<'a>> {
        let Some(first) = self.flow(point, flow).first().copied().filter(|f| f.members > 0) else {
            return Vec::new();
        };
        let badness = |sink: &'a str| {
            let subject = Subject { sink: Some(sink), ..Subject::flow(flow) };
            WORST_BY
                .map(|figure| self.estimate_of(point, subject, figure).map_or(f64::NEG_INFINITY, |e| e.mean))
        };
        let singles = first.each.iter().map(|single| single.flow.as_str());
        let names = first.sinks.iter().map(|sink| sink.sink.as_str()).chain(singles);
        let mut sinks: Vec<([f64; 2], &str)> = names.map(|name| (badness(name), name)).collect();
        // Stable: of equals the first in the file stands first.
        sinks.sort_by(|(a, _), (b, _)| b[0].total_cmp(&a[0]).then(b[1].total_cmp(&a[1])));
        let any_worst = sinks.get(1).is_some_and(|second| second.0 != sinks[0].0);
        let subject = |(place, (_, sink)): (usize, &([f64; 2], &'a str))| Subject {
            flow,
            sink: Some(sink),
            is_worst: any_worst && place == 0,
        };
        sinks.iter().enumerate().map(subject).collect()
    }

    /// The names of the links in the order of the file.
    pub(crate) fn links(&self, point: u32) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for link in self.point(point).into_iter().flat_map(counted).flat_map(|s| &s.links) {
            if !names.contains(&link.link.as_str()) {
                names.push(&link.link);
            }
        }
        names
    }

    /// A link's summary in each repetition that counts.
    pub(crate) fn link(&self, point: u32, link: &str) -> Vec<&'a LinkSummary> {
        let Some(point) = self.point(point) else { return Vec::new() };
        counted(point).filter_map(|s| s.links.iter().find(|l| l.link == link)).collect()
    }

    /// What the stall probe saw, with the point and the repetition.
    pub(crate) fn stalls(&self) -> Vec<(u32, u32, &'a StallSummary)> {
        let repetitions = self.run.points.iter().flat_map(|p| p.repetitions.iter().map(move |r| (p, r)));
        repetitions
            .filter_map(|(p, r)| Some((p.index, r.index, r.summary.as_ref()?.stalls.as_ref()?)))
            .collect()
    }

    /// Whether less was measured than it is to measure.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.info().status != Status::Complete
    }

    /// `Part 2 of 8`, if it is a part of a run.
    pub(crate) fn part(&self) -> Option<String> {
        self.info().shard.map(|shard| format!("Part {} of {}", shard.index(), shard.of()))
    }

    /// The command that comes next, if this is not a whole run: the one that finishes it, or the one that joins it with the other
    /// parts.
    pub(crate) fn next(&self) -> Option<String> {
        let resume = format!("`trunkline run --resume {}` finishes it", self.info().id);
        let merge = "`trunkline runs merge` joins it with the other parts";
        match (self.part(), self.is_unfinished()) {
            (None, false) => None,
            (None, true) => Some(format!("The run is partial; {resume}.")),
            (Some(_), false) => Some(format!("This is a part of a run; {merge}.")),
            (Some(_), true) => Some(format!("This part of a run is partial; {resume}, then {merge}.")),
        }
    }

    /// How far one-way times may be from the truth at most because they were read from two clocks, if any were.
    pub(crate) fn clock_error(&self) -> Option<Duration> {
        let summaries = self.run.points.iter().flat_map(|point| &point.repetitions);
        let flows =
            summaries.filter_map(|repetition| repetition.summary.as_ref()).flat_map(|summary| &summary.flows);
        flows.filter_map(|flow| flow.clock_error).max()
    }

    /// Whether it was measured in real time, with the stalls of a machine in it.
    pub(crate) fn is_measured(&self) -> bool {
        !self.info().backend.is_simulated()
    }
}

/// The repetitions of a point that figures are made of: the finished ones; if there is none, the interrupted one.
pub(crate) fn counted(point: &StoredPoint) -> impl Iterator<Item = &RepetitionSummary> {
    let any_finished = point.repetitions.iter().any(|r| !r.partial && r.summary.is_some());
    point.repetitions.iter().filter(move |r| !(any_finished && r.partial)).filter_map(|r| r.summary.as_ref())
}

/// Whether a point's figures come from an interrupted repetition only.
pub(crate) fn is_cut_short(point: &StoredPoint) -> bool {
    let mut with_summary = point.repetitions.iter().filter(|r| r.summary.is_some()).peekable();
    with_summary.peek().is_some() && with_summary.all(|r| r.partial)
}

/// Mean, standard deviation and confidence interval of the values that are there.
pub(crate) fn over_repetitions(values: impl Iterator<Item = Option<f64>>) -> Option<Estimate> {
    let values: Vec<f64> = values.flatten().collect();
    (!values.is_empty()).then(|| trunkline_metrics::estimate(&values))
}

/// A swept key without the part that says nothing: `bulk.count` for `flow.bulk.count`. Of keys that are swept together, each
/// without it.
pub(crate) fn axis_name(axis: &Axis) -> String {
    each_key(axis, |key| key.strip_prefix("flow.").or_else(|| key.strip_prefix("link.")).unwrap_or(key))
}

/// The key of an axis, or its keys, each shortened.
pub(crate) fn each_key(axis: &Axis, shorten: impl Fn(&str) -> &str) -> String {
    axis.key.split(',').map(|key| shorten(key.trim())).collect::<Vec<_>>().join(", ")
}

/// The value that a point has on an axis, as written in the file.
pub(crate) fn value_on<'a>(point: &StoredPoint, axes: &'a [Axis], axis: usize) -> &'a str {
    let choice = point.choice.get(axis).copied();
    choice.and_then(|c| axes.get(axis)?.values.get(c)).map_or("?", String::as_str)
}

/// The same as people read it.
pub(crate) fn shown_on(point: &StoredPoint, axes: &[Axis], axis: usize) -> String {
    let choice = point.choice.get(axis).copied();
    choice.and_then(|c| axes.get(axis)?.shown(c)).unwrap_or_else(|| "?".to_owned())
}

/// `bulk.count = 2, trunk.rate = 2 Mbit/s`; empty if nothing is swept.
pub(crate) fn point_name(point: &StoredPoint, axes: &[Axis]) -> String {
    let parts: Vec<String> = axes
        .iter()
        .enumerate()
        .map(|(i, axis)| format!("{} = {}", axis_name(axis), shown_on(point, axes, i)))
        .collect();
    parts.join(", ")
}

fn why_not_beside(run: &StoredRun, other: &StoredRun) -> Option<&'static str> {
    if run.info.experiment_hash != other.info.experiment_hash {
        Some("its experiment file is a different one")
    } else if other.info.shard.is_some() && other.info.shard != run.info.shard {
        Some("it is a part of a run that has other repetitions")
    } else if run.axes != other.axes {
        Some("it sweeps other values")
    } else {
        None
    }
}

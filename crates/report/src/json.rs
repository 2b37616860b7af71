//! Everything as JSON, for programs.

use std::collections::BTreeMap;

use serde_json::Value;
use trunkline_core::Duration;
use trunkline_metrics::figures::{
    Definition, FigureKind, link as link_figure, of_bundles, of_flows, of_links,
};
use trunkline_metrics::{Estimate, FlowSummary};
use trunkline_store::{RunInfo, StoredRun};

use crate::bundles::{Row, rows};
use crate::media::{Medium, MediumFigure, definition, media};
use crate::output::{
    self, FigureDefinition, LimitDraws, LimitOutcome, LimitPoint, Report, ReportBundle, ReportFlow,
    ReportGap, ReportLimit, ReportLink, ReportMedium, ReportPart, ReportPoint, ReportRun, ReportSide,
    ReportSink, ReportStalls, RunLimit, RunSummary,
};
use crate::units::Quantity;
use crate::verdict::{Headline, Outcome, Verdict, headline};
use crate::view::{Side, Subject, View, counted, is_cut_short, over_repetitions, value_on};

/// The name of the layout of [`json`].
pub const KIND: &str = "run";
/// The version of the layout of [`json`]: it grows when a key changes its meaning or goes away, not when one is added.
pub const FORMAT: u32 = 2;

/// The run as JSON, beside its counterpart on the other backend if that is given and comes from the same experiment
/// file: [`Report`] says what is in it.
pub fn json(run: &StoredRun, counterpart: Option<&StoredRun>) -> Value {
    // Keys are strings, and numbers that are not finite become null.
    serde_json::to_value(report(run, counterpart)).unwrap_or_default()
}

/// The same before it is JSON.
pub fn report(run: &StoredRun, counterpart: Option<&StoredRun>) -> Report {
    let view = View::new(run, counterpart);
    Report {
        kind: KIND.to_owned(),
        format: FORMAT,
        name: run.info.name.clone(),
        text: run.text.clone(),
        runs: view.sides.iter().map(|side| of_run(&view, side)).collect(),
        notes: crate::notes::plain(&view),
        axes: run.axes.iter().map(output::Axis::from).collect(),
        limits: run.limits.iter().map(|limit| of_limit(&view, limit)).collect(),
        points: view.points().iter().map(|point| of_point(&view, point)).collect(),
        figures: figures(),
        bundle_figures: bundle_figures(),
        link_figures: of_links().map(of_figure).collect(),
        medium_figures: medium_figures(&view),
        heard: Vec::new(),
        html: None,
    }
}

/// Name, unit and definition of every figure of a flow, by its key.
pub fn figures() -> BTreeMap<String, FigureDefinition> {
    of_flows().map(of_figure).collect()
}

/// The same of a bundle.
pub fn bundle_figures() -> BTreeMap<String, FigureDefinition> {
    of_bundles().map(of_figure).collect()
}

/// The same of the media of these runs.
fn medium_figures(view: &View) -> BTreeMap<String, FigureDefinition> {
    let sides = view.sides.iter().flat_map(|side| view.points().iter().map(move |point| (side, point.index)));
    let figures = sides.flat_map(|(side, point)| media(side, point)).flat_map(|medium| medium.figures);
    let one = |f: MediumFigure| (key(f.name), described(&f.words(), f.quantity, definition(f.name), None));
    figures.map(one).collect()
}

/// The name of a medium's figure, which is spelt like those of other figures.
pub(crate) fn key(figure: &str) -> String {
    figure.replace('-', "_")
}

fn of_figure(figure: &FigureKind) -> (String, FigureDefinition) {
    let &FigureKind { id, name, quantity, definition, rank, .. } = figure;
    (id.to_owned(), described(name, quantity, Some(definition), rank))
}

fn described(
    name: &str,
    quantity: Quantity,
    definition: Option<&Definition>,
    rank: Option<u8>,
) -> FigureDefinition {
    FigureDefinition {
        name: name.to_owned(),
        unit: quantity.base_unit().to_owned(),
        quantity: quantity.into(),
        definition: definition.map_or_else(String::new, Definition::text),
        source: definition.map_or("", |definition| definition.source).to_owned(),
        rank,
    }
}

/// The answer of a run in a list of runs.
pub fn run_answer(run: &StoredRun) -> output::RunAnswer {
    let view = View::new(run, None);
    let side = &view.sides[0];
    let Headline { outcome, text, key_figure } = headline(&view, side);
    let figure = key_figure.or_else(|| crate::answer::largest_latency(&view, side));
    output::RunAnswer { outcome: outcome.map(LimitOutcome::from), figure, headline: text }
}

fn of_run(view: &View, side: &Side) -> ReportRun {
    let headline = headline(view, side);
    let gap =
        |(longer, count): &(Duration, u64)| ReportGap { longer_than: longer.as_secs_f64(), count: *count };
    let stalls = side.stalls().into_iter().map(|(point, repetition, stalls)| ReportStalls {
        point,
        repetition,
        probe: stalls.probe.clone(),
        watched: stalls.watched.as_secs_f64(),
        gaps: stalls.gaps.iter().map(gap).collect(),
        longest: stalls.longest.as_secs_f64(),
        share: stalls.share.value(),
    });
    ReportRun {
        info: side.info().into(),
        headline: headline.text,
        hints: crate::hints::of(view, side),
        cautions: crate::terminal::cautions_of(side),
        outcome: headline.outcome.map(LimitOutcome::from),
        command: crate::again::again(side.info()),
        stalls: stalls.collect(),
    }
}

fn of_limit(view: &View, limit: &trunkline_experiment::Limit) -> ReportLimit {
    ReportLimit {
        key: limit.key.clone(),
        condition: limit.condition.clone(),
        figure: crate::limited::figure(limit).id.to_owned(),
        bound: limit.bound,
        runs: view.sides.iter().map(|side| of_verdict(view, side, &Verdict::of(limit, view, side))).collect(),
    }
}

fn of_verdict(view: &View, side: &Side, verdict: &Verdict) -> RunLimit {
    let point = |p: &crate::verdict::PointVerdict| LimitPoint {
        point: p.point,
        outcome: p.outcome.into(),
        uncertain: p.uncertain,
        mean: p.estimate.map(|e| e.mean),
        ci95: p.estimate.and_then(|e| e.confidence95),
    };
    RunLimit {
        run: side.info().id,
        outcome: verdict.outcome().into(),
        draws: verdict.draws(view).map(|(holds, of)| LimitDraws { holds, of }),
        worst: verdict.worst().map(|worst| worst.point),
        holds_at: verdict.where_(Outcome::Holds, view),
        broken_at: verdict.where_(Outcome::Broken, view),
        points: verdict.points.iter().map(point).collect(),
    }
}

fn of_point(view: &View, point: &trunkline_store::StoredPoint) -> ReportPoint {
    let axes = view.axes().iter().enumerate();
    ReportPoint {
        index: point.index,
        values: axes
            .map(|(i, axis)| (axis.key.clone(), value_on(point, view.axes(), i).to_owned()))
            .collect(),
        runs: view.sides.iter().map(|side| of_side(view, side, point.index)).collect(),
    }
}

fn of_side(view: &View, side: &Side, index: u32) -> ReportSide {
    let point = side.point(index);
    ReportSide {
        run: side.info().id,
        backend: side.info().backend.into(),
        repetitions: point.map_or(0, |p| counted(p).count()),
        cut_short: point.is_some_and(is_cut_short),
        flows: view.flows.iter().filter_map(|flow| of_flow(side, index, flow)).collect(),
        bundles: rows(side, index).iter().map(of_bundle).collect(),
        links: side.links(index).into_iter().map(|link| of_link(side, index, link)).collect(),
        media: media(side, index).iter().map(of_medium).collect(),
    }
}

fn of_flow(side: &Side, index: u32, flow: &str) -> Option<ReportFlow> {
    let summaries = side.flow(index, flow);
    let first = summaries.first()?;
    let figures = |subject: Subject| -> BTreeMap<String, output::Estimate> {
        let figure =
            |m: &'static FigureKind| Some((m.id.to_owned(), side.estimate_of(index, subject, m)?.into()));
        of_flows().filter_map(figure).collect()
    };
    let marks = |subject: Subject| -> BTreeMap<String, String> {
        let mark = |m: &'static FigureKind| (m.id.to_owned(), side.mark(index, subject, m).to_owned());
        of_flows().map(mark).filter(|(_, mark)| !mark.is_empty()).collect()
    };
    let parts = side.sinks(index, flow).into_iter();
    let parts = parts.map(|part| (part.sink.unwrap_or_default().to_owned(), figures(part), marks(part)));
    let (mut sinks, mut each) = (Vec::new(), Vec::new());
    match first.each.is_empty() {
        true => sinks.extend(parts.map(|(sink, figures, marks)| ReportSink { sink, figures, marks })),
        false => each.extend(parts.map(|(flow, figures, marks)| ReportPart { flow, figures, marks })),
    }
    Some(ReportFlow {
        flow: flow.to_owned(),
        transport: first.transport.clone(),
        carried_by: carried_by(first),
        members: first.members,
        channels: first.channels,
        measured: word(&first.measured),
        codec: first.quality.as_ref().map(|quality| word(&quality.codec)),
        outside_e_model: outside_model(&summaries),
        percentiles_exact: summaries.iter().copied().all(has_exact_percentiles),
        figures: figures(Subject::flow(flow)),
        marks: marks(Subject::flow(flow)),
        sinks,
        each,
    })
}

/// The transport of a flow with its codec, members and channels: `udp, pcmu × 3`; `none here` without members.
pub(crate) fn carried_by(flow: &FlowSummary) -> String {
    if flow.members == 0 {
        return "none here".to_owned();
    }
    let codec = flow.quality.as_ref().map_or_else(String::new, |quality| format!(", {}", quality.codec));
    let members = if flow.members > 1 { format!(" × {}", flow.members) } else { String::new() };
    let each = if flow.members > 1 { " each" } else { "" };
    let channels =
        if flow.channels > 1 { format!(", {} channels{each}", flow.channels) } else { String::new() };
    format!("{}{codec}{members}{channels}", flow.transport)
}

/// Returns true if no percentile of a flow, or of one of its sinks or parts, comes from a histogram.
pub(crate) fn has_exact_percentiles(flow: &FlowSummary) -> bool {
    let sinks = flow.sinks.iter().map(|sink| Some(sink.sink.as_str()));
    let parts = flow.each.iter().map(|single| Some(single.flow.as_str()));
    let mut all = sinks.chain(parts).chain([None]);
    all.all(|part| !of_flows().any(|figure| figure.is_from_histogram(flow, part)))
}

/// Inputs outside the E-model's range in the first repetition that has any.
fn outside_model(summaries: &[&FlowSummary]) -> Vec<String> {
    let outside = summaries.iter().filter_map(|flow| Some(flow.quality.as_ref()?.outside_model()));
    outside.into_iter().find(|outside| !outside.is_empty()).unwrap_or_default()
}

fn of_bundle(row: &Row) -> ReportBundle {
    ReportBundle {
        bundle: row.bundle.to_owned(),
        flows: row.flows.to_vec(),
        transport: row.class.map(|class| class.transport.clone()),
        measured: row.class.map(|class| word(&class.measured)),
        members: row.members,
        figures: row.figures().map(|(figure, estimate)| (figure.id.to_owned(), estimate.into())).collect(),
    }
}

fn of_link(side: &Side, index: u32, link: &str) -> ReportLink {
    let all = side.link(index, link);
    let over = |figure: &FigureKind| {
        over_repetitions(all.iter().map(|l| figure.value_of_link(l))).map(output::Estimate::from)
    };
    ReportLink {
        link: link.to_owned(),
        utilisation: over(const { link_figure("utilisation") }),
        offered: over(const { link_figure("offered") }),
        delivered: over(const { link_figure("delivered") }),
        sojourn_mean: over(const { link_figure("sojourn_mean") }),
        sojourn_p50: over(const { link_figure("sojourn_p50") }),
        sojourn_p99: over(const { link_figure("sojourn_p99") }),
        sojourn_p999: over(const { link_figure("sojourn_p999") }),
        sojourn_max: over(const { link_figure("sojourn_max") }),
        backlog_max: over(const { link_figure("backlog_max") }),
        backlog_packets_max: over(const { link_figure("backlog_packets_max") }),
        dropped: all.iter().map(|l| l.dropped.clone()).collect(),
        marked: all.iter().map(|l| l.marked.clone()).collect(),
    }
}

fn of_medium(medium: &Medium) -> ReportMedium {
    let figures = medium.figures.iter();
    ReportMedium {
        medium: medium.name.to_owned(),
        station: medium.station.map(str::to_owned),
        figures: figures.map(|f| (key(f.name), f.estimate.map(Into::into))).collect(),
    }
}

/// The word by which a value is stored.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

impl From<Estimate> for output::Estimate {
    fn from(estimate: Estimate) -> output::Estimate {
        output::Estimate {
            mean: estimate.mean,
            sd: estimate.standard_deviation.filter(|sd| sd.is_finite()),
            ci95: estimate.confidence95,
            repetitions: estimate.repetitions as usize,
        }
    }
}

impl From<Quantity> for output::FigureQuantity {
    fn from(quantity: Quantity) -> output::FigureQuantity {
        match quantity {
            Quantity::Time => output::FigureQuantity::Time,
            Quantity::Rate => output::FigureQuantity::Rate,
            Quantity::Share => output::FigureQuantity::Share,
            Quantity::Bytes => output::FigureQuantity::Bytes,
            Quantity::Count => output::FigureQuantity::Count,
            Quantity::Number => output::FigureQuantity::Number,
        }
    }
}

impl From<&trunkline_experiment::Axis> for output::Axis {
    fn from(axis: &trunkline_experiment::Axis) -> output::Axis {
        let trunkline_experiment::Axis { key, values, numbers, unit } = axis.clone();
        output::Axis { key, values, numbers, unit }
    }
}

impl From<Outcome> for LimitOutcome {
    fn from(outcome: Outcome) -> LimitOutcome {
        match outcome {
            Outcome::Holds => LimitOutcome::Holds,
            Outcome::Broken => LimitOutcome::Broken,
            Outcome::NotMeasured => LimitOutcome::NotMeasured,
            Outcome::NotApplicable => LimitOutcome::NotApplicable,
        }
    }
}

impl From<trunkline_store::Backend> for output::Backend {
    fn from(backend: trunkline_store::Backend) -> output::Backend {
        match backend {
            trunkline_store::Backend::Sim => output::Backend::Sim,
            trunkline_store::Backend::Wire => output::Backend::Wire,
            trunkline_store::Backend::Live => output::Backend::Live,
        }
    }
}

impl From<output::Backend> for trunkline_store::Backend {
    fn from(backend: output::Backend) -> trunkline_store::Backend {
        match backend {
            output::Backend::Sim => trunkline_store::Backend::Sim,
            output::Backend::Wire => trunkline_store::Backend::Wire,
            output::Backend::Live => trunkline_store::Backend::Live,
        }
    }
}

impl From<trunkline_store::Status> for output::Status {
    fn from(status: trunkline_store::Status) -> output::Status {
        match status {
            trunkline_store::Status::Running => output::Status::Running,
            trunkline_store::Status::Complete => output::Status::Complete,
            trunkline_store::Status::Partial => output::Status::Partial,
        }
    }
}

impl From<output::Status> for trunkline_store::Status {
    fn from(status: output::Status) -> trunkline_store::Status {
        match status {
            output::Status::Running => trunkline_store::Status::Running,
            output::Status::Complete => trunkline_store::Status::Complete,
            output::Status::Partial => trunkline_store::Status::Partial,
        }
    }
}

impl From<&RunInfo> for RunSummary {
    fn from(info: &RunInfo) -> RunSummary {
        RunSummary {
            id: info.id,
            name: info.name.clone(),
            backend: info.backend.into(),
            status: info.status.into(),
            started: info.started,
            finished: info.finished,
            version: info.version.clone(),
            machine: info.machine.clone(),
            seed: info.seed.to_string(),
            repetitions: info.repetitions,
            points: info.points,
            repetitions_done: info.repetitions_done,
            repetition_length_s: info.repetition_length.as_secs_f64(),
            directory: info.directory.display().to_string(),
            file: info.file.display().to_string(),
            experiment_hash: info.experiment_hash.clone(),
            tags: info.tags.clone(),
            key: info.key.clone(),
            settings: info.settings.clone(),
            shard: info.shard.map(|shard| output::RunShard {
                index: shard.index(),
                of: shard.of(),
                repetitions: info.wanted(),
            }),
        }
    }
}

impl From<&crate::Comparison> for output::ComparedRuns {
    fn from(comparison: &crate::Comparison) -> output::ComparedRuns {
        let row = |row: &crate::Difference| output::ComparedFigure {
            point: row.point.clone(),
            flow: row.flow.clone(),
            figure: row.figure.id.to_owned(),
            unit: row.figure.quantity.base_unit().to_owned(),
            run: row.run.into(),
            with: row.with.into(),
            difference: row.difference,
            relative: row.relative,
            ci95: row.confidence95,
        };
        output::ComparedRuns {
            run: (&comparison.run).into(),
            with: (&comparison.with).into(),
            same_experiment: comparison.same_experiment,
            rows: comparison.rows.iter().map(row).collect(),
            unmatched: comparison.unmatched.clone(),
        }
    }
}

//! The summary at the end of a run: verdict first, then what the verdict rests on.

mod bundles;
mod comparison;
mod media;

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_experiment::{Axis, Experiment, Point};
use trunkline_metrics::figures::{FigureKind, flow};
use trunkline_metrics::{Estimate, FlowSummary, Measured, RepetitionSummary};
use trunkline_store::{Backend, StoredPoint, StoredRun};

pub use comparison::terminal_comparison;

use crate::text::{BOLD, Cell, Column, QUIET, Screen, Table, Text};
use crate::units::{Quantity, Readable as _, Scale};
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::{Side, Subject, View, axis_name, each_key, is_cut_short, shown_on};

/// On a terminal, more rows than these are for a pipe or the report.
const ROWS: usize = 200;

/// The summary of a run: the verdict, the limits, the flows at every point. A terminal of a known width gets at most 200 rows
/// a table; a pipe or a file gets all.
pub fn terminal(run: &StoredRun, screen: Screen) -> String {
    let view = View::new(run, None);
    let side = &view.sides[0];
    let mut out = Text::new(screen);
    let headline = headline(&view, side);
    let sign = headline.outcome.map_or(String::new(), |o| format!("{} ", o.sign()));
    out.paragraph(&format!("{sign}{}", headline.text), headline.outcome.map_or(BOLD, paint));
    out.paragraph(&about(side), QUIET);
    if !side.info().settings.is_empty() {
        out.paragraph(&format!("Overridden keys: {}.", side.info().settings.join(", ")), QUIET);
    }
    if side.info().backend == Backend::Wire {
        let text = "Links as the file describes them, in real time. Hosts have the speed of this machine.";
        out.paragraph(text, QUIET);
    }
    for caution in cautions_of(side) {
        out.paragraph(&caution, QUIET);
    }
    if let Some(text) = side.next() {
        out.paragraph(&text, if side.is_unfinished() { paint(Outcome::NotMeasured) } else { QUIET });
    }
    if !view.limits().is_empty() {
        out.blank();
        limits(&mut out, &view, side);
    }
    if !view.flows.is_empty() {
        out.blank();
        flows(&mut out, &view, side);
    }
    for hint in crate::hints::of(&view, side) {
        out.paragraph(&hint, QUIET);
    }
    bundles::table(&mut out, &view, side);
    media::tables(&mut out, &view, side);
    out.into()
}

/// One repetition in a line, while others are still measured: `count = 2: voice p99 1.34 ms, bulk 11 Gbit/s p99 493 µs`.
/// Flows that lose messages say how many.
pub fn one_line(experiment: &Experiment, point: &Point, summary: &RepetitionSummary) -> String {
    let (throughput, latency, loss) = (flow("throughput_user"), flow("latency_p99"), flow("loss"));
    let of_flow = |summary: &FlowSummary| {
        let figures = [(throughput, ""), (latency, "p99 "), (loss, "loss ")].into_iter();
        let shown = figures.filter_map(|(figure, word)| {
            let value = figure.value(summary).filter(|value| figure.id != loss.id || *value > 0.0)?;
            Some(format!(" {word}{}", figure.quantity.show(value)))
        });
        std::iter::once(summary.flow.clone()).chain(shown).collect::<String>()
    };
    let flows: Vec<String> = summary.flows.iter().filter(|flow| flow.members > 0).map(of_flow).collect();
    let values = short_keys(&experiment.axes).into_iter().zip(&experiment.axes).zip(&point.choice);
    let values: Vec<String> = values
        .map(|((key, axis), choice)| format!("{key} = {}", axis.shown(*choice).unwrap_or_default()))
        .collect();
    let of_point = if values.is_empty() { String::new() } else { format!("{}: ", values.join(", ")) };
    format!("{of_point}{}", flows.join(", "))
}

/// What a reader of a run's figures has to know of how it was measured: limits of the machine, of its clocks and of the
/// backend, a sentence each.
pub fn cautions(run: &StoredRun) -> Vec<String> {
    View::new(run, None).sides.iter().flat_map(cautions_of).collect()
}

/// The cautions of one run.
pub(crate) fn cautions_of(side: &Side) -> Vec<String> {
    let mut all = Vec::new();
    if side.info().backend == Backend::Live {
        let hosts = if has_agents(&side.run.text) { "" } else { " All hosts were this machine." };
        all.push(format!(
            "The network was used as it is: links of the file do not apply to live, but to sim and wire.{hosts}"
        ));
    }
    let stalls = side.stalls().into_iter().map(|(_, _, stalls)| stalls.longest);
    if let Some(longest) = stalls.max().filter(|_| side.is_measured()) {
        all.push(format!(
            "This machine stalled for up to {longest}: latency tails may come from the machine."
        ));
    }
    if let Some(bound) = side.clock_error() {
        all.push(format!("One-way times were read from two clocks: they are within ± {bound} of the truth."));
    }
    all
}

/// Returns true if an experiment file names agents: then its hosts are other machines.
fn has_agents(text: &str) -> bool {
    let file: toml::Table = text.parse().unwrap_or_default();
    let hosts = file.get("hosts").and_then(toml::Value::as_table);
    hosts.is_some_and(|hosts| hosts.values().any(|host| host.get("agent").is_some()))
}

fn paint(outcome: Outcome) -> Ansi {
    let colour = match outcome {
        Outcome::Holds => AnsiColor::Green,
        Outcome::Broken => AnsiColor::Red,
        Outcome::NotMeasured | Outcome::NotApplicable => AnsiColor::Yellow,
    };
    Ansi::new().bold().fg_color(Some(colour.into()))
}

fn about(side: &Side) -> String {
    let info = side.info();
    let points = (0..info.points).filter(|point| info.has(*point)).count();
    format!(
        "{}: run {} on {}, {} of {} repetitions of {} measured over {points} {}",
        info.name,
        info.id,
        info.backend.name(),
        info.repetitions_done,
        info.wanted(),
        info.repetition_length,
        if points == 1 { "point" } else { "points" },
    )
}

fn limits(out: &mut Text, view: &View, side: &Side) {
    let mut table =
        Table::new([Column::words("limit").key(), Column::words("verdict"), Column::numbers("worst")]);
    if view.is_swept() {
        table.column(Column::words("worst at"));
        table.column(Column::words("holds at"));
    }
    let mut any_unsure = false;
    for limit in view.limits() {
        let verdict = Verdict::of(limit, view, side);
        let outcome = verdict.outcome();
        let worst = verdict.worst();
        let unsure = if verdict.points.iter().any(|p| p.uncertain) { " ±" } else { "" };
        any_unsure |= !unsure.is_empty();
        let estimate = worst.and_then(|w| w.estimate);
        let mark = worst.map_or("", |worst| worst.mark());
        let mut row = vec![
            Cell::new(format!("{} {} {}", verdict.whose, verdict.figure.name, limit.condition)),
            Cell::new(format!("{} {}{unsure}", outcome.sign(), verdict.word())).painted(paint(outcome)),
            Cell::new(estimate.map_or("–".to_owned(), |e| verdict.figure.quantity.show_estimate(&e) + mark)),
        ];
        if view.is_swept() {
            let at = worst.and_then(|w| view.points().iter().find(|p| p.index == w.point));
            row.push(Cell::new(at.map_or("–".to_owned(), |p| short_name(p, view.axes()))));
            row.push(Cell::new(shortened(&verdict.where_(Outcome::Holds, view), view.axes())));
        }
        table.row(row);
    }
    out.table(&table);
    if any_unsure {
        out.paragraph("±: not certain at every point: the confidence interval crosses the bound, or not every repetition measured the figure", QUIET);
    }
}

/// `count = 0, 1` for `bulk.count = 0, 1`, where the end of the key is enough.
fn shortened(points: &str, axes: &[Axis]) -> String {
    match (axes, short_keys(axes).as_slice()) {
        ([axis], [short]) => match points.strip_prefix(&axis_name(axis)) {
            Some(rest) => format!("{short}{rest}"),
            None => points.to_owned(),
        },
        _ => points.to_owned(),
    }
}

/// The swept keys without what they need not be told apart: `count` for `bulk.count`.
fn short_keys(axes: &[Axis]) -> Vec<String> {
    let end = |axis| each_key(axis, |key| key.rsplit('.').next().unwrap_or(key));
    let short: Vec<String> = axes.iter().map(end).collect();
    let mut ends: Vec<&str> = short.iter().flat_map(|keys| keys.split(", ")).collect();
    ends.sort_unstable();
    let are_told_apart = ends.windows(2).all(|two| two[0] != two[1]);
    if are_told_apart { short } else { axes.iter().map(axis_name).collect() }
}

/// `count = 4, rate = 2 Mbit/s`
fn short_name(point: &StoredPoint, axes: &[Axis]) -> String {
    let keys = short_keys(axes).into_iter().enumerate();
    let parts = keys.map(|(axis, key)| format!("{key} = {}", shown_on(point, axes, axis)));
    parts.collect::<Vec<_>>().join(", ")
}

/// What is shown of a flow, and under which heading.
const FIGURES: &[(&str, &FigureKind)] = &[
    ("user", flow("throughput_user")),
    ("answers", flow("throughput_answers")),
    ("transfer", flow("transfer_rate_mean")),
    ("loss", flow("loss")),
    ("unfinished", flow("unfinished_share")),
    ("refused", flow("refused_share")),
    ("late", flow("late")),
    ("mean", flow("latency_mean")),
    ("p50", flow("latency_p50")),
    ("p99", flow("latency_p99")),
    ("p99.9", flow("latency_p999")),
    ("± clocks", flow("clock_error")),
    ("jitter", flow("jitter_mean_absolute_deviation")),
    ("margin", flow("margin_min")),
    ("silence", flow("silence")),
    ("MOS", flow("mos")),
];

const MARGIN: &FigureKind = flow("margin_min");

/// Figures without which most runs do.
const ONLY_IF_ANY: &[&FigureKind] = &[
    flow("late"),
    flow("unfinished_share"),
    flow("refused_share"),
    flow("transfer_rate_mean"),
    flow("throughput_answers"),
    flow("margin_min"),
    flow("silence"),
    flow("mos"),
    flow("clock_error"),
];

fn flows(out: &mut Text, view: &View, side: &Side) {
    let latencies: Vec<&FigureKind> =
        FIGURES.iter().map(|(_, metric)| *metric).filter(|m| m.id.starts_with("latency")).collect();
    let columns: Vec<(&str, &'static FigureKind, Scale)> = FIGURES
        .iter()
        .map(|(heading, metric)| {
            let alike = if metric.id.starts_with("latency") { latencies.clone() } else { vec![*metric] };
            (*heading, *metric, view.scale(&alike))
        })
        .filter(|(_, metric, _)| !ONLY_IF_ANY.contains(metric) || view.has_any(metric))
        .collect();
    let mut table = Table::new(keys(view));
    table.column(Column::words("flow").key());
    for (heading, _, scale) in &columns {
        table.column(Column::numbers(format!("{heading} {}", scale.heading()).trim_end()));
    }
    let mut subjects = subjects(view, side);
    let all = subjects.len();
    if out.screen().width.is_some() && all > ROWS {
        // The worst sink tells more than the others.
        subjects.retain(|(_, subject)| subject.sink.is_none() || subject.is_worst);
        subjects.truncate(ROWS);
    }
    let left_out = all - subjects.len();
    let mut any_outside = false;
    for (point, subject) in subjects {
        let mut row = values(view, point);
        let way = if view.measured(subject.flow) == Measured::RoundTrip { " rtt" } else { "" };
        let cut = if side.point(point.index).is_some_and(is_cut_short) { "*" } else { "" };
        let worst = if subject.is_worst { " (worst)" } else { "" };
        row.push(Cell::new(match subject.sink {
            Some(sink) => format!("→ {sink}{worst}"),
            None => format!("{}{way}{cut}", subject.flow),
        }));
        for (_, metric, scale) in &columns {
            let estimate = side.estimate_of(point.index, subject, metric);
            let is_outside = estimate.is_some() && side.is_outside_model(point.index, subject.flow, metric);
            let shown = written(estimate, metric.quantity, *scale);
            any_outside |= is_outside;
            row.push(Cell::new(if is_outside { format!("{shown}?") } else { shown }));
        }
        table.row(row);
    }
    if table.is_empty() {
        return;
    }
    out.table(&table);
    say_left_out(out, left_out, side);
    let repetitions = if view.run().info.repetitions > 1 { "means over repetitions; " } else { "" };
    let rtt = if view.flows.iter().any(|f| view.measured(f) == Measured::RoundTrip) {
        ", rtt: round trip"
    } else {
        ""
    };
    let has_margin = columns.iter().any(|(_, metric, _)| *metric == MARGIN);
    let margin = if has_margin { "margin: the smallest to a deadline; " } else { "" };
    let outside = if any_outside { "?: outside the E-model's range; " } else { "" };
    let cut = if view.points().iter().any(|point| is_cut_short(point)) { "*: cut short; " } else { "" };
    let text = format!(
        "mean to p99.9: latency{rtt}; jitter: its mean absolute deviation; {margin}{outside}{cut}{repetitions}more in the HTML \
         report of `trunkline report {}`",
        side.info().id
    );
    out.paragraph(&text, QUIET);
}

/// How the rows that a terminal is spared are seen.
fn say_left_out(out: &mut Text, rows: usize, side: &Side) {
    if rows > 0 {
        let text =
            format!("{rows} more rows: `trunkline report {} | less`, or the HTML report.", side.info().id);
        out.paragraph(&text, QUIET);
    }
}

/// A key column for each swept key.
fn keys(view: &View) -> Vec<Column> {
    short_keys(view.axes()).into_iter().map(|key| Column::words(key).key()).collect()
}

/// Each flow at each point, before its sinks if it has several.
fn subjects<'a>(view: &View<'a>, side: &Side<'a>) -> Vec<(&'a StoredPoint, Subject<'a>)> {
    let mut subjects = Vec::new();
    for &point in view.points() {
        let has_members = |flow: &&&str| side.flow(point.index, flow).first().is_some_and(|f| f.members > 0);
        for flow in view.flows.iter().filter(has_members) {
            subjects.push((point, Subject::flow(flow)));
            subjects.extend(side.shown(point.index, flow).0.into_iter().map(|part| (point, part)));
        }
    }
    subjects
}

/// The swept values of a point.
fn values(view: &View, point: &StoredPoint) -> Vec<Cell> {
    (0..view.axes().len()).map(|i| Cell::new(shown_on(point, view.axes(), i))).collect()
}

fn number(estimate: Option<Estimate>, quantity: Quantity, scale: Scale) -> Cell {
    Cell::new(written(estimate, quantity, scale))
}

fn written(estimate: Option<Estimate>, quantity: Quantity, scale: Scale) -> String {
    estimate.map_or("–".to_owned(), |e| scale.show(quantity, e.mean))
}

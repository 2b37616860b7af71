//! The summary at the end of a run: verdict first, then what the verdict rests on.

mod bundles;
mod comparison;
mod media;

use std::fmt::Write;

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_experiment::Axis;
use trunkline_metrics::{Estimate, Measured};
use trunkline_store::{Backend, Status, StoredPoint, StoredRun};

pub use comparison::terminal_comparison;

use crate::metric::{Metric, metric};
use crate::units::Unit;
use crate::verdict::{Outcome, Verdict, headline};
use crate::view::{Side, Subject, View, axis_name, backend_name, is_cut_short, shown_on};

/// No line is longer.
const WIDTH: usize = 100;
/// More rows are for the report.
const ROWS: usize = 40;
/// Columns are this far apart.
const GAP: usize = 2;

/// Whether the terminal shows colours. Nothing is said by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    #[default]
    Plain,
    /// With ANSI colours.
    Colour,
}

/// The summary of a run for a terminal of 100 columns: the verdict, the limits, the flows at every point.
pub fn terminal(run: &StoredRun, style: Style) -> String {
    let view = View::new(run, None);
    let side = &view.sides[0];
    let mut out = Printer { text: String::new(), style };
    let headline = headline(&view, side);
    let sign = headline.outcome.map_or(String::new(), |o| format!("{} ", o.sign()));
    out.wrapped(&format!("{sign}{}", clean(&headline.text)), headline.outcome.map_or(BOLD, paint));
    out.wrapped(&about(side), QUIET);
    match side.info().backend {
        Backend::Sim => {}
        Backend::Wire => out.wrapped(
            "Links as the file describes them, in real time. Hosts take the time that this machine takes.",
            QUIET,
        ),
        Backend::Live => out.wrapped(
            "The network was used as it is: links described in the file apply to sim and wire.",
            QUIET,
        ),
    }
    if side.is_measured() {
        let longest = side.stalls().into_iter().map(|(_, _, s)| s.longest).max();
        if let Some(longest) = longest {
            let text = format!("This machine stalled for up to {longest}: latency tails may be its own.");
            out.wrapped(&text, QUIET);
        }
    }
    if let Some(bound) = side.clock_error() {
        let text =
            format!("One-way times were read from two clocks: they are within ± {bound} of the truth.");
        out.wrapped(&text, QUIET);
    }
    if run.info.status != Status::Complete {
        let text = format!("The run is partial; `trunkline run --resume {}` finishes it.", run.info.id);
        out.wrapped(&text, paint(Outcome::NotMeasured));
    }
    if !view.limits().is_empty() {
        out.text.push('\n');
        limits(&mut out, &view, side);
    }
    if !view.flows.is_empty() {
        out.text.push('\n');
        flows(&mut out, &view, side);
    }
    bundles::table(&mut out, &view, side);
    media::tables(&mut out, &view, side);
    out.text
}

const BOLD: Ansi = Ansi::new().bold();
const QUIET: Ansi = Ansi::new().dimmed();

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
    format!(
        "{}: run {} on {}, {} of {} repetitions of {} measured over {} {}",
        clean(&info.name),
        info.id,
        backend_name(info.backend),
        info.repetitions_done,
        u64::from(info.points) * u64::from(info.repetitions),
        info.repetition_length,
        info.points,
        if info.points == 1 { "point" } else { "points" },
    )
}

fn limits(out: &mut Printer, view: &View, side: &Side) {
    let mut table = Table::new(&[("limit", false), ("verdict", false), ("worst", true)]);
    table.kept = Some(0);
    if view.is_swept() {
        let worst = match short_keys(view.axes()).as_slice() {
            [only] => format!("worst at {only}"),
            _ => "worst at".to_owned(),
        };
        table.columns.extend([Cell::left(&worst), Cell::left("holds at")].map(Column::new));
    }
    let mut any_unsure = false;
    for limit in view.limits() {
        let verdict = Verdict::of(limit, view, side);
        let outcome = verdict.outcome();
        let worst = verdict.worst();
        let unsure = if verdict.points.iter().any(|p| p.uncertain) { " ±" } else { "" };
        any_unsure |= !unsure.is_empty();
        let estimate = worst.and_then(|w| w.estimate);
        let mut row = vec![
            Cell::left(&format!("{} {} {}", verdict.whose, verdict.figure.name, limit.condition)),
            Cell {
                paint: Some(paint(outcome)),
                ..Cell::left(&format!("{} {}{unsure}", outcome.sign(), verdict.word()))
            },
            Cell::right(&estimate.map_or("–".to_owned(), |e| verdict.figure.quantity.show_estimate(&e))),
        ];
        if view.is_swept() {
            let at = worst.and_then(|w| view.points().iter().find(|p| p.index == w.point));
            row.push(Cell::left(&at.map_or("–".to_owned(), |p| short_name(p, view.axes()))));
            let holds = verdict.where_(Outcome::Holds, view);
            // The key stands in the heading.
            let values = holds.split_once(" = ").filter(|_| view.axes().len() == 1).map(|(_, values)| values);
            row.push(Cell::left(values.unwrap_or(&holds)));
        }
        table.rows.push(row);
    }
    out.table(table);
    if any_unsure {
        out.wrapped("±: not certain at every point, the confidence interval crosses the bound", QUIET);
    }
}

/// The swept keys without what they need not be told apart: `count` for `bulk.count`.
fn short_keys(axes: &[Axis]) -> Vec<&str> {
    let last: Vec<&str> = axes.iter().map(|axis| axis.key.rsplit('.').next().unwrap_or(&axis.key)).collect();
    let is_alone = |key: &&str| last.iter().filter(|other| *other == key).count() == 1;
    if last.iter().all(is_alone) { last } else { axes.iter().map(axis_name).collect() }
}

/// `4`, or `count = 4, rate = 2 Mbit/s`.
fn short_name(point: &StoredPoint, axes: &[Axis]) -> String {
    let value = |axis: usize| shown_on(point, axes, axis);
    match short_keys(axes).as_slice() {
        [_] => value(0),
        keys => {
            let parts = keys.iter().enumerate().map(|(axis, key)| format!("{key} = {}", value(axis)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// What is shown of a flow, and under which heading.
const FIGURES: &[(&str, &str)] = &[
    ("user", "throughput_user"),
    ("transfer", "transfer_rate_mean"),
    ("loss", "loss"),
    ("late", "late"),
    ("mean", "latency_mean"),
    ("p50", "latency_p50"),
    ("p99", "latency_p99"),
    ("p99.9", "latency_p999"),
    ("± clocks", "clock_error"),
    ("jitter", "jitter_mean_absolute_deviation"),
    ("margin", "margin_min"),
    ("silence", "silence"),
    ("MOS", "mos"),
];

/// Figures without which most runs do.
const ONLY_IF_ANY: &[&str] = &["late", "transfer_rate_mean", "margin_min", "silence", "mos", "clock_error"];

fn flows(out: &mut Printer, view: &View, side: &Side) {
    let latencies: Vec<&Metric> =
        FIGURES.iter().map(|(_, id)| metric(id)).filter(|m| m.id.starts_with("latency")).collect();
    let columns: Vec<(&str, &'static Metric, Unit)> = FIGURES
        .iter()
        .map(|(heading, id)| {
            let metric = metric(id);
            let alike = if metric.id.starts_with("latency") { latencies.clone() } else { vec![metric] };
            (*heading, metric, metric.quantity.unit(view.telling(&alike)))
        })
        .filter(|(_, metric, _)| !ONLY_IF_ANY.contains(&metric.id) || view.telling(&[metric]) > 0.0)
        .collect();
    let mut table = Table::default();
    table.columns.extend(short_keys(view.axes()).into_iter().map(|key| Column::new(Cell::left(key))));
    table.kept = Some(table.columns.len());
    table.columns.push(Column::new(Cell::left("flow")));
    for (heading, _, unit) in &columns {
        table.columns.push(Column::new(Cell::right(format!("{heading} {}", unit.name).trim_end())));
    }
    let mut subjects = subjects(view, side);
    let all = subjects.len();
    if all > ROWS {
        // The worst sink tells more than the others.
        subjects.retain(|(_, subject)| subject.sink.is_none() || subject.is_worst);
        subjects.truncate(ROWS);
    }
    let left_out = all - subjects.len();
    for (point, subject) in subjects {
        let mut row = values(view, point);
        let way = if view.measured(subject.flow) == Measured::RoundTrip { " rtt" } else { "" };
        let cut = if side.point(point.index).is_some_and(is_cut_short) { "*" } else { "" };
        let worst = if subject.is_worst { " (worst)" } else { "" };
        row.push(Cell::left(&match subject.sink {
            Some(sink) => format!("→ {sink}{worst}"),
            None => format!("{}{way}{cut}", subject.flow),
        }));
        for (_, metric, unit) in &columns {
            let estimate = side.estimate_of(point.index, subject, metric);
            row.push(number(estimate, *unit));
        }
        table.rows.push(row);
    }
    if table.rows.is_empty() {
        return;
    }
    out.table(table);
    if left_out > 0 {
        out.wrapped(&format!("{left_out} more rows stand in the report."), QUIET);
    }
    let repetitions = if view.run().info.repetitions > 1 { "means over repetitions; " } else { "" };
    let rtt = if view.flows.iter().any(|f| view.measured(f) == Measured::RoundTrip) {
        ", rtt: round trip"
    } else {
        ""
    };
    let has_margin = columns.iter().any(|(_, metric, _)| metric.id == "margin_min");
    let margin = if has_margin { "margin: the smallest to a deadline; " } else { "" };
    let cut = if view.points().iter().any(is_cut_short) { "*: cut short; " } else { "" };
    let text = format!(
        "mean to p99.9: latency{rtt}; jitter: its mean absolute deviation; {margin}{cut}{repetitions}more in the report"
    );
    out.wrapped(&text, QUIET);
}

/// Each flow at each point, before its sinks if it has several.
fn subjects<'a>(view: &View<'a>, side: &Side<'a>) -> Vec<(&'a StoredPoint, Subject<'a>)> {
    let mut subjects = Vec::new();
    for point in view.points() {
        let has_members = |flow: &&&str| side.flow(point.index, flow).first().is_some_and(|f| f.members > 0);
        for flow in view.flows.iter().filter(has_members) {
            subjects.push((point, Subject::flow(flow)));
            subjects.extend(side.sinks(point.index, flow).into_iter().map(|sink| (point, sink)));
        }
    }
    subjects
}

/// The swept values of a point.
fn values(view: &View, point: &StoredPoint) -> Vec<Cell> {
    (0..view.axes().len()).map(|i| Cell::left(&shown_on(point, view.axes(), i))).collect()
}

fn number(estimate: Option<Estimate>, unit: Unit) -> Cell {
    Cell::right(&estimate.map_or("–".to_owned(), |e| crate::units::number(e.mean * unit.factor, 4)))
}

/// A name from a file may hold anything: nothing that moves a cursor gets through.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

struct Cell {
    text: String,
    right: bool,
    paint: Option<Ansi>,
}

impl Cell {
    fn left(text: &str) -> Cell {
        Cell { text: clean(text), right: false, paint: None }
    }

    fn right(text: &str) -> Cell {
        Cell { right: true, ..Cell::left(text) }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

struct Column {
    heading: Cell,
}

impl Column {
    fn new(heading: Cell) -> Column {
        Column { heading }
    }
}

#[derive(Default)]
struct Table {
    columns: Vec<Column>,
    /// The column before which all others are cut.
    kept: Option<usize>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    fn new(headings: &[(&str, bool)]) -> Table {
        let cell = |(text, right): &(&str, bool)| if *right { Cell::right(text) } else { Cell::left(text) };
        Table { columns: headings.iter().map(|h| Column::new(cell(h))).collect(), ..Table::default() }
    }

    /// Widths that fit the line: words are cut, the widest first and those of the kept column last; then columns fall off
    /// at the right.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = self.rows.iter().filter_map(|row| row.get(i)).map(Cell::width);
                cells.fold(column.heading.width(), usize::max)
            })
            .collect();
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while total(&widths) > WIDTH {
            let is_word = |i: &usize| !self.columns[*i].heading.right;
            let is_wide = |i: &usize| is_word(i) && widths[*i] > 8;
            let widest =
                (0..widths.len()).filter(is_wide).max_by_key(|i| (Some(*i) != self.kept, widths[*i]));
            match widest {
                Some(i) => widths[i] -= 1,
                None => {
                    widths.pop();
                }
            }
        }
        widths
    }
}

struct Printer {
    text: String,
    style: Style,
}

impl Printer {
    fn painted(&mut self, text: &str, ansi: Ansi) {
        match self.style {
            Style::Plain => self.text.push_str(text),
            // Writing to a string cannot fail.
            Style::Colour => _ = write!(self.text, "{ansi}{text}{ansi:#}"),
        }
    }

    /// A paragraph, broken at spaces.
    fn wrapped(&mut self, text: &str, ansi: Ansi) {
        let mut line = String::new();
        let mut lines = Vec::new();
        for word in text.split_whitespace() {
            let mut word = word.to_owned();
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            while word.chars().count() > WIDTH {
                let rest: String = word.chars().skip(WIDTH).collect();
                lines.push(word.chars().take(WIDTH).collect());
                word = rest;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
        for line in lines {
            self.painted(&line, ansi);
            self.text.push('\n');
        }
    }

    fn table(&mut self, table: Table) {
        let widths = table.widths();
        let headings: Vec<Cell> =
            table.columns.into_iter().map(|c| Cell { paint: Some(QUIET), ..c.heading }).collect();
        for row in std::iter::once(&headings).chain(&table.rows) {
            let mut pending = 0;
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let text = cut(&cell.text, *width);
                let padding = width - text.chars().count();
                let (before, after) = if cell.right { (padding, 0) } else { (0, padding) };
                let gap = if i == 0 { 0 } else { GAP };
                // Nothing is written behind the last word of a line.
                self.text.extend(std::iter::repeat_n(' ', pending + gap + before));
                self.painted(&text, cell.paint.unwrap_or_default());
                pending = after;
            }
            self.text.push('\n');
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

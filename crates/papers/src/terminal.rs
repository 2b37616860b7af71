//! Tables, summary and goals as text of at most 100 columns.

use core::fmt::Write as _;

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_report::Style;
use trunkline_store::Backend;

use crate::goals::{Judged, Outcome, judge, share, signed};
use crate::results::{Cell, Doubt, Results, Row, TableResults};
use crate::study::{Metric, Reference, Study};

/// No line is longer, unless a single metric needs more.
const WIDTH: usize = 100;
/// Columns are this far apart.
const GAP: usize = 2;

const BOLD: Ansi = Ansi::new().bold();
const QUIET: Ansi = Ansi::new().dimmed();
const PLAIN: Ansi = Ansi::new();

/// Every table, published against simulated: the key columns, and for each metric what was published, what was
/// simulated and the relative error. Metrics that do not fit beside each other follow below.
pub fn tables(results: &Results, style: Style) -> String {
    let mut out = Printer { text: String::new(), style };
    for table in &results.tables {
        out.painted(table.table.name, BOLD);
        let predicted = match table.table.reference {
            Reference::Published(_) => "",
            Reference::Predicted => " (predicted; not published here)",
            Reference::Own => " (ours; not in the paper)",
        };
        let measured = match table.on {
            Backend::Sim => "",
            Backend::Wire => ", measured on the wire",
            Backend::Live => ", measured live",
        };
        let from = table.table.name.len() + GAP;
        out.wrapped(&format!("{}{measured}{predicted}", table.table.title), from, PLAIN);
        for (index, metrics) in in_width(table).iter().enumerate() {
            out.text.push_str(if index == 0 { "" } else { "\n" });
            out.grid(&block(table, metrics));
        }
        for mark in marks(table).lines() {
            out.painted(mark, QUIET);
            out.text.push('\n');
        }
        for note in results.study.notes(table.table.name) {
            out.indented(note.text, QUIET);
        }
        out.text.push('\n');
    }
    out.text
}

/// How far each metric of each table is from what was published, and which goals are met.
pub fn summary(results: &Results, style: Style) -> String {
    let mut out = Printer { text: String::new(), style };
    let lines = error_lines(results);
    if !lines.is_empty() {
        let mut grid = Grid::new(&["table", "metric", ">cells", ">median", ">worst", "at"]);
        grid.rows = lines;
        out.painted("Relative errors", BOLD);
        out.text.push_str(" of cells that were published and are not doubtful\n");
        out.grid(&grid);
    }
    let goals = judge(results);
    if !goals.is_empty() {
        out.text.push_str(if out.text.is_empty() { "" } else { "\n" });
        out.painted("Goals", BOLD);
        out.text.push('\n');
        for judged in &goals {
            out.goal(judged);
        }
    }
    out.text
}

/// The studies, for `trunkline papers`.
pub fn list(studies: &[&Study], style: Style) -> String {
    let mut out = Printer { text: String::new(), style };
    for (index, study) in studies.iter().enumerate() {
        out.text.push_str(if index == 0 { "" } else { "\n" });
        out.painted(study.name, BOLD);
        out.wrapped(
            &format!("{}: {}, {}", study.authors, study.title, study.year),
            study.name.len() + GAP,
            PLAIN,
        );
        let tables: Vec<&str> = study.tables.iter().map(|table| table.name).collect();
        let figures: Vec<String> = study.figures.iter().map(|figure| figure.number.to_string()).collect();
        let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        out.indented(study.reproduced, PLAIN);
        out.indented(&format!("{}: {}", counted(tables.len(), "table"), tables.join(", ")), QUIET);
        out.indented(&format!("{}: {}", counted(figures.len(), "figure"), figures.join(", ")), QUIET);
    }
    out.text
}

/// The table's metrics in groups that fit the width beside the keys.
fn in_width(table: &TableResults) -> Vec<Vec<usize>> {
    let width = |grid: &Grid| grid.widths().iter().sum::<usize>() + GAP * (grid.headings.len() - 1);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for metric in 0..table.table.metrics.len() {
        if let Some(group) = groups.last_mut() {
            group.push(metric);
            if width(&block(table, group)) <= WIDTH {
                continue;
            }
            group.pop();
        }
        groups.push(vec![metric]);
    }
    groups
}

/// Some metrics of a table beside its keys.
fn block(table: &TableResults, metrics: &[usize]) -> Grid {
    let mut grid = Grid::default();
    for (place, key) in table.table.keys.iter().enumerate() {
        let number =
            table.rows.iter().all(|row| row.keys.0.get(place).is_some_and(|(_, key)| key.number().is_some()));
        grid.headings.push(Heading { lines: broken(key), right: number });
    }
    let published = table.table.reference.published().is_some();
    for metric in metrics.iter().filter_map(|metric| table.table.metrics.get(*metric)) {
        let first = grid.headings.len();
        let word = table.word(metric);
        let columns: &[&str] = if published { &["published", word, "error"] } else { &[word] };
        grid.headings.extend(columns.iter().map(|text| Heading::of(text, true)));
        grid.groups.push(Group { title: metric.column, first, count: columns.len() });
    }
    grid.rows = table.rows.iter().map(|row| line(table, row, metrics, published)).collect();
    grid
}

fn line(table: &TableResults, row: &Row, metrics: &[usize], published: bool) -> Vec<String> {
    let mut line: Vec<String> = row.keys.0.iter().map(|(_, value)| value.to_string()).collect();
    for place in metrics {
        let (Some(metric), Some(cell)) = (table.table.metrics.get(*place), row.cells.get(*place)) else {
            continue;
        };
        if published {
            line.push(printed(cell));
        }
        line.push(simulated(cell, metric));
        if published {
            line.push(cell.error().map_or_else(|| "–".to_owned(), signed));
        }
    }
    line
}

/// The printed figure, with a sign where it is in doubt.
pub(crate) fn printed(cell: &Cell) -> String {
    let Some(published) = &cell.published else { return "–".to_owned() };
    let sign = match cell.doubt {
        Doubt::None => "",
        Doubt::Suspect => "*",
        Doubt::Doubtful => "?",
    };
    format!("{sign}{}", published.text)
}

/// The simulated figure with as many digits as the paper prints.
pub(crate) fn simulated(cell: &Cell, metric: &Metric) -> String {
    cell.simulated.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.*}", metric.decimals))
}

/// What the signs of a table mean, if it has any.
pub(crate) fn marks(table: &TableResults) -> String {
    let any = |doubt: Doubt| {
        let mut cells = table.rows.iter().flat_map(|row| &row.cells);
        cells.any(|cell| cell.doubt == doubt && cell.published.is_some())
    };
    let mut text = String::new();
    if any(Doubt::Doubtful) {
        text += "? doubtful reading, left out of comparisons\n";
    }
    if any(Doubt::Suspect) {
        text += "* well read, but the paper itself speaks against it\n";
    }
    text
}

/// Table, metric, cells, median, worst, where: for every metric that was published.
pub(crate) fn error_lines(results: &Results) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for table in results.tables.iter().filter(|table| table.table.reference.published().is_some()) {
        for metric in table.table.metrics {
            let errors = table.errors(&[metric.column]);
            let (far, at) =
                errors.worst.map_or(("–".to_owned(), String::new()), |(far, at)| (signed(far), at));
            let left_out = errors.incomparable + errors.doubtful;
            let cells = match left_out {
                0 => errors.compared.to_string(),
                _ => format!("{} of {}", errors.compared, errors.compared + left_out),
            };
            let median = errors.median.map_or_else(|| "–".to_owned(), share);
            lines.push(vec![table.table.name.to_owned(), metric.column.to_owned(), cells, median, far, at]);
        }
    }
    lines
}

#[derive(Default)]
struct Grid {
    headings: Vec<Heading>,
    /// Titles over several columns.
    groups: Vec<Group>,
    rows: Vec<Vec<String>>,
}

struct Heading {
    /// From top to bottom.
    lines: Vec<String>,
    right: bool,
}

struct Group {
    title: &'static str,
    first: usize,
    count: usize,
}

impl Heading {
    fn of(text: &str, right: bool) -> Heading {
        Heading { lines: vec![text.to_owned()], right }
    }

    fn width(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }
}

impl Grid {
    /// Columns whose headings are these; one that begins with `>` is set flush right.
    fn new(headings: &[&str]) -> Grid {
        let heading = |text: &&str| match text.strip_prefix('>') {
            Some(text) => Heading::of(text, true),
            None => Heading::of(text, false),
        };
        Grid { headings: headings.iter().map(heading).collect(), ..Grid::default() }
    }

    /// Wide enough for every cell, and for the titles over several columns.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headings.iter().map(Heading::width).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for group in &self.groups {
            let own = widths[group.first..][..group.count].iter().sum::<usize>() + GAP * (group.count - 1);
            widths[group.first] += group.title.chars().count().saturating_sub(own);
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
            Style::Colour if ansi != PLAIN && !text.is_empty() => {
                // Writing to a string cannot fail; the same holds below.
                let _ = write!(self.text, "{ansi}{text}{ansi:#}");
            }
            _ => self.text.push_str(text),
        }
    }

    fn grid(&mut self, grid: &Grid) {
        let widths = grid.widths();
        let height = grid.headings.iter().map(|heading| heading.lines.len()).max().unwrap_or(0);
        let height = height.max(if grid.groups.is_empty() { 1 } else { 2 });
        for above in (0..height).rev() {
            let cell = |heading: &Heading| match heading.lines.len().checked_sub(above + 1) {
                Some(line) => heading.lines[line].clone(),
                None => String::new(),
            };
            let cells: Vec<String> = grid.headings.iter().map(cell).collect();
            let mut line = laid_out(&cells, grid, &widths);
            // Titles over several columns stand above the last line, where these columns have nothing.
            for group in grid.groups.iter().filter(|_| above == 1) {
                let columns = group.first + group.count;
                let end = widths[..columns].iter().sum::<usize>() + GAP * (columns - 1);
                let room = end - line.chars().count();
                let _ = write!(line, "{:>room$}", group.title);
            }
            self.painted(&line, QUIET);
            self.text.push('\n');
        }
        for row in &grid.rows {
            self.text.push_str(&laid_out(row, grid, &widths));
            self.text.push('\n');
        }
    }

    fn goal(&mut self, judged: &Judged) {
        let colour = match judged.outcome {
            Outcome::Met => AnsiColor::Green,
            Outcome::Missed => AnsiColor::Red,
            Outcome::NotJudged => AnsiColor::Yellow,
        };
        let (sign, word) = (judged.outcome.sign(), judged.outcome.word());
        let verdict = format!("{sign} {word}");
        self.painted(&verdict, BOLD.fg_color(Some(colour.into())));
        self.wrapped(&judged.goal, verdict.chars().count() + GAP, PLAIN);
        self.indented(&judged.found, QUIET);
    }

    /// A paragraph that continues a line at this column.
    fn wrapped(&mut self, text: &str, from: usize, ansi: Ansi) {
        let mut at = from;
        let mut line = " ".repeat(GAP);
        for (index, word) in text.split_whitespace().enumerate() {
            let length = word.chars().count();
            if index > 0 && at + 1 + length > WIDTH {
                self.painted(&line, ansi);
                self.text.push('\n');
                line = " ".repeat(GAP * 2);
                at = GAP * 2;
            } else if index > 0 {
                line.push(' ');
                at += 1;
            }
            line.push_str(word);
            at += length;
        }
        self.painted(&line, ansi);
        self.text.push('\n');
    }

    /// A paragraph of its own, set in.
    fn indented(&mut self, text: &str, ansi: Ansi) {
        self.text.push_str(&" ".repeat(GAP));
        self.wrapped(text, GAP * 2, ansi);
    }
}

/// A column's name in lines of at most 11 characters where it can be broken, behind underscores.
fn broken(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in name.split_inclusive('_') {
        match lines.last_mut().filter(|line| line.len() + part.len() <= 11) {
            Some(line) => line.push_str(part),
            None => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Nothing is written behind the last word of a line.
fn laid_out(cells: &[String], grid: &Grid, widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, ((cell, heading), width)) in cells.iter().zip(&grid.headings).zip(widths).enumerate() {
        let gap = if index == 0 { 0 } else { GAP };
        let _ = match heading.right {
            true => write!(line, "{:gap$}{cell:>width$}", ""),
            false => write!(line, "{:gap$}{cell:<width$}", ""),
        };
    }
    line.truncate(line.trim_end().len());
    line
}

//! Tables, summary and goals as text.

use anstyle::AnsiColor;
use trunkline_report::Screen;
use trunkline_report::text::{BOLD, Column, PLAIN, QUIET, Table, Text};
use trunkline_store::Backend;

use crate::compare::{ClassErrors, Errors, classes};
use crate::goals::{Judged, Outcome, judge, share, signed};
use crate::results::{Cell, Doubt, Results, Row, TableResults};
use crate::study::{Class, Metric, Reference, Study};

/// Columns by which what belongs to a title is indented.
const INDENT: usize = 4;

/// Every table, published against simulated: the key columns, and for each metric what was published, what was
/// simulated and the relative error. Metrics that do not fit beside each other follow below.
pub fn tables(results: &Results, screen: Screen) -> String {
    let mut out = Text::new(screen);
    for table in &results.tables {
        let origin = match table.table.reference {
            Reference::Published(_) => "",
            Reference::Own => " (ours; not in the paper)",
        };
        let measured = match table.on {
            Backend::Sim => "",
            Backend::Wire => ", measured on the wire",
            Backend::Live => ", measured live",
        };
        let title = format!("{}{measured}{origin}", table.table.title);
        out.labelled(&table.table.name, BOLD, INDENT, &title, PLAIN);
        out.table(&laid_out(table));
        let letters = letters(table);
        if !letters.is_empty() {
            out.paragraph(&letters, QUIET);
        }
        for mark in marks(table).lines() {
            out.paragraph(mark, QUIET);
        }
        for note in results.study.notes(&table.table.name) {
            out.indented(INDENT, &note.text, QUIET);
        }
        out.blank();
    }
    out.into()
}

/// Errors of each metric of each table, by class, and the goals.
pub fn summary(results: &Results, screen: Screen) -> String {
    let mut out = Text::new(screen);
    let lines = error_lines(results);
    if !lines.is_empty() {
        out.labelled("Relative errors", BOLD, 0, "of cells that were published and are not doubtful", PLAIN);
        let mut table = Table::new([
            Column::words("table").key(),
            Column::words("metric").key(),
            Column::words("class"),
            Column::numbers("cells"),
            Column::numbers("when blind"),
            Column::numbers("median"),
            Column::numbers("worst"),
            Column::words("at"),
        ]);
        lines.into_iter().for_each(|line| table.row(line));
        out.table(&table);
        out.blank();
        out.labelled("Classes", BOLD, 0, "each published cell once, over all columns", PLAIN);
        // The longest in two lines.
        let headings = CLASS_HEADINGS.map(|heading| {
            let lines: Vec<&str> = heading.split(": ").collect();
            Column::numbers("").headed(&lines)
        });
        let mut table = Table::new([Column::words("class").key()].into_iter().chain(headings));
        class_lines(results).into_iter().for_each(|line| table.row(line));
        out.table(&table);
        out.paragraph(&constants(results.study), PLAIN);
    }
    let judged = judge(results);
    for (formula, heading) in [(true, "Formulas"), (false, "Goals, of predicted and blind cells")] {
        let mut of_kind = judged.iter().filter(|judged| judged.formula == formula).peekable();
        if of_kind.peek().is_some() {
            if !out.is_empty() {
                out.blank();
            }
            out.paragraph(heading, BOLD);
            of_kind.for_each(|judged| goal(&mut out, judged));
        }
    }
    out.into()
}

/// The number of constants of a study.
pub(crate) fn constants(study: &Study) -> String {
    let counted = |count: usize| format!("{count} constant{}", if count == 1 { "" } else { "s" });
    let mut text = format!("{} taken from published cells", counted(study.constants()));
    if !study.elsewhere.is_empty() {
        text += &format!(", {} from elsewhere or assumed", study.elsewhere.len());
    }
    text + "."
}

/// Headings of [`class_lines`], but for the class.
pub(crate) const CLASS_HEADINGS: [&str; 6] =
    ["cells", "median", "worst", "when blind: median", "when blind: worst", "zero here, where published"];

/// Class, cells, median, worst, the same two of what was predicted when it was blind, and how many of
/// the cells that were published as zero are zero here.
pub(crate) fn class_lines(results: &Results) -> Vec<Vec<String>> {
    let dash = || "–".to_owned();
    let of = |errors: &Errors| {
        let median = errors.median.map_or_else(dash, share);
        [median, errors.worst.as_ref().map_or_else(dash, |(worst, _)| signed(*worst))]
    };
    let line = |of_class: ClassErrors| {
        let zeros = match of_class.errors.zeros {
            0 => dash(),
            zeros => format!("{} of {zeros}", of_class.errors.zeros_alike),
        };
        let start = [of_class.class.name().to_owned(), of_class.cells.to_string()];
        start.into_iter().chain(of(&of_class.errors)).chain(of(&of_class.when_blind)).chain([zeros]).collect()
    };
    classes(results).into_iter().map(line).collect()
}

fn goal(out: &mut Text, judged: &Judged) {
    let colour = match judged.outcome {
        Outcome::Met => AnsiColor::Green,
        Outcome::Missed => AnsiColor::Red,
        Outcome::NotJudged => AnsiColor::Yellow,
    };
    let verdict = format!("{} {}", judged.outcome.sign(), judged.outcome.word());
    out.labelled(&verdict, BOLD.fg_color(Some(colour.into())), INDENT, &judged.goal, PLAIN);
    out.indented(INDENT, &judged.found, QUIET);
}

/// The studies, for `trunkline papers`.
pub fn list(studies: &[Study], screen: Screen) -> String {
    let mut out = Text::new(screen);
    for study in studies {
        if !out.is_empty() {
            out.blank();
        }
        let title = format!("{}: {}, {}", study.authors, study.title, study.year);
        out.labelled(&study.name, BOLD, INDENT, &title, PLAIN);
        let tables: Vec<&str> = study.tables.iter().map(|table| table.name.as_str()).collect();
        let figures: Vec<String> = study.figures.iter().map(|figure| figure.number.to_string()).collect();
        let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        out.indented(INDENT, &study.reproduced, PLAIN);
        out.indented(INDENT, &format!("{}: {}", counted(tables.len(), "table"), tables.join(", ")), QUIET);
        out.indented(INDENT, &format!("{}: {}", counted(figures.len(), "figure"), figures.join(", ")), QUIET);
    }
    out.into()
}

/// The metrics of a table beside its keys.
fn laid_out(table: &TableResults) -> Table {
    let keys = table.table.keys.iter().enumerate().map(|(place, key)| {
        let is_number =
            table.rows.iter().all(|row| row.keys.0.get(place).is_some_and(|(_, key)| key.number().is_some()));
        let column = if is_number { Column::numbers("") } else { Column::words("") };
        column.headed(&broken(key)).key()
    });
    let mut laid_out = Table::new(keys);
    let published = table.table.reference.published().is_some();
    for metric in &table.table.metrics {
        let word = table.word(metric);
        let columns: &[&str] = if published { &["published", word, "error"] } else { &[word] };
        for (place, heading) in columns.iter().enumerate() {
            let column = Column::numbers(heading);
            let is_first = place == 0;
            laid_out.column(if is_first {
                column.titled(&metric.column, columns.len() + usize::from(published))
            } else {
                column
            });
        }
        if published {
            laid_out.column(Column::words(""));
        }
    }
    table.rows.iter().for_each(|row| laid_out.row(line(table, row, published)));
    laid_out
}

fn line(table: &TableResults, row: &Row, published: bool) -> Vec<String> {
    let mut line: Vec<String> = row.keys.0.iter().map(|(_, value)| value.to_string()).collect();
    for (metric, cell) in table.table.metrics.iter().zip(&row.cells) {
        if published {
            line.push(printed(cell));
        }
        line.push(simulated(cell, metric));
        if published {
            line.push(cell.error().map_or_else(|| "–".to_owned(), signed));
        }
        if published {
            line.push(in_brackets(cell, letter));
        }
    }
    line
}

/// A class in the width that tables have for it.
fn letter(class: Class) -> &'static str {
    match class {
        Class::Fitted => "f",
        Class::Structural => "s",
        Class::Predicted => "p",
        Class::Blind => "b",
        Class::Formula => "=",
    }
}

/// The meaning of the letters in a table.
fn letters(table: &TableResults) -> String {
    let has =
        |class: &Class| table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.class == Some(*class));
    let legend =
        Class::ALL.into_iter().filter(has).map(|class| format!("{} {}", letter(class), class.name()));
    legend.collect::<Vec<_>>().join(", ")
}

/// The class of a cell, in brackets if another cell says the same.
pub(crate) fn class(cell: &Cell) -> String {
    in_brackets(cell, Class::name)
}

fn in_brackets(cell: &Cell, word: fn(Class) -> &'static str) -> String {
    let word = cell.class.map_or("", word);
    if cell.repeats { format!("({word})") } else { word.to_owned() }
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
        text += "* legible, but the paper itself contradicts it\n";
    }
    if table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.repeats) {
        text += "( ) repeats another cell, not counted\n";
    }
    text
}

/// Table, metric, class, cells, the median when it was blind, median, worst, where: for every class of every metric that was
/// published, without repeats.
pub(crate) fn error_lines(results: &Results) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for table in results.tables.iter().filter(|table| table.table.reference.published().is_some()) {
        for metric in &table.table.metrics {
            for class in Class::ALL {
                let cells = || {
                    let all = table.cells::<&str, &str>(&[&metric.column], &[]);
                    let mine = all.filter(move |(_, cell)| cell.class == Some(class) && !cell.repeats);
                    mine.filter(|(_, cell)| cell.published.is_some())
                };
                if cells().next().is_some() {
                    let errors = Errors::of(cells().map(|(row, cell)| (row.keys.values(), cell)));
                    let when_blind: Vec<Cell> = cells().map(|(_, cell)| cell.when_blind()).collect();
                    let when_blind = Errors::of(when_blind.iter().map(|cell| (String::new(), cell)));
                    let head = [table.table.name.as_str(), &metric.column, class.name()];
                    lines.push(error_line(head, when_blind.median, errors));
                }
            }
        }
    }
    lines
}

fn error_line(head: [&str; 3], when_blind: Option<f64>, errors: Errors) -> Vec<String> {
    let (far, at) = errors.worst.map_or(("–".to_owned(), String::new()), |(far, at)| (signed(far), at));
    let left_out = errors.incomparable + errors.doubtful + errors.zeros;
    let cells = match left_out {
        0 => errors.compared.to_string(),
        _ => format!("{} of {}", errors.compared, errors.compared + left_out),
    };
    let median = |median: Option<f64>| median.map_or_else(|| "–".to_owned(), share);
    let behind = [cells, median(when_blind), median(errors.median), far, at];
    head.map(str::to_owned).into_iter().chain(behind).collect()
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

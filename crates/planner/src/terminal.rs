//! What was found, for a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_report::Style;

use crate::plan::Plan;
use crate::run::{Answer, Found};
use crate::search::Verdict;
use crate::text;

/// The answer: a sentence, or a table of one row per combination of what else is swept; then what it rests on.
pub fn terminal(plan: &Plan, found: &Found, style: Style) -> String {
    let bold = |text: &str| match style {
        Style::Plain => text.to_owned(),
        Style::Colour => format!("{0}{text}{0:#}", Ansi::new().bold()),
    };
    let quiet = |text: &str| match style {
        Style::Plain => text.to_owned(),
        Style::Colour => format!("{0}{text}{0:#}", Ansi::new().dimmed()),
    };
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", bold(&format!("{}: {}", found.run.name, text::question(plan))));
    let _ = writeln!(out, "{}\n", quiet(&text::method(plan)));
    match found.answers.as_slice() {
        [only] if plan.axes.is_empty() => {
            let _ = writeln!(out, "{}\n", bold(&capitalised(&text::answer(plan, found, only))));
            out += &rows(&trials(plan, found, only), style);
        }
        several => {
            out += &rows(&answers(plan, found), style);
            for answer in several.iter().filter(|answer| answer.needs_words()) {
                let _ = writeln!(
                    out,
                    "{}: {}",
                    text::combination(&plan.axes, &answer.choice, |_| true),
                    text::answer(plan, found, answer)
                );
            }
        }
    }
    out
}

/// A cell and whether it is good or bad news.
type Cell = (String, Option<Verdict>);

fn plain(text: impl Into<String>) -> Cell {
    (text.into(), None)
}

/// Every value that was measured, with each limit's figure.
fn trials(plan: &Plan, found: &Found, answer: &Answer) -> Vec<Vec<Cell>> {
    let mut head = vec![plain(text::short(plan.key.key())), plain("verdict"), plain("repetitions")];
    head.extend(found.limits.iter().map(|limit| plain(text::limit(limit))));
    let row = |trial: &crate::run::Trial| {
        let figures = found.limits.iter().zip(&trial.limits);
        let mut row = vec![
            plain(plan.key.written(trial.value)),
            (text::word(trial).to_owned(), trial.verdict),
            plain(trial.repetitions.to_string()),
        ];
        row.extend(figures.map(|(limit, judged)| plain(text::figure(limit, judged))));
        row
    };
    std::iter::once(head).chain(answer.trials.iter().map(row)).collect()
}

/// Every combination with its edge.
fn answers(plan: &Plan, found: &Found) -> Vec<Vec<Cell>> {
    let mut head: Vec<Cell> = plan.axes.iter().map(|axis| plain(text::heading(&plan.axes, axis))).collect();
    head.extend([plain("kept"), plain("not decided"), plain("broken"), plain("by")]);
    let row = |answer: &Answer| {
        let on_axis = plan.axes.iter().zip(&answer.choice);
        let mut row: Vec<Cell> = on_axis.map(|(axis, chosen)| plain(text::chosen(axis, *chosen))).collect();
        let written = |value: Option<u64>| value.map_or("–".to_owned(), |value| plan.key.written(value));
        row.extend([
            (written(answer.edge.kept), answer.edge.kept.map(|_| Verdict::Kept)),
            plain(text::undecided(plan, &answer.edge)),
            (written(answer.edge.broken), answer.edge.broken.map(|_| Verdict::Broken)),
            plain(text::reason(found, answer)),
        ]);
        row
    };
    std::iter::once(head).chain(found.answers.iter().map(row)).collect()
}

/// Columns as wide as their widest cell.
fn rows(rows: &[Vec<Cell>], style: Style) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.0.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (place, ((text, news), width)) in row.iter().zip(&widths).enumerate() {
            let gap = if place == 0 { "" } else { "  " };
            // The colour must not count as width.
            let padding = " ".repeat(width - text.chars().count());
            let painted = match (style, news) {
                (Style::Colour, Some(Verdict::Kept)) => paint(text, AnsiColor::Green),
                (Style::Colour, Some(Verdict::Broken)) => paint(text, AnsiColor::Red),
                _ => text.clone(),
            };
            line += &format!("{gap}{painted}{padding}");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn paint(text: &str, colour: AnsiColor) -> String {
    format!("{0}{text}{0:#}", Ansi::new().fg_color(Some(colour.into())))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

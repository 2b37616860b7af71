//! What was found, for a terminal.

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_report::Screen;
use trunkline_report::text::{BOLD, Cell, Column, PLAIN, QUIET, Table, Text};

use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::Verdict;
use crate::text;

/// The answer: a sentence, or a table of one row per combination of what else is swept; then what it rests on.
pub fn terminal(plan: &Plan, found: &Found, screen: Screen) -> String {
    let mut out = Text::new(screen);
    out.paragraph(&format!("{}: {}", found.run.name, text::question(plan)), BOLD);
    out.paragraph(&text::method(plan), QUIET);
    out.blank();
    match found.answers.as_slice() {
        [only] if plan.axes.is_empty() => {
            out.paragraph(&text::capitalised(&text::answer(plan, found, only)), BOLD);
            out.blank();
            out.table(&trials(plan, found, only));
        }
        several => {
            for sentence in crate::draws::sentences(plan, &found.answers) {
                out.paragraph(&text::capitalised(&sentence), BOLD);
            }
            out.table(&answers(plan, found));
            for answer in several.iter().filter(|answer| answer.needs_words()) {
                let combination = text::combination(&plan.axes, &answer.choice, |_| true);
                out.paragraph(&format!("{combination}: {}", text::answer(plan, found, answer)), PLAIN);
            }
        }
    }
    out.into()
}

/// Every value that was measured, with each limit's figure.
fn trials(plan: &Plan, found: &Found, answer: &Answer) -> Table {
    let mut table = Table::new([
        Column::words(text::short(plan.key.key())).key(),
        Column::words("verdict"),
        Column::numbers("repetitions"),
    ]);
    for limit in &found.limits {
        table.column(Column::words(text::limit(limit)));
    }
    for trial in &answer.trials {
        table.row(row(plan, found, trial));
    }
    table
}

fn row(plan: &Plan, found: &Found, trial: &Trial) -> Vec<Cell> {
    let figures = found.limits.iter().zip(&trial.limits);
    let mut row = vec![
        Cell::new(plan.key.written(trial.value)),
        judged(text::word(trial), trial.verdict),
        Cell::new(trial.repetitions.to_string()),
    ];
    row.extend(figures.map(|(limit, judged)| Cell::new(text::figure(limit, judged))));
    row
}

/// Every combination with its edge.
fn answers(plan: &Plan, found: &Found) -> Table {
    let keys = plan.axes.iter().map(|axis| Column::words(text::heading(&plan.axes, axis)).key());
    let mut table = Table::new(keys);
    for heading in ["kept", "not decided", "broken", "by"] {
        table.column(Column::words(heading));
    }
    for answer in &found.answers {
        let edge = &answer.edge;
        let written = |value: Option<u64>| value.map_or("–".to_owned(), |value| plan.key.written(value));
        let on_axis = plan.axes.iter().zip(&answer.choice);
        let mut row: Vec<Cell> =
            on_axis.map(|(axis, chosen)| Cell::new(text::chosen(axis, *chosen))).collect();
        row.extend([
            judged(&written(edge.kept), edge.kept.map(|_| Verdict::Kept)),
            Cell::new(text::undecided(plan, edge)),
            judged(&written(edge.broken), edge.broken.map(|_| Verdict::Broken)),
            Cell::new(text::reason(found, answer)),
        ]);
        table.row(row);
    }
    table
}

/// A cell in the colour of its verdict.
fn judged(text: &str, verdict: Option<Verdict>) -> Cell {
    let colour = match verdict {
        Some(Verdict::Kept) => Some(AnsiColor::Green.into()),
        Some(Verdict::Broken) => Some(AnsiColor::Red.into()),
        Some(Verdict::Undecided) | None => None,
    };
    Cell::new(text).painted(Ansi::new().fg_color(colour))
}

//! The advice, for a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_report::Style;

use crate::advice::{Advice, Recommendation};
use crate::words::{ms, percent, rate, way};

/// The advice as text of at most `width` columns where it has a choice.
pub fn terminal(advice: &Advice, style: Style, width: usize) -> String {
    let paint = |ansi: Ansi, text: &str| match style {
        Style::Plain => text.to_owned(),
        Style::Colour => format!("{ansi}{text}{ansi:#}"),
    };
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}\n", paint(Ansi::new().bold(), &title(advice)));
    for recommendation in &advice.recommendations {
        let choice = &recommendation.choice;
        let name = paint(Ansi::new().bold(), &format!("{:9}", choice.purpose));
        let _ = writeln!(out, "{name}  {}", paint(Ansi::new().bold(), &way(&choice.best)));
        for line in body(recommendation) {
            let _ = writeln!(out, "{}", wrapped(&line, INDENT, width));
        }
        for command in [&recommendation.answer, &recommendation.send] {
            // Never broken: it is there to be copied.
            let _ = writeln!(
                out,
                "{:INDENT$}{}",
                "",
                paint(Ansi::new().fg_color(Some(AnsiColor::Cyan.into())), command)
            );
        }
        out.push('\n');
    }
    for warning in &advice.warnings {
        let mark = paint(Ansi::new().bold().fg_color(Some(AnsiColor::Yellow.into())), "warning:");
        let _ = writeln!(out, "{mark} {}", wrapped(warning, 2, width).trim_start());
    }
    for (transport, why) in &advice.failed {
        let _ = writeln!(out, "{}", wrapped(&format!("{transport} was not measured: {why}"), 0, width));
    }
    if !advice.warnings.is_empty() || !advice.failed.is_empty() {
        out.push('\n');
    }
    out += &table(advice);
    out
}

/// Where text begins beside the name of a use.
const INDENT: usize = 11;

/// `Advice for studio.example.org, from 59.8 s of measuring`.
pub(crate) fn title(advice: &Advice) -> String {
    format!("Advice for {}, from {} of measuring", advice.host, advice.took)
}

fn body(recommendation: &Recommendation) -> Vec<String> {
    let best = &recommendation.choice.best;
    let mut lines = vec![
        format!(
            "{} from mouth to ear · {} concealed · MOS {:.2} · {}",
            ms(best.mouth_to_ear),
            percent(best.concealed),
            best.mos,
            rate(best.rate)
        ),
        recommendation.why.clone(),
    ];
    lines.extend(recommendation.runner_up_costs.iter().map(|costs| format!("Next: {costs}")));
    lines
}

/// The heads of the table of all that was measured, and its rows.
pub(crate) fn rows(advice: &Advice) -> ([&'static str; 7], Vec<[String; 7]>) {
    let row = |row: &crate::advice::Row| {
        let found = row.round_trips;
        let lost =
            trunkline_core::Ratio::new(found.lost as f64 / found.blocks.max(1) as f64).unwrap_or_default();
        [
            row.configuration.to_string(),
            found.blocks.to_string(),
            percent(lost),
            ms(found.fastest),
            ms(found.median),
            ms(found.p99),
            ms(found.deviation),
        ]
    };
    (
        ["round trips of", "blocks", "lost", "fastest", "median", "p99", "jitter"],
        advice.measured.iter().map(row).collect(),
    )
}

fn table(advice: &Advice) -> String {
    let (head, rows) = rows(advice);
    let all = || std::iter::once(head.map(str::to_owned)).chain(rows.iter().cloned());
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for row in all() {
        let mut cells = row.iter().zip(widths);
        if let Some((first, width)) = cells.next() {
            let _ = write!(out, "{first:width$}");
        }
        for (cell, width) in cells {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
    out
}

/// Lines of at most `width` columns, each indented.
fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let indented: Vec<String> = lines.iter().map(|line| format!("{:indent$}{line}", "")).collect();
    indented.join("\n")
}

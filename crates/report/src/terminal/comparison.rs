//! Two runs beside each other.

use trunkline_store::RunInfo;

use crate::compare::{Comparison, Difference};
use crate::text::{BOLD, Cell, Column, QUIET, Screen, Table, Text};
use crate::units::Readable as _;

/// More points that only one of the runs has are counted, not named.
const UNMATCHED: usize = 6;

/// A comparison: of every flow at every point the most telling figures, or `all` of them.
pub fn terminal_comparison(comparison: &Comparison, all: bool, screen: Screen) -> String {
    let mut out = Text::new(screen);
    let about = |info: &RunInfo| format!("run {} ({} on {})", info.id, info.name, info.backend.name());
    out.paragraph(&format!("{} and {}", about(&comparison.run), about(&comparison.with)), BOLD);
    if !comparison.same_experiment {
        out.paragraph(
            "They ran different files, or the same file with another seed or other settings: this compares the points and \
             flows that both have.",
            QUIET,
        );
    }
    let is_shown = |row: &&Difference| all || row.is_telling();
    let rows: Vec<&Difference> = comparison.rows.iter().filter(is_shown).collect();
    for rows in rows.chunk_by(|a, b| (&a.point, &a.flow) == (&b.point, &b.flow)) {
        out.blank();
        let heading = match rows {
            [Difference { point, flow, .. }, ..] if !point.is_empty() => format!("{flow}, {point}"),
            [Difference { flow, .. }, ..] => flow.clone(),
            [] => continue,
        };
        out.paragraph(&heading, BOLD);
        let [run, with] = [&comparison.run, &comparison.with].map(|info| format!("run {}", info.id));
        let mut table = Table::new([
            Column::words("figure").key(),
            Column::numbers(&run),
            Column::numbers(&with),
            Column::numbers("relative difference"),
            Column::words(""),
        ]);
        rows.iter().for_each(|row| table.row(line(row)));
        out.table(&table);
    }
    out.blank();
    if rows.is_empty() {
        out.paragraph("They have no point and flow in common.", QUIET);
    } else if rows.iter().any(|row| row.is_significant().is_some()) {
        out.paragraph("*: significant, with 95 % confidence (Welch's t-interval)", QUIET);
    }
    if rows.iter().any(|row| row.is_significant().is_none()) {
        out.paragraph("~: without repetitions in both runs, the difference may be chance", QUIET);
    }
    if rows.iter().any(|row| row.outside_model.0 || row.outside_model.1) {
        out.paragraph("?: extrapolated beyond the range of the E-model (ITU-T G.107)", QUIET);
    }
    for point in comparison.unmatched.iter().take(UNMATCHED) {
        out.paragraph(&format!("only in {point}"), QUIET);
    }
    let left_out = comparison.unmatched.len().saturating_sub(UNMATCHED);
    if left_out > 0 {
        out.paragraph(&format!("{left_out} more in one of the runs only; --json names all."), QUIET);
    }
    out.into()
}

/// A relative difference with its sign, and a bound instead of one that rounds to zero.
fn percent(share: f64) -> String {
    match (1000.0 * share).round() {
        _ if share == 0.0 => "0 %".to_owned(),
        0.0 => "< 0.1 %".to_owned(),
        tenths => format!("{:+.1} %", tenths / 10.0),
    }
}

fn line(row: &Difference) -> Vec<Cell> {
    let shown = row.figure;
    let sign = match row.is_significant() {
        None => "~",
        Some(true) => "*",
        Some(false) => "",
    };
    let relative = row.relative.map_or("–".to_owned(), percent);
    // In one unit, so that the two numbers compare as they stand.
    let unit = shown.quantity.unit(row.run.mean.abs().max(row.with.mean.abs()));
    let marked = |estimate, is_outside| {
        let mark = if is_outside { "?" } else { "" };
        Cell::new(format!("{}{mark}", shown.quantity.show_estimate_in(estimate, unit)))
    };
    vec![
        Cell::new(shown.name),
        marked(&row.run, row.outside_model.0),
        marked(&row.with, row.outside_model.1),
        Cell::new(relative),
        Cell::new(sign),
    ]
}

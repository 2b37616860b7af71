//! Bundles, and their connections by transport.

use super::{Cell, Column, QUIET, ROWS, Table, Text, keys, number, say_left_out, values};
use crate::bundles::{all_rows, figure, scale};
use crate::view::{Side, View};

/// Heading, the figure of a bundle as a whole and of its connections.
const COLUMNS: &[(&str, &[&str])] = &[
    ("user", &["throughput_user", "connection_throughput"]),
    ("least", &["connection_throughput_min"]),
    ("most", &["connection_throughput_max"]),
    ("fairness", &["fairness"]),
    ("loss", &["connection_loss"]),
    ("unfinished", &["connection_unfinished"]),
    ("refused", &["connection_refused"]),
    ("mean", &["connection_latency_mean"]),
    ("p99.9", &["connection_latency_p999"]),
];

/// Figures without which most runs do.
const ONLY_IF_ANY: &[&str] = &["unfinished", "refused"];

/// The figures that are shown in one unit.
const ALIKE: &[&[&str]] = &[
    &["throughput_user", "connection_throughput", "connection_throughput_min", "connection_throughput_max"],
    &["connection_latency_mean", "connection_latency_p999"],
];

/// The table of bundles; nothing without any.
pub(super) fn table(out: &mut Text, view: &View, side: &Side) {
    let mut rows = all_rows(view, side);
    rows.retain(|(_, row)| row.members > 0);
    if rows.is_empty() {
        return;
    }
    let shown = if out.screen().width.is_some() { ROWS } else { rows.len() };
    let left_out = rows.len().saturating_sub(shown);
    rows.truncate(shown);
    let scale_of = |ids: &[&str]| {
        let alike = ALIKE.iter().find(|alike| alike.contains(&ids[0]));
        scale(rows.iter().map(|(_, row)| row), alike.copied().unwrap_or(ids))
    };
    let is_any = |ids: &[&str]| {
        let figures = rows.iter().filter_map(|(_, row)| row.estimate(ids[0]));
        figures.map(|figure| figure.mean).any(|mean| mean > 0.0)
    };
    let shown = COLUMNS.iter().filter(|(heading, ids)| !ONLY_IF_ANY.contains(heading) || is_any(ids));
    let columns: Vec<_> = shown.map(|(heading, ids)| (heading, ids, scale_of(ids))).collect();
    let mut table = Table::new(keys(view));
    table.column(Column::words("bundle").key());
    let mut named = "";
    for (heading, _, scale) in &columns {
        // Said once for columns that follow each other: there are many.
        let unit = if scale.heading() == named { "" } else { scale.heading() };
        table.column(Column::numbers(format!("{heading} {unit}").trim_end()));
        named = scale.heading();
    }
    for (point, row) in &rows {
        let mut cells = values(view, point);
        let way = if row.is_round_trip() { " rtt" } else { "" };
        cells.push(Cell::new(match row.class {
            Some(_) => format!("→ {}{way}", row.carried_by()),
            None => row.bundle.to_owned(),
        }));
        for (_, ids, scale) in &columns {
            let estimate = ids.iter().find_map(|id| row.estimate(id));
            cells.push(number(estimate, figure(ids[0]).quantity, *scale));
        }
        table.row(cells);
    }
    out.blank();
    out.table(&table);
    say_left_out(out, left_out, side);
    out.paragraph(
        "of a bundle the throughput of all its flows; of a transport means over its connections",
        QUIET,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundles::figure;

    #[test]
    fn every_column_is_of_figures_that_there_are() {
        for id in COLUMNS.iter().map(|(_, ids)| ids).chain(ALIKE).copied().flatten() {
            assert_eq!(figure(id).id, *id);
        }
    }
}

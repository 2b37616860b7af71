//! Bundles, and their connections by transport.

use super::{Cell, Column, Printer, QUIET, ROWS, Table, number, short_keys, values};
use crate::bundles::{all_rows, unit};
use crate::view::{Side, View};

/// Heading, the figure of a bundle as a whole and of its connections.
const COLUMNS: &[(&str, &[&str])] = &[
    ("user", &["throughput_user", "connection_throughput"]),
    ("least", &["connection_throughput_min"]),
    ("most", &["connection_throughput_max"]),
    ("fairness", &["fairness"]),
    ("loss", &["connection_loss"]),
    ("mean", &["connection_latency_mean"]),
    ("p99.9", &["connection_latency_p999"]),
];

/// The figures that are shown in one unit.
const ALIKE: &[&[&str]] = &[
    &["throughput_user", "connection_throughput", "connection_throughput_min", "connection_throughput_max"],
    &["connection_latency_mean", "connection_latency_p999"],
];

/// The table of bundles; nothing without any.
pub(super) fn table(out: &mut Printer, view: &View, side: &Side) {
    let mut rows = all_rows(view, side);
    rows.retain(|(_, row)| row.members > 0);
    if rows.is_empty() {
        return;
    }
    let left_out = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let unit_of = |ids: &[&str]| {
        let alike = ALIKE.iter().find(|alike| alike.contains(&ids[0]));
        unit(rows.iter().map(|(_, row)| row), alike.copied().unwrap_or(ids))
    };
    let columns: Vec<_> = COLUMNS.iter().map(|(heading, ids)| (heading, ids, unit_of(ids))).collect();
    let mut table = Table::default();
    table.columns.extend(short_keys(view.axes()).into_iter().map(|key| Column::new(Cell::left(key))));
    table.columns.push(Column::new(Cell::left("bundle")));
    let mut shown = "";
    for (heading, _, unit) in &columns {
        // Said once for columns that follow each other: there are many.
        let name = if unit.name == shown { "" } else { unit.name };
        table.columns.push(Column::new(Cell::right(format!("{heading} {name}").trim_end())));
        shown = unit.name;
    }
    for (point, row) in &rows {
        let mut cells = values(view, point);
        let way = if row.is_round_trip() { " rtt" } else { "" };
        cells.push(Cell::left(&match row.class {
            Some(_) => format!("→ {}{way}", row.carried_by()),
            None => row.bundle.to_owned(),
        }));
        for (_, ids, unit) in &columns {
            cells.push(number(ids.iter().find_map(|id| row.estimate(id)), *unit));
        }
        table.rows.push(cells);
    }
    out.text.push('\n');
    out.table(table);
    if left_out > 0 {
        out.wrapped(&format!("{left_out} more rows stand in the report."), QUIET);
    }
    out.wrapped(
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

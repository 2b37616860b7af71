//! Bundles, and their connections by transport.

use trunkline_metrics::figures::{FigureKind, bundle};

use super::{Cell, Column, QUIET, ROWS, Table, Text, keys, number, say_left_out, values};
use crate::bundles::{all_rows, scale};
use crate::view::{Side, View};

/// Heading, the figure of a bundle as a whole and of its connections.
const COLUMNS: &[(&str, &[&FigureKind])] = &[
    ("user", &[bundle("throughput_user"), bundle("connection_throughput")]),
    ("least", &[bundle("connection_throughput_min")]),
    ("most", &[bundle("connection_throughput_max")]),
    ("fairness", &[bundle("fairness")]),
    ("loss", &[bundle("connection_loss")]),
    ("unfinished", &[bundle("connection_unfinished")]),
    ("refused", &[bundle("connection_refused")]),
    ("mean", &[bundle("connection_latency_mean")]),
    ("p99.9", &[bundle("connection_latency_p999")]),
];

/// Figures without which most runs do.
const ONLY_IF_ANY: &[&str] = &["unfinished", "refused"];

/// The figures that are shown in one unit.
const ALIKE: &[&[&FigureKind]] = &[
    &[
        bundle("throughput_user"),
        bundle("connection_throughput"),
        bundle("connection_throughput_min"),
        bundle("connection_throughput_max"),
    ],
    &[bundle("connection_latency_mean"), bundle("connection_latency_p999")],
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
    let scale_of = |figures: &[&'static FigureKind]| {
        let alike = ALIKE.iter().find(|alike| alike.contains(&figures[0]));
        scale(rows.iter().map(|(_, row)| row), alike.copied().unwrap_or(figures))
    };
    let is_any = |figures: &[&'static FigureKind]| {
        let estimates = rows.iter().filter_map(|(_, row)| row.estimate(figures[0]));
        estimates.map(|estimate| estimate.mean).any(|mean| mean > 0.0)
    };
    let shown = COLUMNS.iter().filter(|(heading, figures)| !ONLY_IF_ANY.contains(heading) || is_any(figures));
    let columns: Vec<_> = shown.map(|(heading, figures)| (heading, figures, scale_of(figures))).collect();
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
        for (_, figures, scale) in &columns {
            let estimate = figures.iter().find_map(|figure| row.estimate(figure));
            cells.push(number(estimate, figures[0].quantity, *scale));
        }
        table.row(cells);
    }
    out.blank();
    out.table(&table);
    say_left_out(out, left_out, side);
    out.paragraph("bundle: throughput of all its flows; transport: means over its connections", QUIET);
}

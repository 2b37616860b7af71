//! What media as a whole have to tell; their stations are for the report.

use super::{Cell, Column, Printer, QUIET, ROWS, Table, number, short_keys, values};
use crate::media::{Medium, tables as media_tables};
use crate::view::{Side, View};

/// As many columns fit beside swept values.
const COLUMNS: usize = 4;

/// A table per kind of medium.
pub(super) fn tables(out: &mut Printer, view: &View, side: &Side) {
    for rows in media_tables(view, std::slice::from_ref(side)) {
        let first: &Medium = &rows[0].1;
        if first.station.is_some() {
            continue;
        }
        let mut table = Table::default();
        table.columns.extend(short_keys(view.axes()).into_iter().map(|key| Column::new(Cell::left(key))));
        table.columns.push(Column::new(Cell::left("medium")));
        if view.is_swept() && first.figures.len() <= COLUMNS {
            let units = crate::media::units(&rows);
            for (figure, unit) in first.figures.iter().zip(&units) {
                let heading = format!("{} {}", figure.words(), unit.name);
                table.columns.push(Column::new(Cell::right(heading.trim_end())));
            }
            for (point, medium) in &rows {
                let mut row = values(view, point);
                row.push(Cell::left(medium.name));
                row.extend(medium.figures.iter().zip(&units).map(|(f, unit)| number(f.estimate, *unit)));
                table.rows.push(row);
            }
        } else {
            table.columns.extend([Cell::left("figure"), Cell::right("value")].map(Column::new));
            for (point, medium) in &rows {
                for figure in &medium.figures {
                    let mut row = values(view, point);
                    let value = figure.estimate.map_or("–".to_owned(), |e| figure.quantity.show(e.mean));
                    row.extend([Cell::left(medium.name), Cell::left(&figure.words()), Cell::right(&value)]);
                    table.rows.push(row);
                }
            }
        }
        let left_out = table.rows.len().saturating_sub(ROWS);
        table.rows.truncate(ROWS);
        out.text.push('\n');
        out.table(table);
        if left_out > 0 {
            out.wrapped(&format!("{left_out} more rows stand in the report."), QUIET);
        }
    }
}

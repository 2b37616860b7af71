//! What media as a whole have to tell; their stations are for the report.

use super::{Cell, Column, ROWS, Table, Text, keys, number, say_left_out, values};
use crate::media::{Medium, tables as media_tables};
use crate::units::Readable as _;
use crate::view::{Side, View};

/// As many columns fit beside swept values.
const COLUMNS: usize = 4;

/// A table per kind of medium.
pub(super) fn tables(out: &mut Text, view: &View, side: &Side) {
    for rows in media_tables(view, std::slice::from_ref(side)) {
        let first: &Medium = &rows[0].1;
        if first.station.is_some() {
            continue;
        }
        let mut table = Table::new(keys(view));
        table.column(Column::words("medium").key());
        let mut lines = Vec::new();
        if view.is_swept() && first.figures.len() <= COLUMNS {
            let scales = crate::media::scales(&rows);
            for (figure, scale) in first.figures.iter().zip(&scales) {
                table.column(Column::numbers(format!("{} {}", figure.words(), scale.heading()).trim_end()));
            }
            for (point, medium) in &rows {
                let mut row = values(view, point);
                row.push(Cell::new(medium.name));
                let figures = medium.figures.iter().zip(&scales);
                row.extend(figures.map(|(f, scale)| number(f.estimate, f.quantity, *scale)));
                lines.push(row);
            }
        } else {
            table.column(Column::words("figure").key());
            table.column(Column::numbers("value"));
            for (point, medium) in &rows {
                for figure in &medium.figures {
                    let mut row = values(view, point);
                    let value = figure.estimate.map_or("–".to_owned(), |e| figure.quantity.show(e.mean));
                    row.extend([Cell::new(medium.name), Cell::new(figure.words()), Cell::new(value)]);
                    lines.push(row);
                }
            }
        }
        let shown = if out.screen().width.is_some() { ROWS } else { lines.len() };
        let left_out = lines.len().saturating_sub(shown);
        lines.into_iter().take(shown).for_each(|row| table.row(row));
        out.blank();
        out.table(&table);
        say_left_out(out, left_out, side);
    }
}

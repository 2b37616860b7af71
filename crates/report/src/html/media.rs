//! Tables of what only some kinds of media have to tell.

use maud::{Markup, html};
use trunkline_store::StoredPoint;

use super::tables::{LONG, axis_headings, axis_values, cell};
use crate::media::{Medium, definition, scales, tables};
use crate::view::View;

/// One table per kind of medium, and one for the stations of that kind; empty if no medium has anything to tell.
pub(super) fn section(view: &View) -> Markup {
    let tables = tables(view, &view.sides);
    if tables.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="media" {
            h2 id="media" { "Media" }
            @for (number, rows) in tables.iter().enumerate() { (table(view, number, rows)) }
        }
    }
}

fn table(view: &View, number: usize, rows: &[(&StoredPoint, Medium)]) -> Markup {
    let first = &rows[0].1;
    let has_stations = first.station.is_some();
    let what = if has_stations { "Each station" } else { "Each medium as a whole" };
    let scales = scales(rows);
    html! {
        div.scroll.long[rows.len() > LONG] tabindex="0" role="region" aria-label=(what) {
            table.data data-name={ "media-" (number) } {
                caption { span { (what) "." } }
                thead {
                    tr {
                        (axis_headings(view))
                        th scope="col" { "medium" }
                        @if has_stations { th scope="col" { "station" } }
                        @for (figure, scale) in first.figures.iter().zip(&scales) {
                            th.number.narrow scope="col" {
                                @match definition(figure.name) {
                                    Some(definition) => a href={ "#def-" (definition.id) } { (figure.words()) },
                                    None => (figure.words()),
                                }
                                " " span.unit { (scale.heading()) }
                            }
                        }
                    }
                }
                tbody {
                    @for (point, medium) in rows {
                        tr {
                            (axis_values(view, point))
                            th scope="row" { (medium.name) }
                            @if let Some(station) = medium.station { td.value { (station) } }
                            @for (figure, scale) in medium.figures.iter().zip(&scales) {
                                (cell(figure.quantity, *scale, figure.estimate))
                            }
                        }
                    }
                }
            }
        }
    }
}

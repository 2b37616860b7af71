//! The table of bundles.

use maud::{Markup, html};
use trunkline_metrics::figures::{FigureKind, bundle};

use super::tables::{LONG, axis_headings, axis_values, cell};
use crate::bundles::{all_rows, scale};
use crate::view::View;

/// A column group: heading and columns as (heading, figure), written in the same way.
const GROUPS: &[(&str, &[(&str, &FigureKind)])] = &[
    ("all flows", &[("user", bundle("throughput_user")), ("network", bundle("throughput_network"))]),
    (
        "throughput of a connection",
        &[
            ("mean", bundle("connection_throughput")),
            ("least", bundle("connection_throughput_min")),
            ("most", bundle("connection_throughput_max")),
        ],
    ),
    ("fairness", &[("Jain", bundle("fairness"))]),
    ("loss", &[("mean", bundle("connection_loss")), ("most", bundle("connection_loss_max"))]),
    (
        "unfinished",
        &[("mean", bundle("connection_unfinished")), ("most", bundle("connection_unfinished_max"))],
    ),
    ("refused", &[("mean", bundle("connection_refused")), ("most", bundle("connection_refused_max"))]),
    (
        "latency mean",
        &[
            ("mean", bundle("connection_latency_mean")),
            ("least", bundle("connection_latency_mean_min")),
            ("most", bundle("connection_latency_mean_max")),
        ],
    ),
    (
        "latency p99.9",
        &[
            ("mean", bundle("connection_latency_p999")),
            ("least", bundle("connection_latency_p999_min")),
            ("most", bundle("connection_latency_p999_max")),
        ],
    ),
];

/// Groups without which most runs do.
const ONLY_IF_ANY: &[&str] = &["unfinished", "refused"];

/// Per point, bundle and side: the bundle as a whole, then its connections by transport. Empty without bundles.
pub(super) fn section(view: &View) -> Markup {
    let rows: Vec<_> = view
        .sides
        .iter()
        .flat_map(|side| all_rows(view, side).into_iter().map(move |(point, row)| (side, point, row)))
        .collect();
    if rows.is_empty() {
        return html! {};
    }
    let several = view.sides.len() > 1;
    let is_any = |columns: &[(&str, &FigureKind)]| {
        let figures =
            rows.iter().flat_map(|(_, _, row)| columns.iter().filter_map(|(_, figure)| row.estimate(figure)));
        figures.map(|figure| figure.mean).any(|mean| mean > 0.0)
    };
    let is_shown = |(heading, columns): &&(&str, &[(&str, &FigureKind)])| {
        !ONLY_IF_ANY.contains(heading) || is_any(columns)
    };
    let groups: Vec<_> = GROUPS.iter().filter(is_shown).collect();
    let columns = groups.iter().flat_map(|(_, columns)| {
        let figures: Vec<&FigureKind> = columns.iter().map(|(_, figure)| *figure).collect();
        let scale = scale(rows.iter().map(|(_, _, row)| row), &figures);
        columns.iter().map(move |(heading, figure)| (*heading, *figure, scale))
    });
    let columns: Vec<_> = columns.collect();
    html! {
        section aria-labelledby="bundles" {
            h2 id="bundles" { "Bundles" }
            div.scroll.long[rows.len() > LONG] tabindex="0" role="region" aria-label="Figures of each bundle" {
                table.data.stacked data-name="bundles" {
                    caption { span { "Each bundle, and its connections by transport: means and extremes over connections." } }
                    thead {
                        tr {
                            td colspan=(view.axes().len() + 1 + usize::from(several)) {}
                            @for (heading, columns) in &groups {
                                th.group scope="colgroup" colspan=(columns.len()) { (heading) }
                            }
                        }
                        tr {
                            (axis_headings(view))
                            th scope="col" { a href="#def-bundle" { "bundle" } }
                            @if several { th scope="col" { "on" } }
                            @for (heading, figure, scale) in &columns {
                                th.number scope="col" {
                                    a href={ "#def-" (figure.definition.id) } title=(figure.name) { (heading) }
                                    @if !scale.heading().is_empty() { " " span.unit { (scale.heading()) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (side, point, row) in &rows {
                            tr.first[row.class.is_none()].sink[row.class.is_some()] {
                                (axis_values(view, point))
                                th scope="row" {
                                    @if row.class.is_some() { span.of { (row.bundle) " → " } (row.carried_by()) }
                                    @else { (row.bundle) }
                                    @if row.is_round_trip() { " " span.way { "round trip" } }
                                }
                                @if several { td { (side.label) } }
                                @for (_, figure, scale) in &columns {
                                    (cell(figure.quantity, *scale, row.estimate(figure)))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn every_column_is_on_the_page_under_its_name() {
        let mut run = fixtures::bundles();
        let summaries =
            run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut());
        for class in summaries.flat_map(|s| &mut s.bundles).flat_map(|b| &mut b.classes) {
            (class.unfinished, class.refused) = (class.loss, class.loss);
        }
        let page = section(&View::new(&run, None)).into_string();
        for (_, figure) in GROUPS.iter().flat_map(|(_, columns)| *columns) {
            assert!(page.contains(&format!("title=\"{}\"", figure.name)), "{}", figure.id);
        }
    }
}

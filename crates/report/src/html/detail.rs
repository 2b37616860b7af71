//! Behind the first tables: every figure of every flow, and what the machine did.

use maud::{Markup, html};
use trunkline_metrics::Estimate;
use trunkline_metrics::figures::of_flows;

use super::tables::{cell, cell_of};
use crate::units::{Quantity, Readable as _, Scale, grouped};
use crate::view::{Subject, View, point_name, shown_on};

/// More tables than this are not opened by anyone; CSV and JSON have them all.
const POINTS: usize = 24;

/// One table per point: figures down, flows and sides across.
pub(super) fn every_figure(view: &View) -> Markup {
    if view.flows.is_empty() {
        return html! {};
    }
    let all = view.points().len();
    html! {
        section aria-labelledby="detail" {
            h2 id="detail" { "Every figure" }
            @if all > POINTS {
                p.aside { "The first " (POINTS) " of " (all) " points; " code { "--csv" } " and " code { "--json" } " have them all." }
            }
            @for point in view.points().iter().take(POINTS) {
                @let name = point_name(point, view.axes());
                details {
                    summary { @if name.is_empty() { "All definitions, all flows" } @else { (name) } }
                    (of_point(view, point.index, &name))
                }
            }
        }
    }
}

fn of_point(view: &View, point: u32, name: &str) -> Markup {
    let sinks =
        |flow, side: usize| view.sides[side].shown(point, flow).0.into_iter().map(move |sink| (sink, side));
    let of_flow = |flow, side| std::iter::once((Subject::flow(flow), side)).chain(sinks(flow, side));
    let sides = |flow| (0..view.sides.len()).flat_map(move |side| of_flow(flow, side));
    let columns: Vec<(Subject, usize)> = view.flows.iter().flat_map(|flow| sides(*flow)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Every figure " (name) } {
            table.data data-name={ "figures-" (point) } {
                thead {
                    tr {
                        th scope="col" { "figure" }
                        @for (subject, side) in &columns {
                            th.number scope="col" { (subject.name()) @if view.sides.len() > 1 { ", " (view.sides[*side].label) } }
                        }
                    }
                }
                tbody {
                    @for metric in of_flows() {
                        @let row: Vec<Option<Estimate>> =
                            columns.iter().map(|(subject, side)| view.sides[*side].estimate_of(point, *subject, metric)).collect();
                        @if row.iter().any(Option::is_some) {
                            @let scale = Scale::of(metric.quantity, row.iter().flatten().map(|e| e.mean));
                            tr {
                                th scope="row" {
                                    a href={ "#def-" (metric.definition.id) } { (metric.name) }
                                    @if !scale.heading().is_empty() { " " span.unit { (scale.heading()) } }
                                }
                                @for (estimate, (subject, side)) in row.into_iter().zip(&columns) {
                                    @let is_outside = view.sides[*side].is_outside_model(point, subject.flow, metric);
                                    (cell_of(metric.quantity, scale, estimate, if is_outside { "?" } else { "" }, false))
                                }
                            }
                        }
                    }
                    @for counter in transport_counters(view, point) {
                        tr {
                            th scope="row" { "transport: " (counter) }
                            @for (subject, side) in &columns {
                                @let values = view.sides[*side].flow(point, subject.flow).into_iter()
                                    .filter(|_| subject.sink.is_none()).map(|f| f.transport_counters.get(counter).map(|n| *n as f64));
                                (cell(Quantity::Count, Scale::Shared(Quantity::Count.unit(0.0)), crate::view::over_repetitions(values)))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn transport_counters<'a>(view: &View<'a>, point: u32) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for side in &view.sides {
        for flow in &view.flows {
            for summary in side.flow(point, flow) {
                names.extend(summary.transport_counters.keys().map(String::as_str));
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// What the machine did while it measured: one row per repetition that was measured in real time.
pub(super) fn stalls(view: &View) -> Markup {
    let sides: Vec<_> = view.sides.iter().filter(|s| !s.stalls().is_empty()).collect();
    if sides.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="stalls" {
            h2 id="stalls" { "Stalls of this machine" }
            p.aside {
                "Periods in which the machine did not run a " a href="#def-stalls" { "probe" } " that was ready to run. "
                "A latency tail that is no longer than these may not come from the network."
            }
            @for side in sides {
                @let stalls = side.stalls();
                @let thresholds: Vec<_> = stalls.first().map(|(_, _, s)| s.gaps.iter().map(|(t, _)| *t).collect()).unwrap_or_default();
                div.scroll.long[stalls.len() > super::tables::LONG] tabindex="0" role="region" aria-label={ "Stalls, " (side.label) } {
                    table.data data-name={ "stalls-" (side.info().id) } {
                        caption { span { (side.label) ", run " (side.info().id) ": gaps longer than …" } }
                        thead {
                            tr {
                                @if view.is_swept() { th scope="col" { "point" } }
                                th.number scope="col" { "repetition" }
                                th scope="col" { "probe" }
                                th.number scope="col" { "watched" }
                                @for threshold in &thresholds { th.number scope="col" { "> " (micro(&threshold.to_string())) } }
                                th.number scope="col" { "longest" }
                                th.number scope="col" { "share of time" }
                            }
                        }
                        tbody {
                            @for (point, repetition, summary) in &stalls {
                                tr {
                                    @if view.is_swept() { td { (short_point(view, *point)) } }
                                    td.number { (repetition + 1) }
                                    td { (summary.probe) }
                                    td.number data-v=(summary.watched.as_secs_f64()) { (summary.watched) }
                                    @for threshold in &thresholds {
                                        @let count = summary.gaps.iter().find(|(t, _)| t == threshold).map(|(_, n)| *n);
                                        td.number data-v=[count] { (count.map_or("–".to_owned(), |n| grouped(&n.to_string()))) }
                                    }
                                    td.number data-v=(summary.longest.as_secs_f64()) { (micro(&summary.longest.to_string())) }
                                    td.number data-v=(summary.share.value()) { (summary.share) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The report writes `µs` everywhere; a file is typed with `us`.
fn micro(text: &str) -> String {
    text.replace(" us", " µs")
}

fn short_point(view: &View, index: u32) -> String {
    let Some(point) = view.points().iter().find(|p| p.index == index) else { return index.to_string() };
    let values: Vec<String> = (0..view.axes().len()).map(|i| shown_on(point, view.axes(), i)).collect();
    values.join(", ")
}

//! The table of flows and the table of links.

use std::collections::BTreeMap;

use maud::{Markup, html};
use trunkline_metrics::figures::{FigureKind, flow, link as link_figure};
use trunkline_metrics::{Estimate, Measured};
use trunkline_store::StoredPoint;

use crate::units::{Quantity, Readable as _, Scale};
use crate::view::{Side, Subject, View, axis_name, is_cut_short, over_repetitions, shown_on};

/// A column group of the flow table: heading and columns as (heading, metric).
const GROUPS: &[(&str, &[(&str, &FigureKind)])] = &[
    ("throughput", &[("user", flow("throughput_user")), ("network", flow("throughput_network"))]),
    ("transfers", &[("mean", flow("transfer_rate_mean")), ("all channels", flow("transfer_rate_total"))]),
    (
        "not in time",
        &[
            ("loss", flow("loss")),
            ("unfinished", flow("unfinished_share")),
            ("refused", flow("refused_share")),
            ("late", flow("late")),
        ],
    ),
    (
        "latency",
        &[
            ("mean", flow("latency_mean")),
            ("p50", flow("latency_p50")),
            ("p99", flow("latency_p99")),
            ("p99.9", flow("latency_p999")),
            ("±\nclocks", flow("clock_error")),
        ],
    ),
    (
        "jitter",
        &[
            ("mean abs.\ndeviation", flow("jitter_mean_absolute_deviation")),
            ("RFC 3550", flow("jitter_interarrival")),
        ],
    ),
    (
        "voice path",
        &[
            ("start-up,\nmean", flow("start_up_mean")),
            ("margin,\nmean", flow("margin_mean")),
            ("margin,\nminimum", flow("margin_min")),
            ("silence", flow("silence")),
        ],
    ),
    (
        "FIFOs",
        &[
            ("A/D\noverflows", flow("capture_overflows")),
            ("D/A\nunderflows", flow("underflows")),
            ("D/A\noverflows", flow("playback_overflows")),
            ("samples\nlost", flow("samples_lost")),
        ],
    ),
    (
        "quality",
        &[
            ("affected", flow("affected")),
            ("MOS", flow("mos")),
            ("R", flow("r")),
            ("mouth\nto ear", flow("mouth_to_ear")),
            ("not heard\n(Ppl)", flow("ppl")),
            ("burst\nratio", flow("burst_r")),
        ],
    ),
    (
        "messages",
        &[
            ("sent", flow("sent")),
            ("received", flow("received")),
            ("lost", flow("lost")),
            ("unfinished", flow("unfinished")),
            ("refused", flow("refused")),
        ],
    ),
];

/// Figures without which most runs do.
const ONLY_IF_ANY: &[&FigureKind] =
    &[flow("unfinished_share"), flow("refused_share"), flow("unfinished"), flow("refused")];

/// Tables longer than this scroll within the page, under headings that stay; shorter ones show all rows.
pub(super) const LONG: usize = 200;

/// The caption of the flows.
const MARKS: &str = "Each flow at each point. ≈ marks percentiles from a histogram (within 0.1 %), ? values outside the \
                     E-model's range.";
const ON_PAPER: &str = " Counts are in the file itself.";

struct Column {
    heading: &'static str,
    metric: &'static FigureKind,
    scale: Scale,
}

/// Per point, flow and side: what an engineer asks first.
pub(super) fn flows(view: &View) -> Markup {
    let groups: Vec<(&str, Vec<Column>)> = GROUPS
        .iter()
        .map(|(heading, columns)| (*heading, shown_columns(view, columns)))
        .filter(|(_, columns)| !columns.is_empty())
        .collect();
    let rows = view.points().len() * view.flows.len() * view.sides.len();
    let before = view.axes().len() + 1 + usize::from(view.sides.len() > 1);
    html! {
        section aria-labelledby="flows" {
            h2 id="flows" { "Flows" }
            @if view.flows.is_empty() { p { "Nothing was measured yet." } }
            @else {
                div.scroll.long[rows > LONG] tabindex="0" role="region" aria-label="Figures of each flow" {
                    table.data.stacked data-name="flows" {
                        caption {
                            span {
                                (MARKS)
                                @if rows > LONG { " " (rows) " rows: they scroll within this box." }
                                span.on-paper { (ON_PAPER) }
                            }
                        }
                        thead {
                            tr {
                                td colspan=(before) {}
                                @for (heading, columns) in &groups {
                                    th.group.extra[is_extra(heading)] scope="colgroup" colspan=(columns.len()) { (heading) }
                                }
                                td.extra {}
                            }
                            tr {
                                (axis_headings(view))
                                th scope="col" { "flow" }
                                @if view.sides.len() > 1 { th scope="col" { "on" } }
                                @for (group, columns) in &groups {
                                    @for column in columns { (heading(column, is_extra(group))) }
                                }
                                th.extra scope="col" { "carried by" }
                            }
                        }
                        tbody {
                            @for point in view.points() {
                                @for (i, flow) in view.flows.iter().enumerate() {
                                    @for (s, side) in view.sides.iter().enumerate() {
                                        (flow_row(view, side, point, Subject::flow(flow), &groups, i == 0 && s == 0))
                                        @let (parts, left) = side.shown(point.index, flow);
                                        @for part in parts { (flow_row(view, side, point, part, &groups, false)) }
                                        @if left > 0 { (left_row(view, point, flow, left, &groups)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A heading per swept key, which may be broken behind its dots.
pub(super) fn axis_headings(view: &View) -> Markup {
    html! {
        @for axis in view.axes() {
            th.narrow scope="col" {
                @for (place, part) in axis_name(axis).split('.').enumerate() {
                    @if place > 0 { "." wbr; }
                    (part)
                }
            }
        }
    }
}

fn shown_columns(view: &View, columns: &[(&'static str, &'static FigureKind)]) -> Vec<Column> {
    // All figures of one quantity in one unit, so that a row can be read across.
    let scale = |metric: &FigureKind| {
        let alike = columns.iter().map(|(_, other)| *other).filter(|other| other.quantity == metric.quantity);
        view.scale(&alike.collect::<Vec<_>>())
    };
    let has_any = |metric: &FigureKind| {
        view.points().iter().any(|p| {
            view.sides.iter().any(|s| view.flows.iter().any(|f| s.estimate(p.index, f, metric).is_some()))
        })
    };
    columns
        .iter()
        .filter(|(_, metric)| has_any(metric))
        .filter(|(_, metric)| !ONLY_IF_ANY.contains(metric) || view.telling(&[*metric]) > 0.0)
        .map(|(heading, metric)| Column { heading, metric, scale: scale(metric) })
        .collect()
}

/// What does not fit on paper.
fn is_extra(group: &str) -> bool {
    group == "messages"
}

fn heading(column: &Column, extra: bool) -> Markup {
    html! {
        th.number.extra[extra] scope="col" {
            a href={ "#def-" (column.metric.definition.id) } title=(column.metric.name) { (column.heading) }
            @if !column.scale.heading().is_empty() { " " span.unit { (column.scale.heading()) } }
        }
    }
}

/// How many of the flows that a flow is made as are not shown.
fn left_row(
    view: &View,
    point: &StoredPoint,
    flow: &str,
    left: usize,
    groups: &[(&str, Vec<Column>)],
) -> Markup {
    let columns = groups.iter().map(|(_, columns)| columns.len()).sum::<usize>();
    html! {
        tr.sink {
            (axis_values(view, point))
            th scope="row" { span.of { (flow) " " } (left) " better ones" }
            td colspan=(columns + usize::from(view.sides.len() > 1) + 1) { "in the tables of " code { "--csv" } " and in " code { "--json" } }
        }
    }
}

fn flow_row(
    view: &View,
    side: &Side,
    point: &StoredPoint,
    subject: Subject,
    groups: &[(&str, Vec<Column>)],
    first: bool,
) -> Markup {
    let flow = subject.flow;
    let summaries = side.flow(point.index, flow);
    let cut_short = side.point(point.index).is_some_and(is_cut_short);
    let hue = view.flows.iter().position(|f| *f == flow).unwrap_or(0) % 8;
    html! {
        tr.first[first].sink[subject.sink.is_some()] {
            (axis_values(view, point))
            th scope="row" {
                @match subject.sink {
                    Some(sink) => { span.of { (flow) " " } "→ " (sink) }
                    None => { span.key style={ "background:var(--series-" (hue) ")" } aria-hidden="true" {} (flow) }
                }
                @if subject.is_worst { " " span.tag.broken { "worst" } }
                @if view.measured(flow) == Measured::RoundTrip { " " span.way { "round trip" } }
                @if cut_short { " " span.tag.open { "cut short" } }
            }
            @if view.sides.len() > 1 { td { (side.label) } }
            @for (group, columns) in groups {
                @for column in columns {
                    @let mark = side.mark(point.index, subject, column.metric);
                    @let estimate = side.estimate_of(point.index, subject, column.metric);
                    (cell_of(column.metric.quantity, column.scale, estimate, mark, is_extra(group)))
                }
            }
            td.carrier.extra {
                @match summaries.first().filter(|_| subject.sink.is_none()) {
                    None if subject.sink.is_some() => {}
                    Some(f) => (crate::json::carried_by(f)),
                    None => "not measured",
                }
            }
        }
    }
}

/// The values of a point, one per swept key. Short ones are not broken.
pub(super) fn axis_values(view: &View, point: &StoredPoint) -> Markup {
    const SHORT: usize = 16;
    let number = |axis: usize| view.axes()[axis].numbers.as_ref()?.get(*point.choice.get(axis)?).copied();
    html! {
        @for axis in 0..view.axes().len() {
            @let value = shown_on(point, view.axes(), axis);
            td.value.wide[value.chars().count() > SHORT] data-v=[number(axis)] { (value) }
        }
    }
}

/// A figure over repetitions as a table cell; sorting uses the base unit.
pub(super) fn cell(quantity: Quantity, scale: Scale, estimate: Option<Estimate>) -> Markup {
    cell_of(quantity, scale, estimate, "", false)
}

pub(super) fn cell_of(
    quantity: Quantity,
    scale: Scale,
    estimate: Option<Estimate>,
    mark: &str,
    extra: bool,
) -> Markup {
    let Some(estimate) = estimate else {
        return html! { td.number.extra[extra] { "–" } };
    };
    let (mean, half_width, unit) = scale.estimate(quantity, &estimate);
    html! {
        td.extra[extra] data-v=(to_six_digits(estimate.mean)) {
            (mark)
            @if !mark.is_empty() { " " }
            (mean)
            @if !unit.is_empty() { " " i { (unit) } }
            @if let Some(half) = half_width { @if half != "0" { " " small { "± " (half) } } }
        }
    }
}

/// Enough to sort by.
fn to_six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Per point, link direction and side: what the network did. Empty if no side has links.
pub(super) fn links(view: &View) -> Markup {
    let rows: usize =
        view.sides.iter().flat_map(|s| view.points().iter().map(|p| s.links(p.index).len())).sum();
    if rows == 0 {
        return html! {};
    }
    let all = || {
        view.sides.iter().flat_map(|s| {
            view.points().iter().flat_map(|p| s.links(p.index).into_iter().flat_map(|l| s.link(p.index, l)))
        })
    };
    let sojourn = Scale::of(
        Quantity::Time,
        all().flat_map(|l| [l.sojourn_mean.as_secs_f64(), l.sojourn_max.as_secs_f64()]),
    );
    let backlog = Scale::of(Quantity::Bytes, all().map(|l| l.backlog_max.count() as f64));
    let several = view.sides.len() > 1;
    html! {
        section aria-labelledby="links" {
            h2 id="links" { "Links" }
            div.scroll.long[rows > LONG] tabindex="0" role="region" aria-label="Figures of each link" {
                table.data data-name="links" {
                    caption { span { "Each direction of each link." } }
                    thead {
                        tr {
                            (axis_headings(view))
                            @if several { th scope="col" { "on" } }
                            th scope="col" { "link" }
                            th.number scope="col" { a href="#def-utilisation" { "utilisation" } " " span.unit { "%" } }
                            th.number scope="col" { "packets" br; "offered" }
                            th.number scope="col" { "delivered" }
                            th scope="col" { "dropped, by cause" }
                            th scope="col" { "marked" }
                            th.number scope="col" { a href="#def-sojourn" { "sojourn,\nmean" } " " span.unit { (sojourn.heading()) } }
                            th.number scope="col" { a href="#def-sojourn" { "sojourn,\np50" } " " span.unit { (sojourn.heading()) } }
                            th.number scope="col" { a href="#def-sojourn" { "sojourn,\np99" } " " span.unit { (sojourn.heading()) } }
                            th.number scope="col" { a href="#def-sojourn" { "sojourn,\np99.9" } " " span.unit { (sojourn.heading()) } }
                            th.number scope="col" { a href="#def-sojourn" { "sojourn,\nlongest" } " " span.unit { (sojourn.heading()) } }
                            th.number scope="col" { a href="#def-backlog" { "backlog,\nlargest" } " " span.unit { (backlog.heading()) } }
                            th.number scope="col" { a href="#def-backlog" { "backlog,\nlargest" } " " span.unit { "packets" } }
                        }
                    }
                    tbody {
                        @for side in &view.sides {
                            @for point in view.points() {
                                @for link in side.links(point.index) { (link_row(view, side, point, link, sojourn, backlog)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn link_row(
    view: &View,
    side: &Side,
    point: &StoredPoint,
    link: &str,
    sojourn: Scale,
    backlog: Scale,
) -> Markup {
    let all = side.link(point.index, link);
    let over = |figure: &FigureKind| over_repetitions(all.iter().map(|l| figure.value_of_link(l)));
    let plain = Scale::Shared(Quantity::Count.unit(0.0));
    let percent = Scale::Shared(Quantity::Share.unit(0.0));
    html! {
        tr {
            (axis_values(view, point))
            @if view.sides.len() > 1 { td { (side.label) } }
            th scope="row" { (link) }
            (cell(Quantity::Share, percent, over(const { link_figure("utilisation") })))
            (cell(Quantity::Count, plain, over(const { link_figure("offered") })))
            (cell(Quantity::Count, plain, over(const { link_figure("delivered") })))
            td { (causes(all.iter().map(|l| &l.dropped), all.len())) }
            td { (causes(all.iter().map(|l| &l.marked), all.len())) }
            (cell(Quantity::Time, sojourn, over(const { link_figure("sojourn_mean") })))
            (cell(Quantity::Time, sojourn, over(const { link_figure("sojourn_p50") })))
            (cell(Quantity::Time, sojourn, over(const { link_figure("sojourn_p99") })))
            (cell(Quantity::Time, sojourn, over(const { link_figure("sojourn_p999") })))
            (cell(Quantity::Time, sojourn, over(const { link_figure("sojourn_max") })))
            (cell(Quantity::Bytes, backlog, over(const { link_figure("backlog_max") })))
            (cell(Quantity::Count, plain, over(const { link_figure("backlog_packets_max") })))
        }
    }
}

/// `queue-full 12.3, link-loss 4`: means over repetitions, a cause that did not occur counting zero.
fn causes<'a>(repetitions: impl Iterator<Item = &'a BTreeMap<String, u64>>, count: usize) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (cause, n) in repetitions.flatten() {
        *sums.entry(cause).or_default() += *n as f64;
    }
    if sums.is_empty() {
        return "none".to_owned();
    }
    let parts: Vec<String> = sums
        .iter()
        .map(|(cause, sum)| format!("{cause} {}", crate::units::number(sum / count.max(1) as f64, 4)))
        .collect();
    parts.join(", ")
}

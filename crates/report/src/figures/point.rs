//! Figures of one point: latency over time, and its distribution.

use trunkline_metrics::FlowSummary;

use super::{Figure, HEIGHT, axis_label, legend, look};
use crate::chart::{Axis, Chart, Datum, Kind, Panel, Scale, Series, extremes};
use crate::units::{Quantity, Readable as _};
use crate::verdict::{Outcome, Verdict};
use crate::view::{View, counted, point_name};

/// More than this make the file heavy and are not looked at.
const POINTS: usize = 6;

/// The points whose figures are drawn: the first, the last, where limits are worst, and some evenly between.
pub(crate) fn chosen_points(view: &View) -> Vec<u32> {
    let measured: Vec<u32> = view
        .points()
        .iter()
        .map(|p| p.index)
        .filter(|index| view.flows.iter().any(|flow| first_flow(view, *index, flow).is_some()))
        .collect();
    if measured.len() <= POINTS {
        return measured;
    }
    let mut chosen = vec![measured[0], measured[measured.len() - 1]];
    for limit in view.limits() {
        let verdict = Verdict::of(limit, view, &view.sides[0]);
        if verdict.outcome() == Outcome::Broken {
            chosen.extend(verdict.worst().map(|worst| worst.point));
        }
    }
    chosen.retain(|index| measured.contains(index));
    chosen.extend((1..POINTS - 1).map(|k| measured[k * (measured.len() - 1) / (POINTS - 1)]));
    let mut kept: Vec<u32> = Vec::new();
    for index in chosen {
        if !kept.contains(&index) && kept.len() < POINTS {
            kept.push(index);
        }
    }
    kept.sort_unstable();
    kept
}

/// The figures of one point; those without data are left out.
pub(super) fn figures(view: &View, point: u32) -> Vec<Figure> {
    [over_time(view, point), distribution(view, point)].into_iter().flatten().collect()
}

fn first_flow<'a>(view: &View<'a>, point: u32, flow: &str) -> Option<&'a FlowSummary> {
    let sides = view.sides.iter();
    sides.filter_map(|side| side.flow(point, flow).into_iter().next()).find(|f| f.latency.is_some())
}

fn over_time(view: &View, point: u32) -> Option<Figure> {
    let mut panels = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    // Sides use their own clocks: each panel starts at its first message.
    let summaries: Vec<_> =
        view.sides.iter().map(|side| side.point(point).and_then(|p| counted(p).next())).collect();
    let flows_of = |side: usize| summaries[side].into_iter().flat_map(|s| &s.flows);
    let latencies = || {
        (0..summaries.len())
            .flat_map(flows_of)
            .flat_map(|f| &f.latency_over_time)
            .map(|(_, l)| l.as_secs_f64())
    };
    let unit = Quantity::Time.unit(extremes(latencies())?.1);
    for (s, side) in view.sides.iter().enumerate() {
        let start = flows_of(s).flat_map(|f| &f.latency_over_time).map(|(sent, _)| *sent).min();
        let Some(start) = start else { continue };
        let mut series = Vec::new();
        for (f, flow) in view.flows.iter().enumerate() {
            let Some(summary) = flows_of(s).find(|summary| summary.flow == *flow) else { continue };
            let data: Vec<Datum> = summary
                .latency_over_time
                .iter()
                .map(|(sent, latency)| Datum {
                    x: sent.since(start).as_secs_f64(),
                    y: latency.as_secs_f64() * unit.factor,
                    ..Datum::default()
                })
                .collect();
            if !data.is_empty() {
                let mut look = look(view, s, f);
                look.dashed = false;
                series.push(Series { look, kind: Kind::Dots, data });
                if !shown.contains(flow) {
                    shown.push(flow);
                }
            }
        }
        let title = if view.sides.len() > 1 { side.label.clone() } else { String::new() };
        panels.push(Panel { title, series, bounds: Vec::new() });
    }
    let longest = extremes(panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.data).map(|d| d.x))?.1;
    let y = Scale::of_latency(latencies().map(|l| l * unit.factor).collect::<Vec<_>>().into_iter());
    let chart = Chart {
        title: titled("Latency over time", view, point),
        description: "Latency of single messages against the time at which they were sent, in the first repetition; an \
                      even sample that keeps the largest of each interval."
            .to_owned(),
        x: Axis { label: "sent after, s".to_owned(), scale: Scale::linear(0.0, longest.max(1e-9), 20), ticks: None },
        y: Axis { label: axis_label("latency", unit.name), scale: y, ticks: None },
        legend: legend(view, |flow| shown.contains(&flow), true, true, false),
        panels,
    };
    // Two sides stand below each other: time runs the same way in both.
    let columns = chart.panels.len();
    let height = if columns > 1 { HEIGHT * 0.7 } else { HEIGHT };
    Some(Figure {
        id: numbered("latency-over-time", view, point),
        chart,
        note: "The first repetition: an even sample that keeps the largest of each interval.".to_owned(),
        point: Some(point),
        wide: false,
        height,
        columns,
    })
}

fn distribution(view: &View, point: u32) -> Option<Figure> {
    let summaries: Vec<Vec<&FlowSummary>> = view
        .sides
        .iter()
        .map(|side| side.point(point).into_iter().flat_map(counted).flat_map(|s| &s.flows).collect())
        .collect();
    let all = || summaries.iter().flatten().filter(|f| !f.latency_cdf.is_empty());
    let count = all().filter_map(|f| f.latency).map(|l| l.count).max()?;
    let tail = Scale::tail(count);
    let Scale::Tail { top } = tail else { return None };
    let visible = |f: &FlowSummary| {
        let end =
            f.latency_cdf.iter().position(|(_, share)| *share >= top).map_or(f.latency_cdf.len(), |i| i + 1);
        f.latency_cdf[..end].to_vec()
    };
    let latencies: Vec<f64> = all().flat_map(|f| visible(f)).map(|(l, _)| l.as_secs_f64()).collect();
    let unit = Quantity::Time.unit(extremes(latencies.iter().copied())?.1);
    let mut series = Vec::new();
    for (s, flows) in summaries.iter().enumerate() {
        for (f, flow) in view.flows.iter().enumerate() {
            for summary in flows.iter().filter(|summary| summary.flow == *flow) {
                let line = visible(summary);
                let Some((first, _)) = line.first() else { continue };
                let start = Datum { x: first.as_secs_f64() * unit.factor, ..Datum::default() };
                let rest = line.iter().map(|(latency, share)| Datum {
                    x: latency.as_secs_f64() * unit.factor,
                    y: *share,
                    ..Datum::default()
                });
                let data = std::iter::once(start).chain(rest).collect();
                series.push(Series { look: look(view, s, f), kind: Kind::Line, data });
            }
        }
    }
    let shown = |flow: &str| all().any(|f| f.flow == flow);
    let x = Scale::of_latency(latencies.iter().map(|l| l * unit.factor));
    let chart = Chart {
        title: titled("Distribution of latency", view, point),
        description: "Share of messages whose latency is at most the value below, one line per repetition. The vertical \
                      axis spreads the tail: each step from 90 to 99 to 99.9 % is as high as the one before."
            .to_owned(),
        x: Axis { label: axis_label("latency", unit.name), scale: x, ticks: None },
        y: Axis { label: "messages at most, %".to_owned(), scale: tail, ticks: None },
        legend: legend(view, shown, true, false, true),
        panels: vec![Panel { series, ..Panel::default() }],
    };
    // As high as the figure beside it.
    let height = if view.sides.len() > 1 { HEIGHT * 1.4 + 84.0 } else { HEIGHT };
    Some(Figure {
        id: numbered("latency-distribution", view, point),
        chart,
        note: "One line per repetition. The vertical axis spreads the tail.".to_owned(),
        point: Some(point),
        wide: false,
        height,
        columns: 1,
    })
}

pub(super) fn titled(title: &str, view: &View, point: u32) -> String {
    let name = view.points().iter().find(|p| p.index == point).map(|p| point_name(p, view.axes()));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{title}, {name}"),
        None => title.to_owned(),
    }
}

pub(super) fn numbered(id: &str, view: &View, point: u32) -> String {
    if view.points().len() > 1 { format!("{id}-{point}") } else { id.to_owned() }
}

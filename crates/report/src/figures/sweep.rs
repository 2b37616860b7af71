//! Figures against the swept values: the first axis of numbers runs along x, the others become small multiples.

use trunkline_experiment::Axis;
use trunkline_metrics::figures::{FigureKind, flow};
use trunkline_store::StoredPoint;

use super::{Figure, HEIGHT, axis_label, bounds, legend, look};
use crate::chart::{self, Chart, Datum, Kind, Panel, Scale, Series, Tick, extremes};
use crate::units::{Readable as _, Unit};
use crate::view::{View, axis_name, shown_on};

/// More than this are not read.
const PANELS: usize = 12;

/// What a figure over the sweep shows.
struct Plan {
    id: &'static str,
    title: &'static str,
    label: &'static str,
    metrics: &'static [&'static FigureKind],
    /// Left out if no value is above zero.
    only_if_any: bool,
}

const PLANS: &[Plan] = &[
    Plan {
        id: "throughput",
        title: "User throughput",
        label: "user throughput",
        metrics: &[flow("throughput_user")],
        only_if_any: false,
    },
    Plan { id: "loss", title: "Loss", label: "loss", metrics: &[flow("loss")], only_if_any: false },
    Plan { id: "late", title: "Late messages", label: "late", metrics: &[flow("late")], only_if_any: true },
    Plan {
        id: "latency",
        title: "Latency",
        label: "latency",
        metrics: &[flow("latency_p50"), flow("latency_p99"), flow("latency_p999")],
        only_if_any: false,
    },
];

/// The figures, or none if nothing is swept.
pub(super) fn figures(view: &View) -> Vec<Figure> {
    let Some(axis) = view.axes().get(across(view)) else { return Vec::new() };
    if axis.values.len() < 2 && view.points().len() < 2 {
        return Vec::new();
    }
    let mut out = Vec::new();
    for plan in PLANS {
        if plan.only_if_any && view.telling(plan.metrics) <= 0.0 {
            continue;
        }
        if view.axes().len() == 1 {
            // Several metrics side by side, so that their scale is the same.
            out.extend(figure(view, plan, plan.id.to_owned(), plan.title.to_owned(), plan.metrics));
        } else {
            for metric in plan.metrics {
                let several = plan.metrics.len() > 1;
                let id = if several { metric.id.replace('_', "-") } else { plan.id.to_owned() };
                let title = if several { capitalised(metric.name) } else { plan.title.to_owned() };
                out.extend(figure(view, plan, id, title, &[metric]));
            }
        }
    }
    out
}

/// The axis that runs along x: the first of numbers, else the first.
fn across(view: &View) -> usize {
    let is_line = |axis: &Axis| axis.numbers.is_some() && axis.values.len() > 1;
    view.axes().iter().position(is_line).unwrap_or(0)
}

fn figure(
    view: &View,
    plan: &Plan,
    id: String,
    title: String,
    metrics: &[&'static FigureKind],
) -> Option<Figure> {
    let unit = metrics[0].quantity.unit(view.telling(metrics));
    let (groups, left_out) = groups(view);
    let mut panels: Vec<Panel> = Vec::new();
    for metric in metrics {
        for group in &groups {
            let title = if metrics.len() > 1 { capitalised(metric.name) } else { group.title.clone() };
            panels.push(Panel { title, series: series(view, group, metric, unit), bounds: Vec::new() });
        }
    }
    let data = || panels.iter().flat_map(|p| &p.series).flat_map(|s| &s.data);
    let ends = data().flat_map(|d| {
        let half = d.half_width.unwrap_or(0.0);
        [(d.y - half).max(0.0).max(d.y * 0.2), d.y, d.y + half]
    });
    let (smallest, largest) = extremes(ends.clone())?;
    let all_bounds: Vec<_> = metrics.iter().map(|m| bounds(view, m, unit, smallest, largest)).collect();
    let of_bounds = all_bounds.iter().flatten().map(|b| b.at);
    let scale = Scale::of_quantity(ends.chain(of_bounds).collect::<Vec<_>>().into_iter());
    for (i, panel) in panels.iter_mut().enumerate() {
        panel.bounds.clone_from(&all_bounds[i / groups.len().max(1)]);
    }
    let shown: Vec<usize> = (0..view.flows.len())
        .filter(|flow| panels.iter().flat_map(|p| &p.series).any(|s| s.look.hue == Some(*flow)))
        .collect();
    let is_shown = |flow: &str| shown.iter().any(|i| view.flows[*i] == flow);
    let latency = metrics.iter().any(|m| m.id.starts_with("latency"));
    let x = x_axis(view);
    let axis = &view.axes()[across(view)];
    let against = axis_name(axis);
    let chart = Chart {
        title: format!("{title} against {against}"),
        description: format!(
            "{title} of each flow at each value of {against}: mean over repetitions, with bars for the 95 % \
             confidence interval.{}",
            if groups.len() > 1 { " One panel per value of the other swept keys." } else { "" }
        ),
        x,
        y: chart::Axis { label: axis_label(plan.label, unit.name), scale, ticks: None },
        legend: legend(view, is_shown, latency, true, true)
            .into_iter()
            .map(|mut entry| {
                entry.look.lined = axis.numbers.is_some();
                entry
            })
            .collect(),
        panels,
    };
    let note = match left_out {
        0 => String::new(),
        n => format!("{n} more combinations of the other swept keys are not drawn; they are in the table."),
    };
    let note = if view.run().info.repetitions > 1 {
        format!("Mean over repetitions; bars show the 95 % confidence interval. {note}").trim_end().to_owned()
    } else {
        note
    };
    let panels = chart.panels.len();
    Some(Figure {
        id,
        chart,
        note,
        point: None,
        wide: panels > 1,
        height: HEIGHT,
        columns: columns(view, panels),
    })
}

/// Panels in a row: where it works out, a row for every value of the middle axis.
fn columns(view: &View, panels: usize) -> usize {
    let others: Vec<&Axis> = others(view).map(|(_, axis)| axis).collect();
    match others.as_slice() {
        [_, .., last] if (2..=3).contains(&last.values.len()) && panels.is_multiple_of(last.values.len()) => {
            last.values.len()
        }
        _ => panels.clamp(1, 3),
    }
}

/// The axes that do not run along x, with their places.
fn others<'a>(view: &View<'a>) -> impl Iterator<Item = (usize, &'a Axis)> {
    let across = across(view);
    view.axes().iter().enumerate().filter(move |(place, _)| *place != across)
}

/// Points that differ on the axis along x only.
struct Group<'a> {
    title: String,
    points: Vec<&'a StoredPoint>,
}

/// The small multiples, and how many were left out.
fn groups<'a>(view: &View<'a>) -> (Vec<Group<'a>>, usize) {
    let mut groups: Vec<(Vec<usize>, Group)> = Vec::new();
    for &point in view.points() {
        let others = others(view).filter_map(|(place, _)| point.choice.get(place).copied()).collect();
        match groups.iter_mut().find(|(key, _)| *key == others) {
            Some((_, group)) => group.points.push(point),
            None => {
                let title: Vec<String> =
                    self::others(view).map(|(place, _)| titled(view, point, place)).collect();
                groups.push((others, Group { title: title.join(", "), points: vec![point] }));
            }
        }
    }
    let left_out = groups.len().saturating_sub(PANELS);
    // Evenly chosen, the first and the last among them.
    let count = groups.len();
    let kept = |i: usize| count <= PANELS || (0..PANELS).any(|k| k * (count - 1) / (PANELS - 1) == i);
    let groups =
        groups.into_iter().enumerate().filter(|(i, _)| kept(*i)).map(|(_, (_, group))| group).collect();
    (groups, left_out)
}

/// `trunk.rate = 2 Mbit/s`; a word alone, which says what it is.
fn titled(view: &View, point: &StoredPoint, place: usize) -> String {
    let (axis, value) = (&view.axes()[place], shown_on(point, view.axes(), place));
    if axis.numbers.is_none() && value.parse::<bool>().is_err() {
        return value;
    }
    format!("{} = {value}", axis_name(axis))
}

fn series(view: &View, group: &Group, metric: &FigureKind, unit: Unit) -> Vec<Series> {
    let across = across(view);
    let axis = &view.axes()[across];
    let numbers = axis.numbers.as_deref();
    // Between words there is nothing that a line could pass through.
    let kind = if numbers.is_some() { Kind::Markers } else { Kind::Points };
    let mut out = Vec::new();
    for (s, side) in view.sides.iter().enumerate() {
        for (f, flow) in view.flows.iter().enumerate() {
            let mut data: Vec<Datum> = Vec::new();
            for point in &group.points {
                let Some(estimate) = side.estimate(point.index, flow, metric) else { continue };
                let choice = point.choice.get(across).copied().unwrap_or(0);
                let x = numbers.map_or(Some(choice as f64), |n| n.get(choice).copied());
                let Some(x) = x.filter(|x| x.is_finite()) else { continue };
                data.push(Datum {
                    x,
                    y: estimate.mean * unit.factor,
                    half_width: estimate.confidence95.map(|c| c * unit.factor),
                    label: format!(
                        "{flow}, {}, {} = {}: {} {}",
                        side.label,
                        axis_name(axis),
                        shown_on(point, view.axes(), across),
                        metric.name,
                        metric.quantity.show_estimate(&estimate)
                    ),
                });
            }
            data.sort_by(|a, b| a.x.total_cmp(&b.x));
            if !data.is_empty() {
                out.push(Series { look: look(view, s, f), kind, data });
            }
        }
    }
    out
}

fn x_axis(view: &View) -> chart::Axis {
    let axis = &view.axes()[across(view)];
    match &axis.numbers {
        Some(numbers) => {
            let ticks = numbers.iter().map(|n| Tick { at: *n, label: crate::units::number(*n, 6) }).collect();
            chart::Axis {
                label: axis_label(&axis_name(axis), &axis.unit),
                scale: Scale::of_sweep(numbers),
                ticks: Some(ticks),
            }
        }
        None => chart::Axis {
            label: axis_name(axis),
            scale: Scale::Words((0..axis.values.len()).filter_map(|choice| axis.shown(choice)).collect()),
            ticks: None,
        },
    }
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

//! Axes: grid lines, ticks and their labels.

use std::fmt::Write;

use super::svg::{Area, SMALL, Style, Theme, coordinate, escaped, text};
use super::text::{fit, width};
use super::{Axis, Chart, Scale, Tick};

/// The longest label that is written at a slant.
const LONGEST_SLANTED: f64 = 130.0;
/// Of the slant, 35 degrees.
const SINE: f64 = 0.574;

/// How much room slanted labels take below the x axis, if its words do not fit beside each other.
pub(super) fn slant(axis: &Axis, width_of_panel: f64) -> Option<f64> {
    let Scale::Words(words) = &axis.scale else { return None };
    let room = width_of_panel / words.len().max(1) as f64 - 6.0;
    let longest = words.iter().map(|word| width(word, SMALL)).fold(0.0, f64::max);
    (longest > room).then(|| longest.min(LONGEST_SLANTED) * SINE)
}

/// Grid lines, axes, ticks and their labels; those of the x axis slanted if that is told.
pub(super) fn grid(
    out: &mut String,
    chart: &Chart,
    theme: Theme,
    area: &Area,
    y_ticks: &[Tick],
    slant: Option<f64>,
) {
    let (left, right, bottom) = (coordinate(area.left), coordinate(area.right), coordinate(area.bottom));
    let mut lines = String::new();
    let mut free_above = f64::INFINITY;
    for tick in y_ticks {
        let y = area.y(&chart.y.scale, tick.at);
        let _ = write!(lines, "M{left} {}H{right}", coordinate(y));
        // Ticks come from the bottom up; one that would touch the label below it stays without its own.
        if y + SMALL * 0.5 <= free_above {
            let style = Style { anchor: "end", ..Style::new(theme.quiet()) };
            text(out, area.left - 6.0, y + SMALL * 0.36, &fit(&tick.label, SMALL, area.left), style);
            free_above = y - SMALL * 0.6;
        }
    }
    let x_ticks = x_ticks(&chart.x, area, slant.is_some());
    let mut marks = String::new();
    for (x, label) in &x_ticks {
        let _ = write!(marks, "M{} {bottom}v4", coordinate(*x));
        if slant.is_some() {
            slanted(out, theme, *x, area.bottom + 13.0, label);
        } else if !label.is_empty() {
            let half = width(label, SMALL) / 2.0;
            // The outermost labels may not leave the panel.
            let at = x.min(area.right + 10.0 - half).max(area.left - 8.0);
            let style = Style { anchor: "middle", ..Style::new(theme.quiet()) };
            text(out, at, area.bottom + 17.0, label, style);
        }
    }
    let grid = theme.grid();
    let quiet = theme.quiet();
    let _ = write!(out, "<path d=\"{lines}\" stroke=\"{grid}\" stroke-width=\"1\"/>");
    let _ = write!(
        out,
        "<path d=\"M{left} {bottom}H{right}{marks}\" stroke=\"{quiet}\" stroke-width=\"1\" fill=\"none\"/>"
    );
    if let Some(place) = chart.y.scale.break_at() {
        let y = area.bottom - place * (area.bottom - area.top);
        let (x, y) = (coordinate(area.left - 4.0), coordinate(y));
        let _ = write!(
            out,
            "<path d=\"M{x} {y}l3 -4l3 8l3 -4\" stroke=\"{quiet}\" stroke-width=\"1\" fill=\"none\"/>"
        );
    }
    let label = fit(&chart.x.label, SMALL, area.right - area.left + 8.0);
    let below = area.bottom + 33.0 + slant.unwrap_or(0.0);
    text(out, area.right, below, &label, Style { anchor: "end", ..Style::new(theme.quiet()) });
}

/// Places of marks on the x axis; labels that do not fit beside their neighbour are empty.
fn x_ticks(axis: &Axis, area: &Area, slanted: bool) -> Vec<(f64, String)> {
    let ticks = match &axis.ticks {
        Some(ticks) => ticks.clone(),
        None => axis.scale.ticks(((area.right - area.left) / 52.0) as usize),
    };
    let longest = if slanted { LONGEST_SLANTED } else { (area.right - area.left) / 2.0 };
    let mut free_from = f64::NEG_INFINITY;
    let mut placed: Vec<(f64, String)> = ticks
        .into_iter()
        .map(|tick| (area.x(&axis.scale, tick.at), fit(&tick.label, SMALL, longest)))
        .collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    if slanted {
        return placed;
    }
    for (x, label) in &mut placed {
        let half = width(label, SMALL) / 2.0;
        if *x - half < free_from {
            label.clear();
        } else {
            free_from = *x + half + 6.0;
        }
    }
    placed
}

/// A label that ends below its tick.
fn slanted(out: &mut String, theme: Theme, x: f64, y: f64, label: &str) {
    let (x, y) = (coordinate(x + 4.0), coordinate(y));
    let _ = write!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{SMALL}\" fill=\"{}\" text-anchor=\"end\" \
         transform=\"rotate(-35 {x} {y})\">{}</text>",
        theme.quiet(),
        escaped(label)
    );
}

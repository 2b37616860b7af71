//! The figures: what is drawn against what. How it is drawn stands in [`crate::chart`].

mod connection;
mod point;
mod sweep;

use trunkline_metrics::Measured;
use trunkline_metrics::figures::FigureKind;

pub(crate) use point::chosen_points;

use trunkline_experiment::{Limit, Subject};

use crate::chart::{Bound, Chart, Entry, Frame, Look, Theme};
use crate::limited::whose;
use crate::units::Unit;
use crate::view::View;

/// A figure of the report.
pub(crate) struct Figure {
    /// Its name in files and links: stable, and unique within a report.
    pub(crate) id: String,
    pub(crate) chart: Chart,
    /// What a reader should know beside the chart; may be empty.
    pub(crate) note: String,
    /// The point that it shows; `None` if it shows them all.
    pub(crate) point: Option<u32>,
    /// Whether it needs the whole width of a page; otherwise its panels stand below each other.
    pub(crate) wide: bool,
    /// Height of a panel on a screen.
    pub(crate) height: f64,
    /// How many panels stand side by side where there is room.
    pub(crate) columns: usize,
}

/// Height of a panel that stands alone.
const HEIGHT: f64 = 230.0;

/// Every figure: first those over the sweep, then those of the chosen points.
pub(crate) fn figures(view: &View) -> Vec<Figure> {
    let mut all = sweep::figures(view);
    for point in chosen_points(view) {
        all.extend(point::figures(view, point));
        all.extend(connection::figures(view, point));
    }
    all
}

impl Figure {
    /// The layout for a screen or a wide page.
    pub(crate) fn screen_frame(&self) -> Frame {
        let (width, columns) = if self.wide { (1000.0, self.columns) } else { (540.0, 1) };
        Frame { width, plot_height: self.height, columns, theme: Theme::Page, labels: true }
    }

    /// The layout for a phone.
    pub(crate) fn phone_frame(&self) -> Frame {
        Frame { width: 350.0, plot_height: 210.0, columns: 1, theme: Theme::Page, labels: false }
    }

    /// The layout of a file of its own.
    pub(crate) fn file_frame(&self) -> Frame {
        let width = if self.chart.panels.len() > 1 { 1000.0 } else { 680.0 };
        // Many rows stay within a page.
        let rows = self.chart.panels.len().div_ceil(self.columns.max(1));
        let plot_height = if rows > 4 { 150.0 } else { 300.0 };
        Frame { width, plot_height, columns: self.columns, theme: Theme::Print, labels: true }
    }
}

/// How a flow looks on a side: what was measured hollow and dashed beside what was simulated.
fn look(view: &View, side: usize, flow: usize) -> Look {
    Look { hue: Some(flow), dashed: is_dashed(view, side), marked: true, lined: true }
}

/// Whether a side is the one that is drawn dashed and hollow.
pub(crate) fn is_dashed(view: &View, side: usize) -> bool {
    match view.sides.as_slice() {
        [a, b] if a.is_measured() == b.is_measured() => side == 1,
        [_, _] => view.sides[side].is_measured(),
        _ => false,
    }
}

/// The legend: flows by colour and shape; with two sides, how each is drawn.
fn legend(
    view: &View,
    is_shown: impl Fn(&str) -> bool,
    latency: bool,
    marked: bool,
    sides: bool,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (i, flow) in view.flows.iter().enumerate().filter(|(_, flow)| is_shown(flow)) {
        let way = match view.measured(flow) {
            Measured::RoundTrip if latency => " (round trip)",
            Measured::OneWay if latency => " (one way)",
            _ => "",
        };
        let look = Look { hue: Some(i), dashed: false, marked, lined: true };
        entries.push(Entry { label: format!("{flow}{way}"), look });
    }
    if sides && view.sides.len() > 1 {
        for (i, side) in view.sides.iter().enumerate() {
            let look = Look { hue: None, dashed: is_dashed(view, i), marked, lined: true };
            entries.push(Entry { label: side.label.clone(), look });
        }
    }
    entries
}

/// The limits on a metric as lines, where they are near enough to the data not to squeeze it.
fn bounds(view: &View, metric: &FigureKind, unit: Unit, smallest: f64, largest: f64) -> Vec<Bound> {
    // Figures show flows as a whole.
    let is_shown = |limit: &&Limit| match &limit.subject {
        Subject::Flow { sink: None, metric: of_limit, .. } => *of_limit == metric,
        _ => false,
    };
    let limits = view.limits().iter().filter(is_shown);
    limits
        .map(|limit| {
            let flow = whose(limit, view);
            Bound { at: limit.bound * unit.factor, label: format!("limit for {flow}: {}", limit.condition) }
        })
        .filter(|bound| largest == 0.0 || (bound.at <= largest * 3.0 && bound.at >= smallest / 3.0))
        .collect()
}

/// `latency, ms`; a name alone if there is no unit.
fn axis_label(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

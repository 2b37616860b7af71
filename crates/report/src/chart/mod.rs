//! A small chart module: axes with ticks and units, dots, lines, error bars, legends, small multiples.
//!
//! Why not a plotting crate: `plotters` was tried first. Its SVG has one element per dot (385 KB for two flows of 2,000
//! messages; here 40 KB), rounds to whole pixels, knows no CSS (figures must follow the page's light and dark), lets
//! labels overlap and the legend cover data, labels logarithmic axes only at 100, 200, 300, and has no axis that
//! spreads the tail of a distribution.

mod axes;
mod scale;
mod svg;
mod text;

pub use scale::{Scale, Tick};
pub use svg::{Frame, Theme, render};

pub use crate::png::rasterised as png;
pub(crate) use scale::extremes;

/// A figure: panels that share their axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows, for people who do not see it and for the PNG.
    pub title: String,
    /// How to read it.
    pub description: String,
    /// What it is drawn against.
    pub x: Axis,
    /// What is drawn.
    pub y: Axis,
    /// Above the panels, in this order.
    pub legend: Vec<Entry>,
    /// The small multiples, at least one.
    pub panels: Vec<Panel>,
}

/// One axis, the same in every panel.
#[derive(Clone, Debug)]
pub struct Axis {
    /// With the unit: `latency, ms`.
    pub label: String,
    /// How values are laid along it.
    pub scale: Scale,
    /// Ticks at chosen places instead of round ones; labels that would overlap are left out.
    pub ticks: Option<Vec<Tick>>,
}

/// A line of the legend.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the look stands for.
    pub label: String,
    /// How its swatch is drawn.
    pub look: Look,
}

/// One of the small multiples.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Above the panel; may be empty.
    pub title: String,
    /// What is drawn in it, the last on top.
    pub series: Vec<Series>,
    /// Limits, drawn behind the series.
    pub bounds: Vec<Bound>,
}

/// A limit of the file: a horizontal line.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Its place on the y axis.
    pub at: f64,
    /// At the right end of the line.
    pub label: String,
}

/// Data drawn alike.
#[derive(Clone, Debug)]
pub struct Series {
    /// In which colour and shape.
    pub look: Look,
    /// As what.
    pub kind: Kind,
    /// In the order in which a line joins them.
    pub data: Vec<Datum>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cloud of small dots.
    Dots,
    /// A line.
    Line,
    /// A line with a marker at every value, and bars for the confidence interval.
    Markers,
    /// A marker at every value and no line.
    Points,
    /// What lies between the line and the upper edge of the plot, tinted.
    Above,
    /// What lies between the line and the lower edge of the plot, tinted.
    Below,
}

/// What tells a series from the others, also without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which colour of the palette and which shape of marker; `None` for what stands for every flow.
    pub hue: Option<usize>,
    /// Dashed lines and hollow markers: the live side.
    pub dashed: bool,
    /// Whether a marker is shown in the legend.
    pub marked: bool,
    /// Whether a line is shown in the legend.
    pub lined: bool,
}

/// One value.
#[derive(Clone, Debug, Default)]
pub struct Datum {
    /// Place on the x axis, in its unit; a word's index on an axis of words.
    pub x: f64,
    /// Place on the y axis, in its unit.
    pub y: f64,
    /// Half width of the confidence interval.
    pub half_width: Option<f64>,
    /// What a pointer over it shows.
    pub label: String,
}

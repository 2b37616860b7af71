//! A small chart module: axes with ticks and units, dots, lines, error bars, legends, small multiples.
//!
//! Why not a plotting crate: `plotters` was tried first. Its SVG has one element per dot (385 KB for two flows of 2,000
//! messages; here 40 KB), rounds to whole pixels, knows no CSS (figures must follow the page's light and dark), lets
//! labels overlap and the legend cover data, labels logarithmic axes only at 100, 200, 300, and has no axis that
//! spreads the tail of a distribution.

mod scale;
mod svg;
mod text;

pub(crate) use scale::{Scale, Tick, extremes};
pub(crate) use svg::{Frame, Theme, render};

/// A figure: panels that share their axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What it shows, for people who do not see it and for the PNG.
    pub(crate) title: String,
    /// How to read it.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) legend: Vec<Entry>,
    pub(crate) panels: Vec<Panel>,
}

/// One axis, the same in every panel.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// With the unit: `latency, ms`.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// Ticks at chosen places instead of round ones; labels that would overlap are left out.
    pub(crate) ticks: Option<Vec<Tick>>,
}

/// A line of the legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) look: Look,
}

/// One of the small multiples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) series: Vec<Series>,
    pub(crate) bounds: Vec<Bound>,
}

/// A limit of the file: a horizontal line.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Data drawn alike.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) look: Look,
    pub(crate) kind: Kind,
    pub(crate) data: Vec<Datum>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A cloud of small dots.
    Dots,
    /// A line.
    Line,
    /// A line with a marker at every value, and bars for the confidence interval.
    Markers,
}

/// What tells a series from the others, also without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Which colour of the palette and which shape of marker; `None` for what stands for every flow.
    pub(crate) hue: Option<usize>,
    /// Dashed lines and hollow markers: the live side.
    pub(crate) dashed: bool,
    /// Whether markers are shown in the legend.
    pub(crate) marked: bool,
}

/// One value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datum {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Half width of the confidence interval.
    pub(crate) half_width: Option<f64>,
    /// What a pointer over it shows.
    pub(crate) label: String,
}

//! Sources of a simulated figure: an expression of figures of a run or of the row's keys, or a published cell.

use trunkline_metrics::figures::{self, FigureKind, Quantity};
use trunkline_metrics::{BundleSummary, FlowSummary, MediumSummary};

use crate::expression::Expression;
use crate::study::Cells;
use crate::value::Keys;

/// The source of a simulated figure.
#[derive(Clone, Debug)]
pub(crate) enum Reading {
    /// From the keys of the row, by a formula of the paper.
    Formula(Expression<String>),
    /// The published cell of another row: of this table, this column, with the row's keys but for these cells.
    Published { table: String, column: String, only: Cells },
    /// From a run of the row's point; the mean over repetitions if there are several.
    Run(Run),
}

/// Figures of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) of: Of,
    /// The experiment's file, if it is not that of the table's rows. Its point is the one with the cells of the row.
    pub(crate) file: Option<String>,
    pub(crate) unit: Option<Unit>,
    pub(crate) value: Expression<&'static FigureKind>,
}

/// The part of a run that has the figures.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// The flow of this name.
    Flow(String),
    /// The row's own flow, where rows are flows.
    OwnFlow,
    /// A sink of a flow.
    Sink { flow: String, sink: String },
    /// The connections of a transport in a bundle.
    Connections { bundle: String, transport: String },
    /// The direction of a link out of one of its hosts.
    Line { link: String, host: String },
}

/// A unit that figures are read in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    read: fn(f64) -> f64,
}

/// Times are whole nanoseconds and are read as such, so that no rounding of the base unit remains.
pub(crate) static UNITS: &[Unit] = &[
    Unit { name: "s", quantity: Quantity::Time, read: |s| s },
    Unit { name: "ms", quantity: Quantity::Time, read: |s| (s * 1e9).round() / 1e6 },
    Unit { name: "us", quantity: Quantity::Time, read: |s| (s * 1e9).round() / 1e3 },
    Unit { name: "bit/s", quantity: Quantity::Rate, read: |rate| rate },
    Unit { name: "kbit/s", quantity: Quantity::Rate, read: |rate| rate / 1e3 },
    Unit { name: "Mbit/s", quantity: Quantity::Rate, read: |rate| rate / 1e6 },
    Unit { name: "B/s", quantity: Quantity::Rate, read: |rate| rate / 8.0 },
    Unit { name: "KiB/s", quantity: Quantity::Rate, read: |rate| rate / 8192.0 },
    Unit { name: "%", quantity: Quantity::Share, read: |share| 100.0 * share },
    Unit { name: "B", quantity: Quantity::Bytes, read: |bytes| bytes },
];

impl Reading {
    /// The experiment that it reads instead of that of the table's rows.
    pub(crate) fn elsewhere(&self) -> Option<&str> {
        match self {
            Reading::Run(run) => run.file.as_deref(),
            Reading::Formula(_) | Reading::Published { .. } => None,
        }
    }
}

impl Of {
    /// The figures that it has.
    pub(crate) fn figures(&self) -> Vec<&'static FigureKind> {
        match self {
            Of::Flow(_) | Of::OwnFlow => figures::of_flows().collect(),
            Of::Sink { .. } => figures::of_flows().filter(|figure| figure.is_of_sinks()).collect(),
            Of::Connections { .. } => {
                figures::of_bundles().filter(|figure| figure.is_of_connections()).collect()
            }
            Of::Line { .. } => figures::of_media().collect(),
        }
    }

    /// Its name in messages.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Of::Flow(_) | Of::OwnFlow => "a flow",
            Of::Sink { .. } => "a sink",
            Of::Connections { .. } => "a transport's connections",
            Of::Line { .. } => "a host's line",
        }
    }
}

/// Results of a repetition of a point.
pub(crate) struct Summaries<'m> {
    pub(crate) flows: &'m [FlowSummary],
    pub(crate) bundles: &'m [BundleSummary],
    pub(crate) media: &'m [MediumSummary],
}

impl Run {
    /// The value; `own` is the flow of the row.
    pub(crate) fn value(&self, from: &Summaries<'_>, own: Option<&str>) -> Option<f64> {
        self.value.value(&|figure| {
            let value = self.figure(figure, from, own)?;
            let unit = self.unit.filter(|unit| unit.quantity == figure.quantity);
            Some(unit.map_or(value, |unit| (unit.read)(value)))
        })
    }

    fn figure(&self, figure: &FigureKind, from: &Summaries<'_>, own: Option<&str>) -> Option<f64> {
        let flow = |name: &str| from.flows.iter().find(|flow| flow.flow == name);
        match &self.of {
            Of::Flow(name) => figure.value(flow(name)?),
            Of::OwnFlow => figure.value(flow(own?)?),
            Of::Sink { flow: name, sink } => figure.value_at(flow(name)?, sink),
            Of::Connections { bundle, transport } => {
                let bundle = from.bundles.iter().find(|summary| summary.bundle == *bundle)?;
                let class = bundle.classes.iter().find(|class| class.transport == *transport)?;
                figure.value_of_connections(class)
            }
            Of::Line { link, host } => {
                let is_meant =
                    |medium: &&MediumSummary| medium.medium == *link && medium.station.as_ref() == Some(host);
                let medium = from.media.iter().find(is_meant)?;
                let (_, amount) = medium.figures.iter().find(|(name, _)| name == figure.id)?;
                let (quantity, value) = Quantity::of((*amount)?);
                (quantity == figure.quantity).then_some(value)
            }
        }
    }
}

/// A formula's value for the keys of a row.
pub(crate) fn of_keys(formula: &Expression<String>, keys: &Keys) -> Option<f64> {
    formula.value(&|column| keys.number(column))
}

/// True if a row has the keys of another, except for these cells.
pub(crate) fn is_beside(keys: &Keys, of: &Keys, only: &Cells) -> bool {
    keys.0.iter().all(|(column, value)| match only.iter().find(|(changed, _)| changed == column) {
        Some((_, cell)) => value.is(cell),
        None => of.get(column) == Some(value),
    })
}

//! Every cell of a study, as published and as simulated.

use trunkline_store::Backend;

use crate::compare::Errors;
use crate::study::{Class, Metric, Scatter, Study, Table};
use crate::value::Keys;

/// What a run of a study found.
#[derive(Clone, Debug)]
pub struct Results {
    /// The study.
    pub study: &'static Study,
    /// The tables that were asked for, in the study's order.
    pub tables: Vec<TableResults>,
    /// The messages behind the scatters of these tables, in the study's order.
    pub scatters: Vec<Scattered>,
    /// Whether it was stopped before its end: what is missing was not measured.
    pub stopped: bool,
}

/// A scatter with its data.
#[derive(Clone, Debug)]
pub struct Scattered {
    /// The chart.
    pub scatter: &'static Scatter,
    /// Latency of the messages in seconds, in the order of sending.
    pub latencies: Vec<f64>,
}

/// One table.
#[derive(Clone, Debug)]
pub struct TableResults {
    /// The table.
    pub table: &'static Table,
    /// Where its figures come from.
    pub on: Backend,
    /// In the published order; rows that were not published follow in the experiment's order.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// What tells it from others.
    pub keys: Keys,
    /// One per metric of the table, in its order.
    pub cells: Vec<Cell>,
}

/// One figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// As the paper prints it.
    pub published: Option<Printed>,
    /// Whether the print is to be trusted.
    pub doubt: Doubt,
    /// As the study's experiment, simulated or measured, or its formula gives it.
    pub simulated: Option<f64>,
    /// The number of digits that the paper prints behind the point.
    pub decimals: usize,
    /// The worth of ours as a prediction; none in a table of our own, which has nothing to predict.
    pub class: Option<Class>,
    /// The prediction from before the published value was seen, if it was blind.
    pub blind: Option<f64>,
    /// True if it says again what another cell says.
    pub repeats: bool,
}

/// A printed figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// Digit by digit.
    pub text: String,
    /// Its meaning.
    pub number: f64,
}

/// Whether a printed figure is to be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// It is.
    #[default]
    None,
    /// It is well read, but the paper itself speaks against it.
    Suspect,
    /// It may have been misread; comparisons leave it out.
    Doubtful,
}

impl Doubt {
    /// Its name in JSON; `None` without a doubt.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Doubt::None => None,
            Doubt::Suspect => Some("contradicted"),
            Doubt::Doubtful => Some("doubtful"),
        }
    }
}

impl Results {
    /// The results of a table, if it was asked for.
    pub fn table(&self, name: &str) -> Option<&TableResults> {
        self.tables.iter().find(|results| results.table.name == name)
    }
}

impl TableResults {
    /// What the figures of a metric are called.
    pub fn word(&self, metric: &Metric) -> &'static str {
        match self.on {
            Backend::Sim => "simulated",
            _ if self.is_quoted(metric) => "published",
            Backend::Wire | Backend::Live => "measured",
        }
    }

    /// Whether a metric stands in a table of measurements without being one: it quotes the paper.
    pub(crate) fn is_quoted(&self, metric: &Metric) -> bool {
        self.on != Backend::Sim && !metric.is_run()
    }

    /// The place of a metric among the cells of a row.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.table.metrics.iter().position(|metric| metric.column == column)
    }

    /// How far these columns are from what was published.
    pub fn errors(&self, columns: &[&str]) -> Errors {
        const NONE: &[(&str, &str)] = &[];
        Errors::of(self.cells(columns, NONE).map(|(row, cell)| (row.keys.values(), cell)))
    }

    /// The cells of these columns in rows that have those cells.
    pub(crate) fn cells<'r, C: AsRef<str>, S: AsRef<str>>(
        &'r self,
        columns: &[C],
        only: &[(S, S)],
    ) -> impl Iterator<Item = (&'r Row, &'r Cell)> + use<'r, C, S> {
        let places: Vec<usize> = columns.iter().filter_map(|column| self.place(column.as_ref())).collect();
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.keys.are(only)).collect();
        rows.into_iter().flat_map(move |row| {
            let cells = places.clone().into_iter().filter_map(|place| row.cells.get(place));
            cells.map(move |cell| (row, cell))
        })
    }
}

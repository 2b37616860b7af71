//! What a study is, as data: experiments, tables, the mapping between them, figures, and what is to be reached.

use trunkline_metrics::{BundleSummary, FlowSummary, MediumSummary};

use crate::results::Results;
use crate::value::Keys;

/// One published study.
#[derive(Debug)]
pub struct Study {
    /// What it is called on the command line, and its folder below `papers/`: `hawley1989`.
    pub name: &'static str,
    /// The paper's title.
    pub title: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// The year it was published.
    pub year: u16,
    /// What of it is reproduced, in a sentence.
    pub reproduced: &'static str,
    /// Experiment files and what they name, by their path in the study's folder.
    pub files: &'static [Embedded],
    /// Of these files, which can be measured on the wire instead.
    pub wired: &'static [&'static str],
    /// How points of the experiments become rows.
    pub experiments: &'static [Experiment],
    /// The tables, in the paper's order.
    pub tables: &'static [Table],
    /// The figures, in the paper's order.
    pub figures: &'static [Figure],
    /// The figures that show every message of a point.
    pub scatters: &'static [Scatter],
    /// What the simulation is to reach.
    pub goals: &'static [Goal],
    /// Where it cannot follow.
    pub notes: &'static [Note],
    /// Which published cells are in doubt: the study's `flagged_cells.csv`.
    pub flagged: &'static str,
}

/// A file that is part of the program.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// Its path in the study's folder.
    pub path: &'static str,
    /// What it holds.
    pub text: &'static str,
}

/// An experiment file and what its sweep means in the columns of the published tables.
#[derive(Debug)]
pub struct Experiment {
    /// Its path in the study's folder.
    pub file: &'static str,
    /// Each swept key that tells rows apart.
    pub axes: &'static [Axis],
}

/// One swept key.
#[derive(Debug)]
pub struct Axis {
    /// The key in the file: `flow.probe.source.message`.
    pub key: &'static str,
    /// The columns that it gives.
    pub columns: &'static [&'static str],
    /// How.
    pub cells: Cells,
}

/// From a swept value to cells of key columns.
#[derive(Debug)]
pub enum Cells {
    /// The number is the cell, in the unit of the axis; for a single column.
    Number,
    /// What a value as written in the file must hold (white space does not count), all of it, and the cells of such a
    /// value in each column. Exactly one entry must fit: an experiment may be told more without being mapped anew, but
    /// not be taken for another.
    Holding(&'static [(&'static [&'static str], &'static [&'static str])]),
}

/// One table of the study.
#[derive(Debug)]
pub struct Table {
    /// Its CSV file's name, without `.csv`.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What there is to compare it with.
    pub reference: Reference,
    /// The columns that tell rows apart, in their order.
    pub keys: &'static [&'static str],
    /// The other columns, in their order.
    pub metrics: &'static [Metric],
    /// Where its rows come from.
    pub rows: Rows,
}

/// What a table is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The published table, or as much of it as is at hand.
    Published(&'static str),
    /// The paper has it, and it is not at hand: a prediction.
    Predicted,
    /// The paper has no such table.
    Own,
}

impl Reference {
    /// The published table.
    pub fn published(self) -> Option<&'static str> {
        match self {
            Reference::Published(text) => Some(text),
            Reference::Predicted | Reference::Own => None,
        }
    }
}

/// Where the rows of a table come from.
#[derive(Debug)]
pub enum Rows {
    /// They are those of the published table, and its figures follow from formulas.
    Formula,
    /// One for every point of an experiment whose cells are these.
    Points {
        /// The experiment's file.
        file: &'static str,
        /// Columns that select points, with the cell that each must have, or a range of them (`2..12`). They need not be
        /// columns of the table.
        only: &'static [(&'static str, &'static str)],
        /// The same for points that are left out.
        without: &'static [(&'static str, &'static str)],
    },
    /// One for every flow of an experiment that has one point, with its cells in the table's keys. It is not simulated but
    /// measured live, from this machine to itself.
    Flows {
        /// The experiment's file.
        file: &'static str,
        /// The flows.
        flows: &'static [(&'static str, &'static [&'static str])],
    },
}

/// A column of figures.
#[derive(Debug)]
pub struct Metric {
    /// Its name, with the unit.
    pub column: &'static str,
    /// How many digits the paper prints behind the point.
    pub decimals: usize,
    /// Where the simulated figure comes from.
    pub reading: Reading,
}

/// Where a simulated figure comes from.
#[derive(Debug)]
pub enum Reading {
    /// From the keys of the row, by a formula of the paper.
    Formula(fn(&Keys) -> Option<f64>),
    /// From the summary of a flow at the row's point; the mean over repetitions if there are several.
    Flow(&'static str, fn(&FlowSummary) -> Option<f64>),
    /// The same of the row's own flow, where rows are flows.
    OwnFlow(fn(&FlowSummary) -> Option<f64>),
    /// The same from another experiment: its file, the flow, how. Its point is the one with the cells of the row.
    Elsewhere(&'static str, &'static str, fn(&FlowSummary) -> Option<f64>),
    /// From the summary of a bundle at the row's point.
    Bundle(&'static str, fn(&BundleSummary) -> Option<f64>),
    /// From what a link tells of the way out of one of its hosts: the link, the host, how.
    Medium(&'static str, &'static str, fn(&MediumSummary) -> Option<f64>),
}

/// A figure of the paper, drawn from its tables.
#[derive(Debug)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u32,
    /// What it shows.
    pub title: &'static str,
    /// The key columns on the x axis: a place for every combination of their values, in the table's order. Sizes too
    /// are places and not distances: papers choose them in pairs (64 and 65 bytes) to show a step between the two.
    pub x: &'static [&'static str],
    /// Label of the x axis, with the unit.
    pub x_label: &'static str,
    /// The column that is drawn.
    pub metric: &'static str,
    /// Label of the y axis, with the unit.
    pub y_label: &'static str,
    /// Whether the y axis has even factors instead of even steps: for figures whose series lie far apart.
    pub factors: bool,
    /// What is drawn.
    pub series: &'static [Series],
}

/// A figure of the latency of every message of one flow at one point, in the order of sending.
#[derive(Debug)]
pub struct Scatter {
    /// What it is called in files and links: `scatter-sppt-0064`.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The table that is drawn from the same experiment: the scatter is drawn if that is run.
    pub table: &'static str,
    /// The row of that table.
    pub only: &'static [(&'static str, &'static str)],
    /// The flow.
    pub flow: &'static str,
    /// Whether half of a round trip is shown.
    pub halved: bool,
}

/// One line of a figure.
#[derive(Debug)]
pub struct Series {
    /// What it stands for.
    pub label: &'static str,
    /// From which table.
    pub table: &'static str,
    /// The rows that have these cells.
    pub only: &'static [(&'static str, &'static str)],
}

/// What the simulation is to reach. Shares are from 0 to 1.
#[derive(Debug)]
pub enum Goal {
    /// Relative errors of these columns, over all cells of these tables.
    Error {
        /// The tables.
        tables: &'static [&'static str],
        /// Their columns.
        metrics: &'static [&'static str],
        /// The rows that have these cells.
        only: &'static [(&'static str, &'static str)],
        /// The largest median.
        median: f64,
        /// The largest error of any cell.
        worst: Option<f64>,
    },
    /// Every cell as printed, digit by digit; cells whose print is in doubt are counted apart.
    Exact {
        /// The table.
        table: &'static str,
        /// The column.
        metric: &'static str,
    },
    /// Counts: every cell within so many, or within a share of what was published.
    Count {
        /// The table.
        table: &'static str,
        /// The column.
        metric: &'static str,
        /// How many are no error.
        within: f64,
        /// What share is none.
        share: f64,
    },
    /// What a study concludes, in words.
    Conclusion {
        /// The question.
        question: &'static str,
        /// The paper's answer, if it gives one.
        published: Option<&'static str>,
        /// Ours, in the same words; `None` if the tables that it needs were not run.
        found: fn(&Results) -> Option<String>,
    },
    /// A figure of one table over the same figure of another, row by row, in the median.
    Factor {
        /// What it says.
        title: &'static str,
        /// The table above the line.
        over: &'static str,
        /// The table below it.
        under: &'static str,
        /// Rows that have these cells.
        only: &'static [(&'static str, &'static str)],
        /// The column.
        metric: &'static str,
        /// How far the median may be from the published one, as a share of it.
        within: f64,
    },
}

/// Where the simulation cannot follow what was published, and what it lacks.
#[derive(Debug)]
pub struct Note {
    /// In which tables.
    pub tables: &'static [&'static str],
    /// In rows that have these cells.
    pub only: &'static [(&'static str, &'static str)],
    /// Why, in whole sentences.
    pub text: &'static str,
}

impl Table {
    /// The files of the experiments behind it, that of its rows first.
    pub fn files(&self) -> Vec<&'static str> {
        let mut files = Vec::new();
        if let Rows::Points { file, .. } | Rows::Flows { file, .. } = self.rows {
            files.push(file);
        }
        for metric in self.metrics {
            match metric.reading {
                Reading::Elsewhere(file, ..) if !files.contains(&file) => files.push(file),
                _ => {}
            }
        }
        files
    }
}

impl Study {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&'static Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The notes on this table.
    pub fn notes(&self, table: &str) -> impl Iterator<Item = &'static Note> {
        self.notes.iter().filter(move |note| note.tables.contains(&table))
    }

    /// The text of an embedded file.
    pub fn file(&self, path: &str) -> Option<&'static str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text)
    }
}

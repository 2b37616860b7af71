//! A study as data: experiments, tables, the mapping between them, figures and goals. [`read()`](crate::read::read) reads
//! it from the study's `study.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::expression::Expression;
use crate::findings::Finding;
use crate::reading::Reading;
use crate::value::Keys;

/// One published study.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line, and its folder below `papers/`: `hawley1989`.
    pub name: String,
    /// The paper's title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// The year it was published.
    pub year: u16,
    /// The part of it that is reproduced, in a sentence.
    pub reproduced: String,
    /// Every file of its folder.
    pub(crate) files: Folder,
    /// Experiment files that can be measured on the wire instead.
    pub wired: Vec<String>,
    /// The mapping from points of the experiments to rows.
    pub experiments: Vec<Experiment>,
    /// The tables, in the paper's order.
    pub tables: Vec<Table>,
    /// The figures, in the paper's order.
    pub figures: Vec<Figure>,
    /// The figures that show every message of a point.
    pub scatters: Vec<Scatter>,
    /// The goals of the simulation.
    pub goals: Vec<Goal>,
    /// Values that the simulation cannot reproduce, with reasons.
    pub notes: Vec<Note>,
    /// Cells that are not predictions.
    pub classes: Vec<Classed>,
    /// The calibrations that can be repeated.
    pub calibrations: Vec<Calibration>,
    /// Cells that say again what others say.
    pub repeats: Vec<Repeat>,
    /// Constants that were taken from no cell: from other documents, or assumed.
    pub elsewhere: Vec<String>,
    /// Published cells without a figure of ours.
    pub not_reproduced: Vec<NotReproduced>,
}

/// A file that is part of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedded {
    /// Its path below `papers/`: `hawley1989/loaded.toml`.
    pub(crate) path: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

/// The files of a study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folder {
    pub(crate) study: &'static str,
    pub(crate) files: &'static [Embedded],
}

impl Folder {
    /// The paths of the files in the folder.
    pub(crate) fn paths(self) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(move |file| file.path.strip_prefix(self.study)?.strip_prefix('/'))
    }

    /// The text of a file, by its path in the folder.
    pub(crate) fn file(self, path: &str) -> Option<&'static str> {
        let is_it = |file: &&Embedded| {
            let inside = file.path.strip_prefix(self.study).and_then(|inside| inside.strip_prefix('/'));
            inside == Some(path)
        };
        self.files.iter().find(is_it).map(|file| file.text)
    }
}

/// Key columns with the cell that each must have, or a range of them (`2..12`).
pub type Cells = Vec<(String, String)>;

/// An experiment file and the key columns that its sweep gives.
#[derive(Debug)]
pub struct Experiment {
    /// Its path in the study's folder.
    pub file: String,
    /// Each swept key that tells rows apart.
    pub axes: Vec<Axis>,
}

/// One swept key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The key in the file: `flow.probe.source.message`.
    pub key: String,
    /// The columns that it gives.
    pub columns: Vec<String>,
    /// Cells of swept values. Without them the number is the cell of the only column, in the unit of the axis. Exactly one
    /// entry must fit a value: more keys in the experiment need no new mapping, and no value is taken for another.
    pub values: Option<Vec<AxisValue>>,
}

/// Cells of one swept value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// Parts that the value's text in the file must contain, apart from white space.
    pub holding: Vec<String>,
    /// Its cell in each column.
    #[serde(deserialize_with = "texts")]
    pub cells: Vec<String>,
}

/// One table of the study.
#[derive(Debug)]
pub struct Table {
    /// Its CSV file's name, without `.csv`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The values to compare it with.
    pub reference: Reference,
    /// The columns that tell rows apart, in their order.
    pub keys: Vec<String>,
    /// The other columns, in their order.
    pub metrics: Vec<Metric>,
    /// The source of its rows.
    pub rows: Rows,
}

/// The values that a table is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The published table.
    Published(&'static str),
    /// The paper has no such table.
    Own,
}

impl Reference {
    /// The published table.
    pub fn published(self) -> Option<&'static str> {
        match self {
            Reference::Published(text) => Some(text),
            Reference::Own => None,
        }
    }
}

/// The source of a table's rows.
#[derive(Debug)]
pub enum Rows {
    /// They are those of the published table, and its figures follow from formulas.
    Formula,
    /// One for every point of an experiment whose cells are these.
    Points {
        /// The experiment's file.
        file: String,
        /// Columns that select points. They need not be columns of the table.
        only: Cells,
        /// The same for points that are left out.
        without: Cells,
    },
    /// One for every flow of an experiment that has one point, with its cells in the table's keys. It is not simulated but
    /// measured live, from this machine to itself.
    Flows {
        /// The experiment's file.
        file: String,
        /// The flows.
        flows: Vec<(String, Vec<String>)>,
    },
}

/// A column of figures.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name, with the unit.
    pub column: String,
    /// Number of digits that the paper prints behind the point.
    pub decimals: usize,
    /// The source of the simulated figure.
    pub(crate) reading: Reading,
}

impl Metric {
    /// True if its figures come from a run, and not from a formula or the paper.
    pub fn is_run(&self) -> bool {
        matches!(self.reading, Reading::Run(_))
    }
}

/// A figure of the paper, drawn from its tables.
#[derive(Debug)]
pub struct Figure {
    /// Its number in the paper.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// The key columns on the x axis: a place for every combination of their values, in the table's order. Sizes too
    /// are places and not distances: papers choose them in pairs (64 and 65 bytes) to show a step between the two.
    pub x: Vec<String>,
    /// Label of the x axis, with the unit.
    pub x_label: String,
    /// The drawn column.
    pub metric: String,
    /// Label of the y axis, with the unit.
    pub y_label: String,
    /// True if the y axis is logarithmic.
    pub factors: bool,
    /// Its lines.
    pub series: Vec<Series>,
}

/// One line of a figure.
#[derive(Debug)]
pub struct Series {
    /// Its label.
    pub label: String,
    /// The table that it draws.
    pub table: String,
    /// The rows that have these cells.
    pub only: Cells,
}

/// A figure of the latency of every message of one flow at one point, in the order of sending.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scatter {
    /// Its name in files and links: `scatter-sppt-0064`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The table that is drawn from the same experiment: the scatter is drawn if that is run.
    pub table: String,
    /// The row of that table.
    #[serde(deserialize_with = "cells")]
    pub only: Cells,
    /// The flow.
    pub flow: String,
    /// True if it shows half of the round trip.
    #[serde(default)]
    pub halved: bool,
}

/// A goal of the simulation. Shares are from 0 to 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Goal {
    /// Relative errors of these columns, over all cells of these tables.
    Error {
        /// The tables.
        tables: Vec<String>,
        /// Their columns.
        columns: Vec<String>,
        /// The rows that have these cells.
        #[serde(default, deserialize_with = "cells")]
        only: Cells,
        /// The largest median.
        median: f64,
        /// The largest error of any cell.
        worst: Option<f64>,
    },
    /// Every cell as printed, digit by digit; cells that the paper itself contradicts are counted apart.
    Exact {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Counts: every cell within a number, or within a share of the published value.
    Count {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The largest difference that is not an error.
        within: f64,
        /// The same as a share of the published value.
        share: f64,
    },
    /// A conclusion of the study, in words.
    Conclusion {
        /// The question.
        question: String,
        /// The paper's answer, if it gives one.
        published: Option<String>,
        /// The reason why ours, if it is simulated, is not a prediction: the model was given it.
        given: Option<String>,
        /// The rule that finds ours, in the same words.
        find: Finding,
    },
    /// A figure of one table over the same figure of another, row by row, in the median.
    Factor {
        /// Its text.
        title: String,
        /// The table above the line.
        over: String,
        /// The table below it.
        under: String,
        /// Rows that have these cells.
        #[serde(default, deserialize_with = "cells")]
        only: Cells,
        /// The column.
        column: String,
        /// The largest difference of the median from the published one, as a share of it.
        within: f64,
    },
}

/// Published values that the simulation cannot reproduce, and the reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The tables.
    pub tables: Vec<String>,
    /// The rows that have these cells.
    #[serde(default, deserialize_with = "cells")]
    pub only: Cells,
    /// The reason, in whole sentences.
    pub text: String,
}

/// The worth of a cell of ours as a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The published value, or one that determines it, went into a constant.
    Fitted,
    /// A rule of the model was read off it.
    Structural,
    /// It was seen, and not used.
    #[default]
    #[serde(skip_deserializing)]
    Predicted,
    /// It was not seen until the model was fixed.
    Blind,
    /// No run has it: a formula of the paper, one of its values, or a setting.
    Formula,
}

impl Class {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Class; 5] =
        [Class::Fitted, Class::Structural, Class::Predicted, Class::Blind, Class::Formula];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fitted => "fitted",
            Class::Structural => "structural",
            Class::Predicted => "predicted",
            Class::Blind => "blind",
            Class::Formula => "formula",
        }
    }

    /// True if goals count its cells.
    pub fn is_prediction(self) -> bool {
        matches!(self, Class::Predicted | Class::Blind)
    }
}

/// Cells that are not simply predictions, and the constants that were taken from them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classed {
    /// The class.
    pub class: Class,
    /// In these tables.
    pub tables: Vec<String>,
    /// In these columns; all that come from a run if none are named.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The rows that have these cells.
    #[serde(default, deserialize_with = "cells")]
    pub only: Cells,
    /// The constants or rules that were taken from them, one by one; none if another class has them already.
    #[serde(default)]
    pub constants: Vec<String>,
}

/// A calibration: a constant and the cells that it is found from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The constant, as a class names it, or the part of that name that all constants found so share.
    pub constant: String,
    /// Its value in the files, with its unit; for a formula, the name of the number in the swept texts.
    pub value: String,
    /// The keys of the experiments that have it.
    #[serde(default)]
    pub keys: Vec<String>,
    /// The text that the keys are set to, with `VALUE` in place of the value, if that is not the value alone.
    pub template: Option<String>,
    /// The tables of the cells.
    pub tables: Vec<String>,
    /// Their column.
    pub column: String,
    /// The rows that have these cells.
    #[serde(default, deserialize_with = "cells")]
    pub only: Cells,
    /// The rule.
    pub rule: Rule,
    /// A key column: the cells are the growth of the column from its smallest value to its largest, in the mean over rows.
    pub growth: Option<String>,
    /// The values, as `value` is written, among which the rule `choice` chooses.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The formula of each cell (`cell`) and the key columns of its row.
    #[serde(default, deserialize_with = "optional")]
    pub(crate) formula: Option<Expression<String>>,
    /// The largest difference of what is found from the value, as a share of it.
    pub within: f64,
}

/// A rule by which a constant is found from cells, all other constants as they are in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The mean error over the cells is zero.
    Match,
    /// The largest error over the cells is smallest.
    SmallestWorst,
    /// The squares of the errors have the smallest sum.
    LeastSquares,
    /// A formula gives one constant for each cell.
    Formula,
    /// The choice with the smallest sum of squared errors.
    Choice,
    /// Whole multiples of the constant lie nearest to what a formula makes of the published cells.
    Quantum,
}

/// Cells that say again what others say, so that medians, counts and goals leave them out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// In these tables.
    pub tables: Vec<String>,
    /// In these columns; all if none are named.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The rows that have these cells.
    #[serde(default, deserialize_with = "cells")]
    pub only: Cells,
    /// The cells that they repeat.
    pub of: String,
}

/// Published cells without a figure of ours.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotReproduced {
    /// The name of the published table.
    pub table: String,
    /// Its columns; all if none are named.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Rows that have these cells.
    #[serde(default, deserialize_with = "cells")]
    pub only: Cells,
    /// The reason, in a sentence.
    pub reason: String,
}

impl Table {
    /// The files of the experiments behind it, that of its rows first.
    pub fn files(&self) -> Vec<&str> {
        let mut files = Vec::new();
        if let Rows::Points { file, .. } | Rows::Flows { file, .. } = &self.rows {
            files.push(file.as_str());
        }
        for metric in &self.metrics {
            match metric.reading.elsewhere() {
                Some(file) if !files.contains(&file) => files.push(file),
                _ => {}
            }
        }
        files
    }
}

impl Study {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The notes on this table.
    pub fn notes(&self, table: &str) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.tables.iter().any(|of| of == table))
    }

    /// The paths of its experiment files, then of what these name.
    pub fn experiment_files(&self) -> impl Iterator<Item = &'static str> {
        let is_of = |named: bool| {
            let paths =
                self.files.paths().filter(|path| path.ends_with(".toml") && *path != crate::read::FILE);
            paths.filter(move |path| path.contains('/') == named)
        };
        is_of(false).chain(is_of(true))
    }

    /// The number of constants that were taken from cells.
    pub fn constants(&self) -> usize {
        self.classes.iter().map(|class| class.constants.len()).sum()
    }

    /// The class of a cell of a published table.
    pub(crate) fn class(&self, table: &str, keys: &Keys, metric: &Metric) -> Class {
        let is_of =
            |class: &&Classed| selects(&class.tables, &class.columns, &class.only, (table, keys, metric));
        match self.classes.iter().find(is_of) {
            Some(class) if metric.is_run() || !class.columns.is_empty() => class.class,
            _ if metric.is_run() => Class::Predicted,
            _ => Class::Formula,
        }
    }

    /// True if a cell says again what another says.
    pub(crate) fn is_repeat(&self, table: &str, keys: &Keys, metric: &Metric) -> bool {
        let cell = (table, keys, metric);
        self.repeats.iter().any(|repeat| selects(&repeat.tables, &repeat.columns, &repeat.only, cell))
    }

    /// The text of an embedded file.
    pub fn file(&self, path: &str) -> Option<&'static str> {
        self.files.file(path)
    }
}

/// True if these tables, columns (all if there are none) and rows have the cell.
fn selects(
    tables: &[String],
    columns: &[String],
    only: &Cells,
    (table, keys, metric): (&str, &Keys, &Metric),
) -> bool {
    let is_of_column = columns.is_empty() || columns.contains(&metric.column);
    is_of_column && tables.iter().any(|of| of == table) && keys.are(only)
}

/// A cell in a study's file: numbers need no quotes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a cell must be a text or a whole number")]
enum Written {
    Text(String),
    Whole(i64),
}

impl From<Written> for String {
    fn from(written: Written) -> String {
        match written {
            Written::Text(text) => text,
            Written::Whole(number) => number.to_string(),
        }
    }
}

/// Reads a list of cells.
pub(crate) fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Written>::deserialize(from)?.into_iter().map(String::from).collect())
}

/// Reads a table of columns and their cells.
pub(crate) fn cells<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Cells, D::Error> {
    let cells = BTreeMap::<String, Written>::deserialize(from)?;
    Ok(cells.into_iter().map(|(column, cell)| (column, cell.into())).collect())
}

/// Reads an expression that may be left out.
pub(crate) fn optional<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<Expression<String>>, D::Error> {
    expression(from).map(Some)
}

/// Reads an expression of named values.
pub(crate) fn expression<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Expression<String>, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

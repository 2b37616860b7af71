//! Reads a study's `study.toml`. Every file, column, figure, table and key that it names must exist. Problems have places,
//! like those of an experiment file.

mod columns;
mod selections;

use core::ops::Range;
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use trunkline_experiment::{Problems, suggestion};

use crate::expression::Expression;
use crate::reading::Reading;
use crate::study::{
    Axis, Calibration, Cells, Classed, Experiment, Folder, Goal, Metric, NotReproduced, Note, Reference,
    Repeat, Rows, Rule, Scatter, Study, Table, cells, expression, texts,
};

/// The file that says what a study is, in its folder.
pub(crate) const FILE: &str = "study.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    title: String,
    authors: String,
    year: u16,
    reproduced: String,
    #[serde(default)]
    wired: Vec<String>,
    /// Experiment files with the names of their axes.
    experiments: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    axis: BTreeMap<String, Axis>,
    column: BTreeMap<String, WrittenColumn>,
    table: Vec<WrittenTable>,
    #[serde(default)]
    figure: Vec<WrittenFigure>,
    #[serde(default)]
    scatter: Vec<Scatter>,
    #[serde(default)]
    goal: Vec<Goal>,
    #[serde(default)]
    note: Vec<Note>,
    #[serde(default)]
    class: Vec<Classed>,
    #[serde(default)]
    calibration: Vec<Calibration>,
    #[serde(default)]
    repeat: Vec<Repeat>,
    #[serde(default)]
    elsewhere: Vec<String>,
    #[serde(default)]
    not_reproduced: Vec<NotReproduced>,
}

/// A column of figures, for the tables that name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenColumn {
    /// Its name in tables, if that is not the one here.
    column: Option<String>,
    decimals: usize,
    value: Option<WrittenValue>,
    unit: Option<String>,
    flow: Option<String>,
    sink: Option<String>,
    #[serde(default)]
    own_flow: bool,
    bundle: Option<String>,
    transport: Option<String>,
    link: Option<String>,
    host: Option<String>,
    experiment: Option<String>,
    published: Option<WrittenCell>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct WrittenValue(#[serde(deserialize_with = "expression")] Expression<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCell {
    table: String,
    column: String,
    #[serde(default, deserialize_with = "cells")]
    only: Cells,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTable {
    name: String,
    title: String,
    #[serde(default)]
    reference: WrittenReference,
    keys: Vec<String>,
    columns: Vec<String>,
    experiment: Option<String>,
    #[serde(default, deserialize_with = "cells")]
    only: Cells,
    #[serde(default, deserialize_with = "cells")]
    without: Cells,
    #[serde(default)]
    flows: Vec<WrittenFlow>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenReference {
    #[default]
    Published,
    Own,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFlow {
    flow: String,
    #[serde(deserialize_with = "texts")]
    cells: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenFigure {
    number: u32,
    title: String,
    x: Vec<String>,
    x_label: String,
    column: String,
    y_label: String,
    #[serde(default)]
    factors: bool,
    /// The table of all series that do not name one.
    table: Option<String>,
    #[serde(default, deserialize_with = "cells")]
    only: Cells,
    series: Vec<WrittenSeries>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSeries {
    label: String,
    table: Option<String>,
    #[serde(default, deserialize_with = "cells")]
    only: Cells,
}

/// The study in a folder.
///
/// # Errors
/// The problems of its file, each with its place.
pub(crate) fn read(files: Folder) -> Result<Study, Problems> {
    let name = format!("papers/{}/{FILE}", files.study);
    let text = files.file(FILE).unwrap_or("");
    let placed = |remarks: Vec<(Range<usize>, String)>| Problems::of(&name, text, remarks);
    let written: Written = match toml::from_str(text) {
        Ok(written) => written,
        Err(error) => {
            let remark = (error.span().unwrap_or(0..0), plain(error.message()));
            // There is one remark.
            return Err(placed(vec![remark]).unwrap_or_else(|| unreachable!("a remark is a problem")));
        }
    };
    let root = DeTable::parse(text).map(|root| root.into_inner()).unwrap_or_default();
    let mut reader = Reader { files, root: &root, remarks: Vec::new() };
    let study = reader.study(written);
    match placed(reader.remarks) {
        Some(problems) => Err(problems),
        None => Ok(study),
    }
}

/// Rewords serde's message as other readers word it.
fn plain(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((name, known)) if message.starts_with("unknown field") => {
            format!("unknown key `{name}`{}", suggestion(name, known.iter().copied()))
        }
        Some((name, known)) if message.starts_with("unknown variant") => {
            format!("unknown word `{name}`{}", suggestion(name, known.iter().copied()))
        }
        Some((name, _)) if message.starts_with("missing field") => format!("the key `{name}` is missing"),
        _ => message.lines().collect::<Vec<_>>().join(", "),
    }
}

struct Reader<'t> {
    files: Folder,
    root: &'t DeTable<'t>,
    remarks: Vec<(Range<usize>, String)>,
}

impl Reader<'_> {
    /// A remark on the value that a path of keys and places leads to, with slashes between them; the nearest above it
    /// stands for one that is not there.
    fn wrong(&mut self, path: &str, message: impl Into<String>) {
        let mut steps = path.split('/');
        let first = steps.next().and_then(|step| self.root.get(step));
        let mut span = first.map_or(0..0, |node| node.span());
        let mut node = first.map(|node| node.get_ref());
        for step in steps {
            let below = match node {
                // The key of a single name is in the singular.
                Some(DeValue::Table(table)) => {
                    table.get(step).or(table.get(step.strip_suffix('s').unwrap_or(step)))
                }
                Some(DeValue::Array(items)) => step.parse().ok().and_then(|place: usize| items.get(place)),
                _ => None,
            };
            let Some(below) = below else { break };
            (span, node) = (below.span(), Some(below.get_ref()));
        }
        self.remarks.push((span, message.into()));
    }

    /// Checks that a name is one of the known ones.
    fn is_known<'k>(
        &mut self,
        path: &str,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> bool {
        let known: Vec<&str> = known.into_iter().collect();
        let is_known = known.contains(&name);
        if !is_known {
            self.wrong(path, format!("unknown {what} `{name}`{}", suggestion(name, known)));
        }
        is_known
    }

    fn study(&mut self, written: Written) -> Study {
        let experiments = self.experiments(&written);
        for (place, file) in written.wired.iter().enumerate() {
            self.is_known(&format!("wired/{place}"), "experiment", file, files_of(&experiments));
        }
        let mut tables = Vec::new();
        for (place, table) in written.table.iter().enumerate() {
            let table = self.table(place, table, &written.column, &experiments);
            if tables.iter().any(|other: &Table| other.name == table.name) {
                self.wrong(&format!("table/{place}/name"), format!("there are two tables `{}`", table.name));
            }
            tables.push(table);
        }
        for table in &tables {
            for metric in &table.metrics {
                self.published_elsewhere(metric, &tables, &written.column);
            }
        }
        let figures = written.figure.into_iter().enumerate();
        let figures = figures.map(|(place, figure)| self.figure(place, figure, &tables)).collect();
        self.others(&written.scatter, &written.goal, &tables);
        for (place, note) in written.note.iter().enumerate() {
            self.selection(&format!("note/{place}"), &note.tables, &[], &note.only, &tables);
        }
        for (place, class) in written.class.iter().enumerate() {
            self.selection(&format!("class/{place}"), &class.tables, &class.columns, &class.only, &tables);
        }
        for (place, calibration) in written.calibration.iter().enumerate() {
            let (path, columns) =
                (format!("calibration/{place}"), core::slice::from_ref(&calibration.column));
            self.selection(&path, &calibration.tables, columns, &calibration.only, &tables);
            let has_formula = matches!(calibration.rule, Rule::Formula | Rule::Quantum);
            if has_formula != calibration.formula.is_some() {
                self.wrong(
                    &path,
                    "the rules `formula` and `quantum` need a `formula`, and no other rule has one",
                );
            }
            if (calibration.rule == Rule::Choice) != calibration.choices.contains(&calibration.value) {
                self.wrong(
                    &path,
                    "the rule `choice` needs `choices` with the `value`, and no other rule has them",
                );
            }
        }
        for (place, repeat) in written.repeat.iter().enumerate() {
            let path = format!("repeat/{place}");
            self.selection(&path, &repeat.tables, &repeat.columns, &repeat.only, &tables);
        }
        Study {
            name: self.files.study.to_owned(),
            title: written.title,
            authors: written.authors,
            year: written.year,
            reproduced: written.reproduced,
            files: self.files,
            wired: written.wired,
            experiments,
            tables,
            figures,
            scatters: written.scatter,
            goals: written.goal,
            notes: written.note,
            classes: written.class,
            calibrations: written.calibration,
            repeats: written.repeat,
            elsewhere: written.elsewhere,
            not_reproduced: written.not_reproduced,
        }
    }

    fn experiments(&mut self, written: &Written) -> Vec<Experiment> {
        for (name, axis) in &written.axis {
            let width = axis.columns.len();
            if axis.values.is_none() && width != 1 {
                self.wrong(
                    &format!("axis/{name}/columns"),
                    "a number is the cell of one column; more need `values`",
                );
            }
            for (place, value) in axis.values.iter().flatten().enumerate() {
                if value.cells.len() != width {
                    let message = format!(
                        "there must be a cell for each of {width} columns, not {}",
                        value.cells.len()
                    );
                    self.wrong(&format!("axis/{name}/values/{place}/cells"), message);
                }
            }
        }
        let mut experiments = Vec::new();
        for (file, names) in &written.experiments {
            if self.files.file(file).is_none() {
                self.wrong(
                    &format!("experiments/{file}"),
                    format!("there is no file `{file}` in the study's folder"),
                );
            }
            let mut axes = Vec::new();
            for (place, name) in names.iter().enumerate() {
                let path = format!("experiments/{file}/{place}");
                self.is_known(&path, "axis", name, written.axis.keys().map(String::as_str));
                axes.extend(written.axis.get(name).cloned());
            }
            experiments.push(Experiment { file: file.clone(), axes });
        }
        experiments
    }

    fn table(
        &mut self,
        place: usize,
        table: &WrittenTable,
        columns: &BTreeMap<String, WrittenColumn>,
        experiments: &[Experiment],
    ) -> Table {
        let path = format!("table/{place}");
        let file = format!("reference/{}.csv", table.name);
        let reference = match (table.reference, self.files.file(&file)) {
            (WrittenReference::Own, _) => Reference::Own,
            (WrittenReference::Published, Some(text)) => Reference::Published(text),
            (WrittenReference::Published, None) => {
                self.wrong(
                    &format!("{path}/name"),
                    format!("there is no published table `{file}` in the study's folder"),
                );
                Reference::Own
            }
        };
        let mut metrics: Vec<Metric> = Vec::new();
        for (place, id) in table.columns.iter().enumerate() {
            let path = format!("{path}/columns/{place}");
            self.is_known(&path, "column", id, columns.keys().map(String::as_str));
            let Some(column) = columns.get(id) else { continue };
            if let Some(file) = &column.experiment {
                self.is_known(&format!("column/{id}/experiment"), "experiment", file, files_of(experiments));
            }
            let Some(reading) = self.reading(id, column) else { continue };
            if let Reading::Formula(formula) = &reading {
                for name in formula.names() {
                    self.is_known(&path, &format!("key column of `{id}`"), name, keys_of(table));
                }
            }
            let column_name = column.column.as_ref().unwrap_or(id);
            if metrics.iter().any(|other| other.column == *column_name) {
                self.wrong(&path, format!("there are two columns `{column_name}`"));
            }
            metrics.push(Metric { column: column_name.clone(), decimals: column.decimals, reading });
        }
        let (name, title) = (table.name.clone(), table.title.clone());
        let rows = self.rows(&path, table, experiments);
        Table { name, title, reference, keys: table.keys.clone(), metrics, rows }
    }

    fn rows(&mut self, path: &str, table: &WrittenTable, experiments: &[Experiment]) -> Rows {
        let Some(file) = &table.experiment else {
            if !(table.only.is_empty() && table.without.is_empty() && table.flows.is_empty()) {
                self.wrong(path, "rows are chosen from an `experiment`, which is missing");
            }
            return Rows::Formula;
        };
        let is_known =
            self.is_known(&format!("{path}/experiment"), "experiment", file, files_of(experiments));
        if !table.flows.is_empty() {
            for (place, flow) in table.flows.iter().enumerate() {
                if flow.cells.len() != table.keys.len() {
                    let message = format!(
                        "there must be a cell for each of {} keys, not {}",
                        table.keys.len(),
                        flow.cells.len()
                    );
                    self.wrong(&format!("{path}/flows/{place}/cells"), message);
                }
            }
            let flows = table.flows.iter().map(|flow| (flow.flow.clone(), flow.cells.clone())).collect();
            return Rows::Flows { file: file.clone(), flows };
        }
        let rows =
            Rows::Points { file: file.clone(), only: table.only.clone(), without: table.without.clone() };
        if !is_known {
            return rows;
        }
        let axes = experiments.iter().filter(|experiment| experiment.file == *file);
        let columns: Vec<&str> = axes
            .flat_map(|experiment| &experiment.axes)
            .flat_map(|axis| &axis.columns)
            .map(String::as_str)
            .collect();
        let what = format!("column of {file}");
        for (key, cells) in [("only", &table.only), ("without", &table.without)] {
            for (column, _) in cells {
                self.is_known(&format!("{path}/{key}/{column}"), &what, column, columns.iter().copied());
            }
        }
        for (place, key) in table.keys.iter().enumerate() {
            self.is_known(&format!("{path}/keys/{place}"), &what, key, columns.iter().copied());
        }
        rows
    }
}

fn keys_of(table: &WrittenTable) -> impl Iterator<Item = &str> {
    table.keys.iter().map(String::as_str)
}

fn files_of(experiments: &[Experiment]) -> impl Iterator<Item = &str> {
    experiments.iter().map(|experiment| experiment.file.as_str())
}

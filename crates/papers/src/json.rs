//! Results as JSON: an object for every cell.

use std::collections::BTreeMap;

use serde_json::{Number, Value as Json};
use trunkline_store::Backend;

use crate::calibrate::Recalibrated;
use crate::output::{ListedStudy, Studies, StudyCell, StudyConstant};
use crate::results::{Cell, Results, Row, TableResults};
use crate::study::{Class, Metric, Study};
use crate::value::{Keys, Value};

/// The name of the layout of a cell.
pub const CELL_KIND: &str = "study-cell";
/// The version of the layout of a cell: it grows when a key changes its meaning or goes away, not when one is added.
pub const CELL_FORMAT: u32 = 1;

/// The name of the layout of a constant.
pub const CONSTANT_KIND: &str = "study-constant";
/// The version of the layout of a constant.
pub const CONSTANT_FORMAT: u32 = 1;

/// A constant that was found again.
pub fn constant(study: &'static Study, found: &Recalibrated) -> StudyConstant {
    StudyConstant {
        paper: &study.name,
        constant: found.constant.clone(),
        cells: found.cells.clone(),
        value: json_of(&found.value),
        found: found.found.as_ref().map(json_of),
        unit: found.unit.clone(),
        within: found.within,
    }
}

/// Every cell as a line of its own: [`StudyCell`] says what is in it.
pub fn json(results: &Results) -> String {
    let mut lines = String::new();
    for table in &results.tables {
        for row in &table.rows {
            for (metric, cell) in table.table.metrics.iter().zip(&row.cells) {
                // Keys are strings.
                let line = serde_json::to_string(&of_cell(results, table, row, (metric, cell)));
                lines.push_str(&line.unwrap_or_default());
                lines.push('\n');
            }
        }
    }
    lines
}

fn of_cell(results: &Results, table: &TableResults, row: &Row, cell: (&'static Metric, &Cell)) -> StudyCell {
    let (metric, cell) = cell;
    let published = cell.published.as_ref().map(|published| published.number);
    let quoted = cell.simulated.filter(|_| table.is_quoted(metric));
    let found = cell.simulated.filter(|_| quoted.is_none()).map(number);
    let is_simulated = table.on == Backend::Sim;
    let note = results.study.notes(&table.table.name).find(|note| row.keys.are(&note.only));
    StudyCell {
        kind: CELL_KIND,
        format: CELL_FORMAT,
        paper: &results.study.name,
        table: &table.table.name,
        row: keys(&row.keys),
        metric: &metric.column,
        published: published.or(quoted).map(number),
        simulated: found.clone().filter(|_| is_simulated),
        measured: (!is_simulated).then_some(found),
        on: (!is_simulated).then(|| table.on.into()),
        class: cell.class.map(Class::name),
        blind: cell.blind.map(number),
        doubt: cell.doubt.name(),
        repeats: cell.repeats,
        note: note.map(|note| note.text.as_str()),
    }
}

/// The studies.
pub fn listed(studies: &'static [Study]) -> Studies {
    let study = |study: &'static Study| ListedStudy {
        name: &study.name,
        title: &study.title,
        authors: &study.authors,
        year: study.year,
        reproduced: &study.reproduced,
        tables: study.tables.iter().map(|table| table.name.as_str()).collect(),
        figures: study.figures.iter().map(|figure| figure.number).collect(),
    };
    Studies { studies: studies.iter().map(study).collect() }
}

fn keys(keys: &Keys) -> BTreeMap<String, Json> {
    keys.0.iter().map(|(column, value)| ((*column).to_owned(), json_of(value))).collect()
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Number(value) => Json::Number(number(*value)),
        Value::Word(word) => Json::String(word.clone()),
    }
}

/// Whole numbers without a point, as the tables print them.
fn number(value: f64) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Number::from(value as i64);
    }
    Number::from_f64(value).unwrap_or_else(|| Number::from(0))
}

//! Studies and their results as the API shows them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use trunkline_papers::{
    Class, ClassErrors, Doubt, Outcome, Results, Row, TableResults, Value, classes, judge,
};

use crate::api::{
    ApiError, Paper, PaperCell, PaperClass, PaperClassErrors, PaperColumn, PaperFigure, PaperGoal,
    PaperRealTime, PaperRow, PaperTable, PaperTableName,
};

/// A study with our values; `is_kept` says which of its figures were drawn when it was repeated.
pub(super) fn paper(results: &Results, is_kept: impl Fn(&str) -> bool) -> Paper {
    let (study, drawn) = (results.study, trunkline_papers::drawn(results));
    let ours = |name: &str| drawn.iter().any(|drawn| drawn == name) || is_kept(name);
    let table = |table: &trunkline_papers::Table| PaperTableName {
        name: table.name.clone(),
        title: table.title.clone(),
    };
    Paper {
        name: study.name.clone(),
        title: study.title.clone(),
        authors: study.authors.clone(),
        year: study.year,
        reproduced: study.reproduced.clone(),
        tables: study.tables.iter().map(table).collect(),
        figures: figures(study)
            .map(|(name, title, tables)| PaperFigure { ours: ours(&name), name, title, tables })
            .collect(),
        classes: class_errors(results),
        goals: goals(results),
    }
}

/// The tables that take real time. This reads the experiments of the study, which the list of studies does not wait for.
pub(super) fn real_time(study: &'static trunkline_papers::Study) -> Result<Vec<PaperRealTime>, ApiError> {
    let shown = |one: trunkline_papers::RealTime| PaperRealTime {
        on: one.on.into(),
        tables: one.tables.into_iter().map(str::to_owned).collect(),
        length_s: one.length.as_secs_f64(),
        blocks: one.blocks,
    };
    let found = trunkline_papers::real_time(study).map_err(super::repeat::failure)?;
    Ok(found.into_iter().map(shown).collect())
}

/// The names of a study's figures, which are those of their files, their titles, and the tables that they draw.
pub(super) fn figures(
    study: &trunkline_papers::Study,
) -> impl Iterator<Item = (String, String, Vec<String>)> {
    let numbered = study.figures.iter().map(|figure| {
        let tables: BTreeSet<&String> = figure.series.iter().map(|series| &series.table).collect();
        let title = format!("Figure {}: {}", figure.number, figure.title);
        (format!("figure-{:02}", figure.number), title, tables.into_iter().cloned().collect())
    });
    let scatters = study.scatters.iter();
    numbered.chain(scatters.map(|one| (one.name.clone(), one.title.clone(), vec![one.table.clone()])))
}

/// Words of a study's key columns, as its figures spell them: labels of lines that have one word in common.
pub(super) fn words(study: &trunkline_papers::Study) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for series in study.figures.iter().flat_map(|figure| &figure.series) {
        if let [(_, word)] = &series.only[..]
            && word.starts_with(char::is_alphabetic)
        {
            words.entry(word.clone()).or_insert_with(|| series.label.clone());
        }
    }
    words
}

/// The tables of which there are results.
pub(super) fn tables(results: &Results) -> Vec<PaperTable> {
    results.tables.iter().map(|table| self::table(results, table)).collect()
}

/// The errors of each class, as the terminal prints them.
fn class_errors(results: &Results) -> Vec<PaperClassErrors> {
    let worst = |worst: Option<(f64, String)>| worst.map(|(error, _)| error);
    let of_class = |ClassErrors { class, cells, errors, when_blind }| PaperClassErrors {
        class: self::class(class),
        cells,
        median: errors.median,
        worst: worst(errors.worst),
        blind_median: when_blind.median,
        blind_worst: worst(when_blind.worst),
        zeros: errors.zeros,
        zeros_alike: errors.zeros_alike,
    };
    classes(results).into_iter().map(of_class).collect()
}

fn class(class: Class) -> PaperClass {
    match class {
        Class::Fitted => PaperClass::Fitted,
        Class::Structural => PaperClass::Structural,
        Class::Predicted => PaperClass::Predicted,
        Class::Blind => PaperClass::Blind,
        Class::Formula => PaperClass::Formula,
    }
}

/// Puts the kept values in place of those that the program came with.
pub(super) fn fill(results: &mut Results, kept: &[PaperTable]) {
    for found in &mut results.tables {
        let Some(table) = kept.iter().find(|table| table.name == found.table.name) else { continue };
        found.on = table.on.map_or(found.on, Into::into);
        for row in &mut found.rows {
            let keys = keys(row);
            let Some(kept) = table.rows.iter().find(|kept| kept.keys == keys) else { continue };
            for (cell, kept) in row.cells.iter_mut().zip(&kept.cells) {
                cell.simulated = kept.ours.or(cell.simulated);
            }
        }
    }
}

/// What was to be reached, as far as it can be judged by these results.
pub(super) fn goals(results: &Results) -> Vec<PaperGoal> {
    let goal = |judged: trunkline_papers::Judged| PaperGoal {
        title: judged.goal,
        found: judged.found,
        met: match judged.outcome {
            Outcome::Met => Some(true),
            Outcome::Missed => Some(false),
            Outcome::NotJudged => None,
        },
    };
    judge(results).into_iter().map(goal).collect()
}

fn table(results: &Results, found: &TableResults) -> PaperTable {
    let column = |metric: &trunkline_papers::Metric| PaperColumn {
        name: metric.column.clone(),
        decimals: metric.decimals,
    };
    let rows: Vec<PaperRow> = found.rows.iter().map(|row| self::row(results, found, row)).collect();
    PaperTable {
        name: found.table.name.clone(),
        title: found.table.title.clone(),
        keys: found.table.keys.clone(),
        columns: found.table.metrics.iter().map(column).collect(),
        ours: rows.iter().any(has_ours),
        here: false,
        // What follows from a formula was not run anywhere.
        on: rows.iter().any(|row| was_run(found, row)).then(|| found.on.into()),
        rows,
    }
}

pub(super) fn has_ours(row: &PaperRow) -> bool {
    row.cells.iter().any(|cell| cell.ours.is_some())
}

fn was_run(found: &TableResults, row: &PaperRow) -> bool {
    let mut cells = row.cells.iter().zip(&found.table.metrics);
    cells.any(|(cell, metric)| cell.ours.is_some() && metric.is_run())
}

fn row(results: &Results, found: &TableResults, row: &Row) -> PaperRow {
    let note = results.study.notes(&found.table.name).find(|note| row.keys.are(&note.only));
    PaperRow {
        keys: keys(row),
        cells: row.cells.iter().map(cell).collect(),
        note: note.map(|note| note.text.clone()),
    }
}

fn keys(row: &Row) -> BTreeMap<String, Json> {
    row.keys.0.iter().map(|(column, value)| ((*column).to_owned(), json_of(value))).collect()
}

fn cell(cell: &trunkline_papers::Cell) -> PaperCell {
    PaperCell {
        published: cell.published.as_ref().map(|printed| printed.text.clone()),
        doubtful: cell.doubt != Doubt::None,
        ours: cell.simulated.filter(|ours| ours.is_finite()),
        error: cell.error(),
        class: cell.class.map(class),
        repeats: cell.repeats,
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => Json::from(*number as i64),
        Value::Number(number) => Json::from(*number),
        Value::Word(word) => Json::from(word.as_str()),
    }
}

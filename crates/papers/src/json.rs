//! Results as JSON: a line for every cell.

use core::fmt::Write as _;

use serde_json::{Map, Number, Value as Json, json};

use trunkline_store::Backend;

use crate::results::Results;
use crate::study::{Note, Study};
use crate::value::{Keys, Value};

/// Every cell as a line of its own: `paper`, `table`, `row` (its key columns), `metric`, `published` (null if it was
/// not, or is not at hand) and `simulated`, or `measured` and `on` what, wire or live; and, where the simulation cannot follow, a `note` that says why.
pub fn json(results: &Results) -> String {
    let mut lines = String::new();
    for table in &results.tables {
        let notes: Vec<&Note> = results.study.notes(table.table.name).collect();
        for row in &table.rows {
            let note = notes.iter().find(|note| row.keys.are(note.only));
            for (metric, cell) in table.table.metrics.iter().zip(&row.cells) {
                let published = cell.published.as_ref().map(|published| published.number);
                let quoted = cell.simulated.filter(|_| table.is_quoted(metric));
                let found = cell.simulated.filter(|_| quoted.is_none());
                let mut line = json!({
                    "paper": results.study.name,
                    "table": table.table.name,
                    "row": keys(&row.keys),
                    "metric": metric.column,
                    "published": published.or(quoted).map(number),
                    "simulated": found.filter(|_| table.on == Backend::Sim).map(number),
                });
                if table.on != Backend::Sim {
                    line["measured"] = json!(found.map(number));
                    line["on"] = json!(table.on);
                }
                if let Some(note) = note {
                    line["note"] = Json::from(note.text);
                }
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{line}");
            }
        }
    }
    lines
}

/// The studies, as `trunkline papers --json` prints them.
pub fn listed(studies: &[&Study]) -> Json {
    let study = |study: &&Study| {
        json!({
            "name": study.name,
            "title": study.title,
            "authors": study.authors,
            "year": study.year,
            "reproduced": study.reproduced,
            "tables": study.tables.iter().map(|table| table.name).collect::<Vec<_>>(),
            "figures": study.figures.iter().map(|figure| figure.number).collect::<Vec<_>>(),
        })
    };
    json!({ "format": 1, "studies": studies.iter().map(study).collect::<Vec<_>>() })
}

fn keys(keys: &Keys) -> Map<String, Json> {
    let cell = |value: &Value| match value {
        Value::Number(value) => Json::Number(number(*value)),
        Value::Word(word) => Json::String(word.clone()),
    };
    keys.0.iter().map(|(column, value)| ((*column).to_owned(), cell(value))).collect()
}

/// Whole numbers without a point, as the tables print them.
fn number(value: f64) -> Number {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Number::from(value as i64);
    }
    Number::from_f64(value).unwrap_or_else(|| Number::from(0))
}

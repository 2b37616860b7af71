//! Published tables: CSV files with key columns first, and figures as printed.

use crate::results::Printed;
use crate::study::Table;
use crate::value::{Keys, Value};

/// A row of a published table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublishedRow {
    pub(crate) keys: Keys,
    /// One per metric of the table, in its order; `None` where the print has no figure.
    pub(crate) cells: Vec<Option<Printed>>,
}

/// Reads a published table; its columns must be the table's, keys first.
pub(crate) fn read(text: &str, table: &'static Table) -> Result<Vec<PublishedRow>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wanted: Vec<&str> = columns(table).collect();
    let header = reader.headers().map_err(|error| error.to_string())?;
    if header.iter().ne(wanted.iter().copied()) {
        return Err(format!("its columns are {:?} and not {wanted:?}", header.iter().collect::<Vec<_>>()));
    }
    let mut rows: Vec<PublishedRow> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let (keys, figures) = (record.iter().take(table.keys.len()), record.iter().skip(table.keys.len()));
        let keys = Keys(table.keys.iter().map(String::as_str).zip(keys.map(Value::read)).collect());
        if rows.iter().any(|row| row.keys == keys) {
            return Err(format!("it has two rows of {keys}"));
        }
        let cells = figures.map(printed).collect::<Result<_, _>>()?;
        rows.push(PublishedRow { keys, cells });
    }
    Ok(rows)
}

/// All columns of a table, keys first.
pub(crate) fn columns(table: &Table) -> impl Iterator<Item = &str> {
    table.keys.iter().chain(table.metrics.iter().map(|metric| &metric.column)).map(String::as_str)
}

fn printed(text: &str) -> Result<Option<Printed>, String> {
    match text.trim() {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(Printed { text: text.to_owned(), number })),
            _ => Err(format!("`{text}` is not a number")),
        },
    }
}

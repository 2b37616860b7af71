//! A table as CSV, with the class of each cell.

use crate::results::{Row, TableResults};
use crate::terminal::class;

/// Keys first, as in the published table. Then, for each column, what was published (as printed), ours, the relative error and the
/// class; in a table of ours only ours.
pub(crate) fn csv(results: &TableResults) -> Result<Vec<u8>, csv::Error> {
    let is_published = results.table.reference.published().is_some();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut head = results.table.keys.clone();
    for metric in &results.table.metrics {
        let column = &metric.column;
        if is_published {
            let word = results.word(metric);
            head.extend(["published", word, "error", "class"].map(|word| format!("{word} {column}")));
        } else {
            head.push(column.clone());
        }
    }
    writer.write_record(head)?;
    results.rows.iter().try_for_each(|row| writer.write_record(line(row, is_published)))?;
    writer.into_inner().map_err(|error| error.into_error().into())
}

fn line(row: &Row, is_published: bool) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut line: Vec<String> = row.keys.0.iter().map(|(_, value)| value.to_string()).collect();
    for cell in &row.cells {
        if is_published {
            line.push(cell.published.as_ref().map(|published| published.text.clone()).unwrap_or_default());
        }
        line.push(number(cell.simulated));
        if is_published {
            line.extend([number(cell.error()), class(cell)]);
        }
    }
    line
}

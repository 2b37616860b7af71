//! Rules that find a study's conclusions in its results. A rule gives nothing if a table that it needs was not run.

use serde::Deserialize;

use crate::expression::Expression;
use crate::reading::is_beside;
use crate::results::{Results, Row, TableResults};
use crate::study::{Cells, cells, expression};

/// A rule by which an answer is found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Finding {
    /// The best row.
    Best(Best),
    /// The last value of a key that is kept.
    Kept(Kept),
    /// The values of a key in the order of a column.
    Order(Order),
    /// The values of a key that exceed a bound in a column.
    Above(Above),
}

/// The row of a table that has most, or least, of something, among those that keep the bounds, as a sentence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    pub(crate) table: String,
    #[serde(default, deserialize_with = "cells")]
    pub(crate) only: Cells,
    /// Figures of other rows by a name of their own.
    #[serde(default)]
    pub(crate) beside: Vec<Beside>,
    /// Bounds that rows must keep.
    #[serde(default)]
    pub(crate) bounds: Vec<Bound>,
    #[serde(deserialize_with = "expression")]
    pub(crate) largest: Expression<String>,
    /// The sentence, with expressions in braces, each with a number of decimals behind a colon if it is rounded.
    pub(crate) text: Template,
    /// The sentence if no row keeps the bounds.
    pub(crate) otherwise: Option<String>,
}

/// The figure of the row with the same keys, but for some cells, in a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beside {
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) column: String,
    #[serde(default, deserialize_with = "cells")]
    pub(crate) only: Cells,
}

/// A value and where it must lie.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bound {
    #[serde(deserialize_with = "expression")]
    pub(crate) value: Expression<String>,
    least: Option<f64>,
    most: Option<f64>,
}

/// The last value of a key before the first at which a column, in the mean over tables, is less than a bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub(crate) tables: Vec<String>,
    pub(crate) key: String,
    pub(crate) column: String,
    #[serde(default, deserialize_with = "cells")]
    pub(crate) only: Cells,
    #[serde(deserialize_with = "expression")]
    pub(crate) least: Expression<String>,
}

/// The values of a key in the order of a column, in the mean over rows. Where they come in the order of the groups that are
/// expected (`a < b, c`), those groups; otherwise one after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) column: String,
    expected: String,
    /// Another key: one order for each of its values, if they differ.
    pub(crate) each: Option<String>,
}

/// The values of a key whose column, in the mean over rows, is more than a bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Above {
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) column: String,
    more_than: f64,
}

/// Text with expressions in braces.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Value(Expression<String>, Option<usize>),
}

impl Finding {
    /// The tables that it reads.
    pub(crate) fn tables(&self) -> Vec<&str> {
        match self {
            Finding::Best(best) => {
                let beside = best.beside.iter().map(|beside| beside.table.as_str());
                beside.chain([best.table.as_str()]).collect()
            }
            Finding::Kept(kept) => kept.tables.iter().map(String::as_str).collect(),
            Finding::Order(order) => vec![&order.table],
            Finding::Above(above) => vec![&above.table],
        }
    }

    /// The answer; `None` if the tables that it needs were not run.
    pub(crate) fn found(&self, results: &Results) -> Option<String> {
        match self {
            Finding::Best(best) => best.found(results),
            Finding::Kept(kept) => kept.found(results),
            Finding::Order(order) => order.found(results.table(&order.table)?),
            Finding::Above(above) => {
                let means = means(results.table(&above.table)?, &[], &above.key, &above.column)?;
                let above = means.iter().filter(|(_, mean)| *mean > above.more_than);
                Some(above.map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Best {
    fn found(&self, results: &Results) -> Option<String> {
        let table = results.table(&self.table)?;
        let beside: Vec<&TableResults> =
            self.beside.iter().map(|beside| results.table(&beside.table)).collect::<Option<_>>()?;
        let of_row = |row: &Row, name: &str| {
            if let Some(place) = self.beside.iter().position(|beside| beside.name == name) {
                let Beside { column, only, .. } = &self.beside[place];
                let mut rows = beside[place].rows.iter();
                let other = rows.find(|other| is_beside(&other.keys, &row.keys, only))?;
                return other.cells.get(beside[place].place(column)?)?.simulated;
            }
            match table.place(name) {
                Some(place) => row.cells.get(place)?.simulated,
                None => row.keys.number(name),
            }
        };
        let is_kept = |row: &Row, bound: &Bound| {
            let value = bound.value.value(&|name| of_row(row, name))?;
            let least = bound.least.unwrap_or(f64::NEG_INFINITY);
            Some((least..=bound.most.unwrap_or(f64::INFINITY)).contains(&value))
        };
        // Rows with gaps cannot be judged.
        let judged = table.rows.iter().filter(|row| row.keys.are(&self.only)).filter_map(|row| {
            let kept = self.bounds.iter().map(|bound| is_kept(row, bound)).collect::<Option<Vec<bool>>>()?;
            Some((self.largest.value(&|name| of_row(row, name))?, kept, row))
        });
        let judged: Vec<(f64, Vec<bool>, &Row)> = judged.collect();
        let good = judged.iter().filter(|(_, kept, _)| !kept.contains(&false));
        match good.max_by(|(a, ..), (b, ..)| a.total_cmp(b)) {
            Some((.., row)) => self.text.filled(&|name| of_row(row, name)),
            None => self.otherwise.clone().filter(|_| !judged.is_empty()),
        }
    }

    /// Every expression, for checks of their names.
    pub(crate) fn expressions(&self) -> Vec<&Expression<String>> {
        let bounds = self.bounds.iter().map(|bound| &bound.value);
        bounds.chain([&self.largest]).chain(self.text.expressions()).collect()
    }
}

impl Kept {
    fn found(&self, results: &Results) -> Option<String> {
        let least = self.least.value(&|_| None)?;
        // The value of the key and what the column has there, in the order of the tables.
        let mut steps: Vec<(f64, Vec<f64>)> = Vec::new();
        for table in &self.tables {
            for (row, cell) in results.table(table)?.cells(&[&self.column], &self.only) {
                let (step, figure) = (row.keys.number(&self.key)?, cell.simulated?);
                match steps.iter_mut().find(|(known, _)| *known == step) {
                    Some((_, figures)) => figures.push(figure),
                    None => steps.push((step, vec![figure])),
                }
            }
        }
        let keeps = |figures: &[f64]| figures.iter().sum::<f64>() >= least * figures.len() as f64;
        let kept = steps.iter().take_while(|(_, figures)| keeps(figures));
        Some(kept.last().map_or(0.0, |(step, _)| *step).to_string())
    }
}

impl Order {
    fn found(&self, table: &TableResults) -> Option<String> {
        let Some(each) = &self.each else { return self.of(table, &[]) };
        let mut orders: Vec<(String, String)> = Vec::new();
        for row in &table.rows {
            let value = row.keys.get(each)?.to_string();
            if orders.iter().all(|(known, _)| *known != value) {
                let order = self.of(table, &[(each, &value)])?;
                orders.push((value, order));
            }
        }
        let (_, first) = orders.first()?;
        if orders.iter().all(|(_, order)| order == first) {
            return Some(first.clone());
        }
        let told = orders.iter().map(|(value, order)| format!("{value}: {order}"));
        Some(told.collect::<Vec<_>>().join("; "))
    }

    fn of(&self, table: &TableResults, only: &[(&str, &str)]) -> Option<String> {
        let mut means = means(table, only, &self.key, &self.column)?;
        means.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        let sorted: Vec<&str> = means.iter().map(|(value, _)| value.as_str()).collect();
        let mut left = sorted.iter().copied();
        let is_expected = self.expected.split(" < ").all(|group| {
            let mut found: Vec<&str> = left.by_ref().take(group.split(", ").count()).collect();
            found.sort_unstable();
            found.join(", ") == group
        });
        Some(if is_expected { self.expected.clone() } else { sorted.join(" < ") })
    }
}

/// The mean of a column for every value of a key, in the order of the table; `None` if a figure is missing.
fn means(table: &TableResults, only: &[(&str, &str)], key: &str, column: &str) -> Option<Vec<(String, f64)>> {
    let mut means: Vec<(String, Vec<f64>)> = Vec::new();
    for (row, cell) in table.cells(&[column], only) {
        let (value, figure) = (row.keys.get(key)?.to_string(), cell.simulated?);
        match means.iter_mut().find(|(known, _)| *known == value) {
            Some((_, figures)) => figures.push(figure),
            None => means.push((value, vec![figure])),
        }
    }
    let mean = |(value, figures): (String, Vec<f64>)| {
        let count = figures.len() as f64;
        (value, figures.into_iter().sum::<f64>() / count)
    };
    Some(means.into_iter().map(mean).collect())
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((inside, behind)) = behind.split_once('}') else {
                return Err(format!("`{text}` lacks a closing brace"));
            };
            let (value, decimals) = match inside.split_once(':') {
                None => (inside, None),
                Some((value, decimals)) => match decimals.parse() {
                    Ok(decimals) if decimals <= 9 => (value, Some(decimals)),
                    _ => return Err(format!("`{decimals}` is not a number of decimals from 0 to 9")),
                },
            };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Value(value.parse()?, decimals));
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Template(parts))
    }
}

impl Template {
    fn filled(&self, of: &dyn Fn(&String) -> Option<f64>) -> Option<String> {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Value(value, None) => Some(value.value(of)?.to_string()),
            Part::Value(value, Some(decimals)) => Some(format!("{:.decimals$}", value.value(of)?)),
        });
        parts.collect()
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression<String>> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(value, _) => Some(value),
        })
    }
}

//! Checks of figures, goals, findings and notes: the tables, rows and columns that they select must exist.

use super::{Reader, WrittenFigure};
use crate::expression::Expression;
use crate::findings::{Best, Finding};
use crate::study::{Cells, Figure, Goal, Scatter, Series, Table};

impl Reader<'_> {
    pub(super) fn figure(&mut self, place: usize, figure: WrittenFigure, tables: &[Table]) -> Figure {
        let path = format!("figure/{place}");
        let mut series = Vec::new();
        for (place, line) in figure.series.into_iter().enumerate() {
            let path = format!("{path}/series/{place}");
            let Some(name) = line.table.clone().or(figure.table.clone()) else {
                self.wrong(&path, "neither the series nor the figure names a `table`");
                continue;
            };
            let only: Cells = figure.only.iter().cloned().chain(line.only).collect();
            if let Some(table) = self.of_table(&format!("{path}/table"), &name, tables) {
                self.columns(&path, &figure.column, table);
                self.keys(&path, &only, table);
                figure.x.iter().for_each(|x| {
                    self.is_known(&path, &key_of(table), x, table.keys.iter().map(String::as_str));
                });
            }
            series.push(Series { label: line.label, table: name, only });
        }
        Figure {
            number: figure.number,
            title: figure.title,
            x: figure.x,
            x_label: figure.x_label,
            metric: figure.column,
            y_label: figure.y_label,
            factors: figure.factors,
            series,
        }
    }

    pub(super) fn others(&mut self, scatters: &[Scatter], goals: &[Goal], tables: &[Table]) {
        for (place, scatter) in scatters.iter().enumerate() {
            let of = core::slice::from_ref(&scatter.table);
            self.selection(&format!("scatter/{place}"), of, &[], &scatter.only, tables);
        }
        for (place, goal) in goals.iter().enumerate() {
            let path = |kind: &str| format!("goal/{place}/{kind}");
            let one = core::slice::from_ref::<String>;
            match goal {
                Goal::Error { tables: of, columns, only, .. } => {
                    self.selection(&path("error"), of, columns, only, tables);
                }
                Goal::Exact { table, column } => {
                    self.selection(&path("exact"), one(table), one(column), &Cells::new(), tables);
                }
                Goal::Count { table, column, .. } => {
                    self.selection(&path("count"), one(table), one(column), &Cells::new(), tables);
                }
                Goal::Factor { over, under, only, column, .. } => {
                    for table in [over, under] {
                        self.selection(&path("factor"), one(table), one(column), only, tables);
                    }
                }
                Goal::Conclusion { find, .. } => self.finding(&path("conclusion/find"), find, tables),
            }
        }
    }

    fn finding(&mut self, path: &str, finding: &Finding, tables: &[Table]) {
        let one = core::slice::from_ref::<String>;
        match finding {
            Finding::Best(best) => self.best(&format!("{path}/best"), best, tables),
            Finding::Kept(kept) => {
                let path = format!("{path}/kept");
                let mut only = kept.only.clone();
                only.push((kept.key.clone(), String::new()));
                self.selection(&path, &kept.tables, one(&kept.column), &only, tables);
                if let Some(name) = kept.least.names().first() {
                    self.wrong(
                        &format!("{path}/least"),
                        format!("`least` is a number, without the name `{name}`"),
                    );
                }
            }
            Finding::Order(order) => {
                let keys =
                    [&order.key].into_iter().chain(&order.each).map(|key| (key.clone(), String::new()));
                let only = keys.collect();
                self.selection(
                    &format!("{path}/order"),
                    one(&order.table),
                    one(&order.column),
                    &only,
                    tables,
                );
            }
            Finding::Above(above) => {
                let only = vec![(above.key.clone(), String::new())];
                self.selection(
                    &format!("{path}/above"),
                    one(&above.table),
                    one(&above.column),
                    &only,
                    tables,
                );
            }
        }
    }

    fn best(&mut self, path: &str, best: &Best, tables: &[Table]) {
        let one = core::slice::from_ref::<String>;
        self.selection(path, one(&best.table), &[], &best.only, tables);
        let mut names: Vec<&str> = Vec::new();
        for (place, beside) in best.beside.iter().enumerate() {
            let path = format!("{path}/beside/{place}");
            self.selection(&path, one(&beside.table), one(&beside.column), &beside.only, tables);
            names.push(&beside.name);
        }
        let Some(table) = tables.iter().find(|table| table.name == best.table) else { return };
        names.extend(table.keys.iter().map(String::as_str));
        names.extend(table.metrics.iter().map(|metric| metric.column.as_str()));
        for name in best.expressions().into_iter().flat_map(Expression::names) {
            self.is_known(path, "name", name, names.iter().copied());
        }
    }

    /// Checks the tables, the columns and the keys of a part that says `tables`, `columns` and `only`, or names one.
    pub(super) fn selection(
        &mut self,
        path: &str,
        of: &[String],
        columns: &[String],
        only: &Cells,
        tables: &[Table],
    ) {
        for (place, name) in of.iter().enumerate() {
            let at = format!("{path}/tables/{place}");
            let Some(table) = self.of_table(&at, name, tables) else { continue };
            for (place, column) in columns.iter().enumerate() {
                self.columns(&format!("{path}/columns/{place}"), column, table);
            }
            self.keys(path, only, table);
        }
    }

    fn of_table<'s>(&mut self, path: &str, name: &str, tables: &'s [Table]) -> Option<&'s Table> {
        self.is_known(path, "table", name, tables.iter().map(|table| table.name.as_str()));
        tables.iter().find(|table| table.name == name)
    }

    pub(super) fn columns(&mut self, path: &str, column: &str, table: &Table) {
        let what = format!("column of `{}`", table.name);
        self.is_known(path, &what, column, table.metrics.iter().map(|metric| metric.column.as_str()));
    }

    pub(super) fn keys(&mut self, path: &str, only: &Cells, table: &Table) {
        for (column, _) in only {
            let path = format!("{path}/only/{column}");
            self.is_known(&path, &key_of(table), column, table.keys.iter().map(String::as_str));
        }
    }
}

fn key_of(table: &Table) -> String {
    format!("key column of `{}`", table.name)
}

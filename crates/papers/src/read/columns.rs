//! Columns: the part of a run that has their figures, and the unit.

use std::collections::BTreeMap;

use trunkline_metrics::figures::{FigureKind, Quantity};

use super::{Reader, WrittenColumn, WrittenValue};
use crate::expression::Expression;
use crate::reading::{Of, Reading, Run, UNITS, Unit};
use crate::study::{Metric, Table};

impl Reader<'_> {
    pub(super) fn reading(&mut self, id: &str, column: &WrittenColumn) -> Option<Reading> {
        let path = format!("column/{id}");
        let of = match column {
            WrittenColumn { flow: Some(flow), sink: Some(sink), .. } => {
                Some(Of::Sink { flow: flow.clone(), sink: sink.clone() })
            }
            WrittenColumn { flow: Some(flow), .. } => Some(Of::Flow(flow.clone())),
            WrittenColumn { own_flow: true, .. } => Some(Of::OwnFlow),
            WrittenColumn { bundle: Some(bundle), transport: Some(transport), .. } => {
                Some(Of::Connections { bundle: bundle.clone(), transport: transport.clone() })
            }
            WrittenColumn { link: Some(link), host: Some(host), .. } => {
                Some(Of::Line { link: link.clone(), host: host.clone() })
            }
            _ => None,
        };
        match (&column.value, &column.published, of) {
            (Some(WrittenValue(value)), None, Some(of)) => {
                let unit = self.unit(&path, column.unit.as_deref());
                let known = of.figures();
                let value = value.clone().map(&mut |name: String| {
                    let figure = known.iter().copied().find(|figure| figure.id == name);
                    figure.ok_or(name)
                });
                match value {
                    Ok(value) => {
                        self.units(&path, unit, &value);
                        Some(Reading::Run(Run { of, file: column.experiment.clone(), unit, value }))
                    }
                    Err(name) => {
                        let ids = known.iter().map(|figure| figure.id);
                        self.is_known(
                            &format!("{path}/value"),
                            &format!("figure of {}", of.word()),
                            &name,
                            ids,
                        );
                        None
                    }
                }
            }
            (Some(WrittenValue(value)), None, None) => Some(Reading::Formula(value.clone())),
            (None, Some(cell), None) => Some(Reading::Published {
                table: cell.table.clone(),
                column: cell.column.clone(),
                only: cell.only.clone(),
            }),
            _ => {
                let message = "a column has a `value`, of a run if it names a `flow` (with a `sink`), `own-flow`, a `bundle` \
                               with a `transport` or a `link` with a `host`, or a `published` cell";
                self.wrong(&path, message);
                None
            }
        }
    }

    fn unit(&mut self, path: &str, name: Option<&str>) -> Option<Unit> {
        let name = name?;
        self.is_known(&format!("{path}/unit"), "unit", name, UNITS.iter().map(|unit| unit.name));
        UNITS.iter().find(|unit| unit.name == name).copied()
    }

    /// Figures that have a unit must be read in one of theirs.
    fn units(&mut self, path: &str, unit: Option<Unit>, value: &Expression<&'static FigureKind>) {
        let figures = value.names();
        for figure in &figures {
            let has_unit = !matches!(figure.quantity, Quantity::Count | Quantity::Number);
            if has_unit && unit.is_none_or(|unit| unit.quantity != figure.quantity) {
                let units = UNITS.iter().filter(|unit| unit.quantity == figure.quantity);
                let units: Vec<String> = units.map(|unit| format!("`{}`", unit.name)).collect();
                let message = format!("`{}` needs a `unit`: {}", figure.id, units.join(", "));
                self.wrong(&format!("{path}/unit"), message);
            }
        }
        if unit.is_some_and(|unit| figures.iter().all(|figure| figure.quantity != unit.quantity)) {
            self.wrong(&format!("{path}/unit"), "no figure of the value has this unit");
        }
    }

    /// A published cell must be one of a published table.
    pub(super) fn published_elsewhere(
        &mut self,
        metric: &Metric,
        tables: &[Table],
        columns: &BTreeMap<String, WrittenColumn>,
    ) {
        let Reading::Published { table, column, only } = &metric.reading else { return };
        let id = columns.iter().find(|(id, written)| written.column.as_ref().unwrap_or(id) == &metric.column);
        let path = format!("column/{}/published", id.map_or("", |(id, _)| id));
        let published = tables.iter().filter(|table| table.reference.published().is_some());
        self.is_known(
            &format!("{path}/table"),
            "published table",
            table,
            published.map(|table| table.name.as_str()),
        );
        let Some(table) = tables.iter().find(|other| other.name == *table) else { return };
        self.columns(&format!("{path}/column"), column, table);
        self.keys(&path, only, table);
    }
}

//! Tables of a run as Arrow: the rows and columns of `trunkline report --csv`, with types.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, new_null_array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use trunkline_metrics::figures::{FigureKind, Quantity, of_bundles, of_flows, of_links};
use trunkline_metrics::{FlowSummary, Measured, RepetitionSummary};
use trunkline_report::output::LimitOutcome;
use trunkline_store::{StoredPoint, StoredRun};

use crate::errors;
use crate::run::Run;

/// A table that every reader of Arrow takes without copies, through Arrow's C stream interface.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// A stream of the table's one batch, by the Arrow PyCapsule interface. The schema that a consumer requests is a wish, and
    /// the table's own is given.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'p>(
        &self,
        py: Python<'p>,
        requested_schema: Option<Bound<'p, PyAny>>,
    ) -> PyResult<Bound<'p, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// One row per point, repetition and flow.
pub(crate) fn flows(run: &Run) -> PyResult<Table> {
    let figures: Vec<_> = of_flows().collect();
    let mut rows =
        Rows::new(run.outline(), &["flow", "transport", "measured"], &["members", "channels"], &figures);
    for_each(run, |point, repetition, summary| {
        for flow in &summary.flows {
            let texts = [flow.flow.as_str(), &flow.transport, measured(flow)];
            let counts = [flow.members, flow.channels];
            rows.push(point, repetition, summary, &texts, &counts, |figure| figure.value(flow));
        }
    })?;
    rows.table()
}

/// One row per point, repetition, flow and one of its several sinks, or of the flows that it is made as.
pub(crate) fn sinks(run: &Run) -> PyResult<Table> {
    let figures: Vec<_> = of_flows().filter(|figure| figure.is_of_sinks()).collect();
    let mut rows = Rows::new(run.outline(), &["flow", "sink"], &[], &figures);
    for_each(run, |point, repetition, summary| {
        for flow in &summary.flows {
            let names = flow.sinks.iter().map(|sink| &sink.sink);
            for name in names.chain(flow.each.iter().map(|single| &single.flow)) {
                let texts = [flow.flow.as_str(), name];
                rows.push(point, repetition, summary, &texts, &[], |figure| figure.value_at(flow, name));
            }
        }
    })?;
    rows.table()
}

/// One row per point, repetition and bundle, and one per transport in it.
pub(crate) fn bundles(run: &Run) -> PyResult<Table> {
    let figures: Vec<_> = of_bundles().collect();
    let mut rows = Rows::new(run.outline(), &["bundle", "transport"], &["members"], &figures);
    for_each(run, |point, repetition, summary| {
        for bundle in &summary.bundles {
            let texts = [bundle.bundle.as_str(), ""];
            rows.push(point, repetition, summary, &texts, &[bundle.members], |figure| {
                figure.value_of_bundle(bundle)
            });
            for class in &bundle.classes {
                let texts = [bundle.bundle.as_str(), &class.transport];
                rows.push(point, repetition, summary, &texts, &[class.members], |figure| {
                    figure.value_of_connections(class)
                });
            }
        }
    })?;
    rows.table()
}

/// One row per point, repetition and direction of a link.
pub(crate) fn links(run: &Run) -> PyResult<Table> {
    let figures: Vec<_> = of_links().collect();
    let mut rows = Rows::new(run.outline(), &["link"], &[], &figures);
    for_each(run, |point, repetition, summary| {
        for link in &summary.links {
            let texts = [link.link.as_str()];
            rows.push(point, repetition, summary, &texts, &[], |figure| figure.value_of_link(link));
        }
    })?;
    rows.table()
}

/// One row per stall of the measuring machine, of a millisecond or more. Times are as in records.
pub(crate) fn stalls(run: &Run) -> PyResult<Table> {
    let nanos = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
    let mut keys = Keys::new(run.outline());
    let (mut repetitions, [mut at, mut length]) = (UInt32Builder::new(), [const { Vec::new() }; 2]);
    for_each(run, |point, repetition, summary| {
        for (start, gap) in summary.stalls.iter().flat_map(|stalls| &stalls.over_time) {
            keys.push(point);
            repetitions.append_value(repetition);
            at.push(nanos(start.as_nanos()));
            length.push(nanos(gap.as_nanos()));
        }
    })?;
    let mut columns = keys.columns();
    columns.push(("repetition".to_owned(), Arc::new(repetitions.finish())));
    columns.push(("at_ns".to_owned(), Arc::new(Int64Array::from(at))));
    columns.push(("length_ns".to_owned(), Arc::new(Int64Array::from(length))));
    table(columns)
}

/// One row per limit and point.
pub(crate) fn limits(run: &StoredRun) -> PyResult<Table> {
    let report = trunkline_report::report(run, None);
    let mut keys = Keys::new(run);
    let [mut limit, mut condition, mut figure, mut outcome] = std::array::from_fn(|_| StringBuilder::new());
    let [mut bound, mut mean] = std::array::from_fn(|_| Float64Builder::new());
    let mut uncertain = BooleanBuilder::new();
    let points: BTreeMap<u32, &StoredPoint> = run.points.iter().map(|point| (point.index, point)).collect();
    let all = report.limits.iter().flat_map(|limit| limit.runs.iter().map(move |run| (limit, run)));
    for (of, at) in all.flat_map(|(limit, run)| run.points.iter().map(move |at| (limit, at))) {
        let Some(point) = points.get(&at.point) else { continue };
        keys.push(point);
        limit.append_value(&of.key);
        condition.append_value(&of.condition);
        figure.append_value(&of.figure);
        bound.append_value(of.bound);
        outcome.append_value(match at.outcome {
            LimitOutcome::Holds => "holds",
            LimitOutcome::Broken => "broken",
            LimitOutcome::NotMeasured => "not-measured",
            LimitOutcome::NotApplicable => "not-applicable",
        });
        uncertain.append_value(at.uncertain);
        mean.append_option(at.mean);
    }
    let mut columns = keys.columns();
    let mut add = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array));
    add("limit", Arc::new(limit.finish()));
    add("condition", Arc::new(condition.finish()));
    add("figure", Arc::new(figure.finish()));
    add("bound", Arc::new(bound.finish()));
    add("outcome", Arc::new(outcome.finish()));
    add("uncertain", Arc::new(uncertain.finish()));
    add("mean", Arc::new(mean.finish()));
    table(columns)
}

fn measured(flow: &FlowSummary) -> &'static str {
    match flow.measured {
        Measured::OneWay => "one-way",
        Measured::RoundTrip => "round-trip",
        Measured::Nothing => "nothing",
    }
}

fn for_each(run: &Run, mut row: impl FnMut(&StoredPoint, u32, &RepetitionSummary)) -> PyResult<()> {
    run.walk(|point| {
        for repetition in &point.repetitions {
            if let Some(summary) = &repetition.summary {
                row(&point, repetition.index, summary);
            }
        }
    })
}

/// The columns with which every table begins: the run, the point, and the values of the axes, as written and as numbers.
struct Keys<'r> {
    run: &'r StoredRun,
    id: UInt64Builder,
    point: UInt32Builder,
    written: Vec<StringBuilder>,
    numbers: Vec<Float64Builder>,
}

impl<'r> Keys<'r> {
    fn new(run: &'r StoredRun) -> Keys<'r> {
        let axes = || run.axes.iter();
        Keys {
            run,
            id: UInt64Builder::new(),
            point: UInt32Builder::new(),
            written: axes().map(|_| StringBuilder::new()).collect(),
            numbers: axes().map(|_| Float64Builder::new()).collect(),
        }
    }

    fn push(&mut self, point: &StoredPoint) {
        self.id.append_value(self.run.info.id);
        self.point.append_value(point.index);
        for (place, axis) in self.run.axes.iter().enumerate() {
            let chosen = point.choice.get(place);
            self.written[place].append_option(chosen.and_then(|chosen| axis.values.get(*chosen)));
            let number = chosen.and_then(|chosen| axis.numbers.as_ref()?.get(*chosen));
            self.numbers[place].append_option(number.copied());
        }
    }

    /// An axis of numbers without a unit is a column of numbers; one with a unit has a column as written and one of numbers,
    /// with the unit in its name.
    fn columns(mut self) -> Vec<(String, ArrayRef)> {
        let mut columns: Vec<(String, ArrayRef)> = vec![
            ("run".to_owned(), Arc::new(self.id.finish())),
            ("point".to_owned(), Arc::new(self.point.finish())),
        ];
        for (place, axis) in self.run.axes.iter().enumerate() {
            let written: ArrayRef = Arc::new(self.written[place].finish());
            let numbers: ArrayRef = Arc::new(self.numbers[place].finish());
            match (&axis.numbers, axis.unit.as_str()) {
                (None, _) => columns.push((axis.key.clone(), written)),
                (Some(_), "") => columns.push((axis.key.clone(), numbers)),
                (Some(_), unit) => {
                    columns.push((axis.key.clone(), written));
                    columns.push((format!("{} [{unit}]", axis.key), numbers));
                }
            }
        }
        columns
    }
}

/// Rows that are built: keys, repetition, texts, counts, and a column per figure.
struct Rows<'r> {
    keys: Keys<'r>,
    repetition: UInt32Builder,
    partial: BooleanBuilder,
    texts: Vec<(&'static str, StringBuilder)>,
    counts: Vec<(&'static str, UInt32Builder)>,
    figures: Vec<(&'static FigureKind, Figures)>,
}

/// The column of a figure. Nulls before the first value take no memory: most figures are of other kinds of flows.
#[derive(Default)]
struct Figures {
    nulls: usize,
    values: Option<Float64Builder>,
}

impl Figures {
    fn push(&mut self, value: Option<f64>) {
        match &mut self.values {
            Some(values) => values.append_option(value),
            None if value.is_none() => self.nulls += 1,
            None => {
                let mut values = Float64Builder::new();
                values.append_nulls(self.nulls);
                values.append_option(value);
                self.values = Some(values);
            }
        }
    }

    /// The column; `nulls` if it has no value.
    fn finish(self, nulls: &ArrayRef) -> ArrayRef {
        self.values.map_or_else(|| Arc::clone(nulls), |mut values| Arc::new(values.finish()))
    }
}

impl<'r> Rows<'r> {
    fn new(
        run: &'r StoredRun,
        texts: &[&'static str],
        counts: &[&'static str],
        figures: &[&'static FigureKind],
    ) -> Rows<'r> {
        Rows {
            keys: Keys::new(run),
            repetition: UInt32Builder::new(),
            partial: BooleanBuilder::new(),
            texts: texts.iter().map(|name| (*name, StringBuilder::new())).collect(),
            counts: counts.iter().map(|name| (*name, UInt32Builder::new())).collect(),
            figures: figures.iter().map(|figure| (*figure, Figures::default())).collect(),
        }
    }

    fn push(
        &mut self,
        point: &StoredPoint,
        repetition: u32,
        summary: &RepetitionSummary,
        texts: &[&str],
        counts: &[u32],
        value: impl Fn(&FigureKind) -> Option<f64>,
    ) {
        self.keys.push(point);
        self.repetition.append_value(repetition);
        self.partial.append_value(summary.partial);
        self.texts.iter_mut().zip(texts).for_each(|((_, column), text)| column.append_value(text));
        self.counts.iter_mut().zip(counts).for_each(|((_, column), count)| column.append_value(*count));
        self.figures.iter_mut().for_each(|(figure, column)| column.push(value(figure)));
    }

    fn table(mut self) -> PyResult<Table> {
        let mut columns = self.keys.columns();
        columns.push(("repetition".to_owned(), Arc::new(self.repetition.finish())));
        columns.push(("partial".to_owned(), Arc::new(self.partial.finish())));
        let texts = self.texts.into_iter();
        columns.extend(texts.map(|(name, mut c)| (name.to_owned(), Arc::new(c.finish()) as ArrayRef)));
        let counts = self.counts.into_iter();
        columns.extend(counts.map(|(name, mut c)| (name.to_owned(), Arc::new(c.finish()) as ArrayRef)));
        // Columns without values share their memory.
        let nulls = new_null_array(&DataType::Float64, columns[0].1.len());
        let figures = self.figures.into_iter();
        columns.extend(figures.map(|(figure, values)| (column(figure), values.finish(&nulls))));
        table(columns)
    }
}

/// The name of a figure's column, as in `repetitions.csv`: with the base unit where it has one.
pub(crate) fn column(figure: &FigureKind) -> String {
    let suffix = match figure.quantity {
        Quantity::Time => "_s",
        Quantity::Rate => "_bit_per_s",
        Quantity::Bytes => "_bytes",
        Quantity::Share | Quantity::Count | Quantity::Number => "",
    };
    format!("{}{suffix}", figure.id)
}

fn table(columns: Vec<(String, ArrayRef)>) -> PyResult<Table> {
    let field = |(name, array): &(String, ArrayRef)| {
        Field::new(name, array.data_type().clone(), *array.data_type() != DataType::UInt64)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(errors::environment)?;
    Ok(Table { batch })
}

//! Traces, read again as a stream: memory does not grow with their length.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use trunkline_core::Time;
use trunkline_metrics::{Fate, Record};

use super::file::FORMAT;
use super::row::FATES;
use crate::StoreError;

/// Rows decoded at a time.
const BATCH: usize = 8192;

const MEMBER: usize = 0;
const CHANNEL: usize = 1;
const SEQUENCE: usize = 2;
const DUE: usize = 3;
const SENT: usize = 4;
const RECEIVED: usize = 5;
const REFLECTED: usize = 6;
const PAYLOAD: usize = 7;
const FATE: usize = 8;

/// What latencies are made of: a message that was sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the source wanted it sent.
    pub due: Time,
    /// When the transport took it.
    pub sent: Time,
    /// When it arrived where latency is measured.
    pub received: Time,
    /// `Received`, `Late` or `Duplicate`.
    pub fate: Fate,
}

/// Hands every record of the trace at `path` to `take`, in the order in which they were recorded.
pub fn read_trace(path: &Path, take: &mut dyn FnMut(&Record)) -> std::result::Result<(), StoreError> {
    let reader = open(path)?;
    (0..reader.num_row_groups())
        .try_for_each(|group| records(reader.get_row_group(group)?.as_ref(), take))
        .map_err(|error| StoreError::damaged(path, error))
}

/// Hands every message of the trace at `path` that was sent and received to `take`; reads no more columns than that
/// needs.
pub fn read_latencies(path: &Path, take: &mut dyn FnMut(Arrival)) -> std::result::Result<(), StoreError> {
    let reader = open(path)?;
    (0..reader.num_row_groups())
        .try_for_each(|group| arrivals(reader.get_row_group(group)?.as_ref(), take))
        .map_err(|error| StoreError::damaged(path, error))
}

/// What a message came to in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) due: Time,
    pub(super) sent: Option<Time>,
    pub(super) received: Option<Time>,
    pub(super) fate: Fate,
}

/// Hands the course of every message of the row groups that `wanted` wants to `take`; reads no more columns than that needs.
pub(super) fn read_courses(
    path: &Path,
    wanted: impl Fn(&Span) -> bool,
    mut take: impl FnMut(Course),
) -> std::result::Result<(), StoreError> {
    let reader = open(path)?;
    let mut groups = (0..reader.num_row_groups()).filter(|&group| wanted(&span(&reader, group)));
    groups
        .try_for_each(|group| courses(reader.get_row_group(group)?.as_ref(), &mut take))
        .map_err(|error| StoreError::damaged(path, error))
}

/// From when to when the messages of a row group were due or sent, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: Time,
    pub(super) last: Time,
}

/// Of each row group that has rows.
pub(super) fn spans(path: &Path) -> std::result::Result<Vec<Span>, StoreError> {
    let reader = open(path)?;
    let groups = 0..reader.num_row_groups();
    let filled = groups.filter(|&group| reader.metadata().row_group(group).num_rows() > 0);
    Ok(filled.map(|group| span(&reader, group)).collect())
}

/// As its statistics say; all of time if they say nothing.
fn span(reader: &SerializedFileReader<File>, group: usize) -> Span {
    let group = reader.metadata().row_group(group);
    let bounds = |column: usize| match group.columns().get(column)?.statistics()? {
        // Times beyond what statistics can order are none of a measurement.
        Statistics::Int64(bounds) => match (*bounds.min_opt()?, *bounds.max_opt()?) {
            (min, max) if min >= 0 => Some((min as u64, max as u64)),
            _ => None,
        },
        _ => None,
    };
    let sent = match group.columns().get(SENT).and_then(|column| column.statistics()) {
        // Nothing was sent at all.
        Some(sent) if sent.null_count_opt() == Some(group.num_rows() as u64) => bounds(DUE),
        _ => bounds(SENT),
    };
    match bounds(DUE).zip(sent) {
        Some((due, sent)) => {
            Span { first: Time::from_nanos(due.0.min(sent.0)), last: Time::from_nanos(due.1.max(sent.1)) }
        }
        None => Span { first: Time::ZERO, last: Time::MAX },
    }
}

fn open(path: &Path) -> std::result::Result<SerializedFileReader<File>, StoreError> {
    let file = File::open(path).map_err(StoreError::io("read", path))?;
    let reader = SerializedFileReader::new(file).map_err(|error| StoreError::damaged(path, error))?;
    let keys = reader.metadata().file_metadata().key_value_metadata();
    let format = keys.and_then(|keys| format_of(keys));
    match format {
        Some(format) if format <= FORMAT => Ok(reader),
        Some(format) => {
            let why = format!("its format {format} is newer than the supported {FORMAT}: update Trunkline");
            Err(StoreError::damaged(path, why))
        }
        None => Err(StoreError::damaged(path, "it is a Parquet file, but not a trace of Trunkline")),
    }
}

fn format_of(keys: &[KeyValue]) -> Option<u32> {
    keys.iter().find(|pair| pair.key == "trunkline.format")?.value.as_ref()?.parse().ok()
}

fn records(group: &dyn RowGroupReader, take: &mut dyn FnMut(&Record)) -> Result<()> {
    let (mut member, mut channel) = (Ints::new(group, MEMBER)?, Ints::new(group, CHANNEL)?);
    let (mut sequence, mut payload) = (Ints::new(group, SEQUENCE)?, Ints::new(group, PAYLOAD)?);
    let (mut due, mut sent) = (Times::new(group, DUE)?, Times::new(group, SENT)?);
    let (mut received, mut reflected) = (Times::new(group, RECEIVED)?, Times::new(group, REFLECTED)?);
    let mut fate = Fates::new(group)?;
    batches(group, |count| {
        member.read(count)?;
        channel.read(count)?;
        sequence.read(count)?;
        payload.read(count)?;
        due.read(count)?;
        sent.read(count)?;
        received.read(count)?;
        reflected.read(count)?;
        fate.read(count)?;
        for row in 0..count {
            take(&Record {
                member: member.values[row] as u32,
                channel: channel.values[row] as u16,
                sequence: sequence.values[row] as u32,
                due: due.next(row)?.ok_or_else(|| short(DUE))?,
                sent: sent.next(row)?,
                received: received.next(row)?,
                reflected: reflected.next(row)?,
                payload: payload.values[row] as u32,
                fate: fate.of(row)?,
            });
        }
        Ok(())
    })
}

fn arrivals(group: &dyn RowGroupReader, take: &mut dyn FnMut(Arrival)) -> Result<()> {
    courses(group, &mut |Course { due, sent, received, fate }| {
        if let (Some(sent), Some(received)) = (sent, received) {
            take(Arrival { due, sent, received, fate });
        }
    })
}

fn courses(group: &dyn RowGroupReader, take: &mut impl FnMut(Course)) -> Result<()> {
    let (mut due, mut sent) = (Times::new(group, DUE)?, Times::new(group, SENT)?);
    let (mut received, mut fate) = (Times::new(group, RECEIVED)?, Fates::new(group)?);
    batches(group, |count| {
        due.read(count)?;
        sent.read(count)?;
        received.read(count)?;
        fate.read(count)?;
        for row in 0..count {
            let due = due.next(row)?.ok_or_else(|| short(DUE))?;
            take(Course { due, sent: sent.next(row)?, received: received.next(row)?, fate: fate.of(row)? });
        }
        Ok(())
    })
}

fn batches(group: &dyn RowGroupReader, mut batch: impl FnMut(usize) -> Result<()>) -> Result<()> {
    let mut left =
        usize::try_from(group.metadata().num_rows()).map_err(|e| ParquetError::General(e.to_string()))?;
    while left > 0 {
        let count = left.min(BATCH);
        batch(count)?;
        left -= count;
    }
    Ok(())
}

struct Ints {
    reader: ColumnReaderImpl<Int32Type>,
    values: Vec<i32>,
    column: usize,
}

impl Ints {
    fn new(group: &dyn RowGroupReader, column: usize) -> Result<Ints> {
        match column_reader(group, column)? {
            reader @ ColumnReader::Int32ColumnReader(_) => {
                Ok(Ints { reader: get_typed_column_reader(reader), values: Vec::new(), column })
            }
            _ => Err(mistyped(column)),
        }
    }

    fn read(&mut self, count: usize) -> Result<()> {
        self.values.clear();
        self.reader.read_records(count, None, None, &mut self.values)?;
        if self.values.len() == count { Ok(()) } else { Err(short(self.column)) }
    }
}

struct Times {
    reader: ColumnReaderImpl<Int64Type>,
    optional: bool,
    present: Vec<i16>,
    values: Vec<i64>,
    next: usize,
    column: usize,
}

impl Times {
    fn new(group: &dyn RowGroupReader, column: usize) -> Result<Times> {
        let optional =
            group.metadata().schema_descr().columns().get(column).is_some_and(|c| c.max_def_level() > 0);
        match column_reader(group, column)? {
            reader @ ColumnReader::Int64ColumnReader(_) => Ok(Times {
                reader: get_typed_column_reader(reader),
                optional,
                present: Vec::new(),
                values: Vec::new(),
                next: 0,
                column,
            }),
            _ => Err(mistyped(column)),
        }
    }

    fn read(&mut self, count: usize) -> Result<()> {
        self.values.clear();
        self.present.clear();
        self.next = 0;
        let present = self.optional.then_some(&mut self.present);
        let (records, _, _) = self.reader.read_records(count, present, None, &mut self.values)?;
        if records == count { Ok(()) } else { Err(short(self.column)) }
    }

    /// The value of `row`; rows are asked for in order.
    fn next(&mut self, row: usize) -> Result<Option<Time>> {
        if self.optional && self.present.get(row) == Some(&0) {
            return Ok(None);
        }
        let value = self.values.get(self.next).ok_or_else(|| short(self.column))?;
        self.next += 1;
        Ok(Some(Time::from_nanos(*value as u64)))
    }
}

struct Fates {
    reader: ColumnReaderImpl<ByteArrayType>,
    values: Vec<ByteArray>,
}

impl Fates {
    fn new(group: &dyn RowGroupReader) -> Result<Fates> {
        match column_reader(group, FATE)? {
            reader @ ColumnReader::ByteArrayColumnReader(_) => {
                Ok(Fates { reader: get_typed_column_reader(reader), values: Vec::new() })
            }
            _ => Err(mistyped(FATE)),
        }
    }

    fn read(&mut self, count: usize) -> Result<()> {
        self.values.clear();
        self.reader.read_records(count, None, None, &mut self.values)?;
        if self.values.len() == count { Ok(()) } else { Err(short(FATE)) }
    }

    fn of(&self, row: usize) -> Result<Fate> {
        let name = self.values[row].data();
        let known = FATES.iter().find(|(_, known)| known.as_bytes() == name);
        known.map(|(fate, _)| *fate).ok_or_else(|| ParquetError::General("unknown fate".to_owned()))
    }
}

fn column_reader(group: &dyn RowGroupReader, column: usize) -> Result<ColumnReader> {
    if column >= group.num_columns() { Err(mistyped(column)) } else { group.get_column_reader(column) }
}

fn mistyped(column: usize) -> ParquetError {
    ParquetError::General(format!("column {column} is missing or of another type than a trace's"))
}

fn short(column: usize) -> ParquetError {
    ParquetError::General(format!("column {column} has fewer values than rows"))
}

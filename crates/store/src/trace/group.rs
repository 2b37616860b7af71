//! The Parquet side of a trace: schema, encodings, and row groups that know their place in the file.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::row::{FATES, ROW, Row, rows};

/// The columns of a trace. Times are nanoseconds since the start of the repetition on the source's clock,
/// `reflected_ns` on the reflector's.
const SCHEMA: &str = "message trace {
    REQUIRED INT32 member (INTEGER(32,false));
    REQUIRED INT32 channel (INTEGER(16,false));
    REQUIRED INT32 sequence (INTEGER(32,false));
    REQUIRED INT64 due_ns;
    OPTIONAL INT64 sent_ns;
    OPTIONAL INT64 received_ns;
    OPTIONAL INT64 reflected_ns;
    REQUIRED INT32 payload_bytes (INTEGER(32,false));
    REQUIRED BYTE_ARRAY fate (STRING);
}";

/// Turns rows into row groups.
pub(crate) struct GroupEncoder {
    schema: Arc<SchemaDescriptor>,
    properties: Arc<WriterProperties>,
    fates: Vec<ByteArray>,
    /// The columns of the group that is being made.
    columns: Columns,
}

/// A row group, to be written at the place that was given for it.
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metadata: RowGroupMetaData,
}

impl GroupEncoder {
    pub(crate) fn new() -> Result<GroupEncoder> {
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(SCHEMA)?)));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            // Numbers grow by about the same from row to row, or stay what they are. To look every one up in a
            // dictionary costs more than its difference to the one before.
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(ColumnPath::from("fate"), true)
            .set_column_encoding(ColumnPath::from("fate"), Encoding::PLAIN)
            .set_column_statistics_enabled(ColumnPath::from("fate"), EnabledStatistics::None)
            .build();
        let fates = FATES.iter().map(|(_, name)| Bytes::from_static(name.as_bytes()).into()).collect();
        Ok(GroupEncoder { schema, properties: Arc::new(properties), fates, columns: Columns::default() })
    }

    /// Encodes `bytes` (whole rows) as the row group that begins at `offset` of its file.
    pub(crate) fn encode(&mut self, bytes: &[u8], ordinal: usize, offset: u64) -> Result<Group> {
        let ordinal =
            i32::try_from(ordinal).map_err(|_| ParquetError::General("too many row groups".to_owned()))?;
        let mut out = TrackedWrite::new(Vec::with_capacity(bytes.len() / 8));
        let mut group = SerializedRowGroupWriter::new(
            self.schema.clone(),
            self.properties.clone(),
            &mut out,
            ordinal,
            None,
        );
        let columns = &mut self.columns;
        columns.fill(bytes);
        write::<Int32Type>(&mut group, &columns.member, None)?;
        write::<Int32Type>(&mut group, &columns.channel, None)?;
        write::<Int32Type>(&mut group, &columns.sequence, None)?;
        write::<Int64Type>(&mut group, &columns.due, None)?;
        for times in [&columns.sent, &columns.received, &columns.reflected] {
            write::<Int64Type>(&mut group, &times.values, Some(&times.present))?;
        }
        write::<Int32Type>(&mut group, &columns.payload, None)?;
        write_fates(&mut group, &columns.fate, &self.fates)?;
        let metadata = group.close()?;
        Ok(Group { bytes: out.into_inner()?, metadata: moved((*metadata).clone(), offset)? })
    }

    /// A footer for `groups`: the end of a Parquet file.
    pub(crate) fn footer(&self, groups: Vec<RowGroupMetaData>, keys: &[(&str, String)]) -> Result<Vec<u8>> {
        let row_count = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let keys = keys.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
        let created_by = Some(format!("trunkline version {}", env!("CARGO_PKG_VERSION")));
        let file = FileMetaData::new(1, row_count, created_by, Some(keys), self.schema.clone(), None);
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(footer)
    }

    /// The row groups of a footer made by [`GroupEncoder::footer`].
    pub(crate) fn groups(footer: &[u8]) -> Result<Vec<RowGroupMetaData>> {
        // The metadata is followed by its length and the magic number.
        let metadata = footer.len().checked_sub(8).and_then(|end| footer.get(..end));
        let metadata = metadata.ok_or_else(|| ParquetError::General("no footer".to_owned()))?;
        Ok(ParquetMetaDataReader::decode_metadata(metadata)?.row_groups().to_vec())
    }
}

/// Rows turned on their side; kept from group to group for its memory.
#[derive(Default)]
struct Columns {
    member: Vec<i32>,
    channel: Vec<i32>,
    sequence: Vec<i32>,
    due: Vec<i64>,
    sent: Times,
    received: Times,
    reflected: Times,
    payload: Vec<i32>,
    fate: Vec<u8>,
}

/// The times of the rows that have one, and of every row whether it has.
#[derive(Default)]
struct Times {
    values: Vec<i64>,
    present: Vec<i16>,
}

impl Columns {
    /// Rows that are turned at a time: they stay in the cache while column after column is taken from them.
    const BLOCK: usize = 512;

    fn fill(&mut self, bytes: &[u8]) {
        self.clear();
        for block in bytes.chunks(Self::BLOCK * ROW) {
            self.member.extend(rows(block).map(Row::member));
            self.channel.extend(rows(block).map(Row::channel));
            self.sequence.extend(rows(block).map(Row::sequence));
            self.due.extend(rows(block).map(Row::due));
            self.sent.extend(block, Row::sent);
            self.received.extend(block, Row::received);
            self.reflected.extend(block, Row::reflected);
            self.payload.extend(rows(block).map(Row::payload));
            self.fate.extend(rows(block).map(Row::fate));
        }
    }

    fn clear(&mut self) {
        let Columns { member, channel, sequence, due, sent, received, reflected, payload, fate } = self;
        for ints in [member, channel, sequence, payload] {
            ints.clear();
        }
        due.clear();
        for times in [sent, received, reflected] {
            times.values.clear();
            times.present.clear();
        }
        fate.clear();
    }
}

impl Times {
    fn extend<'b>(&mut self, block: &'b [u8], of: impl Fn(Row<'b>) -> Option<i64>) {
        self.present.extend(rows(block).map(|row| i16::from(of(row).is_some())));
        // Every row writes its value, and those without one are written over: no branch to be guessed wrong.
        let mut end = self.values.len();
        self.values.resize(end + rows(block).len(), 0);
        for row in rows(block) {
            let time = of(row);
            self.values[end] = time.unwrap_or_default();
            end += usize::from(time.is_some());
        }
        self.values.truncate(end);
    }
}

type GroupWriter<'w> = SerializedRowGroupWriter<'w, Vec<u8>>;

/// Writes the next column.
fn write<T: DataType>(group: &mut GroupWriter<'_>, values: &[T::T], present: Option<&[i16]>) -> Result<()> {
    let mut writer = next_column(group)?;
    writer.typed::<T>().write_batch(values, present, None)?;
    writer.close()
}

/// Writes the next column: the names of fates. A name as Parquet takes it is 32 bytes long: block by block.
fn write_fates(group: &mut GroupWriter<'_>, fates: &[u8], names: &[ByteArray]) -> Result<()> {
    let mut writer = next_column(group)?;
    let mut values = Vec::with_capacity(Columns::BLOCK);
    for block in fates.chunks(Columns::BLOCK) {
        values.clear();
        values.extend(block.iter().map(|&fate| names[usize::from(fate)].clone()));
        writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    }
    writer.close()
}

fn next_column<'g>(group: &'g mut GroupWriter<'_>) -> Result<SerializedColumnWriter<'g>> {
    let writer = group.next_column()?;
    writer.ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))
}

/// A group that was encoded as if its file began with it, at `offset`.
fn moved(group: RowGroupMetaData, offset: u64) -> Result<RowGroupMetaData> {
    let offset = i64::try_from(offset).map_err(|_| ParquetError::General("file too long".to_owned()))?;
    let columns = group.columns().iter().map(|column| {
        let data = column.data_page_offset() + offset;
        let dictionary = column.dictionary_page_offset().map(|at| at + offset);
        column
            .clone()
            .into_builder()
            .set_data_page_offset(data)
            .set_dictionary_page_offset(dictionary)
            .build()
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    group.into_builder().set_column_metadata(columns).set_file_offset(offset).build()
}

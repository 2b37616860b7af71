//! The Parquet side of a trace: schema, encodings, and row groups that know their place in the file.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::row::{FATES, Row, rows};

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
}

/// A row group, to be written at the place that was given for it.
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    pub(crate) metadata: RowGroupMetaData,
}

impl GroupEncoder {
    pub(crate) fn new() -> Result<GroupEncoder> {
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(SCHEMA)?)));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        // Times and counters grow by about the same from row to row; the other columns have few values.
        for column in ["sequence", "due_ns", "sent_ns", "received_ns", "reflected_ns"] {
            let column = ColumnPath::from(column);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let fates = FATES.iter().map(|(_, name)| ByteArray::from(*name)).collect();
        Ok(GroupEncoder { schema, properties: Arc::new(properties.build()), fates })
    }

    /// Encodes `bytes` (whole rows) as the row group that begins at `offset` of its file.
    pub(crate) fn encode(&self, bytes: &[u8], ordinal: usize, offset: u64) -> Result<Group> {
        let ordinal =
            i32::try_from(ordinal).map_err(|_| ParquetError::General("too many row groups".to_owned()))?;
        let mut out = TrackedWrite::new(Vec::with_capacity(bytes.len() / 4));
        let mut group = SerializedRowGroupWriter::new(
            self.schema.clone(),
            self.properties.clone(),
            &mut out,
            ordinal,
            None,
        );
        ints(&mut group, bytes, Row::member)?;
        ints(&mut group, bytes, Row::channel)?;
        ints(&mut group, bytes, Row::sequence)?;
        column::<Int64Type>(&mut group, &rows(bytes).map(Row::due).collect::<Vec<_>>(), None)?;
        times(&mut group, bytes, Row::sent)?;
        times(&mut group, bytes, Row::received)?;
        times(&mut group, bytes, Row::reflected)?;
        ints(&mut group, bytes, Row::payload)?;
        let fates: Vec<ByteArray> = rows(bytes).map(|row| self.fates[row.fate()].clone()).collect();
        column::<ByteArrayType>(&mut group, &fates, None)?;
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

type GroupWriter<'w> = SerializedRowGroupWriter<'w, Vec<u8>>;

fn ints<'b>(group: &mut GroupWriter<'_>, bytes: &'b [u8], of: fn(Row<'b>) -> i32) -> Result<()> {
    column::<Int32Type>(group, &rows(bytes).map(of).collect::<Vec<_>>(), None)
}

fn times<'b>(group: &mut GroupWriter<'_>, bytes: &'b [u8], of: fn(Row<'b>) -> Option<i64>) -> Result<()> {
    let values: Vec<i64> = rows(bytes).filter_map(of).collect();
    let present: Vec<i16> = rows(bytes).map(|row| i16::from(of(row).is_some())).collect();
    column::<Int64Type>(group, &values, Some(&present))
}

fn column<T: parquet::data_type::DataType>(
    group: &mut GroupWriter<'_>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<()> {
    let writer = group.next_column()?;
    let mut writer =
        writer.ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    writer.typed::<T>().write_batch(values, present, None)?;
    writer.close()
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

//! One trace on its way to disk, and what is made of it when its process was killed.
//!
//! While `X.parquet` is being written there are three files beside its name:
//! - `X.parquet.part`: the row groups so far, without a footer;
//! - `X.parquet.groups`: a frame with the metadata of each, appended when the group is in the file;
//! - `X.parquet.journal`: the rows that are in no group yet; once they are, the next ones are written over them.
//!
//! The order of these writes makes every moment a good one to die: a group without its metadata is cut off and its rows
//! are still in the journal; rows that are in both are numbered, and taken once. At the end the footer is written,
//! `.part` is renamed to `X.parquet`, and the other two are removed.
//!
//! Rows and metadata are read back from these files when they are needed, so that memory grows neither with the number
//! of open traces nor with their length.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use parquet::file::metadata::RowGroupMetaData;

use super::frames::{FrameWriter, read_frames};
use super::group::GroupEncoder;
use super::row::ROW;

/// Parquet's first four bytes.
const MAGIC: &[u8; 4] = b"PAR1";

/// The version of the trace format; a reader refuses a newer one.
pub(crate) const FORMAT: u32 = 1;

/// The keys in a trace's footer.
#[derive(Clone, Debug)]
pub(crate) struct TraceKeys {
    pub(crate) run: u64,
    pub(crate) point: u32,
    pub(crate) repetition: u32,
    pub(crate) flow: String,
}

impl TraceKeys {
    fn pairs(&self) -> [(&'static str, String); 5] {
        [
            ("trunkline.format", FORMAT.to_string()),
            ("trunkline.run", self.run.to_string()),
            ("trunkline.point", self.point.to_string()),
            ("trunkline.repetition", self.repetition.to_string()),
            ("trunkline.flow", self.flow.clone()),
        ]
    }
}

/// What the traces of one thread use in turn to make row groups.
pub(crate) struct Workshop {
    encoder: GroupEncoder,
    /// The rows of the group that is being made.
    rows: Vec<u8>,
}

impl Workshop {
    pub(crate) fn new() -> io::Result<Workshop> {
        Ok(Workshop { encoder: GroupEncoder::new().map_err(io::Error::other)?, rows: Vec::new() })
    }
}

/// A trace that is being written.
pub(crate) struct TraceFile {
    path: PathBuf,
    keys: TraceKeys,
    part: File,
    metadata: FrameWriter,
    journal: FrameWriter,
    /// Groups in the file.
    groups: usize,
    /// Where the next group begins.
    end: u64,
    /// Rows in `groups`.
    settled: u64,
    /// Rows in the journal.
    waiting: usize,
    /// Whether the content is to survive a power cut.
    is_synced: bool,
}

impl TraceFile {
    pub(crate) fn create(path: PathBuf, keys: TraceKeys) -> io::Result<TraceFile> {
        let mut part = File::create(beside(&path, "part"))?;
        part.write_all(MAGIC)?;
        Ok(TraceFile {
            part,
            metadata: FrameWriter::create(&beside(&path, "groups"))?,
            journal: FrameWriter::create(&beside(&path, "journal"))?,
            groups: 0,
            end: MAGIC.len() as u64,
            settled: 0,
            waiting: 0,
            is_synced: true,
            path,
            keys,
        })
    }

    /// The same trace; it is lost with the machine's power if it is not to be synced.
    pub(crate) fn synced(self, is_synced: bool) -> TraceFile {
        TraceFile { is_synced, ..self }
    }

    /// Takes whole rows; when this returns, killing the process no longer loses them. A group is written once `group_rows`
    /// wait, and has no more: the file does not depend on the moments at which rows came.
    pub(crate) fn append(
        &mut self,
        rows: &[u8],
        group_rows: usize,
        workshop: &mut Workshop,
    ) -> io::Result<()> {
        let mut left = rows;
        while !left.is_empty() {
            let room = group_rows.saturating_sub(self.waiting).max(1) * ROW;
            let (next, later) = left.split_at(room.min(left.len()));
            self.journal.append(self.settled + self.waiting as u64, next)?;
            self.waiting += next.len() / ROW;
            if self.waiting >= group_rows {
                self.settle(workshop)?;
            }
            left = later;
        }
        Ok(())
    }

    /// Makes the file readable under its own name; returns its path.
    pub(crate) fn finish(mut self, workshop: &mut Workshop) -> io::Result<PathBuf> {
        if self.waiting > 0 {
            self.settle(workshop)?;
        }
        let (groups, _) = settled_groups(&self.path, self.end)?;
        let footer = footer(&workshop.encoder, groups, &self.keys)?;
        complete(&mut self.part, &footer, &self.path, self.is_synced)?;
        Ok(self.path)
    }

    /// Moves the waiting rows from the journal to a group.
    fn settle(&mut self, workshop: &mut Workshop) -> io::Result<()> {
        let Workshop { encoder, rows } = workshop;
        rows.clear();
        self.journal.contents(rows)?;
        let group = encoder.encode(rows, self.groups, self.end).map_err(io::Error::other)?;
        self.part.write_all(&group.bytes)?;
        self.end += group.bytes.len() as u64;
        let footer = encoder.footer(vec![group.metadata], &[]).map_err(io::Error::other)?;
        self.metadata.append(self.end, &footer)?;
        self.journal.clear()?;
        self.groups += 1;
        self.settled += self.waiting as u64;
        self.waiting = 0;
        Ok(())
    }
}

/// Makes a readable file at `path` of what a killed process left beside it, if it did. Can itself be killed and repeated.
pub(crate) fn repair(path: &Path, keys: &TraceKeys) -> io::Result<()> {
    let part_path = beside(path, "part");
    let mut part = match OpenOptions::new().read(true).write(true).open(&part_path) {
        Ok(part) => part,
        // Killed after it had its own name, or before it existed: then it is an empty one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove_sidecars(path)?;
            return if path.exists() {
                Ok(())
            } else {
                TraceFile::create(path.to_path_buf(), keys.clone())?.finish(&mut Workshop::new()?).map(drop)
            };
        }
        Err(error) => return Err(error),
    };
    let length = part.metadata()?.len();
    let (mut groups, end) = settled_groups(path, length)?;
    let settled = groups.iter().map(RowGroupMetaData::num_rows).sum::<i64>() as u64;
    let mut rows = Vec::new();
    read_frames(&beside(path, "journal"), |first, content| -> io::Result<()> {
        let known = (settled.saturating_sub(first) as usize).saturating_mul(ROW);
        rows.extend_from_slice(content.get(known..).unwrap_or_default());
        Ok(())
    })?;

    part.set_len(end)?;
    part.seek(SeekFrom::Start(0))?;
    part.write_all(MAGIC)?;
    part.seek(SeekFrom::Start(end))?;
    let mut encoder = GroupEncoder::new().map_err(io::Error::other)?;
    if rows.len() >= ROW {
        let group = encoder.encode(&rows, groups.len(), end).map_err(io::Error::other)?;
        part.write_all(&group.bytes)?;
        groups.push(group.metadata);
    }
    complete(&mut part, &footer(&encoder, groups, keys)?, path, true)
}

/// Removes the trace at `path`, finished or not.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    remove_file(path)?;
    remove_file(&beside(path, "part"))?;
    remove_sidecars(path)
}

/// Whether a trace was left unfinished, or not even begun, at `path`.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    !path.exists() || ["part", "groups", "journal"].iter().any(|suffix| beside(path, suffix).exists())
}

/// The row groups of which metadata was entered, and that lie in the first `length` bytes of the file; and where the last
/// of them ends.
fn settled_groups(path: &Path, length: u64) -> io::Result<(Vec<RowGroupMetaData>, u64)> {
    let mut groups = Vec::new();
    let mut end = MAGIC.len() as u64;
    read_frames(&beside(path, "groups"), |after, footer| -> io::Result<()> {
        if after <= length {
            groups.extend(GroupEncoder::groups(footer).map_err(io::Error::other)?);
            end = after;
        }
        Ok(())
    })?;
    Ok((groups, end))
}

fn footer(encoder: &GroupEncoder, groups: Vec<RowGroupMetaData>, keys: &TraceKeys) -> io::Result<Vec<u8>> {
    encoder.footer(groups, &keys.pairs()).map_err(io::Error::other)
}

fn complete(part: &mut File, footer: &[u8], path: &Path, is_synced: bool) -> io::Result<()> {
    part.write_all(footer)?;
    if is_synced {
        // A power cut must not leave the name without the content.
        part.sync_data()?;
    }
    fs::rename(beside(path, "part"), path)?;
    remove_sidecars(path)
}

fn remove_sidecars(path: &Path) -> io::Result<()> {
    remove_file(&beside(path, "groups"))?;
    remove_file(&beside(path, "journal"))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The name of a file that is being written.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    beside(path, "part")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

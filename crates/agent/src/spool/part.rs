//! One part on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use trunkline_core::Bytes;

use super::index::{Index, Place};
use super::segment::{self, HEAD};
use super::{Budget, End, Meta, SpoolError};

/// Kept free from the beginning, so that how a part ended can be written even when the disk is full.
const BALLAST: usize = 64 << 10;
/// Bytes that a folder and its files take beside their content, at most: a block each.
const BLOCKS: u64 = 16 << 10;

const META: &str = "part.json";
const END: &str = "end.json";
const BALLAST_FILE: &str = "ballast";
const SEGMENT: &str = "chunks";

/// A part on disk: its chunks, and how it ended once it has. Shared by who records and who streams.
#[derive(Debug)]
pub struct PartSpool {
    folder: PathBuf,
    meta: Meta,
    budget: Arc<Budget>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    index: Index,
    /// The last segment, if it has been written to since it was opened.
    file: Option<(u64, File)>,
    /// Whether something was written that the disk need not have yet.
    is_dirty: bool,
    end: Option<End>,
    /// What is counted beside the chunks.
    overhead: Bytes,
    /// Nobody wants it any more: its files are gone.
    is_discarded: bool,
}

/// What has become of a part, as who streams it has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many chunks there are, with those that are gone.
    pub chunks: u64,
    /// Nothing will be added.
    pub is_over: bool,
    /// Its files are gone.
    pub is_discarded: bool,
}

impl PartSpool {
    /// Makes the folder of a new part.
    pub(super) fn create(folder: PathBuf, meta: Meta, budget: Arc<Budget>) -> Result<PartSpool, SpoolError> {
        let text =
            serde_json::to_vec_pretty(&meta).map_err(|error| SpoolError::from_io(&folder, error.into()))?;
        let overhead = Bytes(BLOCKS + (text.len() + BALLAST) as u64);
        budget.take(&meta.controller, overhead)?;
        // Complete or not there at all.
        let unfinished = folder.with_extension("new");
        let make = || -> io::Result<()> {
            if unfinished.exists() {
                fs::remove_dir_all(&unfinished)?;
            }
            fs::create_dir(&unfinished)?;
            write_whole(&unfinished.join(META), &text)?;
            write_whole(&unfinished.join(BALLAST_FILE), &[0; BALLAST])?;
            fs::rename(&unfinished, &folder)
        };
        make().map_err(|error| {
            let _ = fs::remove_dir_all(&unfinished);
            budget.give(&meta.controller, overhead);
            SpoolError::from_io(&folder, error)
        })?;
        Ok(PartSpool::with(folder, meta, budget, Index::default(), None, overhead))
    }

    /// Takes up what an earlier process has left in a folder: the whole chunks, without what was only begun.
    pub(super) fn open(folder: PathBuf, budget: Arc<Budget>) -> Result<PartSpool, SpoolError> {
        let failed = |error| SpoolError::from_io(&folder, error);
        let meta = serde_json::from_slice(&fs::read(folder.join(META)).map_err(failed)?);
        let meta: Meta = meta.map_err(|error| failed(error.into()))?;
        let end = match fs::read(folder.join(END)) {
            Ok(text) => serde_json::from_slice::<End>(&text).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let index = restore(&folder).map_err(failed)?;
        let length = |name: &str| fs::metadata(folder.join(name)).map_or(0, |meta| meta.len());
        let overhead = Bytes(BLOCKS + [META, BALLAST_FILE, END].into_iter().map(length).sum::<u64>());
        budget.add(&meta.controller, Bytes(index.bytes().count() + overhead.count()));
        Ok(PartSpool::with(folder, meta, budget, index, end, overhead))
    }

    fn with(
        folder: PathBuf,
        meta: Meta,
        budget: Arc<Budget>,
        index: Index,
        end: Option<End>,
        overhead: Bytes,
    ) -> PartSpool {
        let state = State { index, file: None, is_dirty: false, end, overhead, is_discarded: false };
        PartSpool { folder, meta, budget, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// What was known of it from the beginning.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Adds a chunk and says its number.
    ///
    /// # Errors
    /// [`SpoolError::Full`] if the owner's limit or the disk has no room for it; then, as with every other error, it is as
    /// if the chunk had not been offered.
    pub fn append(&self, data: &[u8], observations: u32) -> Result<u64, SpoolError> {
        let mut state = self.state();
        if state.is_discarded {
            return Err(SpoolError::Discarded);
        }
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let place = state.index.place(length, observations);
        let head = segment::head(place.entry.number, observations, data);
        let head = head.ok_or_else(|| self.failed(io::ErrorKind::FileTooLarge.into()))?;
        let size = place.entry.size();
        self.budget.take(&self.meta.controller, size)?;
        if let Err(error) = write(&self.folder, &mut state, place, &head, data) {
            self.budget.give(&self.meta.controller, size);
            return Err(self.failed(error));
        }
        state.index.push(place);
        state.is_dirty = true;
        self.changed.notify_all();
        Ok(place.entry.number)
    }

    /// The data of a chunk.
    ///
    /// # Errors
    /// [`SpoolError::NotKept`] if there is no such chunk (any more).
    pub fn read(&self, number: u64) -> Result<Vec<u8>, SpoolError> {
        let (place, file) = {
            let state = self.state();
            let kept = (state.index.kept_from(), state.index.next());
            let place = state.index.find(number).ok_or(SpoolError::NotKept { number, kept })?;
            // Opened before anybody can delete it.
            (place, File::open(self.segment(place.segment)).map_err(|error| self.failed(error))?)
        };
        let mut bytes = vec![0; HEAD + place.entry.length as usize];
        let at = place.entry.offset - HEAD as u64;
        file.read_exact_at(&mut bytes, at).map_err(|error| self.failed(error))?;
        let whole =
            bytes.split_first_chunk::<HEAD>().is_some_and(|(head, data)| segment::is_whole(head, data));
        if !whole {
            return Err(self.failed(io::Error::other("a chunk is damaged")));
        }
        bytes.drain(..HEAD);
        Ok(bytes)
    }

    /// The chunks up to this one are safe elsewhere; what is no longer needed is deleted.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn acknowledge(&self, through: u64) -> Result<(), SpoolError> {
        let over = self.state().index.acknowledge(through);
        for (segment, bytes) in over {
            fs::remove_file(self.segment(segment)).map_err(|error| self.failed(error))?;
            self.budget.give(&self.meta.controller, bytes);
        }
        Ok(())
    }

    /// Nothing will be added: writes how the part ended, behind everything else, and waits until the disk has it all.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn finish(&self, end: End) -> Result<(), SpoolError> {
        let mut state = self.state();
        if state.is_discarded || state.end.is_some() {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&end).map_err(|error| self.failed(error.into()))?;
        let settle = || -> io::Result<()> {
            if let Some((_, file)) = &state.file {
                file.sync_data()?;
            }
            // Room for what follows.
            let _ = fs::remove_file(self.folder.join(BALLAST_FILE));
            write_whole(&self.folder.join(END), &text)?;
            File::open(&self.folder)?.sync_all()
        };
        let settled = settle();
        // It is over even if the disk does not know it: then it will count as interrupted after a restart.
        state.end = Some(end);
        let overhead = Bytes((state.overhead.count() + text.len() as u64).saturating_sub(BALLAST as u64));
        self.budget.add(&self.meta.controller, overhead);
        self.budget.give(&self.meta.controller, state.overhead);
        state.overhead = overhead;
        state.is_dirty = false;
        self.changed.notify_all();
        settled.map_err(|error| self.failed(error))
    }

    /// How the part ended, if it has.
    pub fn end(&self) -> Option<End> {
        self.state().end.clone()
    }

    /// Waits until there are more than so many chunks, nothing will be added, or the time is over.
    pub fn wait_beyond(&self, chunks: u64, patience: Duration) -> Extent {
        let state = self.state();
        let waits =
            |state: &mut State| state.index.next() <= chunks && state.end.is_none() && !state.is_discarded;
        let waited = self.changed.wait_timeout_while(state, patience, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.extent()
    }

    /// Its progress.
    pub fn extent(&self) -> Extent {
        self.state().extent()
    }

    /// The first chunk that is still stored.
    pub fn kept_from(&self) -> u64 {
        self.state().index.kept_from()
    }

    /// What it takes on disk.
    pub fn bytes(&self) -> Bytes {
        let state = self.state();
        Bytes(state.index.bytes().count() + state.overhead.count())
    }

    /// How many observations were recorded; after a restart those of the chunks that were kept.
    pub fn observations(&self) -> u64 {
        self.state().index.observations()
    }

    /// Since when it is over; for one that was interrupted, since when it was there.
    pub(super) fn since(&self) -> Timestamp {
        self.state().end.as_ref().map_or(self.meta.began, |end| end.at)
    }

    /// Whether it can go when the disk is short: it is over.
    pub(super) fn is_over(&self) -> bool {
        self.state().end.is_some()
    }

    /// Waits until the disk has what was written.
    pub(super) fn sync(&self) -> Result<(), SpoolError> {
        let file = {
            let mut state = self.state();
            if !std::mem::take(&mut state.is_dirty) {
                return Ok(());
            }
            // Closed segments were synchronised when they were closed.
            state.file.as_ref().map(|(_, file)| file.try_clone())
        };
        let synced = file.transpose().and_then(|file| file.map_or(Ok(()), |file| file.sync_data()));
        synced.map_err(|error| self.failed(error))
    }

    /// Deletes its files. Whoever still records or streams is told.
    pub(super) fn discard(&self) -> Result<(), SpoolError> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_discarded, true) {
            return Ok(());
        }
        state.file = None;
        let bytes = Bytes(state.index.bytes().count() + state.overhead.count());
        self.budget.give(&self.meta.controller, bytes);
        self.changed.notify_all();
        // By another name first: half of a part is never taken for one.
        let dying = self.folder.with_extension("old");
        let deleted = fs::rename(&self.folder, &dying).and_then(|()| fs::remove_dir_all(&dying));
        deleted.map_err(|error| self.failed(error))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn segment(&self, first: u64) -> PathBuf {
        segment_path(&self.folder, first)
    }

    fn failed(&self, error: io::Error) -> SpoolError {
        SpoolError::from_io(&self.folder, error)
    }
}

impl State {
    fn extent(&self) -> Extent {
        Extent { chunks: self.index.next(), is_over: self.end.is_some(), is_discarded: self.is_discarded }
    }
}

/// Writes a chunk at its place. If that fails, nothing of it is left behind.
fn write(folder: &Path, state: &mut State, place: Place, head: &[u8; HEAD], data: &[u8]) -> io::Result<()> {
    let is_open = state.file.as_ref().is_some_and(|(first, _)| *first == place.segment);
    if !is_open {
        let path = segment_path(folder, place.segment);
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        if let Some((_, closed)) = state.file.replace((place.segment, file)) {
            closed.sync_data()?;
        }
    }
    let Some((_, file)) = &mut state.file else { return Err(io::ErrorKind::NotFound.into()) };
    let written = file.write_all(&[head, data].concat());
    if written.is_err() {
        // What cannot be cut off is found by its checksum.
        let _ = file.set_len(place.entry.offset - HEAD as u64);
    }
    written
}

/// The chunks in the segments of a folder; what is damaged or only begun is deleted, and what follows it.
fn restore(folder: &Path) -> io::Result<Index> {
    let mut firsts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_suffix(SEGMENT)?.strip_suffix('.')?.parse().ok());
        firsts.extend(number);
    }
    firsts.sort_unstable();
    let mut index = Index::default();
    let mut is_whole = true;
    for first in firsts {
        let path = segment_path(folder, first);
        if !is_whole {
            fs::remove_file(path)?;
            continue;
        }
        let bytes = fs::read(&path)?;
        let (entries, end) = segment::scan(&bytes);
        is_whole = end == bytes.len();
        if !is_whole {
            OpenOptions::new().write(true).open(&path)?.set_len(end as u64)?;
        }
        if !index.restore(first, entries) {
            is_whole = false;
            fs::remove_file(path)?;
        }
    }
    Ok(index)
}

fn segment_path(folder: &Path, first: u64) -> PathBuf {
    // Sorted by name as by number, for people.
    folder.join(format!("{first:012}.{SEGMENT}"))
}

/// The file with exactly these bytes, or the one that was there before.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| _ = fs::remove_file(&unfinished))
}

//! What an agent keeps on disk for controllers: the records of every part, until they are acknowledged.
//!
//! Every part has a folder: who it is for (`part.json`), its chunks in segments that only grow, and how it ended
//! (`end.json`). A process that is killed at any moment leaves whole chunks and perhaps one that was only begun, which is
//! known by its checksum and cut off. What was acknowledged is deleted segment by segment; the rest stays until the
//! controller does not want the part any more, or until the owner's time is over and disk is short.

mod budget;
mod index;
mod part;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trunkline_control::{Fingerprint, PartId, Refusal};
use trunkline_core::{Bytes, Duration};

use budget::Budget;
pub use part::{Extent, PartSpool};

/// What is known of a part from the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The part.
    pub part: PartId,
    /// The key of the controller that it is for.
    pub controller: Fingerprint,
    /// How that controller was called.
    pub controller_name: String,
    /// The name of the experiment.
    pub experiment: String,
    /// When it was prepared.
    pub began: Timestamp,
}

/// How a part ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// What is said to the controller.
    pub how: Ending,
}

/// What is said to the controller of a part that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It ended as it should.
    Finished {
        /// What the driver handed back, as JSON.
        outcome: String,
        /// For each flow, how far one-way times may be wrong.
        clock_errors: Vec<Option<Duration>>,
    },
    /// It failed.
    Failed {
        /// Why.
        refusal: Refusal,
        /// What the driver handed back of what was measured until then, as JSON.
        outcome: Option<String>,
    },
}

/// What can go wrong with what is kept.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// There is no room for another chunk.
    #[error("{0}")]
    Full(String),
    /// The chunk is not there.
    #[error("chunk {number} is not stored; available are those from {} to before {}", kept.0, kept.1)]
    NotKept {
        /// The chunk's number, from 0.
        number: u64,
        /// The first that is kept, and the number of the next.
        kept: (u64, u64),
    },
    /// The part is not wanted any more.
    #[error("the part was discarded")]
    Discarded,
    /// There is such a part already.
    #[error("this part is already stored; a repeated measurement is a new attempt")]
    Exists,
    /// The part's name cannot be that of a folder.
    #[error("`{0}` is not the key of a run, which has 32 hexadecimal digits")]
    Run(String),
    /// A file or folder.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl SpoolError {
    fn from_io(path: &Path, error: io::Error) -> SpoolError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                SpoolError::Full(format!("the disk of {} is full", path.parent().unwrap_or(path).display()))
            }
            _ => SpoolError::Io { path: path.to_owned(), error },
        }
    }
}

/// The folder of all parts.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    budget: Arc<Budget>,
    keep: Duration,
    parts: Mutex<BTreeMap<PartId, Arc<PartSpool>>>,
}

impl Spool {
    /// Takes up what is kept in a folder. At most `limit` bytes are kept; what is older than `keep` may go when disk is
    /// short. What cannot be read is left alone and told, a sentence for each.
    ///
    /// # Errors
    /// If the folder cannot be made or read.
    pub fn open(folder: &Path, limit: Bytes, keep: Duration) -> Result<(Spool, Vec<String>), SpoolError> {
        let failed = |error| SpoolError::from_io(folder, error);
        fs::create_dir_all(folder).map_err(failed)?;
        let budget = Arc::new(Budget::new(limit));
        let (mut parts, mut unreadable) = (BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "new" || extension == "old") {
                // Was only begun to be made, or to be deleted.
                fs::remove_dir_all(&path).map_err(failed)?;
                continue;
            }
            if !path.is_dir() {
                continue;
            }
            match PartSpool::open(path.clone(), Arc::clone(&budget)) {
                Ok(part) => _ = parts.insert(part.meta().part.clone(), Arc::new(part)),
                Err(error) => unreadable.push(format!("a part that was kept cannot be read: {error}")),
            }
        }
        let parts = Mutex::new(parts);
        Ok((Spool { folder: folder.to_owned(), budget, keep, parts }, unreadable))
    }

    /// Makes room for a new part.
    ///
    /// # Errors
    /// If it is there already, or the disk does not let us.
    pub fn create(&self, meta: Meta) -> Result<Arc<PartSpool>, SpoolError> {
        let mut parts = self.parts();
        if parts.contains_key(&meta.part) {
            return Err(SpoolError::Exists);
        }
        let id = meta.part.clone();
        let folder = self.folder.join(folder_name(&id)?);
        let part = Arc::new(PartSpool::create(folder, meta, Arc::clone(&self.budget))?);
        parts.insert(id, Arc::clone(&part));
        Ok(part)
    }

    /// A part that is kept.
    pub fn find(&self, part: &PartId) -> Option<Arc<PartSpool>> {
        self.parts().get(part).cloned()
    }

    /// All that are kept.
    pub fn list(&self) -> Vec<Arc<PartSpool>> {
        self.parts().values().cloned().collect()
    }

    /// Deletes a part. True if there was one.
    ///
    /// # Errors
    /// If its files cannot be deleted.
    pub fn discard(&self, part: &PartId) -> Result<bool, SpoolError> {
        let found = self.parts().remove(part);
        found.map_or(Ok(false), |part| part.discard().map(|()| true))
    }

    /// Disk is short: deletes the oldest part that is over and older than the owner's time, and says what it was. `None` if
    /// there is none.
    pub fn make_room(&self, now: Timestamp) -> Option<Meta> {
        let keep = jiff::SignedDuration::try_from(self.keep.to_std()).ok()?;
        let before = now.checked_sub(keep).ok()?;
        let oldest = self.list().into_iter().filter(|part| part.is_over() && part.since() < before);
        let oldest = oldest.min_by_key(|part| part.since())?;
        // Whether or not all of its files can be deleted, it is no longer counted.
        let _ = self.discard(&oldest.meta().part);
        Some(oldest.meta().clone())
    }

    /// Waits until the disk has all chunks.
    ///
    /// # Errors
    /// If a disk fails.
    pub fn sync(&self) -> Result<(), SpoolError> {
        self.list().iter().try_for_each(|part| part.sync())
    }

    /// What is kept in all.
    pub fn bytes(&self) -> Bytes {
        self.budget.used()
    }

    /// What is kept for a controller.
    pub fn bytes_of(&self, controller: &Fingerprint) -> Bytes {
        self.budget.used_by(controller)
    }

    /// Sets whether the disk is shared by several controllers, each of which then has at most half of what the others leave.
    pub fn set_shared(&self, is_shared: bool) {
        self.budget.set_shared(is_shared);
    }

    /// Free disk space.
    pub fn disk_free(&self) -> Bytes {
        trunkline_io::machine::disk_free(&self.folder).unwrap_or(Bytes::ZERO)
    }

    fn parts(&self) -> MutexGuard<'_, BTreeMap<PartId, Arc<PartSpool>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the folder of a part is called. What comes from outside is no path.
fn folder_name(part: &PartId) -> Result<String, SpoolError> {
    let PartId { run, point, repetition, pair, attempt } = part;
    if run.len() != 32 || !run.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(SpoolError::Run(run.chars().take(64).collect::<String>().escape_debug().to_string()));
    }
    let run = run.to_ascii_lowercase();
    Ok(format!("{run}-{point}-{repetition}-{pair}-{attempt}"))
}

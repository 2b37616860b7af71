//! What a dead process left: its lock, its run's status, its unfinished traces.

use std::fmt::Debug;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;

use jiff::Timestamp;

use crate::StoreError;
use crate::catalogue::Catalogue;
use crate::error::is_read_only;
use crate::files;
use crate::trace;

/// Held by the process that measures a run, and released when it ends, however it ends: there is no process number to go
/// stale. A second opening in the same process is kept out too.
#[derive(Debug)]
#[allow(dead_code, reason = "held, not used")]
pub(crate) enum RunLock {
    /// A lock on an open file, which the kernel releases.
    File(File),
    /// One of a session, which the server releases.
    Session(Mutex<Box<dyn Debug + Send>>),
    /// One of the connection by which the run is written.
    Connection,
    /// There is no folder: nobody measures here.
    NoFolder,
}

impl RunLock {
    /// Takes the lock of the run in `directory`; `None` if a living process has it.
    pub(crate) fn of_folder(directory: &Path) -> Result<Option<RunLock>, StoreError> {
        if !directory.is_dir() {
            return Ok(Some(RunLock::NoFolder));
        }
        let path = directory.join("running.lock");
        let opened = match File::options().create(true).append(true).open(&path) {
            // Where nothing can be written a lock that is there can be seen to be held.
            Err(error) if is_read_only(&error) => match File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(RunLock::NoFolder)),
                opened => opened,
            },
            opened => opened,
        };
        let file = opened.map_err(StoreError::io("opened", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunLock::File(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io("locked", &path)(error)),
        }
    }
}

/// Repairs every run that needs it and that no living process measures. A run that cannot be repaired now (a full disk)
/// stays as it is, and is tried again at the next opening: it must not keep the others from being read. A store that can
/// only be looked at stays as it is.
pub(crate) fn recover(catalogue: &mut dyn Catalogue, runs: &Path) -> Result<(), StoreError> {
    if catalogue.is_read_only() {
        return Ok(());
    }
    for (id, folder) in catalogue.unrepaired()? {
        let directory = runs.join(folder);
        let Ok(Some(_lock)) = catalogue.lock(id, &directory) else { continue };
        // It may have ended in order between the two looks.
        if catalogue.unrepaired()?.iter().any(|(left, _)| *left == id) {
            // Traces that are nowhere need no repair, those of another host are that host's to repair.
            let repaired = match files::is_own(&directory) {
                true => repair_traces(catalogue, id, &directory)?,
                false => !catalogue.is_shared(),
            };
            catalogue.died(id, !repaired, Timestamp::now())?;
        }
    }
    Ok(())
}

/// Finishes what traces a run has unfinished; false if some could not be.
pub(crate) fn repair_traces(
    catalogue: &mut dyn Catalogue,
    id: u64,
    directory: &Path,
) -> Result<bool, StoreError> {
    let mut whole = true;
    for (keys, path) in catalogue.traces(id)? {
        let path = directory.join(path);
        whole &= !trace::is_unfinished(&path) || trace::repair(&path, &keys).is_ok();
    }
    Ok(whole)
}

/// Removes a folder that may not be there.
pub(crate) fn remove_folder(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("removed", path)(error))
        }
        _ => Ok(()),
    }
}

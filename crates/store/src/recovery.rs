//! What a dead process left: its lock, its run's status, its unfinished traces.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;
use crate::trace::{self, TraceKeys};

/// Held by the process that measures a run. The kernel releases it when the process ends, however it ends, so there is
/// no process number to go stale; and it is held by an open file, so a second opening in the same process is kept out too.
#[derive(Debug)]
pub(crate) struct RunLock(#[allow(dead_code, reason = "held, not used")] File);

impl RunLock {
    /// Takes the lock of the run in `directory`; `None` if a living process has it.
    pub(crate) fn take(directory: &Path) -> Result<Option<RunLock>, StoreError> {
        let path = directory.join("running.lock");
        let file =
            File::options().create(true).append(true).open(&path).map_err(StoreError::io("opened", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StoreError::io("locked", &path)(error)),
        }
    }
}

/// Repairs every run that needs it and that no living process measures. A run that cannot be repaired now (a full disk)
/// stays as it is, and is tried again at the next opening: it must not keep the others from being read.
pub(crate) fn recover(connection: &Connection, runs: &Path) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT id, folder FROM run WHERE repair")?;
    let left: Vec<(i64, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (id, folder) in left {
        let directory = runs.join(folder);
        if !directory.is_dir() {
            mark_partial(connection, id, false)?;
            continue;
        }
        let Ok(Some(_lock)) = RunLock::take(&directory) else { continue };
        // It may have ended in order between the two looks.
        let still =
            connection.query_row("SELECT count(*) FROM run WHERE id = ?1 AND repair", [id], |row| {
                row.get::<_, i64>(0)
            })?;
        if still != 0 {
            let repaired = repair_traces(connection, id, &directory)?;
            mark_partial(connection, id, !repaired)?;
        }
    }
    Ok(())
}

/// Finishes what traces a run has unfinished; false if some could not be.
pub(crate) fn repair_traces(connection: &Connection, id: i64, directory: &Path) -> rusqlite::Result<bool> {
    let mut statement = connection
        .prepare("SELECT point, repetition, flow, path FROM artefact WHERE run = ?1 AND kind = 'trace'")?;
    let mut rows = statement.query([id])?;
    let mut whole = true;
    while let Some(row) = rows.next()? {
        let path = directory.join(row.get::<_, String>(3)?);
        let keys =
            TraceKeys { run: id as u64, point: row.get(0)?, repetition: row.get(1)?, flow: row.get(2)? };
        whole &= !trace::is_unfinished(&path) || trace::repair(&path, &keys).is_ok();
    }
    Ok(whole)
}

/// A complete run stays complete.
fn mark_partial(connection: &Connection, id: i64, repair: bool) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE run SET repair = ?2, finished = coalesce(finished, ?3),
            status = CASE status WHEN 'running' THEN 'partial' ELSE status END WHERE id = ?1",
        rusqlite::params![id, repair, jiff::Timestamp::now().to_string()],
    )?;
    Ok(())
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

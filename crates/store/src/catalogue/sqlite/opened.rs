//! The database, opened so that it can be written, or else so that it can be looked at.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::schema;
use crate::StoreError;
use crate::error::is_read_only;

/// A connection, and what it stands on.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// Whether nothing can be written.
    pub(super) is_read_only: bool,
    /// The copy that it reads, where the database itself cannot be read as it lies there.
    _copy: Option<TempDir>,
}

/// Opens the database, making it if there is none. One that cannot be written is opened to be looked at.
pub(super) fn open(path: &Path, is_synced: bool) -> Result<Opened, StoreError> {
    match schema::open(path, is_synced) {
        Ok(connection) => {
            let is_read_only = connection.is_readonly("main").unwrap_or(false);
            Ok(Opened { connection, is_read_only, _copy: None })
        }
        Err(StoreError::Database { .. } | StoreError::ReadOnly { .. })
            if path.is_file() && cannot_be_written(path) =>
        {
            look_at(path)
        }
        Err(error) => Err(error),
    }
}

/// Whether the database or its folder refuses to be written, for whatever reason but a full disk.
fn cannot_be_written(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let probes = [File::options().append(true).open(path).map(drop), tempfile::tempfile_in(folder).map(drop)];
    probes.into_iter().any(|probe| probe.is_err_and(|error| is_read_only(&error)))
}

/// Opens a database that cannot be written. Three ways, the first of which that works: beside the process that writes it,
/// whose log may be read; as one that nobody writes; and as a copy, which can take in a log that was left, and be
/// brought up to date.
fn look_at(path: &Path) -> Result<Opened, StoreError> {
    let opened = |connection, copy| Opened { connection, is_read_only: true, _copy: copy };
    let read = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if let Ok(connection) = Connection::open_with_flags(path, read)
        && schema::is_current(&connection)
    {
        return Ok(opened(connection, None));
    }
    let has_log = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    if !has_log
        && let Some(address) = immutable(path)
        && let Ok(connection) = Connection::open_with_flags(address, read | OpenFlags::SQLITE_OPEN_URI)
        && schema::is_current(&connection)
    {
        return Ok(opened(connection, None));
    }
    let copy = copied(path).map_err(StoreError::io("copied to be read", path))?;
    let connection = schema::open(&copy.path().join(NAME), false)?;
    // What is written into a copy is lost.
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|source| StoreError::database(path, source))?;
    Ok(opened(connection, Some(copy)))
}

const NAME: &str = "trunkline.db";

fn copied(path: &Path) -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::copy(path, folder.path().join(NAME))?;
    let log = beside(path, "-wal");
    if log.exists() {
        fs::copy(log, beside(&folder.path().join(NAME), "-wal"))?;
    }
    Ok(folder)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The address by which SQLite takes a file for one that nobody changes.
fn immutable(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let escaped = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{escaped}?immutable=1"))
}

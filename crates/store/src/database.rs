//! The tables, their versions, and rows to values.

use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use trunkline_core::Duration;

use crate::StoreError;
use crate::model::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun};

/// One script per version of the schema, each from the version before; never changed once released. Numbers without a
/// sign are kept bit by bit in SQLite's signed ones. `axes`, `limits`, `choice` and `summary` are JSON. Paths are
/// relative to the run's folder. `repair` is set while unfinished traces may lie in it.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        backend TEXT NOT NULL,
        status TEXT NOT NULL,
        repair INTEGER NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        version TEXT NOT NULL,
        machine TEXT NOT NULL,
        seed INTEGER NOT NULL,
        repetitions INTEGER NOT NULL,
        repetition_length_ns INTEGER NOT NULL,
        folder TEXT NOT NULL,
        file TEXT NOT NULL,
        experiment_hash TEXT NOT NULL,
        text TEXT NOT NULL,
        axes TEXT NOT NULL,
        limits TEXT NOT NULL
    );
    CREATE INDEX run_by_experiment ON run (experiment_hash, backend);
    CREATE TABLE point (
        run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
        point INTEGER NOT NULL,
        choice TEXT NOT NULL,
        PRIMARY KEY (run, point)
    ) WITHOUT ROWID;
    CREATE TABLE repetition (
        run INTEGER NOT NULL,
        point INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        partial INTEGER NOT NULL,
        summary TEXT,
        PRIMARY KEY (run, point, repetition),
        FOREIGN KEY (run, point) REFERENCES point ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE TABLE artefact (
        run INTEGER NOT NULL,
        point INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        kind TEXT NOT NULL,
        place INTEGER NOT NULL,
        flow TEXT,
        path TEXT NOT NULL,
        PRIMARY KEY (run, point, repetition, kind, place),
        FOREIGN KEY (run, point, repetition) REFERENCES repetition ON DELETE CASCADE
    ) WITHOUT ROWID;
"];

/// How long a writer waits for another process: writes take milliseconds.
const BUSY: StdDuration = StdDuration::from_secs(30);

/// Opens the database and brings its schema up to date.
///
/// The journal mode is WAL, so that readers never wait for a run. `synchronous=NORMAL` loses nothing when a process is
/// killed; a power cut may undo the last transactions, but never damages the file.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let database = |source| StoreError::Database { path: path.to_path_buf(), source };
    let mut connection = Connection::open(path).map_err(database)?;
    connection.busy_timeout(BUSY).map_err(database)?;
    let found = version(&connection).map_err(database)?;
    check_version(path, found)?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;")
        .map_err(database)?;
    if (found as usize) < MIGRATIONS.len() {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        // Another process may have been faster.
        let found = version(&transaction).map_err(database)?;
        check_version(path, found)?;
        for script in &MIGRATIONS[found as usize..] {
            transaction.execute_batch(script).map_err(database)?;
        }
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(database)?;
        transaction.commit().map_err(database)?;
    }
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn check_version(path: &Path, found: i64) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as i64;
    if (0..=known).contains(&found) {
        Ok(())
    } else {
        Err(StoreError::Newer { path: path.to_path_buf(), found, known })
    }
}

/// The name of a backend in the database and in folder names.
pub(crate) fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Sim => "sim",
        Backend::Wire => "wire",
        Backend::Live => "live",
    }
}

/// The name of a status in the database.
pub(crate) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Complete => "complete",
        Status::Partial => "partial",
    }
}

const INFO: &str = "
    SELECT id, name, backend, status, started, finished, version, machine, seed, repetitions, repetition_length_ns,
        folder, file, experiment_hash,
        (SELECT count(*) FROM point WHERE run = id),
        (SELECT count(*) FROM repetition WHERE run = id AND NOT partial)
    FROM run";

/// Every run, the oldest first.
pub(crate) fn infos(connection: &Connection, runs: &Path) -> rusqlite::Result<Vec<RunInfo>> {
    let mut statement = connection.prepare(&format!("{INFO} ORDER BY id"))?;
    statement.query_map([], |row| info_of(row, runs))?.collect()
}

/// One run.
pub(crate) fn info(connection: &Connection, runs: &Path, id: u64) -> rusqlite::Result<Option<RunInfo>> {
    connection.query_row(&format!("{INFO} WHERE id = ?1"), [id as i64], |row| info_of(row, runs)).optional()
}

fn info_of(row: &Row<'_>, runs: &Path) -> rusqlite::Result<RunInfo> {
    let folder: String = row.get(11)?;
    let finished: Option<String> = row.get(5)?;
    Ok(RunInfo {
        id: row.get::<_, i64>(0)? as u64,
        name: row.get(1)?,
        backend: named(row, 2, &[Backend::Sim, Backend::Wire, Backend::Live], backend_name)?,
        status: named(row, 3, &[Status::Running, Status::Complete, Status::Partial], status_name)?,
        started: timestamp(4, &row.get::<_, String>(4)?)?,
        finished: finished.map(|text| timestamp(5, &text)).transpose()?,
        version: row.get(6)?,
        machine: row.get(7)?,
        seed: row.get::<_, i64>(8)? as u64,
        repetitions: row.get(9)?,
        points: row.get(14)?,
        repetitions_done: row.get(15)?,
        repetition_length: Duration::from_nanos(row.get::<_, i64>(10)? as u64),
        directory: runs.join(folder),
        file: PathBuf::from(row.get::<_, String>(12)?),
        experiment_hash: row.get(13)?,
    })
}

fn named<T: Copy>(
    row: &Row<'_>,
    column: usize,
    all: &[T],
    name: fn(T) -> &'static str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    all.iter()
        .copied()
        .find(|value| name(*value) == text)
        .ok_or_else(|| unreadable(column, format!("`{text}`").into()))
}

fn timestamp(column: usize, text: &str) -> rusqlite::Result<jiff::Timestamp> {
    text.parse().map_err(|error: jiff::Error| unreadable(column, error.into()))
}

fn json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(column, error.into()))
}

fn unreadable(column: usize, why: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why)
}

/// A run with its results, as of one moment.
pub(crate) fn stored_run(
    connection: &mut Connection,
    runs: &Path,
    id: u64,
) -> rusqlite::Result<Option<StoredRun>> {
    // One transaction: another process may be writing.
    let transaction = connection.transaction()?;
    let Some(info) = info(&transaction, runs, id)? else { return Ok(None) };
    let (text, axes, limits) =
        transaction.query_row("SELECT text, axes, limits FROM run WHERE id = ?1", [id as i64], |row| {
            Ok((row.get(0)?, json(1, &row.get::<_, String>(1)?)?, json(2, &row.get::<_, String>(2)?)?))
        })?;
    let mut points = Vec::new();
    let mut statement =
        transaction.prepare("SELECT point, choice FROM point WHERE run = ?1 ORDER BY point")?;
    let mut rows = statement.query([id as i64])?;
    while let Some(row) = rows.next()? {
        let index = row.get(0)?;
        let choice = json(1, &row.get::<_, String>(1)?)?;
        let repetitions = repetitions(&transaction, &info, index)?;
        points.push(StoredPoint { index, choice, repetitions });
    }
    // A search does not find its points in the product's order.
    points.sort_by(|a, b| a.choice.cmp(&b.choice));
    Ok(Some(StoredRun { info, text, axes, limits, points }))
}

fn repetitions(
    connection: &Connection,
    run: &RunInfo,
    point: u32,
) -> rusqlite::Result<Vec<StoredRepetition>> {
    let mut statement = connection.prepare_cached(
        "SELECT repetition, partial, summary FROM repetition WHERE run = ?1 AND point = ?2 ORDER BY repetition",
    )?;
    let mut artefacts = connection.prepare_cached(
        "SELECT kind, flow, path FROM artefact WHERE run = ?1 AND point = ?2 AND repetition = ?3 ORDER BY kind, place",
    )?;
    let mut found = Vec::new();
    let mut rows = statement.query(params![run.id as i64, point])?;
    while let Some(row) = rows.next()? {
        let summary: Option<String> = row.get(2)?;
        let mut repetition = StoredRepetition {
            index: row.get(0)?,
            partial: row.get(1)?,
            summary: summary.map(|text| json(2, &text)).transpose()?,
            traces: Vec::new(),
            audio: Vec::new(),
        };
        let mut rows = artefacts.query(params![run.id as i64, point, repetition.index])?;
        while let Some(row) = rows.next()? {
            let path = run.directory.join(row.get::<_, String>(2)?);
            match row.get::<_, Option<String>>(1)? {
                Some(flow) if row.get::<_, String>(0)? == "trace" => repetition.traces.push((flow, path)),
                _ => repetition.audio.push(path),
            }
        }
        found.push(repetition);
    }
    Ok(found)
}

//! The tables and their versions.

use std::path::Path;
use std::time::Duration as StdDuration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::StoreError;

/// One script per version of the schema, each from the version before; never changed once released. Numbers without a
/// sign are kept bit by bit in SQLite's signed ones. `axes`, `limits`, `settings`, `choice` and `summary` are JSON. Paths are
/// relative to the run's folder. `repair` is set while unfinished traces may lie in it; `key` tells a run from those of all
/// other stores; `shard` is the part of the run that it measures, `2/8`.
const MIGRATIONS: [&str; 5] = [
    "
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
    ",
    "
    CREATE TABLE tag (
        run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (run, tag)
    ) WITHOUT ROWID;
    ALTER TABLE run ADD COLUMN key TEXT NOT NULL DEFAULT '';
    UPDATE run SET key = lower(hex(randomblob(16)));
    CREATE UNIQUE INDEX run_by_key ON run (key);
    ",
    "
    ALTER TABLE run ADD COLUMN settings TEXT NOT NULL DEFAULT '[]';
    ",
    "
    ALTER TABLE run ADD COLUMN shard TEXT;
    ",
    // A search in a table without row numbers reads whole rows, which have the summaries.
    "
    CREATE TABLE summarised (
        run INTEGER NOT NULL,
        point INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        partial INTEGER NOT NULL,
        summary TEXT,
        PRIMARY KEY (run, point, repetition),
        FOREIGN KEY (run, point) REFERENCES point ON DELETE CASCADE
    );
    INSERT INTO summarised (run, point, repetition, partial, summary)
        SELECT run, point, repetition, partial, summary FROM repetition ORDER BY run, point, repetition;
    DROP TABLE repetition;
    ALTER TABLE summarised RENAME TO repetition;
    CREATE INDEX repetition_done ON repetition (run, point, repetition, partial) WHERE NOT partial;
    ",
];

/// How long a writer waits for another process: writes take milliseconds.
const BUSY: StdDuration = StdDuration::from_secs(30);

/// Opens the database and brings its schema up to date.
///
/// The journal mode is WAL, so that readers never wait for a run. `synchronous=NORMAL` loses nothing when a process is
/// killed; a power cut may undo the last transactions, but never damages the file. It may damage one that is not synced at all.
pub(super) fn open(path: &Path, is_synced: bool) -> Result<Connection, StoreError> {
    let database = |source| StoreError::database(path, source);
    let mut connection = Connection::open(path).map_err(database)?;
    connection.busy_timeout(BUSY).map_err(database)?;
    let found = version(&connection).map_err(database)?;
    check_version(path, found)?;
    connection
        .pragma_update(None, "synchronous", if is_synced { "NORMAL" } else { "OFF" })
        .and_then(|()| connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF;"))
        .map_err(database)?;
    if (found as usize) < MIGRATIONS.len() {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        // Another process may have been faster.
        let found = version(&transaction).map_err(database)?;
        check_version(path, found)?;
        for script in &MIGRATIONS[found as usize..] {
            transaction.execute_batch(script).map_err(|source| of_script(path, found, source))?;
        }
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(database)?;
        transaction.commit().map_err(database)?;
    }
    // Only now: a table that a migration replaces takes nothing with it.
    connection.pragma_update(None, "foreign_keys", true).map_err(database)?;
    Ok(connection)
}

/// Why a script has failed: the tables may not be those of the version that the database says it has.
fn of_script(path: &Path, found: i64, source: rusqlite::Error) -> StoreError {
    let why = match &source {
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        rusqlite::Error::SqliteFailure(error, Some(msg)) if error.code == ErrorCode::Unknown => msg,
        _ => return StoreError::database(path, source),
    };
    StoreError::damaged(
        path,
        format!(
            "its `user_version` is {found}, and its tables are not of that version ({why}); restore a backup"
        ),
    )
}

/// Whether the database can be read, and has the tables of this version.
pub(super) fn is_current(connection: &Connection) -> bool {
    version(connection).is_ok_and(|found| found == MIGRATIONS.len() as i64)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn check_version(path: &Path, found: i64) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as i64;
    if (0..=known).contains(&found) {
        Ok(())
    } else {
        Err(StoreError::Newer { place: path.display().to_string(), found, known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search in a table without row numbers reads the summaries of the rows that it passes.
    #[test]
    fn repetitions_are_found_without_reading_summaries() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open(&folder.path().join("trunkline.db"), false).unwrap();
        let query = "SELECT wr FROM pragma_table_list WHERE name = 'repetition'";
        assert_eq!(connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        let done = "EXPLAIN QUERY PLAN SELECT count(*) FROM repetition WHERE run = 1 AND NOT partial";
        let plan: String = connection.query_row(done, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("COVERING INDEX repetition_done"), "{plan}");
        assert!(connection.pragma_query_value(None, "foreign_keys", |row| row.get::<_, bool>(0)).unwrap());
    }
}

//! The catalogue in SQLite, in a store's own folder.

mod opened;
mod rows;
mod schema;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use self::opened::Opened;
use super::{Begun, Catalogue, Finished, RepetitionKey};
use crate::StoreError;
use crate::folders;
use crate::model::{RunInfo, Status, StoredPoint, StoredRun, status_name};
use crate::recovery::RunLock;
use crate::run_writer::{NewRun, Revision};
use crate::selector::folder_name;
use crate::store::experiment_hash;
use crate::trace::TraceKeys;

/// A connection to the database.
#[derive(Debug)]
pub(super) struct Sqlite {
    path: PathBuf,
    /// Where the folders of runs lie.
    runs: PathBuf,
    /// True if what is written survives a power cut.
    is_synced: bool,
    opened: Opened,
}

impl Sqlite {
    /// Opens the database, making it if there is none, and brings its schema up to date. What cannot be written can be
    /// looked at.
    pub(super) fn open(path: &Path, runs: &Path, is_synced: bool) -> Result<Sqlite, StoreError> {
        let opened = opened::open(path, is_synced)?;
        Ok(Sqlite { path: path.to_path_buf(), runs: runs.to_path_buf(), is_synced, opened })
    }

    /// Reads.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(&self.opened.connection).map_err(|source| StoreError::database(&self.path, source))
    }

    /// Writes, all or nothing.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = &mut self.opened.connection;
        let written =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                let result = work(&transaction)?;
                transaction.commit()?;
                Ok(result)
            });
        written.map_err(|source| StoreError::database(&self.path, source))
    }
}

impl Catalogue for Sqlite {
    fn another(&self) -> Result<Box<dyn Catalogue>, StoreError> {
        Ok(Box::new(Sqlite::open(&self.path, &self.runs, self.is_synced)?))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_read_only(&self) -> bool {
        self.opened.is_read_only
    }

    fn lock(&self, _: u64, directory: &Path) -> Result<Option<RunLock>, StoreError> {
        RunLock::of_folder(directory)
    }

    fn hold(&mut self, id: u64, directory: &Path) -> Result<Option<RunLock>, StoreError> {
        self.lock(id, directory)
    }

    fn begin(
        &mut self,
        run: &NewRun,
        key: &str,
        started: Timestamp,
        ready: &mut dyn FnMut(u64, &str) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let axes = serde_json::to_string(&run.axes)?;
        let limits = serde_json::to_string(&run.limits)?;
        let path = &self.path;
        let failed = |source| StoreError::database(path, source);
        let connection = &mut self.opened.connection;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let last: Option<i64> = transaction
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'run'", [], |row| row.get(0))
            .optional()
            .map_err(failed)?;
        // A database from a backup does not know the latest runs: their numbers are not given again.
        let unknown = folders::highest_measured(&self.runs, last.unwrap_or(0) as u64)?;
        transaction
            .execute(
                "INSERT INTO run (id, name, backend, status, repair, started, version, machine, seed, repetitions,
                    repetition_length_ns, folder, file, experiment_hash, text, axes, limits, key, settings, shard)
                 VALUES (?16, ?1, ?2, 'running', 1, ?3, ?4, ?5, ?6, ?7, ?8, '', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?17)",
                params![
                    run.name,
                    run.backend.name(),
                    started.to_string(),
                    run.version,
                    run.machine,
                    run.seed as i64,
                    run.repetitions,
                    run.repetition_length.as_nanos() as i64,
                    run.file.to_string_lossy(),
                    experiment_hash(&run.text),
                    run.text,
                    axes,
                    limits,
                    key,
                    serde_json::to_string(&run.settings)?,
                    unknown.map(|number| number as i64 + 1),
                    run.shard.map(String::from),
                ],
            )
            .map_err(failed)?;
        let id = transaction.last_insert_rowid();
        let folder = folder_name(id as u64, &run.name, run.backend);
        transaction
            .execute("UPDATE run SET folder = ?2 WHERE id = ?1", params![id, folder])
            .map_err(failed)?;
        for (point, choice) in &run.points {
            transaction
                .prepare_cached("INSERT INTO point (run, point, choice) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute(params![id, i64::from(*point), format!("{choice:?}")]))
                .map_err(failed)?;
        }
        ready(id as u64, &folder)?;
        transaction.commit().map_err(failed)?;
        Ok(id as u64)
    }

    fn with_key(&mut self, key: &str) -> Result<Option<u64>, StoreError> {
        self.read(|connection| {
            let found = connection.query_row("SELECT id FROM run WHERE key = ?1", [key], |row| row.get(0));
            Ok(found.optional()?.map(|id: i64| id as u64))
        })
    }

    fn infos(&mut self) -> Result<Vec<RunInfo>, StoreError> {
        self.read(|connection| rows::infos(connection, &self.runs))
    }

    fn info(&mut self, id: u64) -> Result<Option<RunInfo>, StoreError> {
        self.read(|connection| rows::info(connection, &self.runs, id))
    }

    fn outline(&mut self, id: u64) -> Result<Option<StoredRun>, StoreError> {
        self.read(|connection| rows::outline(connection, &self.runs, id))
    }

    fn walk(&mut self, id: u64, point: &mut dyn FnMut(StoredPoint)) -> Result<Option<StoredRun>, StoreError> {
        // One transaction: another process may be writing.
        let transaction = self.opened.connection.transaction();
        let run = transaction.and_then(|transaction| rows::walk(&transaction, &self.runs, id, point));
        run.map_err(|source| StoreError::database(&self.path, source))
    }

    fn remove(&mut self, id: u64) -> Result<(), StoreError> {
        self.write(|transaction| transaction.execute("DELETE FROM run WHERE id = ?1", [id as i64]))?;
        Ok(())
    }

    fn started(&mut self, id: u64) -> Result<(), StoreError> {
        self.write(|transaction| {
            let running = "UPDATE run SET status = 'running', repair = 1, finished = NULL WHERE id = ?1";
            transaction.execute(running, [id as i64])
        })?;
        Ok(())
    }

    fn ended(&mut self, id: u64, status: Status, repair: bool, at: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute(
                "UPDATE run SET status = ?2, repair = ?3, finished = ?4 WHERE id = ?1",
                params![id as i64, status_name(status), repair, at.to_string()],
            )
        })?;
        Ok(())
    }

    fn died(&mut self, id: u64, repair: bool, at: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute(
                "UPDATE run SET repair = ?2, finished = coalesce(finished, ?3),
                    status = CASE status WHEN 'running' THEN 'partial' ELSE status END WHERE id = ?1",
                params![id as i64, repair, at.to_string()],
            )
        })?;
        Ok(())
    }

    fn unrepaired(&mut self) -> Result<Vec<(u64, String)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT id, folder FROM run WHERE repair ORDER BY id")?;
            statement.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)))?.collect()
        })
    }

    fn traces(&mut self, id: u64) -> Result<Vec<(TraceKeys, String)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT point, repetition, flow, path FROM artefact WHERE run = ?1 AND kind = 'trace'",
            )?;
            let trace = |row: &rusqlite::Row<'_>| {
                let keys =
                    TraceKeys { run: id, point: row.get(0)?, repetition: row.get(1)?, flow: row.get(2)? };
                Ok((keys, row.get(3)?))
            };
            statement.query_map([id as i64], trace)?.collect()
        })
    }

    fn missing(&mut self, id: u64) -> Result<Vec<(u32, u32)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "WITH RECURSIVE wanted (number) AS (
                    SELECT 0 WHERE (SELECT repetitions FROM run WHERE id = ?1) > 0
                    UNION ALL
                    SELECT number + 1 FROM wanted WHERE number + 1 < (SELECT repetitions FROM run WHERE id = ?1)
                 )
                 SELECT point.point, wanted.number FROM wanted JOIN point ON point.run = ?1
                 WHERE NOT EXISTS (
                    SELECT 1 FROM repetition done WHERE done.run = ?1 AND done.point = point.point
                        AND done.repetition = wanted.number AND NOT done.partial
                 )
                 ORDER BY wanted.number, point.point",
            )?;
            statement.query_map([id as i64], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    fn begin_repetitions(&mut self, begun: &[Begun]) -> Result<Vec<Option<Vec<String>>>, StoreError> {
        self.write(|transaction| begun.iter().map(|begun| begin_repetition(transaction, begun)).collect())
    }

    fn finish_repetitions(&mut self, finished: &[Finished]) -> Result<(), StoreError> {
        self.write(|transaction| {
            finished.iter().try_for_each(|finished| finish_repetition(transaction, finished))
        })
    }

    fn revise(&mut self, id: u64, revision: &Revision<'_>) -> Result<(), StoreError> {
        let axes = serde_json::to_string(revision.axes)?;
        self.write(|transaction| {
            transaction.execute(
                "UPDATE run SET text = ?2, experiment_hash = ?3, axes = ?4, repetitions = ?5, repetition_length_ns = ?6
                 WHERE id = ?1",
                params![
                    id as i64,
                    revision.text,
                    experiment_hash(revision.text),
                    axes,
                    revision.repetitions,
                    revision.repetition_length.as_nanos() as i64
                ],
            )?;
            for (point, choice) in revision.points.iter().enumerate() {
                transaction
                    .prepare_cached(
                        "INSERT INTO point (run, point, choice) VALUES (?1, ?2, ?3)
                         ON CONFLICT (run, point) DO UPDATE SET choice = excluded.choice",
                    )?
                    .execute(params![id as i64, point as i64, format!("{choice:?}")])?;
            }
            Ok(())
        })
    }

    fn tag(&mut self, id: u64, tag: &str, on: bool) -> Result<(), StoreError> {
        let statement = match on {
            true => "INSERT INTO tag (run, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            false => "DELETE FROM tag WHERE run = ?1 AND tag = ?2",
        };
        self.write(|transaction| transaction.execute(statement, params![id as i64, tag]))?;
        Ok(())
    }
}

fn begin_repetition(
    transaction: &Transaction<'_>,
    Begun { key: RepetitionKey { run, point, repetition }, traces }: &Begun,
) -> rusqlite::Result<Option<Vec<String>>> {
    let key = (*run as i64, point, repetition);
    let wanted: bool = transaction
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM point JOIN run ON id = run WHERE run = ?1 AND point = ?2 AND ?3 < repetitions)
                AND NOT EXISTS (SELECT 1 FROM repetition
                    WHERE run = ?1 AND point = ?2 AND repetition = ?3 AND NOT partial)",
        )?
        .query_row(key, |row| row.get(0))?;
    if !wanted {
        return Ok(None);
    }
    let old = transaction
        .prepare_cached(
            "SELECT path FROM artefact WHERE run = ?1 AND point = ?2 AND repetition = ?3 AND kind = 'trace'",
        )?
        .query_map(key, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    transaction
        .prepare_cached("DELETE FROM repetition WHERE run = ?1 AND point = ?2 AND repetition = ?3")?
        .execute(key)?;
    transaction
        .prepare_cached("INSERT INTO repetition (run, point, repetition, partial) VALUES (?1, ?2, ?3, 1)")?
        .execute(key)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO artefact (run, point, repetition, kind, place, flow, path)
         VALUES (?1, ?2, ?3, 'trace', ?4, ?5, ?6)",
    )?;
    for (place, (flow, path)) in traces.iter().enumerate() {
        insert.execute(params![key.0, key.1, key.2, place as i64, flow, path])?;
    }
    Ok(Some(old))
}

fn finish_repetition(
    transaction: &Transaction<'_>,
    Finished { key: RepetitionKey { run, point, repetition }, partial, summary, audio }: &Finished,
) -> rusqlite::Result<()> {
    let key = (*run as i64, point, repetition);
    transaction
        .prepare_cached(
            "UPDATE repetition SET partial = ?4, summary = ?5 WHERE run = ?1 AND point = ?2 AND repetition = ?3",
        )?
        .execute(params![key.0, key.1, key.2, partial, summary])?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO artefact (run, point, repetition, kind, place, path) VALUES (?1, ?2, ?3, 'audio', ?4, ?5)",
    )?;
    for (place, path) in audio.iter().enumerate() {
        insert.execute(params![key.0, key.1, key.2, place as i64, path])?;
    }
    Ok(())
}

//! The catalogue in PostgreSQL, for a team: many hosts measure into one, and everybody reads.
//!
//! That a run is being measured is known by an advisory lock of the session that writes it, which the server releases when
//! its process or its host is gone. So nothing is written without the lock, and a server that comes back is asked for it
//! again.

mod address;
mod connection;
mod rows;
mod schema;
mod tls;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use postgres::Transaction;
use postgres::types::ToSql;

use self::address::Address;
use self::connection::{Connection, take};
use super::{Begun, Catalogue, Finished, RepetitionKey};
use crate::StoreError;
use crate::files::SharedFile;
use crate::model::{RunInfo, Status, StoredPoint, StoredRun, status_name};
use crate::recovery::RunLock;
use crate::run_writer::{NewRun, Revision};
use crate::selector::folder_name;
use crate::store::experiment_hash;
use crate::trace::TraceKeys;

/// The rows that a server keeps.
pub(super) struct Postgres {
    connection: Connection,
    /// Where the folders of runs lie on this host.
    runs: PathBuf,
}

/// A session that holds a lock.
struct Session(#[allow(dead_code, reason = "held, not used")] Connection);

impl Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Session")
    }
}

impl Debug for Postgres {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Postgres").field("address", &self.connection.shown()).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects, and brings the schema up to date.
    pub(super) fn open(url: &str, runs: &Path) -> Result<Postgres, StoreError> {
        Ok(Postgres { connection: Connection::open(Address::parse(url)?)?, runs: runs.to_path_buf() })
    }

    /// Does something as a whole or not at all.
    fn whole<T>(
        &mut self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, postgres::Error>,
    ) -> Result<T, StoreError> {
        self.connection.whole(work)
    }

    fn execute(&mut self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<(), StoreError> {
        self.whole(|transaction| transaction.execute(statement, values)).map(drop)
    }
}

impl Catalogue for Postgres {
    fn another(&self) -> Result<Box<dyn Catalogue>, StoreError> {
        Ok(Box::new(Postgres { connection: self.connection.another()?, runs: self.runs.clone() }))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn lock(&self, id: u64, _: &Path) -> Result<Option<RunLock>, StoreError> {
        let mut session = self.connection.another()?;
        let taken = session.hold(id)?;
        Ok(taken.then(|| RunLock::Session(Mutex::new(Box::new(Session(session))))))
    }

    fn hold(&mut self, id: u64, _: &Path) -> Result<Option<RunLock>, StoreError> {
        Ok(self.connection.hold(id)?.then_some(RunLock::Connection))
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
        let settings = serde_json::to_string(&run.settings)?;
        let shard = run.shard.map(String::from);
        let id = self.connection.attempt(|transaction| {
            // An attempt of which the server could not say that it had succeeded.
            if let Some(row) = transaction.query_opt("SELECT id FROM run WHERE key = $1", &[&key])? {
                return Ok(row.get::<_, i64>(0) as u64);
            }
            let entered = transaction.query_one(
                "INSERT INTO run (name, backend, status, repair, started, version, machine, seed, repetitions,
                    repetition_length_ns, folder, file, experiment_hash, text, axes, limits, key, settings, shard)
                 VALUES ($1, $2, 'running', true, $3, $4, $5, $6, $7, $8, '', $9, $10, $11, $12, $13, $14, $15, $16)
                 RETURNING id",
                &[
                    &run.name,
                    &run.backend.name(),
                    &started.to_string(),
                    &run.version,
                    &run.machine,
                    &(run.seed as i64),
                    &i64::from(run.repetitions),
                    &(run.repetition_length.as_nanos() as i64),
                    &run.file.to_string_lossy().into_owned(),
                    &experiment_hash(&run.text),
                    &run.text,
                    &axes,
                    &limits,
                    &key,
                    &settings,
                    &shard,
                ],
            )?;
            let id = entered.get::<_, i64>(0);
            let folder = folder_name(id as u64, &run.name, run.backend);
            transaction.execute("UPDATE run SET folder = $2 WHERE id = $1", &[&id, &folder])?;
            enter_points(transaction, id, run.points.iter().map(|(point, choice)| (*point, choice)))?;
            // Before others see it.
            take(transaction, id as u64)?;
            ready(id as u64, &folder)?;
            Ok(id as u64)
        })?;
        Ok(id)
    }

    fn with_key(&mut self, key: &str) -> Result<Option<u64>, StoreError> {
        self.whole(|transaction| {
            let found = transaction.query_opt("SELECT id FROM run WHERE key = $1", &[&key])?;
            Ok(found.map(|row| row.get::<_, i64>(0) as u64))
        })
    }

    fn infos(&mut self) -> Result<Vec<RunInfo>, StoreError> {
        let rows = self.whole(rows::infos)?;
        rows.iter().map(|row| rows::info_of(row, &self.runs, self.connection.shown())).collect()
    }

    fn info(&mut self, id: u64) -> Result<Option<RunInfo>, StoreError> {
        let row = self.whole(|transaction| rows::info(transaction, id))?;
        row.map(|row| rows::info_of(&row, &self.runs, self.connection.shown())).transpose()
    }

    fn outline(&mut self, id: u64) -> Result<Option<StoredRun>, StoreError> {
        let row = self.whole(|transaction| rows::info(transaction, id))?;
        row.map(|row| rows::outline(&row, &self.runs, self.connection.shown())).transpose()
    }

    fn walk(&mut self, id: u64, point: &mut dyn FnMut(StoredPoint)) -> Result<Option<StoredRun>, StoreError> {
        let (runs, shown) = (self.runs.clone(), self.connection.shown().to_owned());
        // It may be read again, over another connection.
        let mut given = BTreeSet::new();
        let mut once = |stored: StoredPoint| {
            if given.insert(stored.index) {
                point(stored);
            }
        };
        self.whole(|transaction| rows::walk(transaction, id, (&runs, &shown), &mut once))?
    }

    fn remove(&mut self, id: u64) -> Result<(), StoreError> {
        self.execute("DELETE FROM run WHERE id = $1", &[&(id as i64)])
    }

    fn started(&mut self, id: u64) -> Result<(), StoreError> {
        let running = "UPDATE run SET status = 'running', repair = true, finished = NULL WHERE id = $1";
        self.execute(running, &[&(id as i64)])
    }

    fn ended(&mut self, id: u64, status: Status, repair: bool, at: Timestamp) -> Result<(), StoreError> {
        self.execute(
            "UPDATE run SET status = $2, repair = $3, finished = $4 WHERE id = $1",
            &[&(id as i64), &status_name(status), &repair, &at.to_string()],
        )?;
        self.connection.release_with_session();
        Ok(())
    }

    fn died(&mut self, id: u64, repair: bool, at: Timestamp) -> Result<(), StoreError> {
        self.execute(
            "UPDATE run SET repair = $2, finished = coalesce(finished, $3),
                status = CASE status WHEN 'running' THEN 'partial' ELSE status END WHERE id = $1",
            &[&(id as i64), &repair, &at.to_string()],
        )
    }

    fn unrepaired(&mut self) -> Result<Vec<(u64, String)>, StoreError> {
        self.whole(|transaction| {
            let rows = transaction.query("SELECT id, folder FROM run WHERE repair ORDER BY id", &[])?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0) as u64, row.get(1))).collect())
        })
    }

    fn traces(&mut self, id: u64) -> Result<Vec<(TraceKeys, String)>, StoreError> {
        self.whole(|transaction| {
            let rows = transaction.query(
                "SELECT point, repetition, flow, path FROM artefact WHERE run = $1 AND kind = 'trace'",
                &[&(id as i64)],
            )?;
            let trace = |row: &postgres::Row| {
                let keys = TraceKeys {
                    run: id,
                    point: row.get::<_, i64>(0) as u32,
                    repetition: row.get::<_, i64>(1) as u32,
                    flow: row.get(2),
                };
                (keys, row.get(3))
            };
            Ok(rows.iter().map(trace).collect())
        })
    }

    fn missing(&mut self, id: u64) -> Result<Vec<(u32, u32)>, StoreError> {
        self.whole(|transaction| {
            let rows = transaction.query(
                "SELECT point.point, wanted.number
                 FROM run JOIN point ON point.run = run.id
                    CROSS JOIN LATERAL generate_series(0, run.repetitions - 1) AS wanted (number)
                 WHERE run.id = $1 AND NOT EXISTS (
                    SELECT 1 FROM repetition done WHERE done.run = run.id AND done.point = point.point
                        AND done.repetition = wanted.number AND NOT done.partial
                 )
                 ORDER BY wanted.number, point.point",
                &[&(id as i64)],
            )?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0) as u32, row.get::<_, i64>(1) as u32)).collect())
        })
    }

    fn begin_repetitions(&mut self, begun: &[Begun]) -> Result<Vec<Option<Vec<String>>>, StoreError> {
        self.whole(|transaction| begun.iter().map(|begun| begin_repetition(transaction, begun)).collect())
    }

    fn finish_repetitions(&mut self, finished: &[Finished]) -> Result<(), StoreError> {
        let refused = self.whole(|transaction| {
            let mut refused = None;
            for finished in finished {
                if !finish_repetition(transaction, finished)? {
                    refused.get_or_insert(finished.key);
                }
            }
            Ok(refused)
        })?;
        refused.map_or(Ok(()), |RepetitionKey { run, point, repetition }| {
            Err(StoreError::NotMissing { run, point, repetition })
        })
    }

    fn revise(&mut self, id: u64, revision: &Revision<'_>) -> Result<(), StoreError> {
        let axes = serde_json::to_string(revision.axes)?;
        self.whole(|transaction| {
            transaction.execute(
                "UPDATE run SET text = $2, experiment_hash = $3, axes = $4, repetitions = $5, repetition_length_ns = $6
                 WHERE id = $1",
                &[
                    &(id as i64),
                    &revision.text,
                    &experiment_hash(revision.text),
                    &axes,
                    &i64::from(revision.repetitions),
                    &(revision.repetition_length.as_nanos() as i64),
                ],
            )?;
            enter_points(transaction, id as i64, (0..).zip(revision.points))
        })
    }

    fn enter_file(&mut self, run: u64, file: &SharedFile) -> Result<(), StoreError> {
        // Nothing of a run that somebody has removed meanwhile.
        self.execute(
            "INSERT INTO file (run, path, bytes, sha256) SELECT id, $2, $3, $4 FROM run WHERE id = $1
             ON CONFLICT (run, path) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256",
            &[&(run as i64), &file.path, &(file.bytes as i64), &file.sha256],
        )
    }

    fn forget_files(&mut self, run: u64, paths: &[String], below: &str) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM file WHERE run = $1 AND (path = ANY($2) OR starts_with(path, $3))",
            &[&(run as i64), &paths, &format!("{below}/")],
        )
    }

    fn files(&mut self, run: u64) -> Result<Vec<SharedFile>, StoreError> {
        self.whole(|transaction| {
            let rows = transaction.query(
                "SELECT path, bytes, sha256 FROM file WHERE run = $1 ORDER BY path COLLATE \"C\"",
                &[&(run as i64)],
            )?;
            let file = |row: &postgres::Row| SharedFile {
                path: row.get(0),
                bytes: row.get::<_, i64>(1) as u64,
                sha256: row.get(2),
            };
            Ok(rows.iter().map(file).collect())
        })
    }

    fn tag(&mut self, id: u64, tag: &str, on: bool) -> Result<(), StoreError> {
        let statement = match on {
            true => "INSERT INTO tag (run, tag) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            false => "DELETE FROM tag WHERE run = $1 AND tag = $2",
        };
        self.execute(statement, &[&(id as i64), &tag])
    }
}

fn begin_repetition(
    transaction: &mut Transaction<'_>,
    Begun { key, traces }: &Begun,
) -> Result<Option<Vec<String>>, postgres::Error> {
    let (run, point, repetition) = numbers(*key);
    // Its row is locked: nobody enters the same repetition meanwhile.
    let wanted = transaction.query_opt(
        "SELECT 1 FROM point JOIN run ON id = run WHERE run = $1 AND point = $2 AND $3 < repetitions
            AND NOT EXISTS (SELECT 1 FROM repetition done WHERE done.run = $1 AND done.point = $2
                AND done.repetition = $3 AND NOT done.partial)
         FOR UPDATE OF point",
        &[&run, &point, &repetition],
    )?;
    if wanted.is_none() {
        return Ok(None);
    }
    let old = transaction.query(
        "SELECT path FROM artefact WHERE run = $1 AND point = $2 AND repetition = $3 AND kind = 'trace'",
        &[&run, &point, &repetition],
    )?;
    transaction.execute(
        "DELETE FROM repetition WHERE run = $1 AND point = $2 AND repetition = $3",
        &[&run, &point, &repetition],
    )?;
    transaction.execute(
        "INSERT INTO repetition (run, point, repetition, partial) VALUES ($1, $2, $3, true)",
        &[&run, &point, &repetition],
    )?;
    for (place, (flow, path)) in (0i64..).zip(traces) {
        transaction.execute(
            "INSERT INTO artefact (run, point, repetition, kind, place, flow, path)
             VALUES ($1, $2, $3, 'trace', $4, $5, $6)",
            &[&run, &point, &repetition, &place, flow, path],
        )?;
    }
    Ok(Some(old.iter().map(|row| row.get(0)).collect()))
}

/// Returns false if another process has measured the repetition to its end.
fn finish_repetition(
    transaction: &mut Transaction<'_>,
    Finished { key, partial, summary, audio }: &Finished,
) -> Result<bool, postgres::Error> {
    let (run, point, repetition) = numbers(*key);
    // Not over what another process has measured to its end; but again over what this one has.
    let entered = transaction.execute(
        "UPDATE repetition SET partial = $4, summary = $5
         WHERE run = $1 AND point = $2 AND repetition = $3 AND (partial OR summary = $5)",
        &[&run, &point, &repetition, partial, summary],
    )?;
    if entered == 0 {
        return Ok(false);
    }
    for (place, path) in (0i64..).zip(audio) {
        transaction.execute(
            "INSERT INTO artefact (run, point, repetition, kind, place, path) VALUES ($1, $2, $3, 'audio', $4, $5)
             ON CONFLICT DO NOTHING",
            &[&run, &point, &repetition, &place, path],
        )?;
    }
    Ok(true)
}

fn numbers(RepetitionKey { run, point, repetition }: RepetitionKey) -> (i64, i64, i64) {
    (run as i64, i64::from(point), i64::from(repetition))
}

fn enter_points<'p>(
    transaction: &mut Transaction<'_>,
    id: i64,
    points: impl Iterator<Item = (u32, &'p Vec<usize>)>,
) -> Result<(), postgres::Error> {
    let (places, choices): (Vec<i64>, Vec<String>) =
        points.map(|(point, choice)| (i64::from(point), format!("{choice:?}"))).unzip();
    transaction.execute(
        "INSERT INTO point (run, point, choice) SELECT $1, * FROM unnest($2::bigint[], $3::text[])
         ON CONFLICT (run, point) DO UPDATE SET choice = excluded.choice",
        &[&id, &places, &choices],
    )?;
    Ok(())
}

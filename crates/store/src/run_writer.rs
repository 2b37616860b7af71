//! A run as it is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior, params};
use trunkline_core::Duration;
use trunkline_experiment::{Axis, Limit};
use trunkline_metrics::{Record, RepetitionSummary, TraceSink, VoiceEvent};

use crate::StoreError;
use crate::database::{self, status_name};
use crate::events::{self, EventFiles};
use crate::model::{Backend, RunInfo, Status};
use crate::recovery::{self, RunLock, remove_folder};
use crate::selector::slug;
use crate::store::experiment_hash;
use crate::trace::{self, OpenTraces, TraceFile, TraceKeys, TraceWriter};

/// What is known of a run before its first repetition.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The experiment's name.
    pub name: String,
    /// On what it is executed.
    pub backend: Backend,
    /// The experiment file's text.
    pub text: String,
    /// The experiment file's path.
    pub file: PathBuf,
    /// What is swept.
    pub axes: Vec<Axis>,
    /// What counts as good enough.
    pub limits: Vec<Limit>,
    /// The seed.
    pub seed: u64,
    /// How often every point is measured.
    pub repetitions: u32,
    /// Of each point, the chosen value's index on each axis.
    pub points: Vec<Vec<usize>>,
    /// How long one repetition lasts (duration and drain).
    pub repetition_length: Duration,
    /// The machine.
    pub machine: String,
    /// The version of Trunkline.
    pub version: String,
}

/// What has become known of a run after it was begun: a search finds its points while it measures.
#[derive(Clone, Debug)]
pub struct Revision<'r> {
    /// The experiment file's text with the values that are measured now.
    pub text: &'r str,
    /// What is swept.
    pub axes: &'r [Axis],
    /// How often every point is measured, at most.
    pub repetitions: u32,
    /// How long one repetition lasts (duration and drain).
    pub repetition_length: Duration,
    /// Of each point, the chosen value's index on each axis: first the points that the run has, in their order.
    pub points: &'r [Vec<usize>],
}

/// A run that this process measures. Its repetitions may be written by several threads at once. Dropped without
/// [`RunWriter::finish`], the run becomes partial.
#[derive(Debug)]
pub struct RunWriter {
    shared: Arc<Shared>,
    finished: bool,
}

#[derive(Debug)]
struct Shared {
    store: PathBuf,
    id: u64,
    directory: PathBuf,
    connection: Mutex<Connection>,
    open: OpenTraces,
    _lock: RunLock,
}

impl RunWriter {
    pub(crate) fn new(store: PathBuf, id: u64, lock: RunLock) -> Result<RunWriter, StoreError> {
        let connection = database::open(&store.join("trunkline.db"))?;
        let mut shared = Shared {
            directory: PathBuf::new(),
            connection: Mutex::new(connection),
            open: OpenTraces::default(),
            _lock: lock,
            store,
            id,
        };
        shared.directory = shared.info()?.directory;
        Ok(RunWriter { shared: Arc::new(shared), finished: false })
    }

    /// The run as it is stored now.
    pub fn info(&self) -> Result<RunInfo, StoreError> {
        self.shared.info()
    }

    /// Puts in place what has become known since the run was begun. Points keep their index and what was measured there.
    pub fn revise(&self, revision: &Revision<'_>) -> Result<(), StoreError> {
        let axes = serde_json::to_string(revision.axes)?;
        let file = self.shared.directory.join("experiment.toml");
        self.shared.database(|connection| revise(connection, self.shared.id as i64, revision, &axes))?;
        fs::write(&file, revision.text).map_err(StoreError::io("written", &file))
    }

    /// The (point, repetition) pairs that were not measured to the end, both from 0: repetition by repetition, so that
    /// an interrupted run has seen as many points as possible.
    pub fn missing(&self) -> Result<Vec<(u32, u32)>, StoreError> {
        self.shared.database(|connection| {
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
            statement.query_map([self.shared.id as i64], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// Begins a repetition that [`RunWriter::missing`] lists, with one trace per flow. What an earlier, interrupted
    /// measurement of it left is discarded now, so that summary, traces and audio always belong to one measurement.
    pub fn begin_repetition(
        &self,
        point: u32,
        repetition: u32,
        flows: &[&str],
    ) -> Result<RepetitionWriter, StoreError> {
        let shared = &self.shared;
        let stem = format!("p{point:03}-r{repetition:02}");
        let paths: Vec<String> = trace_names(&stem, flows);
        let known =
            shared.database(|connection| begin(connection, shared.id, point, repetition, flows, &paths))?;
        let Some(old) = known else {
            return Err(StoreError::NotMissing { run: shared.id, point, repetition });
        };
        for path in old.iter().chain(&paths) {
            let path = shared.directory.join(path);
            trace::remove(&path).map_err(StoreError::io("removed", &path))?;
            events::remove(&path).map_err(StoreError::io("removed", &path))?;
        }
        let audio = shared.directory.join("audio").join(&stem);
        remove_folder(&audio)?;

        let mut files = Vec::with_capacity(flows.len());
        let mut traces = Vec::with_capacity(flows.len());
        for (flow, path) in flows.iter().zip(paths) {
            let path = shared.directory.join(path);
            let keys = TraceKeys { run: shared.id, point, repetition, flow: (*flow).to_owned() };
            files.push(TraceFile::create(path.clone(), keys).map_err(StoreError::io("created", &path))?);
            traces.push(((*flow).to_owned(), path));
        }
        let writer = TraceWriter::start(files, Arc::clone(&shared.open));
        let writer = writer.map_err(StoreError::io("written", &shared.directory))?;
        let events = EventFiles::beside(traces.iter().map(|(_, path)| path.as_path()));
        let closed = ClosedRepetition { shared: Arc::clone(shared), point, repetition, traces };
        Ok(RepetitionWriter { writer, events, audio, closed })
    }

    /// Ends the run and returns it as it is stored. [`Status::Complete`] is for a run of which nothing is missing.
    pub fn finish(mut self, status: Status) -> Result<RunInfo, StoreError> {
        self.finished = true;
        self.shared.end(status)?;
        self.shared.info()
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody is left to tell; if it fails, the next opening of the store does it.
            let _ = self.shared.end(Status::Partial);
        }
    }
}

impl Shared {
    fn info(&self) -> Result<RunInfo, StoreError> {
        let info =
            self.database(|connection| database::info(connection, &self.store.join("runs"), self.id))?;
        let gone =
            || StoreError::NoSuchRun { asked: self.id.to_string(), store: self.store.clone(), close: vec![] };
        info.ok_or_else(gone)
    }

    fn end(&self, status: Status) -> Result<(), StoreError> {
        self.database(|connection| {
            // A trace that is still being written is not touched: its writer holds the lock, and closes it.
            let idle = self.open.load(Ordering::Relaxed) == 0;
            let whole = idle && recovery::repair_traces(connection, self.id as i64, &self.directory)?;
            connection.execute(
                "UPDATE run SET status = ?2, repair = ?3, finished = ?4 WHERE id = ?1",
                params![self.id as i64, status_name(status), !whole, jiff::Timestamp::now().to_string()],
            )
        })?;
        Ok(())
    }

    fn database<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&mut self.lock())
            .map_err(|source| StoreError::Database { path: self.store.join("trunkline.db"), source })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic in the middle of a transaction has rolled it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One repetition as it is measured. Takes records without ever failing or waiting for more than memory; what goes wrong
/// is kept and told by [`RepetitionWriter::check`], `sync` and `close`. Dropped without `close`, it leaves a partial
/// repetition with readable traces.
pub struct RepetitionWriter {
    writer: TraceWriter,
    events: EventFiles,
    audio: PathBuf,
    closed: ClosedRepetition,
}

impl RepetitionWriter {
    /// Where received audio belongs. The folder does not exist yet.
    pub fn audio_directory(&self) -> PathBuf {
        self.audio.clone()
    }

    /// The first thing that went wrong so far. Records after it are lost; those before it are kept.
    pub fn check(&self) -> Result<(), StoreError> {
        self.writer.check().and_then(|()| self.events.check()).map_err(self.failed())
    }

    /// Returns when everything recorded so far survives a kill of this process. Happens by itself twice a second.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let failed = self.failed();
        self.writer.sync().map_err(failed)
    }

    /// Ends the traces: from now on they can be read.
    pub fn close(mut self) -> Result<ClosedRepetition, StoreError> {
        let failed = self.failed();
        self.writer.close().and_then(|_| self.events.check()).map_err(failed)?;
        Ok(self.closed)
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> StoreError + use<> {
        StoreError::io("written", &self.closed.shared.directory.join("traces"))
    }
}

impl TraceSink for RepetitionWriter {
    #[inline]
    fn write(&mut self, flow: usize, record: &Record) {
        self.writer.write(flow, record);
    }

    fn event(&mut self, flow: usize, event: &VoiceEvent) {
        self.events.write(flow, event);
    }
}

/// A repetition with readable traces that has no summary yet.
#[derive(Debug)]
pub struct ClosedRepetition {
    shared: Arc<Shared>,
    point: u32,
    repetition: u32,
    traces: Vec<(String, PathBuf)>,
}

impl ClosedRepetition {
    /// The trace of each flow, in the order of the flows, by the flow's name.
    pub fn traces(&self) -> &[(String, PathBuf)] {
        &self.traces
    }

    /// Stores the summary and where the received audio is. A partial summary leaves the repetition among the missing.
    pub fn finish(self, summary: &RepetitionSummary, audio: &[PathBuf]) -> Result<(), StoreError> {
        let json = serde_json::to_string(summary)?;
        // A number that is none would be written and never read again.
        serde_json::from_str::<RepetitionSummary>(&json)?;
        let key = (self.shared.id as i64, self.point, self.repetition);
        let directory = &self.shared.directory;
        self.shared.database(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute(
                "UPDATE repetition SET partial = ?4, summary = ?5 WHERE run = ?1 AND point = ?2 AND repetition = ?3",
                params![key.0, key.1, key.2, summary.partial, json],
            )?;
            for (place, path) in audio.iter().enumerate() {
                let path = path.strip_prefix(directory).unwrap_or(path).to_string_lossy();
                transaction.execute(
                    "INSERT INTO artefact (run, point, repetition, kind, place, path) VALUES (?1, ?2, ?3, 'audio', ?4, ?5)",
                    params![key.0, key.1, key.2, place as i64, path],
                )?;
            }
            transaction.commit()
        })
    }
}

/// Enters the repetition as a partial one, in place of an earlier partial one, whose traces are returned; `None` if it is
/// complete or not of this run.
fn begin(
    connection: &mut Connection,
    run: u64,
    point: u32,
    repetition: u32,
    flows: &[&str],
    paths: &[String],
) -> rusqlite::Result<Option<Vec<String>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key = (run as i64, point, repetition);
    let wanted: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM point JOIN run ON id = run WHERE run = ?1 AND point = ?2 AND ?3 < repetitions)
            AND NOT EXISTS (SELECT 1 FROM repetition
                WHERE run = ?1 AND point = ?2 AND repetition = ?3 AND NOT partial)",
        key,
        |row| row.get(0),
    )?;
    if !wanted {
        return Ok(None);
    }
    let old = transaction
        .prepare(
            "SELECT path FROM artefact WHERE run = ?1 AND point = ?2 AND repetition = ?3 AND kind = 'trace'",
        )?
        .query_map(key, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    transaction.execute("DELETE FROM repetition WHERE run = ?1 AND point = ?2 AND repetition = ?3", key)?;
    transaction
        .execute("INSERT INTO repetition (run, point, repetition, partial) VALUES (?1, ?2, ?3, 1)", key)?;
    for (place, (flow, path)) in flows.iter().zip(paths).enumerate() {
        transaction.execute(
            "INSERT INTO artefact (run, point, repetition, kind, place, flow, path)
             VALUES (?1, ?2, ?3, 'trace', ?4, ?5, ?6)",
            params![key.0, key.1, key.2, place as i64, flow, path],
        )?;
    }
    transaction.commit()?;
    Ok(Some(old))
}

fn revise(
    connection: &mut Connection,
    run: i64,
    revision: &Revision<'_>,
    axes: &str,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "UPDATE run SET text = ?2, experiment_hash = ?3, axes = ?4, repetitions = ?5, repetition_length_ns = ?6
         WHERE id = ?1",
        params![
            run,
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
            .execute(params![run, point as i64, format!("{choice:?}")])?;
    }
    transaction.commit()
}

/// The traces' paths in the run's folder, all different.
fn trace_names(stem: &str, flows: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(flows.len());
    for (place, flow) in flows.iter().enumerate() {
        let plain =
            Path::new("traces").join(format!("{stem}-{}.parquet", slug(flow))).to_string_lossy().into_owned();
        let taken = names.contains(&plain);
        names.push(if taken { format!("traces/{stem}-{}-flow{place}.parquet", slug(flow)) } else { plain });
    }
    names
}

//! The store: its runs, found, read and begun.

use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior, params};
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::StoreError;
use crate::database::{self, backend_name};
use crate::model::{Backend, RunInfo, Status, StoredRun};
use crate::recovery::{self, RunLock, remove_folder};
use crate::run_writer::{NewRun, RunWriter};
use crate::selector::{self, RunSelector};

/// A folder of runs. May be shared by threads, and open in several processes at once.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens the store in `directory`, creating it if there is none, and repairs what killed processes left: their runs
    /// become [`Status::Partial`], and their traces readable.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        let runs = directory.join("runs");
        fs::create_dir_all(&runs).map_err(StoreError::io("created", &runs))?;
        let connection = database::open(&directory.join("trunkline.db"))?;
        let store = Store { directory: directory.to_path_buf(), connection: Mutex::new(connection) };
        recovery::recover(&store.lock(), &runs).map_err(store.database_error())?;
        Ok(store)
    }

    /// Its folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins a run: its folder and its rows exist when this returns.
    pub fn begin(&self, run: NewRun) -> Result<RunWriter, StoreError> {
        let axes = serde_json::to_string(&run.axes)?;
        let limits = serde_json::to_string(&run.limits)?;
        let error = self.database_error();
        let mut connection = self.lock();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&error)?;
        transaction
            .execute(
                "INSERT INTO run (name, backend, status, repair, started, version, machine, seed, repetitions,
                    repetition_length_ns, folder, file, experiment_hash, text, axes, limits)
                 VALUES (?1, ?2, 'running', 1, ?3, ?4, ?5, ?6, ?7, ?8, '', ?9, ?10, ?11, ?12, ?13)",
                params![
                    run.name,
                    backend_name(run.backend),
                    jiff::Timestamp::now().to_string(),
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
                ],
            )
            .map_err(&error)?;
        let id = transaction.last_insert_rowid();
        let folder = format!("{id}-{}-{}", selector::slug(&run.name), backend_name(run.backend));
        transaction
            .execute("UPDATE run SET folder = ?2 WHERE id = ?1", params![id, folder])
            .map_err(&error)?;
        for (point, choice) in run.points.iter().enumerate() {
            transaction
                .prepare_cached("INSERT INTO point (run, point, choice) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute(params![id, point as i64, format!("{choice:?}")]))
                .map_err(&error)?;
        }
        // The folder comes before the commit: a run that others see is locked.
        let directory = self.directory.join("runs").join(folder);
        // An earlier process may have died right here, and its number is given again.
        remove_folder(&directory)?;
        let traces = directory.join("traces");
        fs::create_dir_all(&traces).map_err(StoreError::io("created", &traces))?;
        let lock = RunLock::take(&directory)?.ok_or(StoreError::InUse { id: id as u64 })?;
        let file = directory.join("experiment.toml");
        fs::write(&file, &run.text).map_err(StoreError::io("written", &file))?;
        transaction.commit().map_err(&error)?;
        drop(connection);
        RunWriter::new(self.directory.clone(), id as u64, lock)
    }

    /// Goes on with a partial run: [`RunWriter::missing`] says what it lacks.
    pub fn resume(&self, id: u64) -> Result<RunWriter, StoreError> {
        let info = self.info(id)?;
        fs::create_dir_all(&info.directory).map_err(StoreError::io("created", &info.directory))?;
        let lock = RunLock::take(&info.directory)?.ok_or(StoreError::InUse { id })?;
        // Asked again under the lock.
        if self.info(id)?.status == Status::Complete {
            return Err(StoreError::Complete { id });
        }
        let traces = info.directory.join("traces");
        fs::create_dir_all(&traces).map_err(StoreError::io("created", &traces))?;
        let error = self.database_error();
        let connection = self.lock();
        recovery::repair_traces(&connection, id as i64, &info.directory).map_err(&error)?;
        connection
            .execute(
                "UPDATE run SET status = 'running', repair = 1, finished = NULL WHERE id = ?1",
                [id as i64],
            )
            .map_err(&error)?;
        drop(connection);
        RunWriter::new(self.directory.clone(), id, lock)
    }

    /// Every run, the oldest first.
    pub fn runs(&self) -> Result<Vec<RunInfo>, StoreError> {
        database::infos(&self.lock(), &self.directory.join("runs")).map_err(self.database_error())
    }

    /// The number of the run that `asked` names: a number, `latest`, or a folder name ([`RunSelector`]).
    pub fn find(&self, asked: &str) -> Result<u64, StoreError> {
        let runs = self.runs()?;
        let Ok(selector) = asked.parse::<RunSelector>();
        let folder =
            |run: &RunInfo| run.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = match &selector {
            RunSelector::Number(id) => runs.iter().find(|run| run.id == *id),
            RunSelector::Latest => runs.last(),
            RunSelector::Folder(name) => runs.iter().find(|run| folder(run) == *name),
        };
        found.map(|run| run.id).ok_or_else(|| {
            let names: Vec<String> = runs.iter().map(folder).collect();
            let close = selector::close(asked, names.iter().map(String::as_str));
            StoreError::NoSuchRun { asked: asked.to_owned(), store: self.directory.clone(), close }
        })
    }

    /// A run with its results.
    pub fn run(&self, id: u64) -> Result<StoredRun, StoreError> {
        let run = database::stored_run(&mut self.lock(), &self.directory.join("runs"), id);
        run.map_err(self.database_error())?.ok_or_else(|| self.no_such_run(id))
    }

    /// The run to show beside `run`: of the same experiment on another backend, a complete one before a partial one, the
    /// prediction before a measurement, and the most recent of those.
    pub fn counterpart(&self, run: &StoredRun) -> Result<Option<StoredRun>, StoreError> {
        let runs = self.runs()?;
        let others = runs.iter().rev().filter(|other| {
            other.experiment_hash == run.info.experiment_hash
                && other.backend != run.info.backend
                && other.status != Status::Running
        });
        // Of several that are equally good the newest.
        let best =
            others.min_by_key(|other| (other.status == Status::Partial, other.backend != Backend::Sim));
        best.map(|other| self.run(other.id)).transpose()
    }

    /// Removes a run and its folder. Its number is not given again.
    pub fn remove(&self, id: u64) -> Result<(), StoreError> {
        let info = self.info(id)?;
        let _lock = match info.directory.is_dir() {
            true => Some(RunLock::take(&info.directory)?.ok_or(StoreError::InUse { id })?),
            false => None,
        };
        self.lock().execute("DELETE FROM run WHERE id = ?1", [id as i64]).map_err(self.database_error())?;
        remove_folder(&info.directory)
    }

    fn info(&self, id: u64) -> Result<RunInfo, StoreError> {
        let info = database::info(&self.lock(), &self.directory.join("runs"), id);
        info.map_err(self.database_error())?.ok_or_else(|| self.no_such_run(id))
    }

    fn no_such_run(&self, id: u64) -> StoreError {
        StoreError::NoSuchRun { asked: id.to_string(), store: self.directory.clone(), close: Vec::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic in the middle of a transaction has rolled it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn database_error(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.directory.join("trunkline.db");
        move |source| StoreError::Database { path: path.clone(), source }
    }
}

/// SipHash-2-4-128 of the text with LF line endings: the same on every machine and in every version.
pub(crate) fn experiment_hash(text: &str) -> String {
    let mut hasher = SipHasher24::new();
    hasher.write(text.replace("\r\n", "\n").as_bytes());
    format!("{:032x}", hasher.finish128().as_u128())
}

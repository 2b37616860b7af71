//! What can go wrong with a store.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("`{path}` cannot be {what}: {source}")]
    Io {
        /// What was tried: "written", "created".
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database refused.
    #[error("the store's database `{place}` cannot be used: {source}")]
    Database {
        /// The database: its path, or its address without a password.
        place: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk has no room left.
    #[error("the disk of `{place}` is full: free some space, or choose another store with `--store`")]
    Full {
        /// The database, file or folder that was to be written.
        place: String,
    },
    /// The store cannot be written.
    #[error(
        "the store `{place}` is read-only: you can list and report its runs; to measure, choose another store \
        with `--store`, or give this user write access"
    )]
    ReadOnly {
        /// The store's folder or database.
        place: String,
    },
    /// A later version of Trunkline has written this store.
    #[error(
        "the store `{place}` has format {found}, but this version of Trunkline supports formats up to \
        {known}: update Trunkline, or choose another store with `--store`"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// There are runs, and no database that knows them.
    #[error(
        "the store `{place}` has lost its database: `runs` contains {runs} folders of runs, but \
        `trunkline.db` is missing or empty; restore `trunkline.db` from a backup, move `runs` elsewhere to \
        start over, or choose another store with `--store`"
    )]
    Lost {
        /// The store's folder.
        place: String,
        /// How many folders of runs there are.
        runs: usize,
    },
    /// A folder that a new run would replace has measurements of another.
    #[error(
        "`{path}` contains measurements of a run that is not in the store's database: move this folder \
        elsewhere, or choose another store with `--store`"
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// What was given as a store's address is none.
    #[error("`{address}` is not a store: {why}; expected a folder, or `postgresql://USER@HOST/DATABASE`")]
    Address {
        /// What was given, without a password.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// This build has no client for such a store.
    #[error("the store `{place}` cannot be opened: {why}")]
    NotBuilt {
        /// The store's address, without a password.
        place: String,
        /// The feature that is missing.
        why: String,
    },
    /// The bucket of the runs' files, or the server that has it, refused.
    #[error("the runs' files at `{place}` cannot be {what}: {why}")]
    Files {
        /// The bucket and the prefix.
        place: String,
        /// What was tried: "uploaded", "fetched".
        what: &'static str,
        /// What was said.
        why: String,
    },
    /// A file of a run is on the host that measured it, and nowhere else.
    #[error(
        "`{path}` of run {id} is not on this host: it was measured on another ({machine}), which has not shared its \
         files; run `trunkline runs export {id}` there, or use a store with `?files=s3://BUCKET/PREFIX` on all hosts"
    )]
    Elsewhere {
        /// The run.
        id: u64,
        /// The file, in the run's folder.
        path: PathBuf,
        /// The machine that measured it.
        machine: String,
    },
    /// There is no such run.
    #[error("there is no run `{asked}` in `{store}`{}", hint(.close))]
    NoSuchRun {
        /// What was asked for.
        asked: String,
        /// The store's folder.
        store: PathBuf,
        /// Names of runs that are written similarly.
        close: Vec<String>,
    },
    /// There is no run at all.
    #[error(
        "there is no run `{asked}`: `{store}` has no runs yet; `trunkline run FILE.toml` makes one, and `--store` names \
         another store"
    )]
    NoRuns {
        /// The run that was asked for.
        asked: String,
        /// The store's folder.
        store: PathBuf,
    },
    /// Only a partial run can be resumed.
    #[error("run {id} is complete: there is nothing to resume")]
    Complete {
        /// The run.
        id: u64,
    },
    /// A living process measures this run.
    #[error("run {id} is being measured by another process: wait until it ends, or stop it")]
    InUse {
        /// The run.
        id: u64,
    },
    /// A repetition was asked for that the run does not have, or that is complete.
    #[error("run {run} already has repetition {repetition} of point {point}")]
    NotMissing {
        /// The run.
        run: u64,
        /// The point, from 0.
        point: u32,
        /// The repetition, from 0.
        repetition: u32,
    },
    /// What was to be imported is not what another store has exported.
    #[error("not an archive of a run: {why}; `trunkline runs export RUN` writes one")]
    NoArchive {
        /// The finding.
        why: String,
    },
    /// A part to be merged is not of the same experiment.
    #[error("`{run}` is not a part of the same run: {why}")]
    Different {
        /// The part's folder.
        run: PathBuf,
        /// The difference.
        why: String,
    },
    /// What is stored cannot be understood.
    #[error("`{path}` is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The finding.
        why: String,
    },
    /// Something cannot be represented in the database.
    #[error("the results cannot be stored: {0}")]
    Unstorable(#[from] serde_json::Error),
}

impl StoreError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_path_buf();
        move |source| match is_full(&source) {
            true => StoreError::Full { place: path.display().to_string() },
            false => StoreError::Io { what, path, source },
        }
    }

    pub(crate) fn database(path: &Path, source: rusqlite::Error) -> StoreError {
        let place = path.display().to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full { place },
            // SQLite does not say why its files could not grow.
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if has_no_room(path) => {
                StoreError::Full { place }
            }
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { place },
            _ => StoreError::Database { place, source: source.into() },
        }
    }

    /// Whether the user can mend it by asking for something else: there is no such run, or it is complete, or no archive.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            StoreError::Address { .. }
                | StoreError::NoSuchRun { .. }
                | StoreError::NoRuns { .. }
                | StoreError::NoArchive { .. }
                | StoreError::Different { .. }
                | StoreError::Complete { .. }
        )
    }

    pub(crate) fn damaged(path: &Path, why: impl ToString) -> StoreError {
        StoreError::Damaged { path: path.to_path_buf(), why: why.to_string() }
    }
}

/// Whether a disk, or what a user may have of it, is used up.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Whether this user may not write there, or nobody may.
pub(crate) fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Whether no file of some pages can be written beside this one.
fn has_no_room(path: &Path) -> bool {
    // As much as SQLite wants at once: the index of its log.
    let room = vec![0; 32 << 10];
    let folder = path.parent().unwrap_or(path);
    let tried = tempfile::tempfile_in(folder).and_then(|mut file| {
        file.write_all(&room)?;
        file.sync_data()
    });
    tried.is_err_and(|error| is_full(&error))
}

fn hint(close: &[String]) -> String {
    match close {
        [] => "; `trunkline runs` lists the runs".to_owned(),
        names => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

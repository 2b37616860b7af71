//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

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
    /// A later version of Trunkline has written this store.
    #[error(
        "the store `{place}` has format {found}, and this version of Trunkline knows formats up to {known}: update \
         Trunkline, or choose another with `--store`"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// What was given as a store's address is none.
    #[error("`{address}` is no store: {why}; expected a folder, or `postgresql://USER@HOST/DATABASE`")]
    Address {
        /// What was given, without a password.
        address: String,
        /// What is wrong.
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
        "`{path}` of run {id} is not on this host: it was measured on another ({machine}), which has not shared its files; \
         `trunkline runs export {id}` there, or a store with `?files=s3://BUCKET/PREFIX` on all hosts"
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
    /// Only a partial run can be resumed.
    #[error("run {id} is complete: there is nothing to resume")]
    Complete {
        /// The run.
        id: u64,
    },
    /// A living process measures this run.
    #[error("run {id} is being measured by another process: wait for its end, or stop it")]
    InUse {
        /// The run.
        id: u64,
    },
    /// A repetition was asked for that the run does not have, or that is complete.
    #[error("run {run} does not lack repetition {repetition} of point {point}")]
    NotMissing {
        /// The run.
        run: u64,
        /// The point, from 0.
        point: u32,
        /// The repetition, from 0.
        repetition: u32,
    },
    /// What was to be imported is not what another store has exported.
    #[error("this is no archive of a run: {why}; `trunkline runs export RUN` writes one")]
    NoArchive {
        /// What was found.
        why: String,
    },
    /// What is stored cannot be understood.
    #[error("`{path}` is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// Something cannot be represented in the database.
    #[error("the results cannot be stored: {0}")]
    Unstorable(#[from] serde_json::Error),
}

impl StoreError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_path_buf();
        move |source| StoreError::Io { what, path, source }
    }

    pub(crate) fn database(path: &Path, source: rusqlite::Error) -> StoreError {
        StoreError::Database { place: path.display().to_string(), source: source.into() }
    }

    pub(crate) fn damaged(path: &Path, why: impl ToString) -> StoreError {
        StoreError::Damaged { path: path.to_path_buf(), why: why.to_string() }
    }
}

fn hint(close: &[String]) -> String {
    match close {
        [] => "; `trunkline runs` lists what there is".to_owned(),
        names => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

//! The catalogue of a store: its runs, points, repetitions and summaries, and where their files are. What it is kept in is
//! behind a trait; the files themselves are not its business.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::fmt::Debug;
use std::path::Path;

use jiff::Timestamp;

use crate::StoreError;
use crate::files::SharedFile;
use crate::model::{RunInfo, Status, StoredPoint, StoredRun};
use crate::recovery::RunLock;
use crate::run_writer::{NewRun, Revision};
use crate::trace::TraceKeys;

/// The rows of a store. One connection: threads share it behind a lock, and a run that is measured has its own.
///
/// Every method happens as a whole or not at all, also when this process or the machine that keeps the rows dies meanwhile.
pub(crate) trait Catalogue: Debug + Send {
    /// Another connection to the same rows.
    fn another(&self) -> Result<Box<dyn Catalogue>, StoreError>;

    /// True if processes on other hosts use it too, whose runs have their files there.
    fn is_shared(&self) -> bool;

    /// True if it can only be looked at.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Locks a run, whose folder is `directory`, for the one process that measures it; `None` if a living process has done
    /// so. The lock goes when its process does.
    fn lock(&self, id: u64, directory: &Path) -> Result<Option<RunLock>, StoreError>;

    /// The same for as long as this connection lasts, restarts of a server included: for who measures.
    fn hold(&mut self, id: u64, directory: &Path) -> Result<Option<RunLock>, StoreError>;

    /// Enters a run that is measured from `started` on. `ready` is given its number and its folder's name, and makes what others
    /// expect of a run that they see: if it fails there is no run. Where the lock is not in the folder, this connection
    /// has it before others see the run.
    fn begin(
        &mut self,
        run: &NewRun,
        key: &str,
        started: Timestamp,
        ready: &mut dyn FnMut(u64, &str) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError>;

    /// The run with this key, wherever it was measured.
    fn with_key(&mut self, key: &str) -> Result<Option<u64>, StoreError>;

    /// Every run, the oldest first.
    fn infos(&mut self) -> Result<Vec<RunInfo>, StoreError>;

    /// One run, if there is one with this number.
    fn info(&mut self, id: u64) -> Result<Option<RunInfo>, StoreError>;

    /// One run without its points.
    fn outline(&mut self, id: u64) -> Result<Option<StoredRun>, StoreError>;

    /// The same; `point` is given the points one by one in the product's order, all as of one moment.
    fn walk(&mut self, id: u64, point: &mut dyn FnMut(StoredPoint)) -> Result<Option<StoredRun>, StoreError>;

    /// One run with its results, as of one moment.
    fn run(&mut self, id: u64) -> Result<Option<StoredRun>, StoreError> {
        let mut points = Vec::new();
        let run = self.walk(id, &mut |point| points.push(point))?;
        Ok(run.map(|run| StoredRun { points, ..run }))
    }

    /// Removes a run. Its number is not given again.
    fn remove(&mut self, id: u64) -> Result<(), StoreError>;

    /// Takes note that a run is measured, and may leave unfinished traces.
    fn started(&mut self, id: u64) -> Result<(), StoreError>;

    /// Takes note that a run is over, and whether unfinished traces may lie in it.
    fn ended(&mut self, id: u64, status: Status, repair: bool, at: Timestamp) -> Result<(), StoreError>;

    /// The same of a run whose process has died: one that is complete stays so.
    fn died(&mut self, id: u64, repair: bool, at: Timestamp) -> Result<(), StoreError>;

    /// The runs in which unfinished traces may lie, with the names of their folders.
    fn unrepaired(&mut self) -> Result<Vec<(u64, String)>, StoreError>;

    /// The traces of a run, each with its path in the run's folder.
    fn traces(&mut self, id: u64) -> Result<Vec<(TraceKeys, String)>, StoreError>;

    /// The points and repetitions of a run that were not measured to the end, repetition by repetition.
    fn missing(&mut self, id: u64) -> Result<Vec<(u32, u32)>, StoreError>;

    /// Enters repetitions as partial ones, each in place of an earlier partial one, whose traces are returned; `None` for one that is
    /// complete or not of its run.
    fn begin_repetitions(&mut self, begun: &[Begun]) -> Result<Vec<Option<Vec<String>>>, StoreError>;

    /// Stores the results of repetitions that were begun.
    fn finish_repetitions(&mut self, finished: &[Finished]) -> Result<(), StoreError>;

    /// Puts in place what has become known of a run since it was begun.
    fn revise(&mut self, id: u64, revision: &Revision<'_>) -> Result<(), StoreError>;

    /// Takes note that a file of a run is in the bucket. A store in a folder has none.
    fn enter_file(&mut self, _run: u64, _file: &SharedFile) -> Result<(), StoreError> {
        Ok(())
    }

    /// Takes note that these files of a run, and all in the folder `below`, are not there as they will be.
    fn forget_files(&mut self, _run: u64, _paths: &[String], _below: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// The files of a run that are in the bucket.
    fn files(&mut self, _run: u64) -> Result<Vec<SharedFile>, StoreError> {
        Ok(Vec::new())
    }

    /// Puts a tag on a run, or takes it off.
    fn tag(&mut self, id: u64, tag: &str, on: bool) -> Result<(), StoreError>;
}

/// One repetition of one point of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepetitionKey {
    pub(crate) run: u64,
    pub(crate) point: u32,
    pub(crate) repetition: u32,
}

/// A repetition that is measured from now on.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) key: RepetitionKey,
    /// The flow and the path of each trace.
    pub(crate) traces: Vec<(String, String)>,
}

/// A repetition that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) key: RepetitionKey,
    pub(crate) partial: bool,
    /// As JSON.
    pub(crate) summary: String,
    /// The paths of its audio.
    pub(crate) audio: Vec<String>,
}

/// Opens the catalogue in the database of a store's folder, whose runs lie in `runs`. `is_synced`: what is written survives a
/// power cut.
pub(crate) fn in_folder(
    directory: &Path,
    runs: &Path,
    is_synced: bool,
) -> Result<Box<dyn Catalogue>, StoreError> {
    Ok(Box::new(sqlite::Sqlite::open(&directory.join("trunkline.db"), runs, is_synced)?))
}

/// Opens the catalogue that a PostgreSQL server keeps, for runs whose folders lie in `runs` on this host.
pub(crate) fn on_server(url: &str, runs: &Path) -> Result<Box<dyn Catalogue>, StoreError> {
    #[cfg(feature = "postgres")]
    return Ok(Box::new(postgres::Postgres::open(url, runs)?));
    #[cfg(not(feature = "postgres"))]
    {
        let _ = runs;
        Err(StoreError::NotBuilt {
            place: shown(url),
            why: trunkline_core::not_built("PostgreSQL", "postgres"),
        })
    }
}

/// An address without its password.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "postgresql".to_owned() };
    // A question mark before the host's end belongs to a password, and an `@` after it to a parameter.
    let rest = match rest.split_once('?') {
        Some((place, parameters)) if place.contains('/') || !parameters.contains('@') => place,
        _ => rest,
    };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let place = place.split_once('?').map_or(place, |(place, _)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(
            shown("postgresql://eve:se@cret@db.example:5433/runs"),
            "postgresql://db.example:5433/runs"
        );
        assert_eq!(shown("postgresql:///runs?host=/tmp&password=x"), "postgresql:///runs");
        assert_eq!(shown("postgresql:///runs?host=/tmp&password=x@y"), "postgresql:///runs");
        assert_eq!(shown("postgresql://eve:se?cret@host/runs"), "postgresql://host/runs");
        assert_eq!(shown("postgresql://host?password=x"), "postgresql://host");
        assert_eq!(shown("password=x host=y"), "postgresql");
    }
}

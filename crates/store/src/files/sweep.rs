//! Brings to the bucket what a folder has and the bucket has not.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Bucket, FETCHED, FETCHING, PENDING, SharedFile, place};
use crate::StoreError;
use crate::catalogue::Catalogue;
use crate::model::{RunInfo, Status};

/// How long who leaves waits for what is under way.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// The files in a folder and below, without locks, marks, and what is being written.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fn below(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let is_mark = ["running.lock", PENDING, FETCHED].iter().any(|mark| name == *mark);
            if kind.is_dir() {
                below(&entry.path(), files)?;
            } else if kind.is_file() && !is_mark && !is_unfinished(&entry.path()) {
                files.push(entry.path());
            }
        }
        Ok(())
    }
    let mut files = Vec::new();
    below(directory, &mut files)?;
    files.sort();
    Ok(files)
}

/// Whether it is a file that is being written, or what is beside one.
fn is_unfinished(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["part", "groups", "journal", FETCHING].iter().any(|unfinished| extension == *unfinished)
}

/// Puts every file of a run's folder that is not in the bucket there.
pub(super) fn sweep(
    bucket: &Bucket,
    catalogue: &mut dyn Catalogue,
    run: &RunInfo,
    go_on: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let directory = &run.directory;
    let there: BTreeMap<String, u64> =
        catalogue.files(run.id)?.into_iter().map(|file| (file.path, file.bytes)).collect();
    for path in list(directory).map_err(StoreError::io("read", directory))? {
        let bytes = fs::metadata(&path).map_err(StoreError::io("read", &path))?.len();
        let inside = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
        if there.get(&inside) != Some(&bytes) {
            bring(bucket, catalogue, run, &inside, go_on)?;
        }
    }
    Ok(())
}

/// Marks a folder in which files are pending from now on, with a mark that nobody has seen before.
pub(super) fn mark(run: &RunInfo, bucket: &Bucket) -> Result<(), StoreError> {
    let path = run.directory.join(PENDING);
    unmark(run)?;
    fs::write(&path, format!("{}\n", bucket.shown())).map_err(StoreError::io("written", &path))
}

/// Nothing is pending there.
pub(super) fn unmark(run: &RunInfo) -> Result<(), StoreError> {
    let path = run.directory.join(PENDING);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("removed", &path)(error)),
        _ => Ok(()),
    }
}

/// Whether this is still the mark of the folder: who goes on with the run makes another.
fn is_mark_of(mark: &File, run: &RunInfo) -> bool {
    let now = fs::metadata(run.directory.join(PENDING)).map(|data| data.ino());
    mark.metadata().is_ok_and(|mark| now.is_ok_and(|now| now == mark.ino()))
}

/// Puts one file of a run into the bucket and enters it.
pub(super) fn bring(
    bucket: &Bucket,
    catalogue: &mut dyn Catalogue,
    run: &RunInfo,
    inside: &str,
    go_on: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let path = run.directory.join(inside);
    let state = || fs::metadata(&path).and_then(|data| Ok((data.len(), data.modified()?)));
    let before = state().map_err(StoreError::io("read", &path))?;
    let put = bucket.put(&format!("{}/{inside}", place(run)), &path, go_on);
    let (bytes, sha256) = put.map_err(|failed| bucket.failed("uploaded", &path, failed))?;
    // What has been measured anew meanwhile will be brought by who did.
    if state().is_ok_and(|after| after == before) {
        catalogue.enter_file(run.id, &SharedFile { path: inside.to_owned(), bytes, sha256 })?;
    }
    Ok(())
}

/// Brings in the background what processes that were killed, or had no bucket, left in their folders.
#[derive(Debug)]
pub(crate) struct Leftovers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Leftovers {
    /// Looks through the folders below `runs`.
    pub(crate) fn start(
        bucket: Arc<Bucket>,
        catalogue: &mut dyn Catalogue,
        runs: &Path,
    ) -> Result<Leftovers, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_pending =
            |run: &RunInfo| run.directory.join(PENDING).exists() && run.status != Status::Running;
        let any = fs::read_dir(runs).is_ok_and(|mut folders| {
            folders.any(|folder| folder.is_ok_and(|folder| folder.path().join(PENDING).exists()))
        });
        let pending: Vec<RunInfo> = match any {
            true => catalogue.infos()?.into_iter().filter(is_pending).collect(),
            false => Vec::new(),
        };
        if pending.is_empty() {
            return Ok(Leftovers { stop, thread: None });
        }
        let mut own = catalogue.another()?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("leftovers".to_owned()).spawn(move || {
            let go_on = || !stopped.load(Ordering::Relaxed);
            for run in pending.iter().take_while(|_| go_on()) {
                // One process at a time; what fails stays marked.
                let Ok(mark) = File::open(run.directory.join(PENDING)) else { continue };
                if mark.try_lock().is_err() {
                    continue;
                }
                if sweep(&bucket, &mut *own, run, &go_on).is_err() {
                    return;
                }
                if is_mark_of(&mark, run) && unmark(run).is_err() {
                    return;
                }
            }
        });
        Ok(Leftovers { stop, thread: thread.ok() })
    }

    /// Whether there is nothing left to be done, or nothing that can be.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        let until = Instant::now() + LAST_WAIT;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

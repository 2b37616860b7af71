//! Gets a file that another host has measured.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Bucket, FETCHED, FETCHING, SharedFile, place};
use crate::StoreError;
use crate::model::RunInfo;

/// Puts a file of a run where it would be if it had been measured here: as a whole or not at all.
pub(crate) fn fetch(bucket: &Bucket, run: &RunInfo, file: &SharedFile) -> Result<(), StoreError> {
    static FETCHES: AtomicU64 = AtomicU64::new(0);
    if !run.directory.exists() {
        fs::create_dir_all(&run.directory).map_err(StoreError::io("created", &run.directory))?;
        let mark = run.directory.join(FETCHED);
        fs::write(&mark, "").map_err(StoreError::io("written", &mark))?;
    }
    let path = run.directory.join(&file.path);
    let folder = path.parent().unwrap_or(&run.directory);
    fs::create_dir_all(folder).map_err(StoreError::io("created", folder))?;
    // Several may fetch the same at once: each into a file of its own, and all come to the same.
    let number = FETCHES.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.{FETCHING}", std::process::id());
    let whole = folder.join(name);
    let got = get(bucket, run, file, &whole)
        .and_then(|()| fs::rename(&whole, &path).map_err(StoreError::io("written", &path)));
    if got.is_err() {
        let _ = fs::remove_file(&whole);
    }
    got
}

fn get(bucket: &Bucket, run: &RunInfo, file: &SharedFile, to: &Path) -> Result<(), StoreError> {
    let mut open = File::create(to).map_err(StoreError::io("written", to))?;
    let name = format!("{}/{}", place(run), file.path);
    let got = bucket.get(&name, &mut open, file);
    match got.map_err(|failed| bucket.failed("fetched", to, failed))? {
        true => Ok(()),
        false => {
            let place = Path::new(&bucket.shown()).join(name);
            Err(StoreError::damaged(&place, "it is not the measured file: its size or SHA-256 differs"))
        }
    }
}

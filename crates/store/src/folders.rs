//! The folders of runs, as they lie on the disk: what is in them is not always in the database.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::StoreError;
use crate::recovery::remove_folder;

/// Makes a folder, and those above it that are missing, for this user only. Folders that exist keep their mode.
pub(crate) fn make_private(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(StoreError::io("created", path))
}

/// Refuses a store whose database is missing or empty while its runs are there.
pub(crate) fn check_database(directory: &Path, runs: &Path) -> Result<(), StoreError> {
    let database = directory.join("trunkline.db");
    if fs::metadata(&database).is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    let count = of_runs(runs).map_err(StoreError::io("read", runs))?.len();
    match count {
        0 => Ok(()),
        runs => Err(StoreError::Lost { place: directory.display().to_string(), runs }),
    }
}

/// The highest number above `last` of a folder that has measurements, if there is one.
pub(crate) fn highest_measured(runs: &Path, last: u64) -> Result<Option<u64>, StoreError> {
    let folders = of_runs(runs).map_err(StoreError::io("read", runs))?;
    let above = folders.into_iter().filter(|(number, name)| *number > last && is_measured(&runs.join(name)));
    Ok(above.map(|(number, _)| number).max())
}

/// Removes a folder in which nothing was measured; it may not be there.
pub(crate) fn clear(folder: &Path) -> Result<(), StoreError> {
    match is_measured(folder) {
        true => Err(StoreError::Occupied { path: folder.to_path_buf() }),
        false => remove_folder(folder),
    }
}

/// The folders with the name of a run, each with the run's number.
fn of_runs(runs: &Path) -> io::Result<Vec<(u64, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number
            && entry.file_type()?.is_dir()
        {
            found.push((number, name));
        }
    }
    Ok(found)
}

/// Whether a folder has more than a run has when it is begun: its lock, its experiment, and an empty folder for traces. What
/// cannot be read counts as measured.
fn is_measured(folder: &Path) -> bool {
    let names = |path: &Path| -> io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    let begun = ["running.lock", "experiment.toml", "named", "traces"];
    match (names(folder), names(&folder.join("traces"))) {
        (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
        (Ok(own), traces) => {
            own.iter().any(|name| !begun.contains(&name.as_str()))
                || traces.is_ok_and(|traces| !traces.is_empty())
        }
    }
}

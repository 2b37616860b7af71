//! Repetitions of a run that other stores have measured: shards of a run, batches of a cluster.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use trunkline_metrics::RepetitionSummary;

use super::{RunWriter, inside};
use crate::StoreError;
use crate::catalogue::RepetitionKey;
use crate::model::{RunInfo, StoredPoint, StoredRepetition, StoredRun};
use crate::recovery::remove_folder;
use crate::{archive, events, files, trace};

/// Numbers of repetitions that were taken over from another run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Repetitions that were missing here and are now stored.
    pub taken: u64,
    /// Repetitions that were here before: nothing was done.
    pub known: u64,
}

impl RunWriter {
    /// Takes over the complete repetitions of a run of the same experiment that were missing here, byte for byte. The run's
    /// files must be on this host.
    ///
    /// # Errors
    /// [`StoreError::Different`] if the run is not of the same experiment: then nothing was taken.
    pub fn adopt(&self, run: &StoredRun) -> Result<Adopted, StoreError> {
        self.adopt_points(run, |point| is_of_product(point, run), |_, _, _| {})
    }

    /// The same of a run that another store has exported.
    ///
    /// # Errors
    /// As [`adopt`](RunWriter::adopt), or [`StoreError::NoArchive`].
    pub fn adopt_archive(&self, archive: impl Read) -> Result<Adopted, StoreError> {
        self.unpacked(archive, |run| self.adopt(run))
    }

    /// The same of a run whose points a search has chosen: `is_point` returns true for a point, by its index, with this choice on the
    /// axes. `each` receives every complete repetition, by point and repetition, even if it was here before.
    ///
    /// # Errors
    /// As [`adopt_archive`](RunWriter::adopt_archive).
    pub fn adopt_chosen(
        &self,
        archive: impl Read,
        is_point: impl Fn(u32, &[usize]) -> bool,
        each: impl FnMut(u32, u32, &RepetitionSummary),
    ) -> Result<Adopted, StoreError> {
        self.unpacked(archive, |run| {
            self.adopt_points(run, |point| is_point(point.index, &point.choice), each)
        })
    }

    fn unpacked(
        &self,
        archive: impl Read,
        adopt: impl FnOnce(&StoredRun) -> Result<Adopted, StoreError>,
    ) -> Result<Adopted, StoreError> {
        // On the disk of the runs, so that files become theirs without being copied, and in none of their folders.
        let store = &self.shared.store;
        let folder = tempfile::Builder::new().prefix("incoming-").tempdir_in(store);
        let folder = folder.map_err(StoreError::io("written", store))?;
        let read = archive::read(archive, |_| Ok(Some((folder.path().to_path_buf(), ()))))?;
        let Some((mut run, ())) = read else { return Ok(Adopted::default()) };
        run.info.directory = folder.path().to_path_buf();
        adopt(&run)
    }

    fn adopt_points(
        &self,
        run: &StoredRun,
        is_point: impl Fn(&StoredPoint) -> bool,
        mut each: impl FnMut(u32, u32, &RepetitionSummary),
    ) -> Result<Adopted, StoreError> {
        self.is_same(run)?;
        if let Some(point) = run.points.iter().find(|point| !is_point(point)) {
            let why = format!("point {} is not that of the sweep: a search has chosen it", point.index);
            return Err(StoreError::Different { run: run.info.directory.clone(), why });
        }
        let mut adopted = Adopted::default();
        for point in &run.points {
            for repetition in point.repetitions.iter().filter(|repetition| !repetition.partial) {
                match self.take(&run.info, point.index, repetition)? {
                    true => adopted.taken += 1,
                    false => adopted.known += 1,
                }
                repetition.summary.iter().for_each(|summary| each(point.index, repetition.index, summary));
            }
        }
        Ok(adopted)
    }

    /// Refuses a run whose repetitions would not be those of this one.
    fn is_same(&self, run: &StoredRun) -> Result<(), StoreError> {
        let (own, other) = (self.info()?, &run.info);
        let differ = |what: &str, own: &str, other: &str| {
            let why = format!("{what} is `{other}` there and `{own}` here");
            Err(StoreError::Different { run: run.info.directory.clone(), why })
        };
        if own.experiment_hash != other.experiment_hash {
            return differ("the hash of the experiment file", &own.experiment_hash, &other.experiment_hash);
        }
        if own.backend != other.backend {
            return differ("the backend", own.backend.name(), other.backend.name());
        }
        if own.version != other.version {
            return differ("the version of Trunkline", &own.version, &other.version);
        }
        self.has_same_named_files(&run.info)
    }

    /// Refuses a run whose experiment named other bytes.
    fn has_same_named_files(&self, other: &RunInfo) -> Result<(), StoreError> {
        let own = self.shared.directory.join("named");
        let entries = match fs::read_dir(other.directory.join("named")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::io("read", &other.directory)(error)),
        };
        for entry in entries.flatten() {
            let read = |path: &Path| fs::read(path).map_err(StoreError::io("read", path));
            if read(&entry.path())? != read(&own.join(entry.file_name()))? {
                let name = entry.file_name();
                let why = format!("the file `{}` that the experiment names differs", name.display());
                return Err(StoreError::Different { run: other.directory.clone(), why });
            }
        }
        Ok(())
    }

    /// Takes over one repetition; false if it was here before.
    fn take(&self, from: &RunInfo, point: u32, repetition: &StoredRepetition) -> Result<bool, StoreError> {
        let Some(summary) = &repetition.summary else { return Ok(false) };
        let shared = &self.shared;
        let there = |path: &Path| path.strip_prefix(&from.directory).unwrap_or(path).to_path_buf();
        let traces: Vec<(&str, String)> =
            repetition.traces.iter().map(|(flow, path)| (flow.as_str(), inside(&there(path)))).collect();
        let entries: Vec<(&str, &str)> = traces.iter().map(|(flow, path)| (*flow, path.as_str())).collect();
        let key = RepetitionKey { run: shared.id, point, repetition: repetition.index };
        let Some(old) = shared.catalogue().begin_repetition(key, &entries)? else { return Ok(false) };
        for path in old.iter().map(|path| shared.directory.join(path)) {
            trace::remove(&path).map_err(StoreError::io("removed", &path))?;
            events::remove(&path).map_err(StoreError::io("removed", &path))?;
        }
        remove_folder(&shared.directory.join("audio").join(format!("p{point:03}-r{:02}", repetition.index)))?;
        let mut arrived = Vec::new();
        let events = repetition.traces.iter().map(|(_, path)| events::beside(path));
        let kept = repetition.traces.iter().map(|(_, path)| path.clone()).chain(repetition.audio.clone());
        for path in kept.chain(events.filter(|path| path.exists())) {
            let inside_run = there(&path);
            let to = shared.directory.join(&inside_run);
            place(&path, &to).map_err(StoreError::io("written", &to))?;
            arrived.push(inside(&inside_run));
        }
        let audio: Vec<String> = repetition.audio.iter().map(|path| inside(&there(path))).collect();
        let json = serde_json::to_string(summary)?;
        shared.catalogue().finish_repetition(key, false, &json, &audio)?;
        if let Some(uploads) = &*shared.uploads() {
            uploads.add(arrived);
        }
        Ok(true)
    }

    /// Takes over the files that the experiment of a run names.
    pub(crate) fn adopt_named(&self, from: &RunInfo) -> Result<(), StoreError> {
        let named = from.directory.join("named");
        if !named.is_dir() {
            return Ok(());
        }
        for path in files::list(&named).map_err(StoreError::io("read", &named))? {
            let to = self.shared.directory.join(path.strip_prefix(&from.directory).unwrap_or(&path));
            place(&path, &to).map_err(StoreError::io("written", &to))?;
        }
        Ok(())
    }
}

/// True if a point is where the product of the axes has it.
fn is_of_product(point: &StoredPoint, run: &StoredRun) -> bool {
    let mut left = point.index as usize;
    let mut choice: Vec<usize> = run
        .axes
        .iter()
        .rev()
        .map(|axis| {
            let count = axis.values.len().max(1);
            let chosen = left % count;
            left /= count;
            chosen
        })
        .collect();
    choice.reverse();
    left == 0 && choice == point.choice
}

/// Puts a finished file in another place too: as a link to the same bytes where the file system can, because nothing is ever
/// written into a finished file.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(to) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

//! Repetitions of a run that other stores have measured: shards of a run, batches of a cluster.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};

use trunkline_metrics::RepetitionSummary;

use super::{RunWriter, inside};
use crate::StoreError;
use crate::catalogue::{Begun, Finished, RepetitionKey};
use crate::model::{RunInfo, StoredPoint, StoredRepetition, StoredRun};
use crate::recovery::remove_folder;
use crate::store::NAMED;
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
        self.is_same(&run.info)?;
        self.has_same_named_files(&run.info)?;
        check_points(run, |point| self.is_of_product(point))?;
        let mut adopted = Adopted::default();
        for repetition in complete(run) {
            match self.take(&run.info, repetition)? {
                true => adopted.taken += 1,
                false => adopted.known += 1,
            }
        }
        Ok(adopted)
    }

    /// The same of a run that another store has exported; a repetition is taken once all of its files were read.
    ///
    /// # Errors
    /// As [`adopt`](RunWriter::adopt), or [`StoreError::NoArchive`].
    pub fn adopt_archive(&self, archive: impl Read) -> Result<Adopted, StoreError> {
        self.adopt_chosen(archive, |index, choice| self.is_choice_of_product(index, choice), |_, _, _| {})
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
        mut each: impl FnMut(u32, u32, &RepetitionSummary),
    ) -> Result<Adopted, StoreError> {
        let begin = |run: &StoredRun| {
            self.is_same(&run.info)?;
            check_points(run, |point| is_point(point.index, &point.choice))?;
            let measured: Vec<Measured<'_>> = complete(run).collect();
            let wanted = self.begin_taking(&run.info, &measured)?;
            let files = measured.iter().filter(|(point, of)| wanted.contains(&(*point, of.index)));
            let files = files.flat_map(|(_, of)| files_of(of)).collect();
            Ok(Some(Arriving { wanted, files, arrived: BTreeSet::new() }))
        };
        let read = archive::read(archive, begin, |arriving, inside, bytes| {
            if inside.starts_with(NAMED) {
                return self.has_same_named_file(inside, bytes);
            }
            if arriving.files.contains(inside) {
                let to = self.shared.directory.join(inside);
                receive(bytes, &to).map_err(StoreError::io("written", &to))?;
                arriving.arrived.insert(inside.to_path_buf());
            }
            Ok(())
        })?;
        let Some((run, Arriving { wanted, arrived, .. })) = read else { return Ok(Adopted::default()) };
        let is_wanted = |(point, of): &Measured<'_>| wanted.contains(&(*point, of.index));
        let taken: Vec<Measured<'_>> = complete(&run).filter(is_wanted).collect();
        if let Some(path) =
            taken.iter().flat_map(|(_, of)| required(of)).find(|path| !arrived.contains(*path))
        {
            return Err(StoreError::NoArchive { why: format!("`{}` is not in it", path.display()) });
        }
        self.finish_taking(&run.info, &taken, arrived.iter().map(|path| inside(path)).collect())?;
        complete(&run).for_each(|(point, of)| {
            of.summary.iter().for_each(|summary| each(point, of.index, summary));
        });
        let of = complete(&run).count();
        Ok(Adopted { taken: taken.len() as u64, known: (of - taken.len()) as u64 })
    }

    /// Refuses a run whose repetitions would not be those of this one.
    fn is_same(&self, part: &RunInfo) -> Result<(), StoreError> {
        let own = self.shared.identity()?;
        let pairs = [
            ("the hash of the experiment file", &*own.experiment_hash, &*part.experiment_hash),
            ("the backend", own.backend.name(), part.backend.name()),
            ("the version of Trunkline", &own.version, &part.version),
        ];
        match pairs.iter().find(|(_, here, there)| here != there) {
            Some((what, here, there)) => {
                Err(different(part, format!("{what} is `{there}` there and `{here}` here")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a run whose experiment named other bytes.
    fn has_same_named_files(&self, other: &RunInfo) -> Result<(), StoreError> {
        let entries = match fs::read_dir(other.directory.join(NAMED)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::io("read", &other.directory)(error)),
        };
        for entry in entries.flatten() {
            let mut file = File::open(entry.path()).map_err(StoreError::io("read", &entry.path()))?;
            self.has_same_named_file(&Path::new(NAMED).join(entry.file_name()), &mut file)?;
        }
        Ok(())
    }

    /// Refuses other bytes of a file that the experiment names.
    fn has_same_named_file(&self, inside: &Path, bytes: &mut dyn Read) -> Result<(), StoreError> {
        let path = self.shared.directory.join(inside);
        let failed = |source| StoreError::io("read", &path)(source);
        let (own, mut other) = (fs::read(&path).map_err(failed)?, Vec::new());
        bytes.read_to_end(&mut other).map_err(failed)?;
        if own != other {
            let name = inside.file_name().unwrap_or_default();
            let why = format!("the file `{}` that the experiment names differs", name.display());
            return Err(StoreError::Different { run: path, why });
        }
        Ok(())
    }

    /// True if a point is where the product of the axes has it.
    fn is_of_product(&self, point: &StoredPoint) -> bool {
        self.is_choice_of_product(point.index, &point.choice)
    }

    fn is_choice_of_product(&self, index: u32, choice: &[usize]) -> bool {
        let Ok(identity) = self.shared.identity() else { return false };
        let mut left = index as usize;
        let of_axis = |(count, chosen): (&usize, &usize)| {
            let place = left % count;
            left /= count;
            place == *chosen
        };
        let is_there = identity.axes.len() == choice.len()
            && identity.axes.iter().rev().zip(choice.iter().rev()).all(of_axis);
        is_there && left == 0
    }

    /// Takes over one repetition; false if it was here before.
    fn take(&self, from: &RunInfo, measured: Measured<'_>) -> Result<bool, StoreError> {
        if self.begin_taking(from, &[measured])?.is_empty() {
            return Ok(false);
        }
        let mut arrived = Vec::new();
        for path in files_of(measured.1).filter(|path| path.exists()) {
            let there = inside_of(from, &path);
            let to = self.shared.directory.join(there);
            place(&path, &to).map_err(StoreError::io("written", &to))?;
            arrived.push(inside(there));
        }
        self.finish_taking(from, &[measured], arrived)?;
        Ok(true)
    }

    /// Begins the repetitions that are missing here, and returns them. The files of earlier attempts go.
    fn begin_taking(
        &self,
        from: &RunInfo,
        measured: &[Measured<'_>],
    ) -> Result<BTreeSet<(u32, u32)>, StoreError> {
        let shared = &self.shared;
        let begun = measured.iter().map(|(point, of)| Begun {
            key: RepetitionKey { run: shared.id, point: *point, repetition: of.index },
            traces: of
                .traces
                .iter()
                .map(|(flow, path)| (flow.clone(), inside(inside_of(from, path))))
                .collect(),
        });
        let begun: Vec<Begun> = begun.collect();
        let olds = shared.catalogue().begin_repetitions(&begun)?;
        let mut wanted = BTreeSet::new();
        for (begun, old) in begun.iter().zip(olds) {
            let Some(old) = old else { continue };
            let RepetitionKey { point, repetition, .. } = begun.key;
            for path in old.iter().map(|path| shared.directory.join(path)) {
                trace::remove(&path).map_err(StoreError::io("removed", &path))?;
                events::remove(&path).map_err(StoreError::io("removed", &path))?;
            }
            remove_folder(&shared.directory.join("audio").join(format!("p{point:03}-r{repetition:02}")))?;
            wanted.insert((point, repetition));
        }
        Ok(wanted)
    }

    /// Ends repetitions whose files, `arrived`, are in the run's folder.
    fn finish_taking(
        &self,
        from: &RunInfo,
        taken: &[Measured<'_>],
        arrived: Vec<String>,
    ) -> Result<(), StoreError> {
        let mut finished = Vec::with_capacity(taken.len());
        for (point, of) in taken {
            finished.push(Finished {
                key: RepetitionKey { run: self.shared.id, point: *point, repetition: of.index },
                partial: false,
                summary: serde_json::to_string(&of.summary)?,
                audio: of.audio.iter().map(|path| inside(inside_of(from, path))).collect(),
            });
        }
        self.shared.catalogue().finish_repetitions(&finished)?;
        if let Some(uploads) = &*self.shared.uploads() {
            uploads.add(arrived);
        }
        Ok(())
    }

    /// Takes over the files that the experiment of a run names.
    pub(crate) fn adopt_named(&self, from: &RunInfo) -> Result<(), StoreError> {
        let named = from.directory.join(NAMED);
        if !named.is_dir() {
            return Ok(());
        }
        for path in files::list(&named).map_err(StoreError::io("read", &named))? {
            let to = self.shared.directory.join(inside_of(from, &path));
            place(&path, &to).map_err(StoreError::io("written", &to))?;
        }
        Ok(())
    }
}

/// A complete repetition of another run, and its point's index.
type Measured<'r> = (u32, &'r StoredRepetition);

/// Repetitions whose files are read.
struct Arriving {
    /// By point and repetition.
    wanted: BTreeSet<(u32, u32)>,
    /// Their files, by the paths in the run's folder.
    files: BTreeSet<PathBuf>,
    arrived: BTreeSet<PathBuf>,
}

/// The complete repetitions of a run.
fn complete(run: &StoredRun) -> impl Iterator<Item = Measured<'_>> {
    let all = run.points.iter().flat_map(|point| point.repetitions.iter().map(|of| (point.index, of)));
    all.filter(|(_, of)| !of.partial && of.summary.is_some())
}

/// The files that a repetition must have.
fn required(of: &StoredRepetition) -> impl Iterator<Item = &PathBuf> {
    of.traces.iter().map(|(_, path)| path).chain(&of.audio)
}

/// The files that a repetition may have.
fn files_of(of: &StoredRepetition) -> impl Iterator<Item = PathBuf> {
    required(of).cloned().chain(of.traces.iter().map(|(_, path)| events::beside(path)))
}

fn check_points(run: &StoredRun, is_point: impl Fn(&StoredPoint) -> bool) -> Result<(), StoreError> {
    let Some(point) = run.points.iter().find(|point| !is_point(point)) else { return Ok(()) };
    let why = format!("point {} is not that of the sweep: a search has chosen it", point.index);
    Err(different(&run.info, why))
}

fn different(part: &RunInfo, why: String) -> StoreError {
    let run = Some(&part.directory).filter(|folder| **folder != Path::new(""));
    StoreError::Different { run: run.cloned().unwrap_or_else(|| "the archive".into()), why }
}

/// A path of another run in that run's folder.
fn inside_of<'p>(from: &RunInfo, path: &'p Path) -> &'p Path {
    path.strip_prefix(&from.directory).unwrap_or(path)
}

/// Writes a file as a whole or not at all: what is left of a part is removed when the repetition is begun again.
fn receive(bytes: &mut dyn Read, to: &Path) -> io::Result<()> {
    let part = trace::part_of(to);
    let file = match File::create(&part) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::create(&part)?
        }
        opened => opened?,
    };
    let mut file = BufWriter::with_capacity(WRITTEN, file);
    io::copy(bytes, &mut file)?;
    file.flush()?;
    fs::rename(part, to)
}

/// Bytes of a file that are written at once.
const WRITTEN: usize = 64 << 10;

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

//! The store: its runs, found, read and begun.

mod merge;

use std::fs;
use std::hash::{BuildHasher as _, Hasher, RandomState};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use siphasher::sip128::{Hasher128, SipHasher24};
use trunkline_experiment::NamedFiles;

use crate::StoreError;
use crate::archive;
use crate::catalogue::{self, Catalogue};
use crate::files::{self, Bucket, Leftovers, Uploads};
use crate::folders::{self, make_private};
use crate::model::{Backend, RunInfo, Status, StoredPoint, StoredRun};
use crate::recovery::{self, RunLock, remove_folder};
use crate::run_writer::{NewRun, RunWriter};
use crate::selector::{self, RunSelector};

pub use merge::Merged;

/// What became of a run that was to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is here now, with this number.
    New(u64),
    /// It has been here before, with this number: nothing was done.
    Known(u64),
}

/// A folder of runs. May be shared by threads, and open in several processes at once.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    catalogue: Mutex<Box<dyn Catalogue>>,
    /// True if other hosts use it too.
    is_shared: bool,
    /// True if it can only be looked at.
    is_read_only: bool,
    /// True if what is written survives a power cut.
    is_synced: bool,
    /// Where they have the files.
    bucket: Option<Arc<Bucket>>,
    /// What an earlier process did not get there.
    leftovers: Option<Leftovers>,
    /// How long the end of a run waits for a bucket that takes nothing.
    patience: Duration,
}

impl Store {
    /// Opens the store in `directory`, creating it if it does not exist, and repairs what killed processes left: their runs
    /// become [`Status::Partial`], and their traces readable. A store that cannot be written can be looked at: what would
    /// write is refused ([`StoreError::ReadOnly`]).
    ///
    /// The folders that it makes have mode 0700; one that is there keeps its mode.
    ///
    /// # Errors
    /// [`StoreError::Lost`] if there are folders of runs and no database: nothing is begun anew over them.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        let runs = directory.join("runs");
        make_private(&runs)?;
        folders::check_database(directory, &runs)?;
        Store::of(catalogue::in_folder(directory, &runs, true)?, None, directory)
    }

    /// Opens the store in a folder that will be removed: it does not wait for the disk, and a power cut may damage it.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    pub fn scratch(directory: &Path) -> Result<Store, StoreError> {
        let runs = directory.join("runs");
        make_private(&runs)?;
        let store = Store::of(catalogue::in_folder(directory, &runs, false)?, None, directory)?;
        Ok(Store { is_synced: false, ..store })
    }

    /// Opens the store of a team, whose rows a PostgreSQL server keeps: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`. It
    /// makes the tables, in a schema of their own, if there are none. The files of what is measured here lie in `directory`;
    /// those of other hosts' runs lie there. With `?files=s3://BUCKET/PREFIX` in the address they are copied into that bucket
    /// too, and [`fetch`](Store::fetch) gets those of others; how the bucket is reached the environment says, as with all
    /// tools of S3.
    ///
    /// # Errors
    /// [`StoreError::Address`] if that is no such address; what the server refuses. The bucket is first asked when a run is
    /// begun.
    pub fn connect(url: &str, directory: &Path) -> Result<Store, StoreError> {
        let (database, files) = files::split(url)?;
        let runs = directory.join("runs");
        make_private(&runs)?;
        let bucket = files.map(Bucket::open).transpose()?.map(Arc::new);
        Store::of(catalogue::on_server(&database, &runs)?, bucket, directory)
    }

    fn of(
        mut catalogue: Box<dyn Catalogue>,
        bucket: Option<Arc<Bucket>>,
        directory: &Path,
    ) -> Result<Store, StoreError> {
        let runs = directory.join("runs");
        recovery::recover(&mut *catalogue, &runs)?;
        let leftovers =
            bucket.as_ref().map(|bucket| Leftovers::start(bucket.clone(), &mut *catalogue, &runs));
        Ok(Store {
            directory: directory.to_path_buf(),
            is_shared: catalogue.is_shared(),
            is_read_only: catalogue.is_read_only(),
            is_synced: true,
            catalogue: Mutex::new(catalogue),
            leftovers: leftovers.transpose()?,
            bucket,
            patience: files::PATIENCE,
        })
    }

    /// The same store; the end of a run waits so long for a bucket that takes nothing, rather than half a minute.
    pub fn with_patience(self, patience: Duration) -> Store {
        Store { patience, ..self }
    }

    /// True if it can only be looked at: its folder cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Where the files of its runs are on this host.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins a run: its folder and its rows exist when this returns.
    pub fn begin(&self, run: NewRun) -> Result<RunWriter, StoreError> {
        let key = format!("{:032x}", draw());
        self.begin_as(&run, &key, Timestamp::now())
    }

    fn begin_as(&self, run: &NewRun, key: &str, started: Timestamp) -> Result<RunWriter, StoreError> {
        self.to_be_written()?;
        let mut own = self.catalogue().another()?;
        let (mut taken, mut made) = (None, None::<PathBuf>);
        // The folder comes before the rows are seen: a run that others see is locked.
        let mut ready = |id: u64, folder: &str| {
            let directory = self.directory.join("runs").join(folder);
            // An attempt may have failed for want of the database, and been given another number.
            made.take().map_or(Ok(()), |made| remove_folder(&made))?;
            // An earlier process may have died right here, and its number is given again.
            folders::clear(&directory)?;
            made = Some(directory.clone());
            let traces = directory.join("traces");
            fs::create_dir_all(&traces).map_err(StoreError::io("created", &traces))?;
            if !self.is_shared {
                taken = Some(self.lock(id, &directory)?);
            }
            let file = directory.join(EXPERIMENT);
            fs::write(&file, &run.text).map_err(StoreError::io("written", &file))?;
            keep(&run.named, &directory)?;
            // Whoever may not write there is told before anything is measured.
            self.bucket.as_ref().map_or(Ok(()), |bucket| files::check(bucket, folder, key))
        };
        let begun = own.begin(run, key, started, &mut ready);
        if let (Err(_), Some(made)) = (&begun, made) {
            remove_folder(&made)?;
        }
        let id = begun?;
        let lock = match taken {
            Some(lock) => lock,
            None => own.hold(id, &self.directory)?.ok_or(StoreError::InUse { id })?,
        };
        let uploads = self.uploads(id)?;
        RunWriter::new(self.directory.clone(), id, lock, own, uploads, self.is_synced)
    }

    /// The thread that brings the files of a run to the bucket, if there is one.
    fn uploads(&self, id: u64) -> Result<Option<Uploads>, StoreError> {
        let Some(bucket) = &self.bucket else { return Ok(None) };
        let run = self.info(id)?;
        let own = self.catalogue().another()?;
        Uploads::start(bucket.clone(), own, run, self.patience).map(Some)
    }

    /// Goes on with a partial run: [`RunWriter::missing`] says what it lacks.
    pub fn resume(&self, id: u64) -> Result<RunWriter, StoreError> {
        self.to_be_written()?;
        let info = self.info(id)?;
        fs::create_dir_all(&info.directory).map_err(StoreError::io("created", &info.directory))?;
        let mut own = self.catalogue().another()?;
        let lock = own.hold(id, &info.directory)?.ok_or(StoreError::InUse { id })?;
        // Asked again under the lock.
        if self.info(id)?.status == Status::Complete {
            return Err(StoreError::Complete { id });
        }
        let traces = info.directory.join("traces");
        fs::create_dir_all(&traces).map_err(StoreError::io("created", &traces))?;
        let file = info.directory.join(EXPERIMENT);
        if !file.exists() {
            // It was begun on another host.
            fs::write(&file, self.run(id)?.text).map_err(StoreError::io("written", &file))?;
        }
        recovery::repair_traces(&mut *own, id, &info.directory)?;
        own.started(id)?;
        let uploads = self.uploads(id)?;
        RunWriter::new(self.directory.clone(), id, lock, own, uploads, self.is_synced)
    }

    /// Every run, the oldest first.
    pub fn runs(&self) -> Result<Vec<RunInfo>, StoreError> {
        Ok(self.catalogue().infos()?.into_iter().map(|info| self.seen(info)).collect())
    }

    /// A run as it is: where nothing can be written, nobody has entered that the process of one has died.
    fn seen(&self, mut info: RunInfo) -> RunInfo {
        let is_dead = || matches!(RunLock::of_folder(&info.directory), Ok(Some(_)));
        if self.is_read_only && info.status == Status::Running && is_dead() {
            info.status = Status::Partial;
        }
        info
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
            let (asked, store) = (asked.to_owned(), self.directory.clone());
            match runs.is_empty() {
                true => StoreError::NoRuns { asked, store },
                false => StoreError::NoSuchRun { asked, store, close },
            }
        })
    }

    /// A run with its results.
    pub fn run(&self, id: u64) -> Result<StoredRun, StoreError> {
        let run = self.catalogue().run(id)?.ok_or_else(|| self.no_such_run(id))?;
        Ok(StoredRun { info: self.seen(run.info), ..run })
    }

    /// A run without its points.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`]; if the database cannot be read.
    pub fn outline(&self, id: u64) -> Result<StoredRun, StoreError> {
        let run = self.catalogue().outline(id)?.ok_or_else(|| self.no_such_run(id))?;
        Ok(StoredRun { info: self.seen(run.info), ..run })
    }

    /// Gives `point` the points of a run with their results one by one, in the product's order: they need not fit into memory
    /// together.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`]; if the database cannot be read, after the points before.
    pub fn walk(&self, id: u64, mut point: impl FnMut(StoredPoint)) -> Result<(), StoreError> {
        let run = self.catalogue().walk(id, &mut point)?;
        run.map(drop).ok_or_else(|| self.no_such_run(id))
    }

    /// What a run's experiment names as `path`, as it was when the run was begun; `None` if this host has nothing that the
    /// run has kept, as of runs of earlier versions.
    ///
    /// # Errors
    /// If it is there and cannot be read, or is in the bucket and cannot be got.
    pub fn named(&self, run: &RunInfo, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let file = place_of(path, &run.directory);
        match self.fetch(run, &file) {
            Ok(()) => fs::read(&file).map(Some).map_err(StoreError::io("read", &file)),
            Err(StoreError::Elsewhere { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        let best = others.min_by_key(|other| {
            (other.status == Status::Partial, other.shard.is_some(), other.backend != Backend::Sim)
        });
        best.map(|other| self.run(other.id)).transpose()
    }

    /// Removes a run and its folder. Its number is not given again.
    pub fn remove(&self, id: u64) -> Result<(), StoreError> {
        self.to_be_written()?;
        let info = self.info(id)?;
        let _lock = self.lock(id, &info.directory)?;
        if let Some(bucket) = &self.bucket {
            // Before the rows that name them.
            let files = self.catalogue().files(id)?;
            files::remove(bucket, &info, &files)?;
        }
        self.catalogue().remove(id)?;
        remove_folder(&info.directory)
    }

    /// Makes sure that a file of a run is on this host, at the path that the run names: gets it from the bucket if it was
    /// measured elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Elsewhere`] if only another host has it; [`StoreError::Files`] if the bucket cannot be reached.
    pub fn fetch(&self, run: &RunInfo, path: &Path) -> Result<(), StoreError> {
        if path.exists() {
            return Ok(());
        }
        let inside = path.strip_prefix(&run.directory).unwrap_or(path);
        let there = match &self.bucket {
            Some(bucket) => {
                let files = self.catalogue().files(run.id)?;
                files.into_iter().find(|file| Path::new(&file.path) == inside).map(|file| (bucket, file))
            }
            None => None,
        };
        match there {
            Some((bucket, file)) => files::fetch(bucket, run, &file),
            None => {
                let (path, machine) = (inside.to_path_buf(), run.machine.clone());
                Err(StoreError::Elsewhere { id: run.id, path, machine })
            }
        }
    }

    /// Makes sure that every file of a run that is in the bucket is on this host too.
    fn fetch_all(&self, run: &RunInfo) -> Result<(), StoreError> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let files = self.catalogue().files(run.id)?;
        let mut missing = files.iter().filter(|file| !run.directory.join(&file.path).exists());
        missing.try_for_each(|file| files::fetch(bucket, run, file))
    }

    /// True if everything that earlier processes had left to be brought to the bucket is there, or cannot be brought now.
    pub fn is_idle(&self) -> bool {
        self.leftovers.as_ref().is_none_or(Leftovers::is_over)
    }

    /// Marks a run with a tag, or takes the tag off.
    pub fn tag(&self, id: u64, tag: &str, on: bool) -> Result<(), StoreError> {
        self.to_be_written()?;
        self.info(id)?;
        self.catalogue().tag(id, tag, on)
    }

    /// Writes a run with all its files as one archive, which [`import`](Store::import) reads.
    pub fn export(&self, id: u64, to: impl Write) -> Result<(), StoreError> {
        let run = self.run(id)?;
        if run.info.status == Status::Running {
            return Err(StoreError::InUse { id });
        }
        self.fetch_all(&run.info)?;
        archive::write(run, to, |_| true)
    }

    /// Takes in a run that another store has exported, under a number of this one. What was started, finished and measured
    /// there stays as it is.
    ///
    /// # Errors
    /// [`StoreError::NoArchive`] if it is not such an archive, or damaged: then there is no run.
    pub fn import(&self, archive: impl Read) -> Result<Imported, StoreError> {
        let (mut known, mut begun) = (None, None);
        let read = archive::unpack(archive, |run| {
            archive::check_points(run)?;
            known = self.catalogue().with_key(&run.info.key)?;
            if known.is_some() {
                return Ok(None);
            }
            let writer = self.begin_as(&NewRun::again(run), &run.info.key, run.info.started)?;
            let info = writer.info()?;
            begun = Some(info.id);
            Ok(Some((info.directory, writer)))
        });
        let entered = read.and_then(|read| read.map(|(run, writer)| writer.enter(&run)).transpose());
        match (entered, known, begun) {
            (Ok(Some(id)), ..) => Ok(Imported::New(id)),
            (Ok(None), Some(id), _) => Ok(Imported::Known(id)),
            (Ok(None), None, _) => Err(StoreError::NoArchive { why: "it contains no run".to_owned() }),
            (Err(error), _, begun) => {
                // What was read so far is not what was exported.
                begun.map_or(Ok(()), |id| self.remove(id))?;
                Err(error)
            }
        }
    }

    fn info(&self, id: u64) -> Result<RunInfo, StoreError> {
        let info = self.catalogue().info(id)?.ok_or_else(|| self.no_such_run(id))?;
        Ok(self.seen(info))
    }

    /// Refuses what would write where nothing can be written.
    fn to_be_written(&self) -> Result<(), StoreError> {
        match self.is_read_only {
            true => Err(StoreError::ReadOnly { place: self.directory.display().to_string() }),
            false => Ok(()),
        }
    }

    fn no_such_run(&self, id: u64) -> StoreError {
        StoreError::NoSuchRun { asked: id.to_string(), store: self.directory.clone(), close: Vec::new() }
    }

    /// Locks a run for this process.
    fn lock(&self, id: u64, directory: &Path) -> Result<RunLock, StoreError> {
        let taken = self.catalogue().lock(id, directory)?;
        taken.ok_or(StoreError::InUse { id })
    }

    fn catalogue(&self) -> MutexGuard<'_, Box<dyn Catalogue>> {
        // A panic in the middle of a transaction has rolled it back.
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this is the address of a server (also one that [`Store::connect`] refuses), and then how a folder for its files may be called.
pub fn server_name(place: &str) -> Option<(&str, String)> {
    let is_server = ["postgresql://", "postgres://", "s3://"].iter().any(|scheme| place.starts_with(scheme));
    let shown = crate::catalogue::shown(place);
    let server = shown.split_once("://").map_or("", |(_, server)| server).to_owned();
    is_server.then(|| (place, selector::slug(&server)))
}

/// 128 bits that nobody else has: the standard library seeds its hashers from the system.
fn draw() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

/// Keeps what an experiment names in the folder of its run.
fn keep(named: &NamedFiles, directory: &Path) -> Result<(), StoreError> {
    for (path, bytes) in named.by_path() {
        let file = place_of(path, directory);
        let written = fs::create_dir_all(directory.join(NAMED)).and_then(|()| fs::write(&file, bytes));
        written.map_err(StoreError::io("written", &file))?;
    }
    Ok(())
}

/// Where the folder of a run has what the experiment names as `path`, which may lead anywhere.
fn place_of(path: &str, directory: &Path) -> PathBuf {
    directory.join(NAMED).join(format!("{}-{}", selector::slug(path), hash(path)))
}

/// In the folder of a run, its experiment's text.
const EXPERIMENT: &str = "experiment.toml";

/// In the folder of a run, what its experiment names.
pub(crate) const NAMED: &str = "named";

/// The hash of the text with LF line endings.
pub(crate) fn experiment_hash(text: &str) -> String {
    hash(&text.replace("\r\n", "\n"))
}

/// SipHash-2-4-128: the same on every machine and in every version.
fn hash(text: &str) -> String {
    let mut hasher = SipHasher24::new();
    hasher.write(text.as_bytes());
    format!("{:032x}", hasher.finish128().as_u128())
}

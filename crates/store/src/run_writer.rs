//! A run as it is written.

mod adopt;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use trunkline_core::Duration;
use trunkline_experiment::{Axis, Limit, NamedFiles};
use trunkline_metrics::{Record, RepetitionSummary, TraceSink, VoiceEvent};

use crate::StoreError;
use crate::catalogue::{Begun, Catalogue, Finished, RepetitionKey};
use crate::events::{self, EventFiles};
use crate::files::Uploads;
use crate::model::{Backend, RunInfo, Status, StoredPoint, StoredRun};
use crate::recovery::{self, RunLock, remove_folder};
use crate::selector::slug;
use crate::shard::Shard;
use crate::trace::{self, OpenTraces, TraceFile, TraceKeys, TraceWriter};

pub use adopt::Adopted;

/// What is known of a run before its first repetition.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The experiment's name.
    pub name: String,
    /// The backend.
    pub backend: Backend,
    /// The experiment file's text.
    pub text: String,
    /// The experiment file's path.
    pub file: PathBuf,
    /// What the experiment file names.
    pub named: NamedFiles,
    /// What was set beside the file, `link.trunk.rate=5 Mbit/s`; the text has it.
    pub settings: Vec<String>,
    /// The part that is measured here; `None` for all of it.
    pub shard: Option<Shard>,
    /// What is swept.
    pub axes: Vec<Axis>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// The seed.
    pub seed: u64,
    /// How often every point is measured.
    pub repetitions: u32,
    /// Of each point, its place in the product and the chosen value's index on each axis.
    pub points: Vec<(u32, Vec<usize>)>,
    /// How long one repetition lasts (duration and drain).
    pub repetition_length: Duration,
    /// The machine.
    pub machine: String,
    /// The version of Trunkline.
    pub version: String,
}

impl NewRun {
    /// A run that was measured elsewhere. What its experiment names comes with its files.
    pub(crate) fn again(run: &StoredRun) -> NewRun {
        let StoredRun { info, text, axes, limits, points } = run.clone();
        let mut points: Vec<StoredPoint> = points;
        points.sort_by_key(|point| point.index);
        NewRun {
            name: info.name,
            backend: info.backend,
            text,
            file: info.file,
            named: NamedFiles::default(),
            settings: info.settings,
            shard: info.shard,
            axes,
            limits,
            seed: info.seed,
            repetitions: info.repetitions,
            points: points.into_iter().map(|point| (point.index, point.choice)).collect(),
            repetition_length: info.repetition_length,
            machine: info.machine,
            version: info.version,
        }
    }
}

/// What has become known of a run after it was begun: a search finds its points while it measures.
#[derive(Clone, Debug)]
pub struct Revision<'r> {
    /// The experiment file's text with the values that are measured now.
    pub text: &'r str,
    /// What is swept.
    pub axes: &'r [Axis],
    /// How often every point is measured, at most.
    pub repetitions: u32,
    /// How long one repetition lasts (duration and drain).
    pub repetition_length: Duration,
    /// Of each point, the chosen value's index on each axis: first the points that the run has, in their order.
    pub points: &'r [Vec<usize>],
}

/// A run that this process measures. Its repetitions may be written by several threads at once. Dropped without
/// [`RunWriter::finish`], the run becomes partial.
#[derive(Debug)]
pub struct RunWriter {
    shared: Arc<Shared>,
    finished: bool,
}

#[derive(Debug)]
struct Shared {
    store: PathBuf,
    id: u64,
    directory: PathBuf,
    catalogue: Mutex<Box<dyn Catalogue>>,
    open: OpenTraces,
    identity: Mutex<Option<Arc<Identity>>>,
    /// Brings the files to where other hosts have them.
    uploads: Mutex<Option<Uploads>>,
    is_synced: bool,
    _lock: RunLock,
}

/// The measurements that can be taken over: those with the same.
#[derive(Debug)]
struct Identity {
    experiment_hash: String,
    backend: Backend,
    version: String,
    /// The number of values of each axis.
    axes: Vec<usize>,
}

impl RunWriter {
    pub(crate) fn new(
        store: PathBuf,
        id: u64,
        lock: RunLock,
        catalogue: Box<dyn Catalogue>,
        uploads: Option<Uploads>,
        is_synced: bool,
    ) -> Result<RunWriter, StoreError> {
        let mut shared = Shared {
            directory: PathBuf::new(),
            catalogue: Mutex::new(catalogue),
            open: OpenTraces::default(),
            identity: Mutex::default(),
            uploads: Mutex::new(uploads),
            is_synced,
            _lock: lock,
            store,
            id,
        };
        shared.directory = shared.info()?.directory;
        Ok(RunWriter { shared: Arc::new(shared), finished: false })
    }

    /// The run as it is stored now.
    pub fn info(&self) -> Result<RunInfo, StoreError> {
        self.shared.info()
    }

    /// Puts in place what has become known since the run was begun. Points keep their index and what was measured there.
    pub fn revise(&self, revision: &Revision<'_>) -> Result<(), StoreError> {
        const FILE: &str = "experiment.toml";
        let file = self.shared.directory.join(FILE);
        self.shared.catalogue().revise(self.shared.id, revision)?;
        *self.shared.identity.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.shared.catalogue().forget_files(self.shared.id, &[FILE.to_owned()], "audio/-")?;
        fs::write(&file, revision.text).map_err(StoreError::io("written", &file))
    }

    /// The (point, repetition) pairs that were not measured to the end, both from 0: repetition by repetition, so that
    /// an interrupted run has seen as many points as possible.
    pub fn missing(&self) -> Result<Vec<(u32, u32)>, StoreError> {
        self.shared.catalogue().missing(self.shared.id)
    }

    /// Begins a repetition that [`RunWriter::missing`] lists, with one trace per flow. What an earlier, interrupted
    /// measurement of it left is discarded now, so that summary, traces and audio always belong to one measurement.
    pub fn begin_repetition(
        &self,
        point: u32,
        repetition: u32,
        flows: &[&str],
    ) -> Result<RepetitionWriter, StoreError> {
        let shared = &self.shared;
        let stem = format!("p{point:03}-r{repetition:02}");
        let paths: Vec<String> = trace_names(&stem, flows);
        let entries = flows.iter().map(|flow| (*flow).to_owned()).zip(paths.clone()).collect();
        let key = RepetitionKey { run: shared.id, point, repetition };
        let begun = shared.catalogue().begin_repetitions(&[Begun { key, traces: entries }])?;
        let Some(old) = begun.into_iter().next().flatten() else {
            return Err(StoreError::NotMissing { run: shared.id, point, repetition });
        };
        if self.shared.uploads().is_some() {
            self.forget(&stem, &old.iter().chain(&paths).collect::<Vec<_>>())?;
        }
        for path in old.iter().chain(&paths) {
            let path = shared.directory.join(path);
            trace::remove(&path).map_err(StoreError::io("removed", &path))?;
            events::remove(&path).map_err(StoreError::io("removed", &path))?;
        }
        let audio = shared.directory.join("audio").join(&stem);
        remove_folder(&audio)?;

        let mut files = Vec::with_capacity(flows.len());
        let mut traces = Vec::with_capacity(flows.len());
        for (flow, path) in flows.iter().zip(paths) {
            let path = shared.directory.join(path);
            let keys = TraceKeys { run: shared.id, point, repetition, flow: (*flow).to_owned() };
            let file = TraceFile::create(path.clone(), keys).map_err(StoreError::io("created", &path))?;
            files.push(file.synced(shared.is_synced));
            traces.push(((*flow).to_owned(), path));
        }
        let writer = TraceWriter::start(files, Arc::clone(&shared.open));
        let writer = writer.map_err(StoreError::io("written", &shared.directory))?;
        let events = EventFiles::beside(traces.iter().map(|(_, path)| path.as_path()));
        let closed = ClosedRepetition { shared: Arc::clone(shared), point, repetition, traces };
        Ok(RepetitionWriter { writer, events, audio, closed })
    }

    /// Takes note that what the bucket has of a repetition is not what will be measured.
    fn forget(&self, stem: &str, traces: &[&String]) -> Result<(), StoreError> {
        let events = traces.iter().map(|path| inside(&events::beside(Path::new(path))));
        let files: Vec<String> = events.chain(traces.iter().map(|path| (*path).clone())).collect();
        self.shared.catalogue().forget_files(self.shared.id, &files, &format!("audio/{stem}"))
    }

    /// Enters what was measured of this run elsewhere, whose files lie in its folder, and ends it as it ended there.
    /// Returns its number.
    pub(crate) fn enter(mut self, run: &StoredRun) -> Result<u64, StoreError> {
        let id = self.shared.id;
        let inside = |path: &Path| {
            path.strip_prefix(&self.shared.directory).unwrap_or(path).to_string_lossy().into_owned()
        };
        let (mut begun, mut finished) = (Vec::new(), Vec::new());
        for (point, repetition) in run.points.iter().flat_map(|p| p.repetitions.iter().map(move |r| (p, r))) {
            let key = RepetitionKey { run: id, point: point.index, repetition: repetition.index };
            let traces = repetition.traces.iter().map(|(flow, path)| (flow.clone(), inside(path))).collect();
            begun.push(Begun { key, traces });
            if let Some(summary) = &repetition.summary {
                let audio = repetition.audio.iter().map(|path| inside(path)).collect();
                let summary = serde_json::to_string(summary)?;
                finished.push(Finished { key, partial: repetition.partial, summary, audio });
            }
        }
        let mut catalogue = self.shared.catalogue();
        catalogue.begin_repetitions(&begun)?;
        catalogue.finish_repetitions(&finished)?;
        for tag in &run.info.tags {
            catalogue.tag(id, tag, true)?;
        }
        let status = match run.info.status {
            Status::Running => Status::Partial,
            status => status,
        };
        catalogue.ended(id, status, false, run.info.finished.unwrap_or(run.info.started))?;
        drop(catalogue);
        self.finished = true;
        // What the bucket does not take now is brought when the store is opened next.
        let _ = self.shared.bring_the_rest();
        Ok(id)
    }

    /// Ends the run and returns it as it is stored. [`Status::Complete`] is for a run, or a part of one, of which nothing is missing. As
    /// [`finish_telling`](RunWriter::finish_telling) with nobody to be told.
    pub fn finish(self, status: Status) -> Result<RunInfo, StoreError> {
        self.finish_telling(status, &|_| {})
    }

    /// Ends the run and returns it as it is stored. Where hosts share files, waits until they have those of this run;
    /// `warn` is told why they have not, if the bucket takes nothing for half a minute: then they are brought there when
    /// the store is next opened on this host.
    pub fn finish_telling(mut self, status: Status, warn: &dyn Fn(&str)) -> Result<RunInfo, StoreError> {
        self.finished = true;
        self.shared.end(status)?;
        if let Err(why) = self.shared.bring_the_rest() {
            let id = self.shared.id;
            warn(&format!(
                "{why}. Run {id} is complete on this host; its files will be uploaded when this store is next \
                opened here"
            ));
        }
        self.shared.info()
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody is left to tell; if it fails, the next opening of the store does it.
            let _ = self.shared.end(Status::Partial);
        }
    }
}

impl Shared {
    fn info(&self) -> Result<RunInfo, StoreError> {
        self.catalogue().info(self.id)?.ok_or_else(|| self.gone())
    }

    fn gone(&self) -> StoreError {
        StoreError::NoSuchRun { asked: self.id.to_string(), store: self.store.clone(), close: vec![] }
    }

    /// Read once: a run may have many points, and take over many batches.
    fn identity(&self) -> Result<Arc<Identity>, StoreError> {
        let mut identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = &*identity {
            return Ok(Arc::clone(identity));
        }
        let StoredRun { info, axes, .. } = self.catalogue().outline(self.id)?.ok_or_else(|| self.gone())?;
        let known = identity.insert(Arc::new(Identity {
            experiment_hash: info.experiment_hash,
            backend: info.backend,
            version: info.version,
            axes: axes.iter().map(|axis| axis.values.len().max(1)).collect(),
        }));
        Ok(Arc::clone(known))
    }

    /// Waits until the bucket has the run's folder.
    fn bring_the_rest(&self) -> Result<(), String> {
        let uploads = self.uploads().take();
        uploads.map_or(Ok(()), Uploads::finish)
    }

    fn end(&self, status: Status) -> Result<(), StoreError> {
        let mut catalogue = self.catalogue();
        // A trace that is still being written is not touched: its writer holds the lock, and closes it.
        let idle = self.open.load(Ordering::Relaxed) == 0;
        let whole = idle && recovery::repair_traces(&mut **catalogue, self.id, &self.directory)?;
        catalogue.ended(self.id, status, !whole, Timestamp::now())
    }

    fn uploads(&self) -> MutexGuard<'_, Option<Uploads>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalogue(&self) -> MutexGuard<'_, Box<dyn Catalogue>> {
        // A panic in the middle of a transaction has rolled it back.
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One repetition as it is measured. Takes records without ever failing or waiting for more than memory; what goes wrong
/// is kept and told by [`RepetitionWriter::check`], `sync` and `close`. Dropped without `close`, it leaves a partial
/// repetition with readable traces.
pub struct RepetitionWriter {
    writer: TraceWriter,
    events: EventFiles,
    audio: PathBuf,
    closed: ClosedRepetition,
}

impl RepetitionWriter {
    /// Where received audio belongs. The folder does not exist yet.
    pub fn audio_directory(&self) -> PathBuf {
        self.audio.clone()
    }

    /// The first thing that went wrong so far. Records after it are lost; those before it are kept.
    pub fn check(&self) -> Result<(), StoreError> {
        self.writer.check().and_then(|()| self.events.check()).map_err(self.failed())
    }

    /// Returns when everything recorded so far survives a kill of this process. Happens by itself twice a second.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let failed = self.failed();
        self.writer.sync().map_err(failed)
    }

    /// Ends the traces: from now on they can be read.
    pub fn close(mut self) -> Result<ClosedRepetition, StoreError> {
        let failed = self.failed();
        self.writer.close().and_then(|_| self.events.check()).map_err(failed)?;
        Ok(self.closed)
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> StoreError + use<> {
        StoreError::io("written", &self.closed.shared.directory.join("traces"))
    }
}

impl TraceSink for RepetitionWriter {
    #[inline]
    fn write(&mut self, flow: usize, record: &Record) {
        self.writer.write(flow, record);
    }

    fn event(&mut self, flow: usize, event: &VoiceEvent) {
        self.events.write(flow, event);
    }
}

/// A repetition with readable traces that has no summary yet.
#[derive(Debug)]
pub struct ClosedRepetition {
    shared: Arc<Shared>,
    point: u32,
    repetition: u32,
    traces: Vec<(String, PathBuf)>,
}

impl ClosedRepetition {
    /// The trace of each flow, in the order of the flows, by the flow's name.
    pub fn traces(&self) -> &[(String, PathBuf)] {
        &self.traces
    }

    /// Stores the summary and where the received audio is. A partial summary leaves the repetition among the missing.
    pub fn finish(self, summary: &RepetitionSummary, audio: &[PathBuf]) -> Result<(), StoreError> {
        let json = serde_json::to_string(summary)?;
        // A number that is none would be written and never read again.
        serde_json::from_str::<RepetitionSummary>(&json)?;
        let directory = &self.shared.directory;
        let audio = audio.iter().map(|path| path.strip_prefix(directory).unwrap_or(path));
        let audio: Vec<String> = audio.map(|path| path.to_string_lossy().into_owned()).collect();
        let key = RepetitionKey { run: self.shared.id, point: self.point, repetition: self.repetition };
        let finished = Finished { key, partial: summary.partial, summary: json, audio: audio.clone() };
        self.shared.catalogue().finish_repetitions(&[finished])?;
        if let Some(uploads) = &*self.shared.uploads() {
            let traces = self.traces.iter().map(|(_, path)| path.clone());
            let events = self.traces.iter().map(|(_, path)| events::beside(path));
            let there = traces.chain(events.filter(|path| path.exists()));
            let there = there.map(|path| inside(path.strip_prefix(directory).unwrap_or(&path)));
            uploads.add(there.chain(audio));
        }
        Ok(())
    }
}

/// A path in the run's folder as the catalogue has it.
fn inside(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The traces' paths in the run's folder, all different.
fn trace_names(stem: &str, flows: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(flows.len());
    for (place, flow) in flows.iter().enumerate() {
        let plain =
            Path::new("traces").join(format!("{stem}-{}.parquet", slug(flow))).to_string_lossy().into_owned();
        let taken = names.contains(&plain);
        names.push(if taken { format!("traces/{stem}-{}-flow{place}.parquet", slug(flow)) } else { plain });
    }
    names
}

//! State that all handlers share.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use trunkline_experiment::Experiment;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_runner::WireMeans;
use trunkline_store::{Store, StoredRun};

use crate::access::Access;
use crate::answers::Answers;
use crate::api::{ApiError, Backend, MAIN_FILE};
use crate::files::ServedFiles;
use crate::jobs::Jobs;
use crate::predict::Predictions;

/// Maximum number of simultaneous watchers.
const MOST_WATCHERS: usize = 256;

/// State that all handlers share.
#[derive(Debug)]
pub(crate) struct App {
    /// The runs.
    pub(crate) store: Store,
    /// Their place, for people.
    pub(crate) place: String,
    /// The folder of the files that experiments name.
    pub(crate) files: PathBuf,
    /// The folder of this server's identity and of its agents.
    pub(crate) folder: PathBuf,
    /// This program, which is started again for the far end of what is measured live.
    pub(crate) program: PathBuf,
    /// With what wires are made, or why none can be.
    pub(crate) wire: Result<WireMeans, String>,
    /// The machine in a sentence.
    pub(crate) machine: String,
    /// Access control.
    pub(crate) access: Access,
    /// The jobs.
    pub(crate) jobs: Jobs,
    /// The simulations for drawings.
    pub(crate) predictions: Predictions,
    /// Moments of runs that are simulated again.
    pub(crate) rewinds: Predictions,
    /// Answers of runs, for lists.
    pub(crate) answers: Answers,
    /// Places for watchers.
    pub(crate) watchers: Arc<Semaphore>,
    /// True once the server is shutting down.
    pub(crate) closing: watch::Sender<bool>,
}

/// What handlers are given.
pub(crate) type Shared = axum::extract::State<Arc<App>>;

impl App {
    pub(crate) fn new(options: crate::Options, access: Access) -> App {
        let jobs = Jobs::new(options.store.directory());
        App {
            store: options.store,
            place: options.place,
            files: options.files,
            folder: options.folder,
            program: options.program,
            wire: options.wire,
            machine: trunkline_live::machine_description(),
            access,
            jobs,
            predictions: Predictions::new(),
            rewinds: Predictions::new(),
            answers: Answers::default(),
            watchers: Arc::new(Semaphore::new(MOST_WATCHERS)),
            closing: watch::Sender::new(false),
        }
    }

    /// Does what may block (the store, files, computing) on a thread for that.
    pub(crate) async fn blocking<R: Send + 'static>(
        self: &Arc<App>,
        work: impl FnOnce(&App) -> Result<R, ApiError> + Send + 'static,
    ) -> Result<R, ApiError> {
        let app = Arc::clone(self);
        match tokio::task::spawn_blocking(move || work(&app)).await {
            Ok(done) => done,
            Err(_) => Err(ApiError::environment("this request hit a bug in the server; please report it")),
        }
    }

    /// Validates an experiment file that a client sent.
    pub(crate) fn experiment(&self, text: &str) -> Result<Experiment, ApiError> {
        Experiment::parse(text, MAIN_FILE, &self.files()).map_err(|problems| ApiError::problems(&problems))
    }

    /// The experiment of a stored run. What it names is what the run has kept. Of a run that has kept nothing it is where it
    /// was, if only users of this machine can ask for it; others get at the server's own files.
    pub(crate) fn stored_experiment(&self, run: &StoredRun) -> Result<Experiment, ApiError> {
        trunkline_runner::stored(&self.store, run, MAIN_FILE, &self.files())
            .map_err(|problems| ApiError::problems(&problems))
    }

    /// The files that experiments may name.
    pub(crate) fn files(&self) -> ServedFiles {
        ServedFiles { folder: self.files.clone() }
    }

    /// Why nothing can be run on a backend here; `None` if it can.
    pub(crate) fn unavailable(&self, backend: Backend) -> Option<String> {
        match (backend, &self.wire) {
            (Backend::Wire, Err(why)) => Some(why.clone()),
            _ => None,
        }
    }

    /// How `wire` and `live` measure.
    pub(crate) fn live_options(&self) -> LiveOptions {
        let program = self.program.clone();
        LiveOptions::new(FarEnd::Process { program, arguments: vec!["far-end".into()] })
    }
}

/// As many simulations at once as there are cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

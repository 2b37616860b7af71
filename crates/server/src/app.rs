//! What all handlers share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use trunkline_experiment::{Experiment, Files, FilesError};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_runner::{DirectoryFiles, WireMeans};
use trunkline_store::{Store, StoredRun};

use crate::access::Access;
use crate::api::{ApiError, Backend, MAIN_FILE};
use crate::jobs::Jobs;

/// So many may watch at once.
const MOST_WATCHERS: usize = 256;

/// What all handlers share.
#[derive(Debug)]
pub(crate) struct App {
    /// The runs.
    pub(crate) store: Store,
    /// Where they are stored, as people say it.
    pub(crate) place: String,
    /// Where the files are that experiments name.
    pub(crate) files: PathBuf,
    /// Where this server's identity is kept, and what it knows of agents.
    pub(crate) folder: PathBuf,
    /// This program, which is started again for the far end of what is measured live.
    pub(crate) program: PathBuf,
    /// With what wires are made, or why none can be.
    pub(crate) wire: Result<WireMeans, String>,
    /// The machine in a sentence.
    pub(crate) machine: String,
    /// Who may come in.
    pub(crate) access: Access,
    /// What is executed.
    pub(crate) jobs: Jobs,
    /// Places for watchers.
    pub(crate) watchers: Arc<Semaphore>,
    /// True once the server is being ended.
    pub(crate) closing: watch::Sender<bool>,
}

/// What handlers are given.
pub(crate) type Shared = axum::extract::State<Arc<App>>;

impl App {
    pub(crate) fn new(options: crate::Options, access: Access) -> App {
        App {
            store: options.store,
            place: options.place,
            files: options.files,
            folder: options.folder,
            program: options.program,
            wire: options.wire,
            machine: trunkline_live::machine_description(),
            access,
            jobs: Jobs::new(),
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
            Err(_) => Err(ApiError::environment("this request hit a defect of the server: please report it")),
        }
    }

    /// Validates an experiment file that a client sent.
    pub(crate) fn experiment(&self, text: &str) -> Result<Experiment, ApiError> {
        Experiment::parse(text, MAIN_FILE, &self.files()).map_err(|problems| ApiError::problems(&problems))
    }

    /// The experiment of a stored run. Its files are where they were when it was run, if only users of this machine can ask
    /// for them; others get at the server's own files.
    pub(crate) fn stored_experiment(&self, run: &StoredRun) -> Result<Experiment, ApiError> {
        let parsed = match self.access.is_open() {
            true => Experiment::parse(&run.text, MAIN_FILE, &DirectoryFiles::beside(&run.info.file)),
            false => Experiment::parse(&run.text, MAIN_FILE, &self.files()),
        };
        parsed.map_err(|problems| ApiError::problems(&problems))
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

/// Files of one folder and below: a client gets at no others.
#[derive(Clone, Debug)]
pub(crate) struct ServedFiles {
    folder: PathBuf,
}

impl Files for ServedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let refused = |why: String| FilesError::new(why);
        let folder = self.folder.canonicalize();
        let folder = folder.map_err(|e| refused(format!("the folder of files cannot be read: {e}")))?;
        let found = folder.join(Path::new(path)).canonicalize().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => refused(format!("does not exist in `{}`", folder.display())),
            _ => refused(format!("cannot be read: {e}")),
        })?;
        if !found.starts_with(&folder) {
            return Err(refused(format!(
                "lies outside of the folder whose files the server uses, `{}`: put it there, or choose another folder with \
                 `--files`",
                folder.display()
            )));
        }
        std::fs::read(&found).map_err(|e| refused(format!("cannot be read: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("served");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(place.path().join("secret"), "no").unwrap();
        std::fs::write(folder.join("speech.wav"), "yes").unwrap();
        let files = ServedFiles { folder: folder.clone() };
        assert_eq!(files.read("speech.wav").unwrap(), b"yes");
        for outside in ["../secret", place.path().join("secret").to_str().unwrap(), "../served/../secret"] {
            assert!(files.read(outside).unwrap_err().to_string().contains("outside"), "{outside}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
            assert!(files.read("link").is_err());
        }
        assert!(files.read("missing").unwrap_err().to_string().contains("does not exist"));
    }
}

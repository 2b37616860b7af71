//! What all handlers share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_experiment::{Experiment, Files, FilesError};
use trunkline_store::Store;

use crate::api::{ApiError, MAIN_FILE};
use crate::jobs::Jobs;

/// What all handlers share.
#[derive(Debug)]
pub struct App {
    /// The runs.
    pub store: Store,
    /// Where the files are that experiments name.
    pub files: PathBuf,
    /// What is executed.
    pub(crate) jobs: Jobs,
}

/// What handlers are given.
pub(crate) type Shared = axum::extract::State<Arc<App>>;

impl App {
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

    /// The files that experiments may name.
    pub(crate) fn files(&self) -> ServedFiles {
        ServedFiles { folder: self.files.clone() }
    }
}

/// Files of one folder and below: a client gets at no others.
#[derive(Clone, Debug)]
pub(crate) struct ServedFiles {
    folder: PathBuf,
}

impl Files for ServedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let refused = |why: String| FilesError::new(why);
        let folder = self
            .folder
            .canonicalize()
            .map_err(|e| refused(format!("the folder of files cannot be read: {e}")))?;
        let inside = folder.join(Path::new(path));
        let found = inside.canonicalize().map_err(|e| match e.kind() {
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

//! Reading an experiment file and what it names.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use trunkline_experiment::{Experiment, Files, FilesError, Problems, Setting};
use trunkline_store::{Store, StoredRun};

/// The folder of learned paths, once the program has set it.
static LIBRARY: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder of learned paths, once: a file that is not beside an experiment file is read there.
pub fn set_library(folder: PathBuf) {
    // The first one stays.
    let _ = LIBRARY.set(folder);
}

/// The folder of learned paths.
pub fn library() -> Option<&'static Path> {
    LIBRARY.get().map(PathBuf::as_path)
}

/// A file of the folder of learned paths, by its plain name, or a draw of a path.
pub fn learned(path: &str) -> Option<Vec<u8>> {
    let is_one = is_of_library(Path::new(path));
    library().filter(|_| is_one).and_then(|folder| std::fs::read(folder.join(path)).ok())
}

/// Files beside an experiment file: its relative paths start in its folder. Plain names that are not there, and those of draws, are
/// those of learned paths.
#[derive(Clone, Debug)]
pub struct DirectoryFiles {
    directory: PathBuf,
}

impl DirectoryFiles {
    /// Files beside the experiment file `file`.
    pub fn beside(file: &Path) -> DirectoryFiles {
        DirectoryFiles { directory: file.parent().unwrap_or(Path::new("")).to_path_buf() }
    }
}

impl Files for DirectoryFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match std::fs::read(self.directory.join(path)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                learned(path).ok_or_else(|| FilesError::new(describe(&e)))
            }
            read => read.map_err(|e| FilesError::new(describe(&e))),
        }
    }
}

/// True for the name of a file of a learned path, or of a draw of it: `home.draws/01.toml`.
fn is_of_library(path: &Path) -> bool {
    let mut parts = path.components().map(|part| matches!(part, Component::Normal(_)));
    let is_draw = path.parent().and_then(Path::extension).is_some_and(|extension| extension == "draws");
    parts.clone().count() <= 1 + usize::from(is_draw) && parts.all(|is_name| is_name)
}

/// Why an experiment file could not be loaded: bad input, exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file itself cannot be read.
    #[error("{}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The file says something wrong, or names a file that does.
    #[error("{0}")]
    Invalid(Problems),
}

/// Reads and validates an experiment file, in which some keys get other values, and everything it names.
///
/// # Errors
/// If it cannot be read, or with everything that is wrong with it.
pub fn load(path: &Path, settings: &[Setting]) -> Result<Experiment, LoadError> {
    let file = std::fs::File::open(path);
    let file = file.map_err(|e| LoadError::Unreadable { path: path.to_path_buf(), problem: describe(&e) })?;
    load_from(file, path, &DirectoryFiles::beside(path), settings)
}

/// The same of what `from` gives, which is called `path` in problems; `files` reads what it names.
///
/// # Errors
/// As [`load`].
pub fn load_from(
    mut from: impl std::io::Read,
    path: &Path,
    files: &dyn Files,
    settings: &[Setting],
) -> Result<Experiment, LoadError> {
    let unreadable = |problem: String| LoadError::Unreadable { path: path.to_path_buf(), problem };
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| unreadable(describe(&e)))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        unreadable(format!(
            "is not UTF-8 text (byte {}); an experiment file is TOML",
            e.utf8_error().valid_up_to()
        ))
    })?;
    Experiment::parse_with(&text, &path.display().to_string(), files, settings).map_err(LoadError::Invalid)
}

/// The experiment of a stored run, which is called `file` in problems. What it names is what the run has kept; of a run that
/// has kept nothing, `otherwise` reads it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn stored(
    store: &Store,
    run: &StoredRun,
    file: &str,
    otherwise: &dyn Files,
) -> Result<Experiment, Problems> {
    let read = |path: &str| match store.named(&run.info, path) {
        Ok(Some(kept)) => Ok(kept),
        Ok(None) => otherwise.read(path),
        Err(error) => Err(FilesError::new(error.to_string())),
    };
    Experiment::parse(&run.text, file, &Reading(read))
}

/// What an experiment names as it was read once, and anything else beside its file: a link that is changed while it runs may
/// name more.
#[cfg(target_os = "linux")]
pub(crate) fn named(experiment: &Experiment, file: &Path) -> impl Files + Send + Sync + use<> {
    let (files, beside) = (experiment.files.clone(), DirectoryFiles::beside(file));
    Reading(move |path: &str| match files.by_path().get(path) {
        Some(known) => Ok(known.clone()),
        None => beside.read(path),
    })
}

/// Files that a function reads.
struct Reading<F>(F);

impl<F: Fn(&str) -> Result<Vec<u8>, FilesError>> Files for Reading<F> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        (self.0)(path)
    }
}

/// An IO error in words: "does not exist" instead of "No such file or directory (os error 2)".
fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "may not be read by this user".to_owned(),
        std::io::ErrorKind::IsADirectory => "is a folder, not a file".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

//! Reading an experiment file and what it names.

use std::path::{Path, PathBuf};

use trunkline_experiment::{Experiment, Files, FilesError, Problems};

/// Files beside an experiment file: its relative paths start in its folder.
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
        std::fs::read(self.directory.join(path)).map_err(|e| FilesError::new(describe(&e)))
    }
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

/// Reads and validates an experiment file and everything it names.
pub fn load(path: &Path) -> Result<Experiment, LoadError> {
    let unreadable = |problem: String| LoadError::Unreadable { path: path.to_path_buf(), problem };
    let bytes = std::fs::read(path).map_err(|e| unreadable(describe(&e)))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        unreadable(format!(
            "is not UTF-8 text (byte {}); an experiment file is TOML",
            e.utf8_error().valid_up_to()
        ))
    })?;
    parse_stored(&text, path)
}

/// Validates a text that was stored from the file at `path`; what it names is read beside that path.
pub fn parse_stored(text: &str, path: &Path) -> Result<Experiment, LoadError> {
    Experiment::parse(text, &path.display().to_string(), &DirectoryFiles::beside(path))
        .map_err(LoadError::Invalid)
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

//! The files that experiments name: those of one folder, and those of the examples, which are part of the program.

use std::path::{Path, PathBuf};

use trunkline_experiment::{Files, FilesError};
use trunkline_runner::DirectoryFiles;

/// What the examples name, so that each of them can be run wherever the server was started.
const OF_EXAMPLES: [(&str, &[u8]); 4] = [
    ("speech.wav", include_bytes!("../../../examples/speech.wav")),
    ("cellular.down", include_bytes!("../../../examples/cellular.down")),
    ("cellular.up", include_bytes!("../../../examples/cellular.up")),
    (
        "../papers/weaver1992/hosts/station.toml",
        include_bytes!("../../../papers/weaver1992/hosts/station.toml"),
    ),
];

/// The files that clients may name: those of `folder` and below.
pub(crate) fn served(folder: &Path) -> WithExamples<ServedFiles> {
    WithExamples { folder: folder.to_path_buf(), files: ServedFiles { folder: folder.to_path_buf() } }
}

/// The files that the experiment file `file` names.
pub(crate) fn beside(file: &Path) -> WithExamples<DirectoryFiles> {
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    WithExamples { folder, files: DirectoryFiles::beside(file) }
}

/// Files of a folder; what the examples name is there too, unless the folder has a file of that name.
#[derive(Clone, Debug)]
pub(crate) struct WithExamples<F> {
    folder: PathBuf,
    files: F,
}

impl<F: Files> Files for WithExamples<F> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let read = self.files.read(path);
        let example = OF_EXAMPLES.iter().find(|(name, _)| *name == path);
        match example {
            Some((_, bytes)) if read.is_err() && self.has_no(path) => Ok(bytes.to_vec()),
            _ => read,
        }
    }
}

impl<F> WithExamples<F> {
    /// Whether the folder has no such file, not even one that may not be read.
    fn has_no(&self, path: &str) -> bool {
        path.starts_with("../") || matches!(self.folder.join(path).try_exists(), Ok(false))
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

    #[test]
    fn what_the_examples_name_is_there_unless_the_folder_has_its_own() {
        let place = tempfile::tempdir().unwrap();
        let (served, beside) = (served(place.path()), beside(&place.path().join("experiment.toml")));
        for files in [&served as &dyn Files, &beside] {
            assert!(files.read("speech.wav").unwrap().starts_with(b"RIFF"));
            assert!(!files.read("cellular.down").unwrap().is_empty());
            assert!(!files.read("cellular.up").unwrap().is_empty());
            assert!(!files.read("../papers/weaver1992/hosts/station.toml").unwrap().is_empty());
            // By exactly these names.
            for other in ["./speech.wav", "../speech.wav", "sub/speech.wav", "SPEECH.WAV"] {
                assert!(files.read(other).is_err(), "{other}");
            }
        }
        std::fs::write(place.path().join("speech.wav"), "mine").unwrap();
        for files in [&served as &dyn Files, &beside] {
            assert_eq!(files.read("speech.wav").unwrap(), b"mine");
        }
    }
}

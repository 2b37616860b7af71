//! The files that experiments name: those of one folder, and those of the examples and studies, which are part of the program.

use std::io::Read;
use std::path::{Path, PathBuf};

use trunkline_experiment::{Files, FilesError};

/// What the examples name, so that each of them can be run wherever the server was started.
const OF_EXAMPLES: [(&str, &[u8]); 3] = [
    ("speech.wav", include_bytes!("../../../examples/speech.wav")),
    ("cellular.down", include_bytes!("../../../examples/cellular.down")),
    ("cellular.up", include_bytes!("../../../examples/cellular.up")),
];

/// The largest file that an experiment may name: an hour of stereo sound.
const LARGEST: u64 = 1 << 30;

/// Files of one folder and below: a client gets at no others. What the examples name and the library of learned paths are there
/// too, unless the folder has a file of that name.
#[derive(Clone, Debug)]
pub(crate) struct ServedFiles {
    pub(crate) folder: PathBuf,
}

impl Files for ServedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let read = self.read_served(path);
        let example = OF_EXAMPLES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes);
        match example.or_else(|| of_study(path)) {
            _ if read.is_ok() || !self.has_no(path) => read,
            Some(bytes) => Ok(bytes.to_vec()),
            None => trunkline_runner::learned(path).map_or(read, Ok),
        }
    }
}

/// A file of a study as an example names it: `../papers/weaver1992/hosts/station.toml`.
fn of_study(path: &str) -> Option<&'static [u8]> {
    let (study, file) = path.strip_prefix("../papers/")?.split_once('/')?;
    Some(trunkline_papers::find(study)?.file(file)?.as_bytes())
}

impl ServedFiles {
    /// Whether the folder has no such file, not even one that may not be read.
    fn has_no(&self, path: &str) -> bool {
        path.starts_with("../") || matches!(self.folder.join(path).try_exists(), Ok(false))
    }

    fn read_served(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let refused = |why: String| FilesError::new(why);
        let unreadable = |e: std::io::Error| refused(format!("cannot be read: {e}"));
        let folder = self.folder.canonicalize();
        let folder = folder.map_err(|e| refused(format!("the folder of files cannot be read: {e}")))?;
        let found = folder.join(Path::new(path)).canonicalize().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => refused(format!("does not exist in `{}`", folder.display())),
            _ => unreadable(e),
        })?;
        if !found.starts_with(&folder) {
            return Err(refused(format!(
                "is outside the folder whose files the server uses, `{}`: put it there, or choose another \
                folder with `--files`",
                folder.display()
            )));
        }
        // Devices, pipes and what is longer than it says would be read without end.
        if !found.metadata().map_err(unreadable)?.is_file() {
            return Err(refused("is not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(&found)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST {
            return Err(refused(format!("exceeds the maximum file size of {LARGEST} bytes")));
        }
        Ok(bytes)
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
            // Nobody writes into it: it would be waited for.
            std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
            assert!(files.read("pipe").unwrap_err().to_string().contains("not a regular file"));
        }
        assert!(files.read("missing").unwrap_err().to_string().contains("does not exist"));
    }

    #[test]
    fn what_the_examples_name_is_there_unless_the_folder_has_its_own() {
        let place = tempfile::tempdir().unwrap();
        let files = ServedFiles { folder: place.path().to_path_buf() };
        assert!(files.read("speech.wav").unwrap().starts_with(b"RIFF"));
        assert!(!files.read("cellular.down").unwrap().is_empty());
        assert!(!files.read("cellular.up").unwrap().is_empty());
        assert!(!files.read("../papers/weaver1992/hosts/station.toml").unwrap().is_empty());
        assert!(!files.read("../papers/hawley1989/hosts/crab.toml").unwrap().is_empty());
        // By exactly these names.
        for other in ["../papers/hawley1989/../hosts/crab.toml", "../papers/nothing/hosts/crab.toml"] {
            assert!(files.read(other).is_err(), "{other}");
        }
        for other in ["./speech.wav", "../speech.wav", "sub/speech.wav", "SPEECH.WAV"] {
            assert!(files.read(other).is_err(), "{other}");
        }
        std::fs::write(place.path().join("speech.wav"), "mine").unwrap();
        assert_eq!(files.read("speech.wav").unwrap(), b"mine");
    }
}

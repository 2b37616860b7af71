//! Kernels by name: those of `trunkline kernel build`, in one folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The longest name.
const MAX_NAME: usize = 64;

/// The means to start kernels.
#[derive(Clone, Debug)]
pub struct KernelMeans {
    /// The program that is their first process, which calls [`init::run`](crate::init::run).
    pub init: PathBuf,
    /// The folder of named kernels.
    pub folder: Option<PathBuf>,
}

impl KernelMeans {
    /// The path of a kernel, as an experiment file in the folder `beside` names it: a path relative to that folder, or the name
    /// of a kernel that was built. A file in that folder comes first.
    pub fn locate(&self, kernel: &str, beside: &Path) -> PathBuf {
        let own = beside.join(kernel);
        let named = self.folder.as_ref().filter(|_| is_name(kernel) && !own.exists());
        named.map(|folder| folder.join(kernel)).filter(|named| named.exists()).unwrap_or(own)
    }
}

/// True for the name of a kernel: letters, digits, `.`, `-` and `_`, beginning with a letter or digit.
pub fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(is_part)
}

/// A kernel that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// The time of its build.
    pub time: SystemTime,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The kernels in a folder, by name; none if there is no such folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn list(folder: &Path) -> io::Result<Vec<Built>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut built = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link may lead nowhere.
        let Ok(about) = fs::metadata(entry.path()) else { continue };
        if is_name(&name) && about.is_file() {
            built.push(Built { name, path: entry.path(), time: about.modified()?, bytes: about.len() });
        }
    }
    built.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        for name in ["linux-6.1", "a", "9_x"] {
            assert!(is_name(name), "{name}");
        }
        for path in ["", ".", "..", ".build-x", "a/b", "../a", "/a", "a b", "ä", &"a".repeat(65)] {
            assert!(!is_name(path), "{path}");
        }
    }

    #[test]
    fn a_file_beside_the_experiment_comes_before_a_kernel_of_that_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let (beside, kernels) = (folder.path().join("beside"), folder.path().join("kernels"));
        assert_eq!(list(&kernels).expect("a missing folder is empty"), []);
        for (place, name) in
            [(&beside, "own"), (&kernels, "own"), (&kernels, "b"), (&kernels, "a"), (&kernels, ".x")]
        {
            fs::create_dir_all(place).expect("a folder");
            fs::write(place.join(name), name).expect("a file");
        }
        let means = KernelMeans { init: PathBuf::new(), folder: Some(kernels.clone()) };
        assert_eq!(means.locate("own", &beside), beside.join("own"));
        assert_eq!(means.locate("a", &beside), kernels.join("a"));
        assert_eq!(means.locate("c", &beside), beside.join("c"));
        assert_eq!(means.locate("./a", &beside), beside.join("./a"));
        assert_eq!(means.locate("/a", &beside), Path::new("/a"));
        let names: Vec<String> =
            list(&kernels).expect("it can be read").into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a", "b", "own"]);
    }
}

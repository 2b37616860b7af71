//! The example files, and files that tests name.

#![allow(dead_code, reason = "each test file uses its part")]

use trunkline_experiment::{Files, FilesError};

/// The text of a file in `examples/`.
pub(crate) fn example(name: &str) -> String {
    String::from_utf8(read(name).unwrap()).unwrap()
}

fn read(name: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, reason = "a test may read the examples")]
    std::fs::read(path).ok()
}

/// Files in `examples/`.
pub(crate) struct Beside;

impl Files for Beside {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        read(path).ok_or_else(|| FilesError::new("does not exist"))
    }
}

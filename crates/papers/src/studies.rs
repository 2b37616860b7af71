//! The studies of the program.

use std::sync::LazyLock;

use crate::read::{FILE, read};
use crate::study::{Embedded, Folder, Study};

/// The files of all folders of `papers/`.
static FILES: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// All studies, by year.
///
/// # Panics
/// If the file of a study is wrong: a defect of the program, which a test finds.
pub fn studies() -> &'static [Study] {
    static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
        let mut studies: Vec<Study> = folders()
            .map(|folder| read(folder).unwrap_or_else(|problems| panic!("{problems}; please report this")))
            .collect();
        studies.sort_by_key(|study| study.year);
        studies
    });
    &STUDIES
}

/// The folders that hold a study.
fn folders() -> impl Iterator<Item = Folder> {
    let studies = FILES.iter().filter_map(|file| file.path.strip_suffix(FILE)?.strip_suffix('/'));
    studies.map(|study| Folder { study, files: FILES })
}

/// The study of this name.
pub fn find(name: &str) -> Option<&'static Study> {
    studies().iter().find(|study| study.name == name)
}

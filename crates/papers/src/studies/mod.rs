//! The studies, a module each.

mod hawley1989;
mod lamont1998;
mod schiavoni2013;
mod weaver1992;

use crate::study::Study;

/// All studies, by year.
pub const STUDIES: &[&Study] =
    &[&hawley1989::STUDY, &weaver1992::STUDY, &lamont1998::STUDY, &schiavoni2013::STUDY];

/// The study of this name.
pub fn find(name: &str) -> Option<&'static Study> {
    STUDIES.iter().copied().find(|study| study.name == name)
}

//! Changes of a text at places of it.

use core::ops::Range;

/// A range of bytes and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) at: Range<usize>,
    pub(super) with: String,
}

impl Splice {
    pub(super) fn new(at: Range<usize>, with: impl Into<String>) -> Splice {
        Splice { at, with: with.into() }
    }

    /// Puts a text between two bytes.
    pub(super) fn insert(at: usize, with: impl Into<String>) -> Splice {
        Splice::new(at..at, with)
    }
}

/// The text with all of them, which do not overlap; those at the same place in their order.
pub(super) fn spliced(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| (splice.at.start, splice.at.end));
    splices.dedup();
    let mut new = String::with_capacity(text.len() + splices.iter().map(|s| s.with.len()).sum::<usize>());
    let mut done = 0;
    for Splice { at, with } in &splices {
        new.push_str(text.get(done..at.start.max(done)).unwrap_or_default());
        new.push_str(with);
        done = at.end.max(done);
    }
    new.push_str(text.get(done..).unwrap_or_default());
    new
}

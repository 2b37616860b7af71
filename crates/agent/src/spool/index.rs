//! Which chunks of a part there are and where, without the files themselves.

use std::collections::VecDeque;

use trunkline_core::Bytes;

use super::segment::Entry;

/// A segment is closed when it has become this long; what was acknowledged is deleted segment by segment.
const ROLL: Bytes = Bytes(4 << 20);

/// The chunks of a part, in segments that are named after their first chunk. The last segment takes new chunks; it is never
/// deleted alone, since it says how far the numbers have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    segments: VecDeque<Segment>,
    /// Chunks below this are acknowledged.
    acknowledged: u64,
    /// Observations in deleted segments.
    gone: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    first: u64,
    entries: Vec<Entry>,
    bytes: Bytes,
}

/// Where a chunk is or goes: the segment by its first chunk, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) entry: Entry,
}

impl Index {
    /// Takes a segment that was found, behind those that it has. False if it does not continue them: then it and what
    /// follows is of no use.
    pub(super) fn restore(&mut self, first: u64, entries: Vec<Entry>) -> bool {
        let continues = self.segments.is_empty() || first == self.next();
        if !continues || entries.first().is_some_and(|entry| entry.number != first) {
            return false;
        }
        self.acknowledged = self.acknowledged.max(if self.segments.is_empty() { first } else { 0 });
        let bytes = entries.iter().fold(Bytes::ZERO, |sum, entry| sum + entry.size());
        self.segments.push_back(Segment { first, entries, bytes });
        true
    }

    /// The number of the next chunk.
    pub(super) fn next(&self) -> u64 {
        self.segments.back().map_or(0, |last| last.first + last.entries.len() as u64)
    }

    /// The first chunk that is still kept; that of the next one if none is.
    pub(super) fn kept_from(&self) -> u64 {
        self.segments.front().map_or(0, |first| first.first)
    }

    /// What is kept.
    pub(super) fn bytes(&self) -> Bytes {
        self.segments.iter().fold(Bytes::ZERO, |sum, segment| sum + segment.bytes)
    }

    /// How many observations are in the chunks that there were or are.
    pub(super) fn observations(&self) -> u64 {
        let kept = self.segments.iter().flat_map(|segment| &segment.entries);
        self.gone + kept.map(|entry| u64::from(entry.observations)).sum::<u64>()
    }

    /// Where the next chunk goes. It takes the place with [`push`](Index::push) once it is written.
    pub(super) fn place(&self, length: u32, observations: u32) -> Place {
        let number = self.next();
        let (segment, offset) = match self.segments.back() {
            Some(last) if last.bytes < ROLL => (last.first, last.bytes.count()),
            _ => (number, 0),
        };
        let offset = offset + super::segment::HEAD as u64;
        Place { segment, entry: Entry { number, offset, length, observations } }
    }

    /// A chunk stands where it was told to go.
    pub(super) fn push(&mut self, Place { segment, entry }: Place) {
        if self.segments.back().is_none_or(|last| last.first != segment) {
            self.segments.push_back(Segment { first: segment, entries: Vec::new(), bytes: Bytes::ZERO });
        }
        if let Some(last) = self.segments.back_mut() {
            last.entries.push(entry);
            last.bytes += entry.size();
        }
    }

    /// Where a chunk is, if it is kept.
    pub(super) fn find(&self, number: u64) -> Option<Place> {
        let at = self.segments.partition_point(|segment| segment.first <= number).checked_sub(1)?;
        let segment = &self.segments[at];
        let entry = segment.entries.get(usize::try_from(number - segment.first).ok()?)?;
        Some(Place { segment: segment.first, entry: *entry })
    }

    /// Chunks up to this one are safe elsewhere. Gives the segments that can be deleted, with their bytes.
    pub(super) fn acknowledge(&mut self, through: u64) -> Vec<(u64, Bytes)> {
        self.acknowledged = self.acknowledged.max(through.saturating_add(1).min(self.next()));
        let mut over = Vec::new();
        while let [first, _, ..] = self.segments.make_contiguous()
            && first.first + first.entries.len() as u64 <= self.acknowledged
        {
            if let Some(segment) = self.segments.pop_front() {
                self.gone += segment.entries.iter().map(|entry| u64::from(entry.observations)).sum::<u64>();
                over.push((segment.first, segment.bytes));
            }
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(sizes: &[u32]) -> Index {
        let mut index = Index::default();
        for &size in sizes {
            index.push(index.place(size, 1));
        }
        index
    }

    proptest! {
        #[test]
        fn chunks_are_found_until_they_are_acknowledged_and_deleted(
            sizes in proptest::collection::vec(0..3_000_000u32, 1..30),
            acknowledged in proptest::collection::vec(0..40u64, 0..5),
        ) {
            let mut index = filled(&sizes);
            let mut highest = None;
            let mut deleted = Bytes::ZERO;
            let all = index.bytes();
            for through in acknowledged {
                highest = highest.max(Some(through));
                deleted = index.acknowledge(through).iter().fold(deleted, |sum, (_, bytes)| sum + *bytes);
            }
            prop_assert_eq!(index.next(), sizes.len() as u64);
            prop_assert_eq!(index.observations(), sizes.len() as u64);
            prop_assert_eq!(index.bytes() + deleted, all);
            for (number, size) in (0..).zip(&sizes) {
                let found = index.find(number);
                prop_assert_eq!(found.is_some(), number >= index.kept_from());
                prop_assert!(found.is_some() || highest.is_some_and(|highest| number <= highest), "deleted unasked");
                prop_assert!(found.is_none_or(|place| place.entry.number == number && place.entry.length == *size));
            }
            prop_assert_eq!(index.find(sizes.len() as u64), None);
        }

        #[test]
        fn what_was_found_is_what_was_there(sizes in proptest::collection::vec(0..3_000_000u32, 0..30)) {
            let index = filled(&sizes);
            let mut restored = Index::default();
            for segment in &index.segments {
                prop_assert!(restored.restore(segment.first, segment.entries.clone()));
            }
            prop_assert_eq!(&restored, &index);
            prop_assert!(sizes.is_empty() || !restored.restore(index.next() + 1, Vec::new()), "a gap");
        }
    }
}

//! The payloads that have arrived on one channel.

use std::collections::BTreeMap;
use std::ops::Range;

/// The payloads that have arrived on one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Payloads {
    bytes: Vec<u8>,
    places: BTreeMap<u32, Range<usize>>,
}

impl Payloads {
    /// Takes the payload of a message; that of a further copy is the same.
    pub(super) fn keep(&mut self, sequence: u32, payload: &[u8]) {
        let begin = self.bytes.len();
        if let std::collections::btree_map::Entry::Vacant(place) = self.places.entry(sequence) {
            self.bytes.extend_from_slice(payload);
            place.insert(begin..self.bytes.len());
        }
    }

    /// The payload of a message, if it has arrived.
    pub(super) fn of(&self, sequence: u32) -> Option<&[u8]> {
        self.bytes.get(self.places.get(&sequence)?.clone())
    }
}

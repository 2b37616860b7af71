//! A first-in, first-out store of datagrams in one piece of memory.

use std::collections::VecDeque;

use trunkline_core::Ecn;

/// Datagrams in order, limited by their bytes. Allocates only while it grows.
#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    limit: usize,
    bytes: Vec<u8>,
    /// Bytes at the front that have been taken.
    taken: usize,
    entries: VecDeque<(usize, Ecn)>,
}

impl Datagrams {
    /// An empty store for `limit` bytes.
    pub(crate) fn new(limit: usize) -> Datagrams {
        Datagrams { limit, bytes: Vec::new(), taken: 0, entries: VecDeque::new() }
    }

    /// Whether a datagram of `length` bytes fits: within the limit, or as the only one.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.is_empty() || self.bytes.len() - self.taken + length <= self.limit
    }

    /// Appends the datagram that `write` appends to the bytes.
    pub(crate) fn push(&mut self, ecn: Ecn, write: impl FnOnce(&mut Vec<u8>)) {
        self.compact();
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.entries.push_back((self.bytes.len() - start, ecn));
    }

    /// Appends the oldest datagram's bytes to `into` and forgets it.
    pub(crate) fn pop(&mut self, into: &mut Vec<u8>) -> Option<(usize, Ecn)> {
        let (length, ecn) = self.entries.pop_front()?;
        into.extend_from_slice(&self.bytes[self.taken..self.taken + length]);
        self.taken += length;
        Some((length, ecn))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether more than three quarters of the limit are used.
    pub(crate) fn is_nearly_full(&self) -> bool {
        (self.bytes.len() - self.taken) as u128 * 4 > self.limit as u128 * 3
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.taken = 0;
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> (usize, usize) {
        (self.bytes.capacity(), self.entries.capacity())
    }

    /// Makes the taken front free again once it is at least half of all: every byte is moved at most once on average.
    fn compact(&mut self) {
        if self.bytes.len() <= 2 * self.taken {
            self.bytes.copy_within(self.taken.., 0);
            self.bytes.truncate(self.bytes.len() - self.taken);
            self.taken = 0;
        }
    }
}

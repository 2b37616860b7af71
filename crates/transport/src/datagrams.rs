//! A first-in, first-out store of datagrams in one piece of memory.

use trunkline_core::Ecn;

/// Datagrams in order, limited by their bytes. Allocates only while it grows.
#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    limit: usize,
    bytes: Vec<u8>,
    /// Bytes at the front that have been taken.
    taken: usize,
    /// Lengths and ECN fields; those before `first` have been taken.
    entries: Vec<(usize, Ecn)>,
    first: usize,
}

impl Datagrams {
    /// An empty store for `limit` bytes.
    pub(crate) fn new(limit: usize) -> Datagrams {
        Datagrams { limit, bytes: Vec::new(), taken: 0, entries: Vec::new(), first: 0 }
    }

    /// Whether a datagram of `length` bytes fits: within the limit, or as the only one.
    #[inline]
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.is_empty() || self.bytes.len() - self.taken + length <= self.limit
    }

    /// Appends the datagram that `write` appends to the bytes.
    #[inline]
    pub(crate) fn push(&mut self, ecn: Ecn, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_empty() {
            self.clear();
        } else if self.bytes.len() <= 2 * self.taken && self.entries.len() <= 2 * self.first {
            self.compact();
        }
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.entries.push((self.bytes.len() - start, ecn));
    }

    /// Appends the oldest datagram's bytes to `into` and forgets it.
    #[inline]
    pub(crate) fn pop(&mut self, into: &mut Vec<u8>) -> Option<(usize, Ecn)> {
        let &(length, ecn) = self.entries.get(self.first)?;
        self.first += 1;
        into.extend_from_slice(&self.bytes[self.taken..self.taken + length]);
        self.taken += length;
        Some((length, ecn))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.entries.len()
    }

    /// Whether more than three quarters of the limit are used.
    pub(crate) fn is_nearly_full(&self) -> bool {
        (self.bytes.len() - self.taken) as u128 * 4 > self.limit as u128 * 3
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        (self.taken, self.first) = (0, 0);
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> (usize, usize) {
        (self.bytes.capacity(), self.entries.capacity())
    }

    /// Makes the taken front free again. Called when that is at least half of all: each byte is moved at most once on
    /// average.
    fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.entries.drain(..self.first);
        (self.taken, self.first) = (0, 0);
    }
}

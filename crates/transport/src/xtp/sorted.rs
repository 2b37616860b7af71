//! Messages that wait, the most urgent first.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// A store of messages that gives the most urgent first, and among equals the oldest. Allocates only while it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted<T> {
    heap: BinaryHeap<Reverse<(u16, u64, usize)>>,
    slots: Vec<(T, Vec<u8>)>,
    free: Vec<usize>,
    order: u64,
    bytes: usize,
}

impl<T: Copy> Sorted<T> {
    pub(super) fn new() -> Sorted<T> {
        Sorted { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), order: 0, bytes: 0 }
    }

    /// Puts a message in; `write` appends its bytes.
    pub(super) fn push(&mut self, sort: u16, about: T, write: impl FnOnce(&mut Vec<u8>)) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((about, Vec::new()));
            self.slots.len() - 1
        });
        let (kept, bytes) = &mut self.slots[slot];
        *kept = about;
        bytes.clear();
        write(bytes);
        self.bytes += bytes.len();
        self.heap.push(Reverse((sort, self.order, slot)));
        self.order += 1;
    }

    /// Takes the most urgent message out, and appends its bytes to `into`.
    pub(super) fn pop(&mut self, into: &mut Vec<u8>) -> Option<T> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        let (about, bytes) = &self.slots[slot];
        into.extend_from_slice(bytes);
        self.bytes -= bytes.len();
        self.free.push(slot);
        Some(*about)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        *self = Sorted::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_goes_first_and_among_equals_the_oldest() {
        let mut sorted = Sorted::new();
        for (n, sort) in [5, 1, 5, 0, 1].into_iter().enumerate() {
            sorted.push(sort, n, |bytes| bytes.push(n as u8));
        }
        assert_eq!(sorted.bytes(), 5);
        let mut bytes = Vec::new();
        let order: Vec<usize> = core::iter::from_fn(|| sorted.pop(&mut bytes)).collect();
        assert_eq!((order, bytes), (vec![3, 1, 4, 0, 2], vec![3, 1, 4, 0, 2]));
        assert!(sorted.is_empty() && sorted.bytes() == 0);
    }
}

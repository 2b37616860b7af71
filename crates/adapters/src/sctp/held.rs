//! What the send buffer holds: messages that were taken and whose end the engine has not told yet.

use std::collections::VecDeque;

/// The lengths of messages by their numbers, which count from 0.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The number of the first.
    first: u64,
    /// `None` for a message that has ended before an older one.
    lengths: VecDeque<Option<usize>>,
    bytes: usize,
}

impl Held {
    /// Whether a message fits into a buffer of this size: within it, or as the only one.
    pub(super) fn has_room(&self, length: usize, limit: usize) -> bool {
        self.is_empty() || self.bytes + length <= limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The number that the next message will have.
    pub(super) fn next(&self) -> u64 {
        self.first + self.lengths.len() as u64
    }

    pub(super) fn push(&mut self, length: usize) {
        self.lengths.push_back(Some(length));
        self.bytes += length;
    }

    /// A message has been acknowledged or given up.
    pub(super) fn release(&mut self, number: u64) {
        let Some(index) = number.checked_sub(self.first) else { return };
        if let Some(length) = self.lengths.get_mut(index as usize).and_then(Option::take) {
            self.bytes -= length;
        }
        while self.lengths.front().is_some_and(Option::is_none) {
            self.lengths.pop_front();
            self.first += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.first = self.next();
        self.lengths.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_in_any_order_and_once() {
        let mut held = Held::default();
        assert!(held.has_room(100, 10), "one message always fits");
        for length in [4, 3, 2] {
            held.push(length);
        }
        assert!(held.has_room(1, 10) && !held.has_room(2, 10));
        held.release(1);
        held.release(1);
        assert!(held.has_room(4, 10) && !held.has_room(5, 10));
        held.release(0);
        held.release(7);
        assert!(held.has_room(8, 10) && !held.has_room(9, 10) && held.next() == 3);
        held.release(2);
        assert!(held.is_empty() && held.next() == 3);
    }
}

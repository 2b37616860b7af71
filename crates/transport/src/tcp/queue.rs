//! Bytes that wait to be sent or to be acknowledged.

use std::collections::VecDeque;

/// A queue of bytes with places. The first byte of a connection has place 1, behind the SYN's.
#[derive(Debug)]
pub(super) struct ByteQueue {
    bytes: VecDeque<u8>,
    /// The place of the first byte that is kept.
    base: u64,
}

impl Default for ByteQueue {
    fn default() -> ByteQueue {
        ByteQueue { bytes: VecDeque::new(), base: 1 }
    }
}

impl ByteQueue {
    /// The place behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// So many bytes from a place on, in two pieces. What lies before the queue or behind it is left out.
    pub(super) fn slices(&self, place: u64, length: usize) -> [&[u8]; 2] {
        let (front, back) = self.bytes.as_slices();
        let from = place.saturating_sub(self.base) as usize;
        let to = (place + length as u64).saturating_sub(self.base) as usize;
        let split = front.len();
        let end = split + back.len();
        [
            &front[from.min(split)..to.min(split)],
            &back[from.clamp(split, end) - split..to.clamp(split, end) - split],
        ]
    }

    /// Drops everything before a place.
    pub(super) fn drop_before(&mut self, place: u64) {
        let count = (place.saturating_sub(self.base) as usize).min(self.bytes.len());
        self.bytes.drain(..count);
        self.base += count as u64;
    }

    /// Drops everything; places go on.
    pub(super) fn clear(&mut self) {
        self.base = self.end();
        self.bytes = VecDeque::new();
    }

    /// Gives memory back that an empty queue does not need.
    pub(super) fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        }
    }

    pub(super) fn is_allocated(&self) -> bool {
        self.bytes.capacity() > 0
    }
}

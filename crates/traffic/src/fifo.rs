//! A FIFO of audio samples.

/// Samples of one byte in the order in which they came, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Fifo {
    ring: Box<[u8]>,
    /// Where in the ring the oldest stands.
    head: usize,
    length: usize,
}

impl Fifo {
    /// An empty one that holds `depth` samples.
    pub(crate) fn new(depth: usize) -> Fifo {
        Fifo { ring: vec![0; depth].into(), head: 0, length: 0 }
    }

    /// How many samples it holds.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Takes up to `count` samples, which `write` writes, and says how many found room.
    pub(crate) fn push(&mut self, count: usize, mut write: impl FnMut(&mut [u8])) -> usize {
        let count = count.min(self.ring.len() - self.length);
        let tail = self.head + self.length;
        let begin = if tail < self.ring.len() { tail } else { tail - self.ring.len() };
        let before_the_end = count.min(self.ring.len() - begin);
        write(&mut self.ring[begin..begin + before_the_end]);
        write(&mut self.ring[..count - before_the_end]);
        self.length += count;
        count
    }

    /// Takes the oldest samples out, as many as `into` has places; it must hold them.
    pub(crate) fn pop(&mut self, into: &mut [u8]) {
        debug_assert!(into.len() <= self.length, "{} of {} samples", into.len(), self.length);
        let before_the_end = into.len().min(self.ring.len() - self.head);
        let (first, rest) = into.split_at_mut(before_the_end);
        first.copy_from_slice(&self.ring[self.head..self.head + before_the_end]);
        rest.copy_from_slice(&self.ring[..rest.len()]);
        self.head = (self.head + into.len()) % self.ring.len();
        self.length -= into.len();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order_or_finds_no_room(
            depth in 1usize..40,
            steps in prop::collection::vec((any::<bool>(), 0usize..50), 1..200),
        ) {
            let (mut fifo, mut plain) = (Fifo::new(depth), VecDeque::new());
            let mut next = 0u8;
            for (is_push, count) in steps {
                if is_push {
                    let taken = fifo.push(count, |places| places.fill_with(|| {
                        plain.push_back(next);
                        next = next.wrapping_add(1);
                        next.wrapping_sub(1)
                    }));
                    prop_assert!(taken == count || fifo.len() == depth);
                } else {
                    let mut out = vec![0; count.min(fifo.len())];
                    fifo.pop(&mut out);
                    prop_assert_eq!(out, plain.drain(..count.min(plain.len())).collect::<Vec<_>>());
                }
                prop_assert_eq!(fifo.len(), plain.len());
                prop_assert!(fifo.len() <= depth);
            }
        }
    }
}

//! Which of many queues is the longest, in constant time.
//!
//! McKenney 1990 keeps a list of the queues of each length, which serves where a length is a small number of packets.
//! Lengths in bytes need wider classes: here each is at most 1/16 of the lengths in it, and any queue of the highest
//! class counts as the longest. Queues that shrink, also to nothing, stay where they are until the longest is
//! looked for. Each step down that this then costs stands for at least one packet that left, so that a sequence of calls
//! takes time in proportion to their number, and a queue that fills and empties as ever costs a comparison.

use super::slab::NONE;
use crate::buckets;

/// 16 classes for each power of two.
const BITS: u32 = 4;
const CLASSES: usize = buckets::of::<BITS>(u64::MAX) + 1;
const WORDS: usize = CLASSES.div_ceil(64);

/// Queues, named by small numbers, in classes of length.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    entries: Vec<Entry>,
    /// The queue that last joined each class, or [`NONE`].
    newest: Vec<u32>,
    /// A bit for each class with a queue in it.
    occupied: [u64; WORDS],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Never lower than that of its length; [`ABSENT`] only for an empty queue.
    class: u32,
    next: u32,
    previous: u32,
}

/// The class of nothing: lengths are above 0.
const ABSENT: u32 = 0;

impl Default for Longest {
    fn default() -> Longest {
        Longest { entries: Vec::new(), newest: vec![NONE; CLASSES], occupied: [0; WORDS] }
    }
}

impl Longest {
    /// Says that `queue` has grown to `length`, which is above 0.
    #[inline]
    pub(super) fn grown(&mut self, queue: u32, length: u64) {
        if self.entries.len() <= queue as usize {
            let absent = Entry { class: ABSENT, next: NONE, previous: NONE };
            self.entries.resize(queue as usize + 1, absent);
        }
        let class = buckets::of::<BITS>(length.max(1)) as u32;
        if class > self.entries[queue as usize].class {
            self.leave(queue);
            self.join(queue, class);
        }
    }

    /// The longest queue, given what lengths they have now: none is longer by more than a sixteenth.
    pub(super) fn find(&mut self, length: impl Fn(u32) -> u64) -> Option<u32> {
        loop {
            let word = self.occupied.iter().rposition(|&word| word != 0)?;
            let highest = 64 * word as u32 + 63 - self.occupied[word].leading_zeros();
            let queue = self.newest[highest as usize];
            let class = buckets::of::<BITS>(length(queue)) as u32;
            if class >= highest {
                return Some(queue);
            }
            self.leave(queue);
            if class != ABSENT {
                self.join(queue, class);
            }
        }
    }

    #[inline]
    fn join(&mut self, queue: u32, class: u32) {
        let next = core::mem::replace(&mut self.newest[class as usize], queue);
        self.occupied[class as usize / 64] |= 1 << (class % 64);
        self.entries[queue as usize] = Entry { class, next, previous: NONE };
        if let Some(entry) = self.entries.get_mut(next as usize) {
            entry.previous = queue;
        }
    }

    #[inline]
    fn leave(&mut self, queue: u32) {
        let Entry { class, next, previous } = self.entries[queue as usize];
        if class == ABSENT {
            return;
        }
        self.entries[queue as usize].class = ABSENT;
        if let Some(entry) = self.entries.get_mut(next as usize) {
            entry.previous = previous;
        }
        match self.entries.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => {
                self.newest[class as usize] = next;
                if next == NONE {
                    self.occupied[class as usize / 64] &= !(1 << (class % 64));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn none_is_much_longer_than_the_one_found(
            steps in prop::collection::vec((0usize..8, 0u64..5000, any::<bool>()), 0..200),
        ) {
            let (mut longest, mut lengths) = (Longest::default(), [0u64; 8]);
            for (queue, by, grows) in steps {
                if grows {
                    lengths[queue] += by.max(1);
                    longest.grown(queue as u32, lengths[queue]);
                } else {
                    lengths[queue] = lengths[queue].saturating_sub(by);
                }
                // Not every time: shrunken queues are to gather in classes that are too high.
                if by % 3 == 0 {
                    let (found, most) = (longest.find(|queue| lengths[queue as usize]), lengths.iter().max());
                    match found {
                        Some(queue) => {
                            let length = lengths[queue as usize];
                            prop_assert!(length > 0 && length + length / 16 >= *most.unwrap(), "{:?}", lengths);
                        }
                        None => prop_assert_eq!(lengths, [0; 8]),
                    }
                }
            }
        }
    }

    #[test]
    fn short_queues_are_told_apart_exactly() {
        let mut longest = Longest::default();
        for length in 1..32 {
            longest.grown(length, u64::from(length));
        }
        for most in (1..32).rev() {
            let length = |queue| if queue <= most { u64::from(queue) } else { 0 };
            assert_eq!(longest.find(length), Some(most));
        }
        assert_eq!(longest.find(|_| 0), None);
    }
}

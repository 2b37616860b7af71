//! Which of the last sequence numbers were met: the sliding bitmap of RFC 4303, section 3.4.3, for another purpose.

const WORDS: usize = 16;

/// Sequence numbers that are remembered, ending with the highest.
pub(crate) const REMEMBERED: u32 = 64 * WORDS as u32;

/// What a sequence number is to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Not met yet.
    New,
    /// Met before.
    Again,
}

/// A set of the last [`REMEMBERED`] sequence numbers that were met. Numbers wrap (RFC 1982).
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Bit `s % REMEMBERED`: whether `s` was met.
    bits: [u64; WORDS],
    highest: Option<u32>,
}

impl Seen {
    /// Notes that `sequence` was met, and says whether it was before.
    ///
    /// A number too far from the others to be one of them, in either direction, begins a new set: a sender that started
    /// again is not shut out, and neither is the true one after a forged packet.
    pub(crate) fn note(&mut self, sequence: u32) -> Sight {
        let ahead = match self.highest {
            Some(highest) => sequence.wrapping_sub(highest) as i32,
            None => i32::MAX,
        };
        if ahead.unsigned_abs() >= REMEMBERED {
            self.bits = [0; WORDS];
            self.highest = Some(sequence);
        } else if ahead > 0 {
            for skipped in 1..=ahead as u32 {
                self.forget(sequence.wrapping_sub(ahead as u32).wrapping_add(skipped));
            }
            self.highest = Some(sequence);
        }
        let (word, bit) = place(sequence);
        let sight = if self.bits[word] & bit == 0 { Sight::New } else { Sight::Again };
        self.bits[word] |= bit;
        sight
    }

    fn forget(&mut self, sequence: u32) {
        let (word, bit) = place(sequence);
        self.bits[word] &= !bit;
    }
}

fn place(sequence: u32) -> (usize, u64) {
    ((sequence % REMEMBERED / 64) as usize, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_stream_that_begins_far_back_is_new() {
        let mut seen = Seen::default();
        for sequence in (1_000_000..1_000_000 + REMEMBERED).chain(0..REMEMBERED) {
            assert_eq!(seen.note(sequence), Sight::New);
        }
    }

    proptest! {
        #[test]
        fn each_number_is_new_once(start: u32, steps in prop::collection::vec(0..200u32, 1..400)) {
            let (mut seen, mut model) = (Seen::default(), BTreeSet::new());
            for (n, step) in (0u32..).zip(steps) {
                let sequence = start.wrapping_add(n).wrapping_add(step);
                let expected = if model.insert(sequence) { Sight::New } else { Sight::Again };
                prop_assert_eq!(seen.note(sequence), expected);
            }
        }

        #[test]
        fn a_forged_number_shuts_nobody_out(sequence: u32, forged: u32) {
            let mut seen = Seen::default();
            seen.note(sequence);
            seen.note(forged);
            let next = sequence.wrapping_add(1);
            prop_assert!(seen.note(next) == Sight::New || forged == next);
        }
    }
}

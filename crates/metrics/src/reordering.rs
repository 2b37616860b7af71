//! Reordered messages.

/// The singleton Type-P-Reordered of RFC 4737 section 3: a message is reordered if its sequence number is smaller than
/// the next one expected, which is one more than the largest seen. Only the first arrival of a message may be asked
/// about. Sequence numbers wrap and are compared serially.
#[derive(Clone, Copy, Debug, Default)]
pub struct NextExpected(u32);

impl NextExpected {
    /// Takes the next message to arrive and says whether it is reordered.
    #[inline]
    pub fn is_reordered(&mut self, sequence: u32) -> bool {
        if (sequence.wrapping_sub(self.0) as i32) < 0 {
            return true;
        }
        self.0 = sequence.wrapping_add(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reordered(start: u32, arrivals: &[u32]) -> Vec<u32> {
        let mut next = NextExpected(start);
        arrivals.iter().copied().filter(|&s| next.is_reordered(s)).collect()
    }

    #[test]
    fn overtaken_messages_are_the_reordered_ones() {
        // The example of RFC 4737 section 7.1 (packet 4 is reordered), and one with three packets overtaken by three.
        assert_eq!(reordered(1, &[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]), [4]);
        assert_eq!(reordered(1, &[1, 2, 3, 7, 8, 9, 4, 5, 6, 10]), [4, 5, 6]);
    }

    #[test]
    fn loss_is_not_reordering() {
        assert!(reordered(0, &[0, 3, 4, 9]).is_empty());
    }

    #[test]
    fn sequence_numbers_wrap() {
        assert_eq!(reordered(u32::MAX - 1, &[u32::MAX, 0, u32::MAX - 1, 1]), [u32::MAX - 1]);
    }
}

//! Sequence numbers: 48 bits, compared on a circle (RFC 4340 sections 3.1 and 7).

/// A sequence or acknowledgement number, modulo 2^48.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seq(u64);

const MASK: u64 = (1 << 48) - 1;
const LOW_MASK: u64 = (1 << 24) - 1;

impl Seq {
    /// The number with these low 48 bits.
    pub(crate) const fn new(value: u64) -> Seq {
        Seq(value & MASK)
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    pub(crate) const fn next(self) -> Seq {
        self.plus(1)
    }

    pub(crate) const fn plus(self, n: u64) -> Seq {
        Seq::new(self.0.wrapping_add(n))
    }

    pub(crate) const fn minus(self, n: u64) -> Seq {
        Seq::new(self.0.wrapping_sub(n))
    }

    /// How far this is ahead of `other` on the shorter way around the circle; negative if it is behind.
    pub(crate) const fn distance(self, other: Seq) -> i64 {
        // Moved to the top of 64 bits the difference wraps by itself, and the sign comes back with the shift.
        (self.0.wrapping_sub(other.0) << 16) as i64 >> 16
    }

    pub(crate) const fn is_after(self, other: Seq) -> bool {
        self.distance(other) > 0
    }

    /// Whether it lies in the closed interval, going up from `low` to `high`.
    pub(crate) const fn within(self, low: Seq, high: Seq) -> bool {
        (self.0.wrapping_sub(low.0) & MASK) <= (high.0.wrapping_sub(low.0) & MASK)
    }

    /// The full number of which a packet carried the low 24 bits (RFC 4340 section 7.6).
    pub(crate) const fn extend(short: u64, reference: Seq) -> Seq {
        let low = reference.0 & LOW_MASK;
        let high = reference.0 >> 24;
        let ahead = short.wrapping_sub(low) & LOW_MASK;
        let is_ahead = ahead != 0 && ahead <= 1 << 23;
        if is_ahead && short < low {
            Seq::new((high + 1) << 24 | short)
        } else if !is_ahead && ahead != 0 && low < short {
            Seq::new(high.wrapping_sub(1) << 24 | short)
        } else {
            Seq::new(high << 24 | short)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    #[test]
    fn numbers_wrap() {
        let last = Seq::new(MASK);
        assert_eq!(last.next(), Seq::new(0));
        assert_eq!(Seq::new(3).minus(5).value(), MASK - 1);
        assert_eq!(Seq::new(2).distance(last), 3);
        assert_eq!(last.distance(Seq::new(2)), -3);
        assert!(Seq::new(0).is_after(last));
        assert!(Seq::new(1).within(last, Seq::new(5)));
        assert!(!Seq::new(6).within(last, Seq::new(5)));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn short_numbers_extend_to_the_nearest(reference: u64, offset in -(1i64 << 23) + 1..1 << 23) {
            let reference = Seq::new(reference);
            let number = Seq::new(reference.value().wrapping_add(offset as u64));
            prop_assert_eq!(Seq::extend(number.value() & LOW_MASK, reference), number);
        }
    }
}

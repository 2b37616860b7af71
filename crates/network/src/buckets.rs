//! Numbers in buckets whose width grows with the number: each power of two is cut into 2^BITS equal parts, so that a
//! bucket's width is at most 1/2^BITS of what is in it. Numbers below 2^(BITS + 1) have buckets of their own.

/// The bucket of `value`; larger values never have a smaller bucket.
#[inline]
pub(crate) const fn of<const BITS: u32>(value: u64) -> usize {
    let highest = 63 - (value | 1).leading_zeros();
    let shift = highest.saturating_sub(BITS);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The value in the middle of `bucket`.
pub(crate) const fn middle<const BITS: u32>(bucket: usize) -> u64 {
    let shift = ((bucket >> BITS) as u32).saturating_sub(1);
    let lowest = ((bucket - ((shift as usize) << BITS)) as u64) << shift;
    lowest + ((1 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!((0..64).map(of::<4>).collect::<Vec<_>>()[..33], (0..33).collect::<Vec<_>>()[..]);
        let mut last = 0;
        for value in 0..100_000 {
            let bucket = of::<4>(value);
            assert!(bucket == last || bucket == last + 1, "{value}");
            last = bucket;
        }
    }

    proptest! {
        #[test]
        fn the_middle_is_in_the_bucket_and_near_everything_in_it(shift in 0u32..64, bits: u64) {
            let value = bits >> shift;
            let middle = middle::<6>(of::<6>(value));
            prop_assert_eq!(of::<6>(middle), of::<6>(value));
            prop_assert!(middle.abs_diff(value) <= value / 128, "{} for {}", middle, value);
        }

        #[test]
        fn order_is_kept(a: u64, b: u64) {
            prop_assert!((a <= b && of::<4>(a) <= of::<4>(b)) || (b <= a && of::<4>(b) <= of::<4>(a)));
        }
    }
}

//! How long packets stayed in a queue: a histogram.

use trunkline_core::Duration;

use crate::buckets;

/// 64 buckets for each power of two.
const BITS: u32 = 6;
/// Longer than about 2.4 hours counts as that.
const BUCKETS: usize = buckets::of::<BITS>((1 << 43) - 1) + 1;

/// Sojourn times, counted in buckets whose width is at most 1/64 of what is in them.
///
/// Takes about 20 KB from the first packet on, whatever the times, and nothing before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sojourns {
    counts: Vec<u64>,
    total: u64,
    shortest: Duration,
    longest: Duration,
}

impl Sojourns {
    /// Counts one packet's.
    #[inline]
    pub fn record(&mut self, sojourn: Duration) {
        self.record_equal(sojourn, 1);
    }

    /// Counts so many that are equal.
    #[inline]
    pub(crate) fn record_equal(&mut self, sojourn: Duration, times: u64) {
        if times == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        let bucket = buckets::of::<BITS>(sojourn.as_nanos()).min(BUCKETS - 1);
        self.counts[bucket] += times;
        self.shortest = if self.total == 0 { sojourn } else { self.shortest.min(sojourn) };
        self.total += times;
        self.longest = self.longest.max(sojourn);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The longest, exactly.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that so many thousandths of the packets did not exceed: 500 for the median, 999 for p99.9. By nearest
    /// rank, at most 0.8 % off; `None` if nothing was counted.
    pub fn quantile(&self, thousandths: u64) -> Option<Duration> {
        let share = u128::from(thousandths.min(1000));
        let rank = (u128::from(self.total) * share).div_ceil(1000).max(1);
        let mut below = 0;
        let bucket = self.counts.iter().position(|&count| {
            below += u128::from(count);
            below >= rank
        })?;
        // Nobody stayed shorter than the shortest or longer than the longest; the last bucket has no middle.
        let middle = if bucket == BUCKETS - 1 { u64::MAX } else { buckets::middle::<BITS>(bucket) };
        Some(Duration::from_nanos(middle).clamp(self.shortest, self.longest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(nanos: impl IntoIterator<Item = u64>) -> Sojourns {
        let mut sojourns = Sojourns::default();
        nanos.into_iter().for_each(|nanos| sojourns.record(Duration::from_nanos(nanos)));
        sojourns
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let sojourns = of(1..=100);
        let nanos = |thousandths| sojourns.quantile(thousandths).unwrap().as_nanos();
        assert_eq!(
            [nanos(0), nanos(10), nanos(11), nanos(500), nanos(990), nanos(1000)],
            [1, 1, 2, 50, 99, 100]
        );
        assert_eq!((sojourns.count(), sojourns.longest()), (100, Duration::from_nanos(100)));
        assert_eq!(of([]).quantile(500), None);
        assert_eq!(of([0, 0, 7]).quantile(500), Some(Duration::ZERO));
    }

    #[test]
    fn no_quantile_is_outside_what_was_counted() {
        for nanos in [1_000_001, 22_655, 27_200_000] {
            let alike = of([nanos, nanos, nanos]);
            assert_eq!(alike.quantile(500), Some(Duration::from_nanos(nanos)));
            let one_longer = of([nanos, nanos, 4 * nanos]);
            assert!(one_longer.quantile(1) >= Some(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn a_tail_beyond_the_range_is_its_longest() {
        let sojourns = of([1_000_000, u64::MAX]);
        assert!(sojourns.quantile(500).unwrap().as_nanos().abs_diff(1_000_000) <= 1_000_000 / 128);
        assert_eq!(sojourns.quantile(999), Some(Duration::MAX));
    }

    proptest! {
        #[test]
        fn quantiles_are_near_those_of_the_sorted_times(
            mut nanos in prop::collection::vec((0u32..40, any::<u64>()).prop_map(|(bits, n)| n % (1 << bits)), 1..200),
            thousandths in 1u64..=1000,
        ) {
            let found = of(nanos.iter().copied()).quantile(thousandths).unwrap().as_nanos();
            nanos.sort_unstable();
            let exact = nanos[(nanos.len() * thousandths as usize).div_ceil(1000) - 1];
            prop_assert!(found.abs_diff(exact) <= exact / 128, "{} instead of {}", found, exact);
        }
    }
}

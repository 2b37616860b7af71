//! Percentiles by nearest rank: always a value that occurred, never an interpolation.

/// A share in thousandths: `PerMille(999)` is the 99.9th percentile, Weaver's "99.9 % threshold".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerMille(pub u16);

impl PerMille {
    /// The percentiles of a [`DelaySummary`](crate::DelaySummary): p50, p90, p99 and p99.9.
    pub const SUMMARY: [PerMille; 4] = [PerMille(500), PerMille(900), PerMille(990), PerMille(999)];

    /// The nearest rank among `count` values sorted upwards, from 1: the smallest rank that has at least this share of
    /// the values at or below it. 1 for a share of zero, `count` for one of 1000 and more; 0 of no values.
    pub fn rank(self, count: u64) -> u64 {
        let share = u128::from(self.0.min(1000));
        let rank = (u128::from(count) * share).div_ceil(1000);
        u64::try_from(rank).unwrap_or(u64::MAX).max(count.min(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ranks_of_five_values() {
        // The common example 15, 20, 35, 40, 50: p30 is 20, p40 is 20, p50 is 35, p100 is 50.
        let values = [15, 20, 35, 40, 50];
        for (per_mille, value) in [(0, 15), (50, 15), (300, 20), (400, 20), (500, 35), (1000, 50), (9999, 50)]
        {
            assert_eq!(values[PerMille(per_mille).rank(5) as usize - 1], value, "{per_mille}");
        }
    }

    #[test]
    fn of_a_thousand_values_p999_is_the_second_highest() {
        // Weaver and McNabb 1992 sections 4.2 and 7.2.
        assert_eq!(PerMille(999).rank(1000), 999);
        assert_eq!(PerMille(999).rank(0), 0);
        assert_eq!(PerMille(1000).rank(u64::MAX), u64::MAX);
    }
}

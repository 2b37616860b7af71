//! The distribution of durations that have a sign.

use crate::delays::Delays;
use crate::percentile::PerMille;
use crate::voice_path::{Margin, MarginSummary};

/// A stream of [`Margin`]s, in bounded memory as [`Delays`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Margins {
    /// Those below zero, without their sign.
    missed: Delays,
    kept: Delays,
}

impl Margins {
    #[inline]
    pub(crate) fn record(&mut self, margin: Margin) {
        let side = if margin.is_missed() { &mut self.missed } else { &mut self.kept };
        side.record(margin.magnitude());
    }

    /// The distribution in figures; `None` of no values.
    pub(crate) fn summary(&mut self) -> Option<MarginSummary> {
        let missed = self.missed.count();
        let count = missed + self.kept.count();
        if count == 0 {
            return None;
        }
        let p = |per_mille| PerMille(per_mille).rank(count);
        let [min, p001, p01, p10, p50, max] =
            [1, p(1), p(10), p(100), p(500), count].map(|rank| self.at(rank));
        let sum = self.kept.moments().sum() as i128 - self.missed.moments().sum() as i128;
        Some(MarginSummary {
            count,
            missed,
            mean: Margin::from_nanos(i64::try_from(sum / i128::from(count)).unwrap_or(i64::MAX)),
            min: min?,
            p001: p001?,
            p01: p01?,
            p10: p10?,
            p50: p50?,
            max: max?,
            exact: self.missed.is_exact() && self.kept.is_exact(),
        })
    }

    /// The value at a rank from 1 to the count, in ascending order.
    fn at(&mut self, rank: u64) -> Option<Margin> {
        let missed = self.missed.count();
        if rank <= missed {
            // The most negative is the largest without its sign.
            Some(-Margin::from(self.missed.at_rank(missed - rank + 1)?))
        } else {
            self.kept.at_rank(rank - missed).map(Margin::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Margins::default().summary(), None);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_sorting(mut values in prop::collection::vec(-5_000i64..5_000, 1..3_000)) {
            let mut margins = Margins::default();
            values.iter().for_each(|&nanos| margins.record(Margin::from_nanos(nanos)));
            let summary = margins.summary().unwrap();
            values.sort_unstable();
            let at = |per_mille| Margin::from_nanos(values[PerMille(per_mille).rank(values.len() as u64) as usize - 1]);
            let found = [summary.p001, summary.p01, summary.p10, summary.p50];
            prop_assert_eq!(found, [at(1), at(10), at(100), at(500)]);
            let ends = [values[0], values[values.len() - 1]].map(Margin::from_nanos);
            prop_assert_eq!([summary.min, summary.max], ends);
            prop_assert_eq!(summary.missed, values.iter().filter(|&&v| v < 0).count() as u64);
            let mean = values.iter().sum::<i64>() / values.len() as i64;
            prop_assert_eq!((summary.mean, summary.count), (Margin::from_nanos(mean), values.len() as u64));
        }
    }
}

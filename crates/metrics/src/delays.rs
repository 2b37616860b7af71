//! A distribution of durations in bounded memory.

use core::ops::RangeInclusive;

use trunkline_core::Duration;

use crate::histogram::Histogram;
use crate::moments::{LONGEST, Moments};
use crate::percentile::PerMille;
use crate::summary::DelaySummary;

/// A stream of durations, from which a [`DelaySummary`] is made.
///
/// Count, mean, deviation, minimum and maximum are exact always. Up to [`Delays::EXACT_UP_TO`] values are kept, and the
/// percentiles are exact; from then on a histogram of three significant digits takes their place, whose percentiles are
/// at most 0.1 % too high. Holds at most 512 KiB of samples, then 960 KiB of histograms, or 320 KiB
/// [`without_deviation`](Delays::without_deviation).
#[derive(Clone, Debug, Default)]
pub struct Delays {
    moments: Moments,
    min: u64,
    max: u64,
    values: Values,
    is_without_deviation: bool,
}

#[derive(Clone, Debug)]
enum Values {
    Kept { nanos: Vec<u64>, sorted: bool },
    Counted(Counted),
}

/// The values as histograms.
#[derive(Clone, Debug, Default)]
struct Counted {
    values: Histogram,
    around: Option<Around>,
}

impl Counted {
    #[inline]
    fn record(&mut self, nanos: u64) {
        self.values.record(nanos);
        if let Some(around) = &mut self.around {
            around.record(nanos);
        }
    }
}

/// Distances of the values from a mean of them: the histogram of the values is too coarse for distances far smaller than these.
#[derive(Clone, Debug, Default)]
struct Around {
    /// The mean when the histograms took over.
    centre: u64,
    below: Histogram,
    above: Histogram,
}

impl Around {
    fn record(&mut self, nanos: u64) {
        match nanos.checked_sub(self.centre) {
            Some(distance) => self.above.record(distance),
            None => self.below.record(self.centre - nanos),
        }
    }

    /// The middle of each bucket of distances as a value, and the number of values in it.
    fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let middle = |range: RangeInclusive<u64>| range.start() + (range.end() - range.start()) / 2;
        let below =
            self.below.recorded().map(move |(range, n)| (self.centre.saturating_sub(middle(range)), n));
        below.chain(
            self.above.recorded().map(move |(range, n)| (self.centre.saturating_add(middle(range)), n)),
        )
    }
}

impl Default for Values {
    fn default() -> Values {
        Values::Kept { nanos: Vec::new(), sorted: true }
    }
}

impl Delays {
    /// How many values are kept before a histogram takes over.
    pub const EXACT_UP_TO: usize = 65_536;

    /// Durations whose [`mean_absolute_deviation`](Delays::mean_absolute_deviation) is not wanted: less is kept of many.
    pub fn without_deviation() -> Delays {
        Delays { is_without_deviation: true, ..Delays::default() }
    }

    /// Adds one duration.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let nanos = value.as_nanos().min(LONGEST);
        self.min = if self.moments.count() == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.moments.add(value);
        match &mut self.values {
            Values::Counted(counted) => counted.record(nanos),
            Values::Kept { nanos: kept, sorted } if kept.len() < Self::EXACT_UP_TO => {
                kept.push(nanos);
                *sorted = false;
            }
            Values::Kept { .. } => self.count_from_now_on(nanos),
        }
    }

    /// The largest so far, 0 of none.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// How many durations were added.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// The sums.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The distribution in figures; `None` of no values.
    pub fn summary(&mut self) -> Option<DelaySummary> {
        if self.count() == 0 {
            return None;
        }
        let ranks = PerMille::SUMMARY.map(|percentile| percentile.rank(self.count()));
        let points = self.at_ranks(&ranks);
        let at = |index: usize| points.get(index).map_or(Duration::ZERO, |point| point.value);
        Some(DelaySummary {
            count: self.count(),
            mean: self.moments.mean(),
            standard_deviation: self.moments.standard_deviation(),
            min: Duration::from_nanos(self.min),
            p50: at(0),
            p90: at(1),
            p99: at(2),
            p999: at(3),
            max: Duration::from_nanos(self.max),
            exact: self.is_exact(),
        })
    }

    /// The nearest-rank percentile; `None` of no values.
    pub fn percentile(&mut self, percentile: PerMille) -> Option<Duration> {
        let rank = percentile.rank(self.count());
        self.at_ranks(&[rank]).first().filter(|_| rank > 0).map(|point| point.value)
    }

    /// The value at a rank from 1 to the count, in ascending order; `None` beyond.
    pub(crate) fn at_rank(&mut self, rank: u64) -> Option<Duration> {
        self.at_ranks(&[rank]).first().map(|point| point.value)
    }

    /// Whether all values are kept, so that percentiles are exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.values, Values::Kept { .. })
    }

    /// The mean of |value - mean|, rounded to the nearest nanosecond (Schiavoni, Queiroz and Wanderley 2013, equation
    /// 2). Exact while the values are kept; then from a histogram of the distances from the mean, within 0.1 % of each.
    ///
    /// # Panics
    /// Of more than [`Delays::EXACT_UP_TO`] values [`without_deviation`](Delays::without_deviation).
    pub fn mean_absolute_deviation(&self) -> Duration {
        let n = u128::from(self.count().max(1));
        let sum = self.moments.sum();
        // |n x - sum| is n times the deviation, without a fraction.
        let scaled: u128 = match &self.values {
            Values::Kept { nanos, .. } => nanos.iter().map(|&x| (n * u128::from(x)).abs_diff(sum)).sum(),
            Values::Counted(Counted { around, .. }) => around
                .as_ref()
                .expect("these durations have a deviation")
                .values()
                .map(|(value, count)| (n * u128::from(value)).abs_diff(sum) * u128::from(count))
                .fold(0, u128::saturating_add),
        };
        let deviation = (scaled / n + n / 2) / n;
        Duration::from_nanos(u64::try_from(deviation).unwrap_or(u64::MAX))
    }

    /// The cumulative distribution in at most `points` points: (value, share of values at most that), both strictly
    /// increasing, the last share 1. Seven eighths of the points stand evenly in rank, the others ever closer to the
    /// maximum, so that the tail keeps its shape.
    pub fn cumulative(&mut self, points: usize) -> Vec<(Duration, f64)> {
        let n = self.count();
        if n == 0 || points == 0 {
            return Vec::new();
        }
        let tail = (points as u64 / 8).min(60);
        let even = points as u64 - tail;
        let step =
            |i: u64| u64::try_from((u128::from(n) * u128::from(i)).div_ceil(u128::from(even))).unwrap_or(n);
        let mut ranks: Vec<u64> = (1..=even).map(step).collect();
        ranks.extend((1..=tail).map(|i| n - ((n / even) >> i)));
        ranks.sort_unstable();
        ranks.dedup();
        let mut curve: Vec<(Duration, f64)> = Vec::with_capacity(ranks.len());
        for point in self.at_ranks(&ranks) {
            if curve.last().is_none_or(|&(value, _)| value < point.value) {
                curve.push((point.value, point.at_most as f64 / n as f64));
            }
        }
        curve
    }

    #[cold]
    fn count_from_now_on(&mut self, next: u64) {
        let centre = self.moments.mean().as_nanos();
        let around = (!self.is_without_deviation).then(|| Around { centre, ..Around::default() });
        let mut counted = Counted { around, ..Counted::default() };
        if let Values::Kept { nanos, .. } = &self.values {
            nanos.iter().for_each(|&nanos| counted.record(nanos));
        }
        counted.record(next);
        self.values = Values::Counted(counted);
    }

    /// The values at `ranks`, which increase and are within 1..=count; ranks outside are ignored.
    fn at_ranks(&mut self, ranks: &[u64]) -> Vec<RankPoint> {
        match &mut self.values {
            Values::Kept { nanos, sorted } => {
                if !*sorted {
                    nanos.sort_unstable();
                    *sorted = true;
                }
                let at = |&rank: &u64| {
                    let value = *nanos.get(usize::try_from(rank).ok()?.checked_sub(1)?)?;
                    let at_most = nanos.partition_point(|&other| other <= value) as u64;
                    Some(RankPoint { value: Duration::from_nanos(value), at_most })
                };
                ranks.iter().filter_map(at).collect()
            }
            Values::Counted(Counted { values: histogram, .. }) => {
                let mut points = Vec::with_capacity(ranks.len());
                let mut at_most = 0;
                let mut wanted = ranks.iter().copied().peekable();
                for (range, count) in histogram.recorded() {
                    at_most += count;
                    let value = (*range.end()).clamp(self.min, self.max);
                    while wanted.next_if(|&rank| rank <= at_most).is_some() {
                        points.push(RankPoint { value: Duration::from_nanos(value), at_most });
                    }
                }
                points
            }
        }
    }
}

/// The value at a rank, and how many values are at most that.
struct RankPoint {
    value: Duration,
    at_most: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Delays {
        let mut delays = Delays::default();
        for value in values {
            delays.record(Duration::from_nanos(value));
        }
        delays
    }

    #[test]
    fn nothing_has_no_summary() {
        let mut none = Delays::default();
        assert_eq!(none.summary(), None);
        assert_eq!(none.percentile(PerMille(500)), None);
        assert!(none.cumulative(512).is_empty());
        assert_eq!(none.mean_absolute_deviation(), Duration::ZERO);
    }

    #[test]
    fn of_a_thousand_round_trips() {
        let summary = of((1..=1000).rev().map(|ms| ms * 1_000_000)).summary().unwrap();
        let ms = Duration::from_millis;
        assert_eq!((summary.min, summary.p50, summary.p90), (ms(1), ms(500), ms(900)));
        assert_eq!((summary.p99, summary.p999, summary.max), (ms(990), ms(999), ms(1000)));
        assert_eq!(summary.mean, Duration::from_micros(500_500));
        assert!(summary.exact);
    }

    #[test]
    fn the_mean_absolute_deviation_is_schiavonis_equation_2() {
        // Mean 3.25; deviations 2.25, 1.25, 0.25, 3.75 add up to 7.5; a quarter of that rounds to 2.
        assert_eq!(of([1, 2, 3, 7]).mean_absolute_deviation(), Duration::from_nanos(2));
        assert_eq!(of([100, 300]).mean_absolute_deviation(), Duration::from_nanos(100));
    }

    #[test]
    fn the_histogram_takes_over_after_the_last_exact_value() {
        let mut delays = of(0..Delays::EXACT_UP_TO as u64);
        assert!(delays.summary().unwrap().exact);
        delays.record(Duration::from_nanos(5));
        let summary = delays.summary().unwrap();
        assert!(!summary.exact);
        assert_eq!((summary.count, summary.min), (Delays::EXACT_UP_TO as u64 + 1, Duration::ZERO));
        assert_eq!(summary.max, Duration::from_nanos(Delays::EXACT_UP_TO as u64 - 1));
    }

    #[test]
    fn the_histogram_is_right_within_a_thousandth() {
        // A tail over six decades.
        let value =
            |i: u64| 1_000 + (i % 997) * 13 + if i.is_multiple_of(100) { i * i % 1_000_000_007 } else { 0 };
        let n = 200_000u64;
        let mut sorted: Vec<u64> = (0..n).map(value).collect();
        sorted.sort_unstable();
        let mut delays = of((0..n).map(value));
        for per_mille in [1, 10, 500, 900, 990, 995, 999, 1000] {
            let exact = sorted[PerMille(per_mille).rank(n) as usize - 1] as f64;
            let found = delays.percentile(PerMille(per_mille)).unwrap().as_nanos() as f64;
            assert!(found >= exact && found <= exact * 1.001 + 1.0, "{per_mille}: {found} for {exact}");
        }
        let mean = sorted.iter().sum::<u64>() as f64 / n as f64;
        let exact = sorted.iter().map(|&v| (v as f64 - mean).abs()).sum::<f64>() / n as f64;
        let found = delays.mean_absolute_deviation().as_nanos() as f64;
        assert!((found - exact).abs() < exact * 0.001, "{found} for {exact}");
    }

    #[test]
    fn a_deviation_far_below_the_mean_is_right_within_a_thousandth() {
        // 270 ms and up to 40 us more, as of a link with a little jitter.
        let values: Vec<u64> = (0..200_000).map(|i: u64| 270_000_000 + i * 7_919 % 40_001).collect();
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        let exact = values.iter().map(|&v| (v as f64 - mean).abs()).sum::<f64>() / values.len() as f64;
        let found = of(values).mean_absolute_deviation().as_nanos() as f64;
        assert!((found - exact).abs() < exact * 0.001, "{found} for {exact}");
    }

    #[test]
    fn absurd_values_are_counted() {
        let mut delays = of((0..70_000).map(|i| u64::MAX - i));
        assert_eq!(delays.summary().unwrap().max, Duration::from_nanos(LONGEST));
        let _ = (delays.mean_absolute_deviation(), delays.cumulative(512));
    }

    #[test]
    fn the_tail_keeps_its_shape_in_the_cumulative_curve() {
        let mut delays = of((0..60_000).map(|i| if i < 59_990 { 1_000 + i } else { i * 1_000 }));
        let curve = delays.cumulative(512);
        assert!(curve.len() <= 512);
        let beyond = curve.iter().filter(|(value, _)| value.as_nanos() > 1_000_000).count();
        assert!(beyond >= 4, "{beyond} points for the ten outliers");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_cumulative_curve_says_the_share_of_values_at_most(
            values in prop::collection::vec(0u64..5_000, 1..3_000),
            points in 1usize..600,
        ) {
            let curve = of(values.iter().copied()).cumulative(points);
            prop_assert!(curve.len() <= points);
            prop_assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            prop_assert_eq!(curve.last().map(|last| last.1), Some(1.0));
            for (value, share) in curve {
                let at_most = values.iter().filter(|&&v| v <= value.as_nanos()).count();
                prop_assert_eq!(share, at_most as f64 / values.len() as f64);
            }
        }

        #[test]
        fn kept_percentiles_are_those_of_sorting(mut values in prop::collection::vec(any::<u32>(), 1..500), p in 0u16..=1000) {
            let mut delays = of(values.iter().map(|&v| u64::from(v)));
            values.sort_unstable();
            let expected = values[PerMille(p).rank(values.len() as u64) as usize - 1];
            prop_assert_eq!(delays.percentile(PerMille(p)), Some(Duration::from_nanos(u64::from(expected))));
        }
    }
}

//! Latency over time, in bounded memory for a run of any length.

use trunkline_core::{Duration, Time};

/// Keeps the largest latency of each interval of sending time. Intervals begin with the first message, are equally long,
/// and double when they would become more than [`LatencyOverTime::POINTS`]: a run of any length fills between half of
/// them and all.
#[derive(Clone, Debug)]
pub struct LatencyOverTime {
    start: Option<Time>,
    /// An interval is 2^width nanoseconds long.
    width: u32,
    intervals: Vec<Option<(Time, Duration)>>,
}

impl Default for LatencyOverTime {
    fn default() -> LatencyOverTime {
        LatencyOverTime { start: None, width: LatencyOverTime::FIRST_WIDTH, intervals: Vec::new() }
    }
}

impl LatencyOverTime {
    /// How many intervals there are at most.
    pub const POINTS: usize = 2_000;

    /// The first intervals are 1.024 us long.
    const FIRST_WIDTH: u32 = 10;

    /// Adds a message. One that was sent before the first one added counts in the first interval.
    #[inline]
    pub fn record(&mut self, sent: Time, latency: Duration) {
        let since = sent.since(*self.start.get_or_insert(sent)).as_nanos();
        while since >> self.width >= Self::POINTS as u64 {
            self.double();
        }
        let interval = (since >> self.width) as usize;
        if interval >= self.intervals.len() {
            self.intervals.resize(interval + 1, None);
        }
        let largest = &mut self.intervals[interval];
        if largest.is_none_or(|(_, other)| latency > other) {
            *largest = Some((sent, latency));
        }
    }

    /// The points, in the order of sending.
    pub fn points(&self) -> Vec<(Time, Duration)> {
        let mut points: Vec<_> = self.intervals.iter().flatten().copied().collect();
        // Only messages sent before the first one added can be out of order.
        points.sort_by_key(|&(sent, _)| sent);
        points
    }

    #[cold]
    fn double(&mut self) {
        let larger = |a: Option<(Time, Duration)>, b: Option<(Time, Duration)>| match (a, b) {
            (Some(first), Some(second)) => Some(if second.1 > first.1 { second } else { first }),
            (one, other) => one.or(other),
        };
        let halved = self.intervals.len().div_ceil(2);
        for i in 0..halved {
            self.intervals[i] =
                larger(self.intervals[2 * i], self.intervals.get(2 * i + 1).copied().flatten());
        }
        self.intervals.truncate(halved);
        self.width += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_run_is_kept_whole() {
        let mut curve = LatencyOverTime::default();
        let messages: Vec<_> = (0..1_000)
            .map(|i| (Time::from_nanos(7_000_000_000 + i * 10_000_000), Duration::from_nanos(i * i % 97)))
            .collect();
        messages.iter().for_each(|&(sent, latency)| curve.record(sent, latency));
        assert_eq!(curve.points(), messages);
    }

    #[test]
    fn a_spike_in_an_hour_is_kept() {
        let mut curve = LatencyOverTime::default();
        for i in 0..360_000u64 {
            let latency = if i == 123_457 { 1_000_000 } else { 500 + i % 10 };
            curve.record(Time::from_nanos(i * 10_000_000), Duration::from_nanos(latency));
        }
        let points = curve.points();
        assert!((1_000..=2_000).contains(&points.len()), "{}", points.len());
        assert!(points.contains(&(Time::from_nanos(1_234_570_000_000), Duration::from_millis(1))));
    }

    #[test]
    fn the_end_of_time_fits() {
        let mut curve = LatencyOverTime::default();
        curve.record(Time::ZERO, Duration::ZERO);
        curve.record(Time::MAX, Duration::MAX);
        assert_eq!(curve.points().len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn points_are_the_maxima_of_their_intervals(
            sent in prop::collection::vec((0u64..1 << 40, 0u64..1_000), 1..3_000),
        ) {
            let mut curve = LatencyOverTime::default();
            for &(sent, latency) in &sent {
                curve.record(Time::from_nanos(sent), Duration::from_nanos(latency));
            }
            let points = curve.points();
            prop_assert!(points.len() <= LatencyOverTime::POINTS);
            prop_assert!(points.is_sorted_by_key(|point| point.0));
            let interval = |at: u64| at.saturating_sub(sent[0].0) >> curve.width;
            for (at, latency) in points {
                let of_the_same = sent.iter().filter(|other| interval(other.0) == interval(at.as_nanos()));
                prop_assert_eq!(of_the_same.map(|other| other.1).max(), Some(latency.as_nanos()));
            }
        }
    }
}

//! How long the rest of a plan takes, from what its repetitions have taken so far.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::search::{Goal, Search, Verdict};

/// What the rest of a plan is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Values still to be measured, over all searches; those near an edge in part.
    pub values: usize,
    /// Repetitions still to be measured.
    pub repetitions: u64,
    /// Wall time until the end.
    pub left: Duration,
}

/// Wall time of repetitions, by search and value.
#[derive(Debug)]
pub(crate) struct Costs(Vec<BTreeMap<u64, Cost>>);

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    seconds: f64,
    repetitions: u32,
}

impl Costs {
    /// Of so many searches.
    pub(crate) fn new(searches: usize) -> Costs {
        Costs(vec![BTreeMap::new(); searches])
    }

    /// A repetition took so long.
    pub(crate) fn add(&mut self, search: usize, value: u64, took: Duration) {
        let cost = self.0[search].entry(value).or_default();
        cost.seconds += took.as_secs_f64();
        cost.repetitions += 1;
    }

    /// Seconds that a repetition takes. Between two values that were measured it lies on the line between them, beyond the
    /// outermost on the line from zero if those farther out cost more, else it stays the same. Of a search without any
    /// repetition it is what one takes on average.
    pub(crate) fn of(&self, search: usize, value: u64) -> f64 {
        let costs = &self.0[search];
        let mean = |(value, cost): (&u64, &Cost)| (*value, cost.seconds / f64::from(cost.repetitions.max(1)));
        let below = costs.range(..=value).next_back().map(mean);
        let above = costs.range(value..).next().map(mean);
        match (below, above) {
            (Some((low, _)), Some((high, cost))) if low == high => cost,
            (Some((low, cost)), Some((high, other))) => {
                cost + (other - cost) * (value - low) as f64 / (high - low) as f64
            }
            (Some((last, cost)), None) => {
                let grows =
                    costs.iter().next().map(mean).is_some_and(|(first, least)| first < last && least < cost);
                if grows { cost * value as f64 / last.max(1) as f64 } else { cost }
            }
            (None, Some((_, cost))) => cost,
            (None, None) => self.average(),
        }
    }

    fn average(&self) -> f64 {
        let all = || self.0.iter().flat_map(BTreeMap::values);
        let repetitions: u32 = all().map(|cost| cost.repetitions).sum();
        all().map(|cost| cost.seconds).sum::<f64>() / f64::from(repetitions.max(1))
    }
}

/// The values that a search will still ask for if its edge lies where it is expected: the first value that breaks a limit, or
/// none.
pub(crate) fn values_left(search: &Search, goal: Goal, broken: Option<u64>) -> Vec<u64> {
    /// More than any search takes whose edge is expected.
    const MOST: usize = 200;
    let mut search = search.clone();
    let edge = search.edge();
    let is_behind = |value: u64, other: u64| match goal {
        Goal::Maximise => value >= other,
        Goal::Minimise => value <= other,
    };
    // What was shown counts more than what is expected.
    let known = edge.broken.filter(|known| broken.is_none_or(|broken| is_behind(broken, *known)));
    let broken = known.or(broken.filter(|broken| edge.kept.is_none_or(|kept| !is_behind(kept, *broken))));
    let mut values = Vec::new();
    while let Some(value) = search.next_value().filter(|_| values.len() < MOST) {
        values.push(value);
        let breaks = broken.is_some_and(|broken| is_behind(value, broken));
        search.tell(value, if breaks { Verdict::Broken } else { Verdict::Kept });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Begin, Precision};

    #[test]
    fn a_repetition_costs_what_those_beside_it_cost() {
        let mut costs = Costs::new(2);
        assert_eq!(costs.of(0, 7), 0.0);
        for (value, millis) in [(10, 100), (10, 300), (20, 400)] {
            costs.add(0, value, Duration::from_millis(millis));
        }
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(costs.of(0, 10), 0.2);
        near(costs.of(0, 15), 0.3);
        near(costs.of(0, 40), 0.8);
        near(costs.of(0, 1), 0.2);
        near(costs.of(1, 10), 0.8 / 3.0);
        // Of a key that costs nothing, such as a rate, larger values cost no more.
        costs.add(1, 10, Duration::from_millis(500));
        costs.add(1, 20, Duration::from_millis(400));
        near(costs.of(1, 80), 0.4);
    }

    #[test]
    fn the_values_to_come_are_those_that_a_search_asks_for() {
        let search = Search::new(Goal::Maximise, 1..=1000, Begin::At(1), Precision::Step(1));
        let expecting = search.clone().expecting(Some(8), Some(9));
        assert_eq!(values_left(&expecting, Goal::Maximise, Some(9)), [8, 9, 18, 4]);
        let mut begun = expecting.clone();
        for (value, verdict) in [(8, Verdict::Kept), (9, Verdict::Broken)] {
            assert_eq!(begun.next_value(), Some(value));
            begun.tell(value, verdict);
        }
        assert_eq!(values_left(&begun, Goal::Maximise, Some(9)).len(), 2);
        // A value was shown to break a limit before the one that was expected to.
        let mut wrong = expecting;
        wrong.tell(8, Verdict::Broken);
        assert!(values_left(&wrong, Goal::Maximise, Some(9)).iter().all(|value| *value != 8));
        assert!(values_left(&search, Goal::Maximise, None).len() < 20);
    }
}

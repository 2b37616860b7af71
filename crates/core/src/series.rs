//! Values over time: the rate or the delay of a link during a run.

use std::sync::Arc;

use crate::time::{Duration, Time};

/// A value in steps, each of which holds until the next begins; the last for ever, or until all of them repeat. Whole numbers:
/// bits per second or nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    steps: Arc<[Step]>,
    every: Option<Duration>,
    /// Value times nanoseconds of all steps but an endless last one.
    per_round: u128,
}

/// A value and when it begins to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Since the start of the run, or of the repetition.
    pub from: Duration,
    /// The value.
    pub value: u64,
}

/// An error in the steps of a series; continues the sentence "`steps` ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// There is none.
    #[error("has no steps; expected at least one, at 0 s")]
    Empty,
    /// The first is later than the start.
    #[error("begins at {0}; the first step must be at 0 s")]
    Late(Duration),
    /// One is not after the one before.
    #[error("has a step at {0} behind one at {1}; sort the steps by their times, each of them once")]
    Unsorted(Duration, Duration),
    /// The last is not within the time after which all repeat.
    #[error("has a step at {0}, but repeats after {1}; `every` must be longer than the last step's time")]
    Beyond(Duration, Duration),
}

impl Series {
    /// Steps by time, the first at zero; they repeat after `every` if it is given.
    ///
    /// # Errors
    /// If they are not in that order.
    pub fn new(steps: impl Into<Arc<[Step]>>, every: Option<Duration>) -> Result<Series, SeriesError> {
        let steps = steps.into();
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Err(SeriesError::Empty) };
        if !first.from.is_zero() {
            return Err(SeriesError::Late(first.from));
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].from >= pair[1].from) {
            return Err(SeriesError::Unsorted(pair[1].from, pair[0].from));
        }
        match every {
            Some(every) if last.from >= every => Err(SeriesError::Beyond(last.from, every)),
            _ => {
                let ends = steps.iter().skip(1).map(|step| step.from).chain(every);
                let per_round =
                    steps.iter().zip(ends).map(|(step, end)| area(end - step.from, step.value)).sum();
                Ok(Series { steps, every, per_round })
            }
        }
    }

    /// The smallest value.
    pub fn min(&self) -> u64 {
        self.steps.iter().map(|step| step.value).min().unwrap_or_default()
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.steps.iter().map(|step| step.value).max().unwrap_or_default()
    }

    /// Starts to follow it.
    pub fn cursor(&self) -> Cursor {
        let mut cursor = Cursor { series: self.clone(), from: Time::ZERO, until: Time::ZERO, value: 0 };
        cursor.seek(Time::ZERO);
        cursor
    }
}

/// A series being followed: the step that holds is at hand, since times hardly ever go back.
#[derive(Clone, Debug)]
pub struct Cursor {
    series: Series,
    from: Time,
    until: Time,
    value: u64,
}

impl Cursor {
    /// The series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The value at a moment.
    #[inline]
    pub fn at(&mut self, at: Time) -> u64 {
        if at < self.from || at >= self.until {
            self.seek(at);
        }
        self.value
    }

    /// When the sum of value times nanoseconds since `from` has come to `amount`, to the next whole nanosecond, and how
    /// much more of it there is by then. Of a rate in bits per second, an amount of 1,000,000,000 is a bit.
    pub fn reach(&mut self, from: Time, amount: u128) -> (Time, u64) {
        let (mut at, mut left) = (from, amount);
        // Whole rounds have the same sum wherever they begin.
        if let Some(every) = self.series.every
            && left > self.series.per_round
        {
            let Some(rounds) = (left - 1).checked_div(self.series.per_round) else { return (Time::MAX, 0) };
            left -= rounds * self.series.per_round;
            at += every * u64::try_from(rounds).unwrap_or(u64::MAX);
        }
        while left > 0 {
            let value = self.at(at);
            let room = area(self.until.since(at), value);
            if left <= room || self.until == Time::MAX {
                let Some(nanos) = left.checked_div(u128::from(value)) else { return (Time::MAX, 0) };
                let rest = left % u128::from(value);
                let more = if rest == 0 { 0 } else { value - rest as u64 };
                let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                return (at + Duration::from_nanos(nanos.saturating_add(u64::from(rest > 0))), more);
            }
            left -= room;
            at = self.until;
        }
        (at, 0)
    }

    fn seek(&mut self, at: Time) {
        let nanos = at.as_nanos();
        let (round, offset) = match self.series.every {
            Some(every) => (nanos - nanos % every.as_nanos(), nanos % every.as_nanos()),
            None => (0, nanos),
        };
        let round = Time::from_nanos(round);
        let steps = &self.series.steps;
        let next = steps.partition_point(|step| step.from.as_nanos() <= offset);
        // The first is at zero.
        if let Some(step) = steps.get(next.wrapping_sub(1)) {
            (self.from, self.value) = (round + step.from, step.value);
        }
        let end = steps.get(next).map(|step| step.from).or(self.series.every);
        self.until = end.map_or(Time::MAX, |end| round + end);
    }
}

fn area(length: Duration, value: u64) -> u128 {
    u128::from(length.as_nanos()) * u128::from(value)
}

/// A value that is always the same, or changes over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverTime {
    /// Always the same, in bits per second or nanoseconds.
    Always(u64),
    /// In steps.
    Series(Series),
}

impl OverTime {
    /// The smallest value.
    pub fn min(&self) -> u64 {
        match self {
            OverTime::Always(value) => *value,
            OverTime::Series(series) => series.min(),
        }
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        match self {
            OverTime::Always(value) => *value,
            OverTime::Series(series) => series.max(),
        }
    }

    /// Starts to follow it.
    pub fn cursor(&self) -> Cursor {
        match self {
            // One step at zero is in order.
            OverTime::Always(value) => Series {
                steps: [Step { from: Duration::ZERO, value: *value }].into(),
                every: None,
                per_round: 0,
            }
            .cursor(),
            OverTime::Series(series) => series.cursor(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(steps: &[(u64, u64)]) -> Vec<Step> {
        steps.iter().map(|&(ms, value)| Step { from: Duration::from_millis(ms), value }).collect()
    }

    fn series(of: &[(u64, u64)], every: Option<u64>) -> Series {
        Series::new(steps(of), every.map(Duration::from_millis)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn steps_hold_until_the_next_and_repeat() {
        let mut once = series(&[(0, 5), (10, 7), (30, 1)], None).cursor();
        assert_eq!([0, 9, 10, 29, 30, 1_000_000, 12].map(|at| once.at(ms(at))), [5, 5, 7, 7, 1, 1, 7]);
        let mut repeated = series(&[(0, 5), (10, 7)], Some(15)).cursor();
        assert_eq!([0, 10, 14, 15, 25, 30, 1_509].map(|at| repeated.at(ms(at))), [5, 7, 7, 5, 7, 5, 5]);
    }

    #[test]
    fn wrong_steps_are_refused_in_a_sentence() {
        let wrong = |of: &[(u64, u64)], every: Option<u64>| {
            Series::new(steps(of), every.map(Duration::from_millis)).unwrap_err().to_string()
        };
        assert!(wrong(&[], None).starts_with("has no steps"));
        assert!(wrong(&[(5, 1)], None).starts_with("begins at 5 ms"));
        assert!(wrong(&[(0, 1), (9, 1), (9, 2)], None).starts_with("has a step at 9 ms behind one at 9 ms"));
        assert!(wrong(&[(0, 1), (9, 1)], Some(9)).starts_with("has a step at 9 ms, but repeats after 9 ms"));
    }

    #[test]
    fn what_never_comes_is_never_reached() {
        assert_eq!(series(&[(0, 0)], Some(5)).cursor().reach(ms(3), 1).0, Time::MAX);
        assert_eq!(series(&[(0, 4), (1, 0)], None).cursor().reach(ms(0), 4_000_001).0, Time::MAX);
        assert_eq!(series(&[(0, 4), (1, 0)], None).cursor().reach(ms(0), 4_000_000).0, ms(1));
        assert_eq!(OverTime::Always(7).cursor().reach(ms(5), 0), (ms(5), 0));
    }

    proptest! {
        /// In parts or at once, and as slowly as a sum over all nanoseconds.
        #[test]
        fn amounts_are_reached_when_the_sum_over_all_moments_says(
            values in prop::collection::vec((1u64..20, 0u64..50), 1..6),
            endless in any::<bool>(),
            start in 0u64..200,
            amounts in prop::collection::vec(0u128..3_000, 1..8),
        ) {
            let mut from = 0;
            let steps: Vec<Step> = values.iter().map(|&(length, value)| {
                let step = Step { from: Duration::from_nanos(from), value };
                from += length;
                step
            }).collect();
            let every = (!endless).then(|| Duration::from_nanos(from));
            let series = Series::new(steps, every).unwrap();
            let (mut cursor, mut slow) = (series.cursor(), series.cursor());
            let (mut at, mut more) = (Time::from_nanos(start), 0);
            for amount in amounts {
                let (mut sum, mut nanos) = (u128::from(more), at.as_nanos());
                while sum < amount && nanos < at.as_nanos() + 100_000 {
                    sum += u128::from(slow.at(Time::from_nanos(nanos)));
                    nanos += 1;
                }
                if amount <= u128::from(more) {
                    more -= amount as u64;
                    continue;
                }
                (at, more) = cursor.reach(at, amount - u128::from(more));
                if at == Time::MAX || at.as_nanos() > nanos {
                    prop_assert!(sum < amount, "{sum} of {amount} by {nanos}");
                    break;
                }
                prop_assert_eq!((at.as_nanos(), u128::from(more)), (nanos, sum - amount));
            }
        }
    }
}

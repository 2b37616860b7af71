//! Busy time of a line, of which only that within the measurement counts.

use trunkline_core::{Duration, Ratio, Time};

/// How long a line was busy. A transmission is counted when it begins, so that the last one may reach beyond the moment at
/// which the measurement ends: that part is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusyTime {
    total: Duration,
    /// The busy time of the last transmissions without a gap between them.
    last: Duration,
    /// When the last transmission begins, and when it ends.
    begun: Time,
    until: Time,
    /// What had passed of it when the measurement ended.
    measured: Option<Duration>,
}

impl BusyTime {
    /// Adds a transmission that ends at `until` and keeps the line busy for `busy` before that.
    pub fn add(&mut self, until: Time, busy: Duration) {
        self.total += busy;
        let follows = until.since(self.until) <= busy && self.total > Duration::ZERO;
        self.last = if follows { self.last + busy } else { busy };
        self.begun = Time::from_nanos(until.as_nanos().saturating_sub(busy.as_nanos()));
        self.until = until;
    }

    /// All of it, with the transmissions that have not ended yet.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The same with a total that is known more exactly than the sum of the transmissions.
    pub(crate) fn with_total(self, total: Duration) -> BusyTime {
        BusyTime { total, ..self }
    }

    /// What of it has passed at `at`. What has begun and not ended by then stands without gaps.
    pub fn by(&self, at: Time) -> Duration {
        self.total.saturating_sub(self.last.min(self.until.since(at)))
    }

    /// When the transmission began that is under way at `at`, and the share of it that is still to come.
    pub fn under_way(&self, at: Time) -> Option<(Time, f64)> {
        let left = self.until.since(at).as_secs_f64();
        let whole = self.until.since(self.begun).as_secs_f64();
        (left > 0.0).then(|| (self.begun, (left / whole).min(1.0)))
    }

    /// The measurement ends at `at`: later transmissions do not count. Only the first call does something.
    pub fn end(&mut self, at: Time) {
        self.measured = self.measured.or(Some(self.by(at)));
    }

    /// The busy time of a measurement of this length.
    pub fn measured(&self, over: Duration) -> Duration {
        self.measured.unwrap_or_else(|| self.by(Time::ZERO + over))
    }

    /// Its share of a measurement of this length.
    pub fn share(&self, over: Duration) -> Ratio {
        share(self.measured(over), over)
    }
}

/// The share that a part has of a time, at most 1.
pub(crate) fn share(part: Duration, of: Duration) -> Ratio {
    if of.is_zero() {
        return Ratio::ZERO;
    }
    Ratio::new((part.as_secs_f64() / of.as_secs_f64()).min(1.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Time {
        Time::ZERO + MS(ms)
    }

    #[test]
    fn the_part_of_a_transmission_beyond_the_end_does_not_count() {
        let mut busy = BusyTime::default();
        busy.add(at(10), MS(10));
        busy.add(at(30), MS(10));
        for (now, passed) in [(10, 10), (20, 10), (25, 15), (30, 20), (100, 20)] {
            assert_eq!(busy.by(at(now)), MS(passed), "after {now} ms");
        }
        assert_eq!(busy.total(), MS(20));
        assert_eq!((busy.under_way(at(25)), busy.under_way(at(30))), (Some((at(20), 0.5)), None));
    }

    #[test]
    fn transmissions_known_in_advance_count_as_far_as_they_have_passed() {
        let mut busy = BusyTime::default();
        [10, 20, 30].into_iter().for_each(|end| busy.add(at(end), MS(10)));
        for (now, passed) in [(0, 0), (5, 5), (15, 15), (30, 30), (31, 30)] {
            assert_eq!(busy.by(at(now)), MS(passed), "after {now} ms");
        }
    }

    #[test]
    fn the_share_is_of_the_measurement() {
        let mut busy = BusyTime::default();
        busy.add(at(50), MS(50));
        assert_eq!(busy.share(MS(100)), Ratio::new(0.5).unwrap());
        busy.end(at(100));
        // What is sent while the rest drains.
        busy.add(at(300), MS(200));
        busy.end(at(300));
        assert_eq!((busy.share(MS(100)), busy.total()), (Ratio::new(0.5).unwrap(), MS(250)));
        assert_eq!(BusyTime::default().share(Duration::ZERO), Ratio::ZERO);
    }
}

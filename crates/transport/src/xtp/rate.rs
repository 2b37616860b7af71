//! Rate control: credit for a burst, renewed by RTIMER.

use trunkline_core::{Duration, Time};

use super::config::RateLimit;

/// The credit that is left of the current period. Periods begin with the first packet and follow each other without
/// gaps, each with the same credit: what a period leaves unused is lost.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    limit: Option<RateLimit>,
    period: Duration,
    /// When the current period began; `None` before the first packet.
    began: Option<Time>,
    credit: u64,
}

impl RateControl {
    pub(super) fn new(limit: Option<RateLimit>) -> RateControl {
        let period = limit.map_or(Duration::ZERO, |limit| {
            // Rounded up: a period that is too short by a fraction would exceed the rate.
            let nanos = (u64::from(limit.burst) * 1_000_000_000).div_ceil(u64::from(limit.rate.max(1)));
            Duration::from_nanos(nanos.max(1))
        });
        RateControl { limit, period, began: None, credit: limit.map_or(0, |limit| u64::from(limit.burst)) }
    }

    /// The most data that one packet may hold under this limit.
    pub(super) fn largest(&self) -> usize {
        self.limit.map_or(usize::MAX, |limit| limit.burst as usize)
    }

    /// Whether this many bytes may be sent at `now`.
    pub(super) fn allows(&mut self, now: Time, bytes: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        if let Some(began) = self.began {
            let periods = now.since(began).as_nanos() / self.period.as_nanos();
            if periods > 0 {
                self.began = Some(began + self.period * periods);
                self.credit = u64::from(limit.burst);
            }
        }
        bytes as u64 <= self.credit
    }

    /// Takes what was sent off the credit.
    pub(super) fn spend(&mut self, now: Time, bytes: usize) {
        if self.limit.is_some() {
            self.began.get_or_insert(now);
            self.credit = self.credit.saturating_sub(bytes as u64);
        }
    }

    /// When the next credit comes (RTIMER).
    pub(super) fn renewal(&self) -> Option<Time> {
        self.limit.and(self.began).map(|began| began + self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = |ms| Time::from_nanos(ms * 1_000_000);

    #[test]
    fn a_period_gives_one_burst() {
        // 1000 bytes in each 10 ms.
        let mut rate = RateControl::new(Some(RateLimit { rate: 100_000, burst: 1000 }));
        assert!(rate.allows(MS(5), 1000) && !rate.allows(MS(5), 1001));
        rate.spend(MS(5), 700);
        assert!(rate.allows(MS(14), 300) && !rate.allows(MS(14), 301));
        assert_eq!(rate.renewal(), Some(MS(15)));
        assert!(rate.allows(MS(15), 1000));
        rate.spend(MS(15), 1000);
        // What two idle periods left unused is lost, and periods stay on their grid.
        assert!(!rate.allows(MS(24), 1) && rate.allows(MS(47), 1000) && !rate.allows(MS(47), 1001));
        rate.spend(MS(47), 1000);
        assert!(!rate.allows(MS(54), 1) && rate.allows(MS(55), 1));
    }

    #[test]
    fn without_a_limit_everything_passes_and_no_timer_runs() {
        let mut rate = RateControl::new(None);
        assert!(rate.allows(MS(0), usize::MAX));
        rate.spend(MS(0), 1_000_000);
        assert_eq!(rate.renewal(), None);
        assert!(rate.allows(MS(0), usize::MAX));
    }
}

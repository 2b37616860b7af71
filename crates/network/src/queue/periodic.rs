//! Laws that are applied periodically, without a timer: whoever calls the queue makes up for what is due.

use trunkline_core::{Duration, Time};

/// The moments at which a controller is updated: the multiples of a period, counted from the start of time.
///
/// A queue is called only when packets come and go. It then first applies every update that has become due, each with
/// the time at which it was due, so that the result does not depend on when it is called.
#[derive(Clone, Debug)]
pub(super) struct Periodic {
    period: Duration,
    next: Time,
}

/// What further updates would change while no packet comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// The controller may still move.
    Moving,
    /// Of all later updates only the last counts: the controller rests, or is at an end of its range and held there.
    Settled,
}

impl Periodic {
    /// Updates every `period`; a period of zero is taken as a nanosecond.
    pub(super) fn new(period: Duration) -> Periodic {
        let period = period.max(Duration::from_nanos(1));
        Periodic { period, next: Time::ZERO + period }
    }

    /// Calls `update` for every moment up to and including `now` that it was not yet called for, in order. After long
    /// idleness it skips from where the controller has settled to the last of them.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time, mut update: impl FnMut(Time) -> Outlook) {
        while self.next <= now && self.next != Time::MAX {
            let due = self.next;
            self.next = due + self.period;
            if update(due) == Outlook::Settled {
                let period = self.period.as_nanos();
                let last = Time::from_nanos(now.as_nanos() / period * period);
                self.next = self.next.max(last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(n: u64) -> Time {
        Time::from_nanos(n)
    }

    #[test]
    fn every_moment_comes_once_and_in_order_however_often_it_is_asked() {
        let due_by = |calls: &[u64]| {
            let (mut updates, mut due) = (Periodic::new(Duration::from_nanos(10)), Vec::new());
            for &now in calls {
                updates.catch_up(nanos(now), |at| {
                    due.push(at.as_nanos());
                    Outlook::Moving
                });
            }
            due
        };
        assert_eq!(due_by(&[9]), []);
        assert_eq!(due_by(&[10, 10, 11]), [10]);
        assert_eq!(due_by(&[45]), [10, 20, 30, 40]);
        assert_eq!(due_by(&[5, 10, 12, 35, 45]), due_by(&[45]));
    }

    #[test]
    fn a_settled_controller_is_updated_for_the_last_time_only() {
        let (mut updates, mut due) = (Periodic::new(Duration::from_nanos(10)), Vec::new());
        let mut until = |now, settled_from| {
            updates.catch_up(nanos(now), |at| {
                due.push(at.as_nanos());
                if at >= nanos(settled_from) { Outlook::Settled } else { Outlook::Moving }
            });
            core::mem::take(&mut due)
        };
        assert_eq!(until(1_000_000_000_003, 30), [10, 20, 30, 1_000_000_000_000]);
        assert_eq!(until(1_000_000_000_020, 0), [1_000_000_000_010, 1_000_000_000_020]);
        assert_eq!(until(u64::MAX, 0).len(), 2);
        assert_eq!(until(u64::MAX, 0).len(), 0, "the end of time comes once");
    }
}

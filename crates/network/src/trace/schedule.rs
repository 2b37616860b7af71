//! Which bytes leave when.

use std::sync::Arc;

use trunkline_core::delivery_trace::DeliveryTrace;
use trunkline_core::schema::Values;
use trunkline_core::{Bytes, Duration, Time};

use crate::point_to_point::Line;

/// A trace being gone through. At each of its moments so many bytes leave as its opportunities have; those of a packet may
/// leave at several moments.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    trace: Arc<DeliveryTrace>,
    /// The bytes of an opportunity, at least 1.
    opportunity: u64,
    /// When the round began.
    round: Time,
    /// The first moment of the round that has bytes left.
    place: usize,
    /// How many of its bytes are taken, fewer than it has.
    used: u64,
}

impl Schedule {
    /// A trace that begins at the beginning of time, unused.
    pub(super) fn new(trace: Arc<DeliveryTrace>, opportunity: Bytes) -> Schedule {
        Schedule { trace, opportunity: opportunity.count().max(1), round: Time::ZERO, place: 0, used: 0 }
    }

    /// Goes to the first moment later than `at`, unused.
    fn seek(&mut self, at: Time) {
        let (at, period) = (at.as_nanos(), self.trace.period().as_nanos());
        let into = Duration::from_nanos(at % period);
        self.round = Time::from_nanos(at - into.as_nanos());
        // The last moment is at the end of the period, so that there always is a later one.
        self.place = self.trace.moments().partition_point(|moment| moment.at <= into);
        self.used = 0;
    }

    /// Takes as many as possible of `wanted` bytes from the moment at hand: how many, and for how long the line was busy
    /// with them if a moment stands for the time since the one before.
    fn take(&mut self, wanted: u64) -> (u64, Duration) {
        let moments = self.trace.moments();
        let moment = moments[self.place];
        let before = self.place.checked_sub(1).map_or(Duration::ZERO, |place| moments[place].at);
        let (room, span) = (moment.opportunities.saturating_mul(self.opportunity), moment.at - before);
        let passed = |bytes: u64| u128::from(span.as_nanos()) * u128::from(bytes) / u128::from(room);
        let taken = wanted.min(room - self.used);
        // Rounded so that all bytes of a moment together take its span.
        let busy = passed(self.used + taken) - passed(self.used);
        self.used += taken;
        if self.used == room {
            self.used = 0;
            self.place += 1;
            if self.place == moments.len() {
                self.place = 0;
                self.round += self.trace.period();
            }
        }
        (taken, Duration::from_nanos(u64::try_from(busy).unwrap_or(u64::MAX)))
    }
}

impl Line for Schedule {
    fn free(&self) -> Time {
        self.round + self.trace.moments()[self.place].at
    }

    /// A packet that arrives at a moment of the trace has missed it, as in mahimahi.
    fn ready(&mut self, at: Time) -> Time {
        if self.free() <= at {
            self.seek(at);
        }
        self.free()
    }

    fn transmit(&mut self, now: Time, size: Bytes) -> (Time, Duration) {
        if self.free() < now {
            self.seek(Time::from_nanos(now.as_nanos().saturating_sub(1)));
        }
        let (mut end, mut busy, mut left) = (self.free(), Duration::ZERO, size.count());
        while left > 0 {
            end = self.free();
            let (taken, took) = self.take(left);
            left -= taken;
            busy += took;
        }
        (end, busy)
    }

    fn change(&mut self, at: Time, values: &Values) {
        let new = super::schedule(values);
        if (&new.trace, new.opportunity) != (&self.trace, self.opportunity) {
            // What is left of the moment at hand is lost, as when the link is idle.
            let from = if self.used > 0 { self.free().max(at) } else { at };
            *self = new;
            self.seek(from);
        }
    }
}

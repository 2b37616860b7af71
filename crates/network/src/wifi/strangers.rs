//! Stations that are no part of the experiment and keep the channel busy for a share of the time.

use trunkline_core::{Duration, Stream, Time};

/// Busy periods of exponential or of equal length with exponential gaps between them.
///
/// They are planned without regard to the cell. A period that would begin during a transmission begins after it, and one
/// that would begin before its predecessor's end follows it, so that the share of the time comes out as given as long
/// as the channel can carry it.
#[derive(Debug)]
pub(super) struct Strangers {
    /// Means in nanoseconds.
    busy: f64,
    gap: f64,
    equal: bool,
    stream: Stream,
    next: Time,
    length: Duration,
}

impl Strangers {
    /// Those who take `share` of the time, in periods of that mean length, or `equal` to it; nobody if the share is zero.
    pub(super) fn new(share: f64, mean: Duration, equal: bool, stream: Stream) -> Option<Strangers> {
        if share <= 0.0 {
            return None;
        }
        let busy = mean.as_nanos() as f64;
        let gap = busy * (1.0 - share) / share;
        let mut strangers = Strangers { busy, gap, equal, stream, next: Time::ZERO, length: Duration::ZERO };
        strangers.plan();
        Some(strangers)
    }

    /// When the next period begins, unless the channel is busy then.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Lets them have the channel that the cell left at `from`, and returns when it is idle again.
    pub(super) fn occupy(&mut self, from: Time) -> Time {
        let mut end = from;
        while self.next <= end && self.next < Time::MAX {
            end += self.length;
            self.next += self.length;
            self.plan();
        }
        end
    }

    /// Draws the next period, a gap after `next`.
    fn plan(&mut self) {
        let mut draw = |mean| Duration::from_nanos(self.stream.exponential(mean) as u64 + 1);
        self.next += draw(self.gap);
        self.length = if self.equal { Duration::from_nanos(self.busy as u64) } else { draw(self.busy) };
    }
}

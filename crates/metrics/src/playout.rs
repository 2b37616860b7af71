//! Late messages, by playout deadline.

use trunkline_core::{Duration, Time};

use crate::jitter::transit;

/// The deadlines of one channel. The first message sets the clock of the playout: it is played `delay` after it
/// arrived, and every other message as much later (or earlier) as it was due after it. For voice of n samples a message
/// the deadlines therefore lie n x 125 us apart (Weaver and McNabb 1992 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Playout {
    /// From when the first message was due to its arrival, in nanoseconds.
    first: Option<i64>,
}

impl Playout {
    /// How long after they are due messages are played, with this delay; `None` before the first has arrived.
    pub fn from_due(&self, delay: Duration) -> Option<Duration> {
        Some(Duration::from_nanos(u64::try_from(self.first?).unwrap_or(0)) + delay)
    }

    /// Takes the next message to arrive and says whether it is too late to be played.
    #[inline]
    pub fn is_late(&mut self, delay: Duration, due: Time, received: Time) -> bool {
        let from_due = transit(due, received);
        let first = *self.first.get_or_insert(from_due);
        i128::from(from_due) > i128::from(first) + i128::from(delay.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_follow_the_due_times_of_the_first_message() {
        let mut playout = Playout::default();
        let mut late = |due: u64, received: u64| {
            let ms = |n| Time::from_nanos(n * 1_000_000);
            playout.is_late(Duration::from_millis(60), ms(due), ms(received))
        };
        // Messages of 80 samples, due each 10 ms. The first arrives at 120: it is played at 180, the next at 190.
        assert!(!late(100, 120));
        assert!(!late(110, 190));
        assert!(late(110, 191));
        // One that was due before the first to arrive has an earlier deadline.
        assert!(!late(90, 170));
        assert!(late(90, 171));
        assert_eq!(playout.from_due(Duration::from_millis(60)), Some(Duration::from_millis(80)));
    }
}

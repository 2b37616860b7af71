//! The kernel's stamps, which are of the calendar's clock, brought to the monotonic one.

use super::{raw_now, read, turned_now};

/// Brings the kernel's stamps of one socket to the monotonic clock, whatever is done to the calendar's.
///
/// The calendar's clock (`CLOCK_REALTIME`) is turned by time servers as `CLOCK_MONOTONIC` is, and set besides. That it
/// was set shows in its distance from the latter. What was stamped before cannot be told from what was stamped after it,
/// so no stamp counts until everything has been taken that may have waited since.
///
/// [`look`](Stamps::look) after each batch, then [`bring`](Stamps::bring) its stamps.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    latest: Look,
    /// What waits may have been stamped before the calendar's clock was set.
    is_mixed: bool,
    /// The stamps of the batch count.
    counts: bool,
}

/// What the three clocks show at one moment, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    raw: u64,
    turned: u64,
    /// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, and by how much this may be wrong.
    ahead: i64,
    error: u64,
}

impl Stamps {
    /// Knows what the clocks show now.
    pub fn new() -> Stamps {
        Stamps { latest: Look::now(), is_mixed: false, counts: true }
    }

    /// Looks at the clocks; to be called after a batch was taken from the socket. `emptied` says that the socket had no more.
    #[inline]
    pub fn look(&mut self, emptied: bool) {
        self.take(Look::now(), emptied);
    }

    fn take(&mut self, look: Look, emptied: bool) {
        let apart = look.ahead.abs_diff(self.latest.ahead);
        let was_set = apart > look.error + self.latest.error;
        self.counts = !was_set && !self.is_mixed;
        // What has come after the socket was found empty, a batch ago or earlier, was stamped by the clock as it is now.
        self.is_mixed = was_set || (self.is_mixed && !emptied);
        self.latest = look;
    }

    /// When a datagram of the batch arrived, by the raw monotonic clock; `None` if its stamp tells nothing, because the
    /// calendar's clock was set.
    #[inline]
    pub fn bring(&self, stamp: u64) -> Option<u64> {
        let Look { raw, turned, ahead, .. } = self.latest;
        let age = turned.saturating_sub(stamp.saturating_add_signed(-ahead));
        self.counts.then(|| raw.saturating_sub(age))
    }
}

impl Default for Stamps {
    fn default() -> Stamps {
        Stamps::new()
    }
}

/// A look that took no longer, in nanoseconds, is close enough.
const CLOSE: u64 = 400;

impl Look {
    fn now() -> Look {
        let look = || {
            let before = turned_now();
            let realtime = read(libc::CLOCK_REALTIME);
            let raw = raw_now();
            let width = turned_now() - before;
            let turned = before + width / 2;
            Look { raw, turned, ahead: realtime as i64 - turned as i64, error: width / 2 + 1 }
        };
        let mut closest = look();
        for _ in 0..2 {
            if closest.error > CLOSE / 2 {
                let next = look();
                closest = if next.error < closest.error { next } else { closest };
            }
        }
        closest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A host at a moment of true time: how far its turned clock has been turned, and its calendar's been set.
    struct Host {
        /// When a slew begins, how long it lasts, and by how much in nanoseconds per second.
        slew: (u64, u64, i64),
        /// When it is set, and by how much.
        steps: Vec<(u64, i64)>,
    }

    impl Host {
        fn turned(&self, at: u64) -> u64 {
            let (from, length, rate) = self.slew;
            let slewed = at.saturating_sub(from).min(length);
            (at + 3 * SECOND)
                .saturating_add_signed((i128::from(slewed) * i128::from(rate) / 1_000_000_000) as i64)
        }

        fn realtime(&self, at: u64) -> u64 {
            let steps: i64 = self.steps.iter().filter(|step| step.0 <= at).map(|step| step.1).sum();
            self.turned(at).saturating_add_signed(1_700_000_000 * SECOND as i64 + steps)
        }

        fn look(&self, at: u64, error: u64) -> Look {
            let turned = self.turned(at);
            let ahead = self.realtime(at) as i64 - turned as i64 + error as i64 / 2;
            Look { raw: at, turned, ahead, error }
        }
    }

    proptest! {
        /// Datagrams arrive and are taken in batches; meanwhile the clock is set and turned as somebody likes.
        #[test]
        fn a_stamp_is_brought_over_rightly_or_not_at_all(
            gaps in prop::collection::vec((1_000..5_000_000u64, 0..8usize, 0..200u64), 1..80),
            slew in (0..SECOND / 5, 10_000_000..SECOND, -100_000_000..=100_000_000i64),
            steps in prop::collection::vec((0..SECOND / 5, -3 * SECOND as i64..3 * SECOND as i64), 0..4),
        ) {
            const ROOM: usize = 3;
            let host = Host { slew, steps };
            let mut stamps = Stamps { latest: host.look(0, 100), is_mixed: false, counts: true };
            let (mut now, mut waiting) = (0, std::collections::VecDeque::new());
            for (gap, arrivals, error) in gaps {
                for place in 0..arrivals as u64 {
                    waiting.push_back(now + gap * place / 8);
                }
                now += gap;
                let batch: Vec<u64> = (0..ROOM).map_while(|_| waiting.pop_front()).collect();
                // Something arrives between taking the batch and looking at the clocks, too.
                waiting.push_back(now);
                now += 700;
                stamps.take(host.look(now, error), batch.len() < ROOM);
                for arrived in batch {
                    let Some(brought) = stamps.bring(host.realtime(arrived)) else { continue };
                    // A tenth of the time that it waited, and what the looks may be wrong by.
                    let allowed = (now - arrived) / 9 + 2 * error + 210;
                    prop_assert!(brought.abs_diff(arrived) <= allowed, "{arrived} became {brought} at {now}");
                }
            }
        }
    }

    #[test]
    fn stamps_count_again_once_the_socket_was_empty() {
        let host = Host { slew: (0, 0, 0), steps: vec![(1_000, 70_000_000)] };
        let mut stamps = Stamps { latest: host.look(0, 10), is_mixed: false, counts: true };
        let mut brought = |at: u64, emptied| {
            stamps.take(host.look(at, 10), emptied);
            stamps.bring(host.realtime(at - 100)).map(|raw| raw.abs_diff(at - 100) <= 20)
        };
        assert_eq!(brought(500, true), Some(true));
        assert_eq!(brought(2_000, true), None, "it was set");
        assert_eq!(brought(3_000, false), None, "more of before may wait");
        assert_eq!(brought(4_000, true), None);
        assert_eq!(brought(5_000, false), Some(true));
    }

    #[test]
    fn a_stamp_of_this_moment_is_this_moment() {
        let mut stamps = Stamps::new();
        let (before, stamp, after) = (raw_now(), read(libc::CLOCK_REALTIME), raw_now());
        stamps.look(true);
        // Somebody may have set the clock.
        if let Some(brought) = stamps.bring(stamp) {
            let error = 2 * stamps.latest.error + 1_000_000;
            assert!((before - error..=after + error).contains(&brought));
        }
    }
}

//! Jitter of one channel, by the definitions that need the order of messages.

use trunkline_core::{Duration, Time};

/// Receive minus send time in nanoseconds: latency that may be negative, since two hosts' clocks may differ. Only
/// differences of transit times are used.
pub(crate) fn transit(sent: Time, received: Time) -> i64 {
    received.as_nanos().wrapping_sub(sent.as_nanos()) as i64
}

/// The interarrival jitter J of RFC 3550 section 6.4.1, in the integer form of its appendix A.8, in nanoseconds.
///
/// The send time stands for the RTP time stamp. Messages count in the order of arrival, whatever their sequence
/// numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterarrivalJitter {
    last_transit: i64,
    /// Sixteen times J: the fraction that the appendix keeps.
    scaled: u64,
    /// How many messages have arrived, counted to two.
    arrivals: u8,
}

impl InterarrivalJitter {
    /// Takes the next message to arrive.
    #[inline]
    pub fn arrival(&mut self, sent: Time, received: Time) {
        let transit = transit(sent, received);
        if self.arrivals > 0 {
            // J += (|D| - J) / 16, rounded as in the appendix.
            let smoothed = self.scaled - (self.scaled.saturating_add(8) >> 4);
            self.scaled = smoothed.saturating_add(transit.abs_diff(self.last_transit));
        }
        self.last_transit = transit;
        self.arrivals = 2.min(self.arrivals + 1);
    }

    /// J now; `None` before the second arrival.
    pub fn value(&self) -> Option<Duration> {
        (self.arrivals > 1).then(|| Duration::from_nanos(self.scaled >> 4))
    }
}

/// Pairs messages with consecutive sequence numbers (RFC 3393, selection function "consecutive packets") in any order
/// of arrival, as long as their arrivals lie fewer than [`IpdvPairs::REACH`] sequence numbers apart.
#[derive(Clone, Copy, Debug)]
pub struct IpdvPairs {
    /// A message stands at its sequence number modulo their number, beside its neighbours.
    recent: [Arrived; IpdvPairs::REACH],
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Arrived {
    sequence: u32,
    transit: i64,
}

impl Default for IpdvPairs {
    fn default() -> IpdvPairs {
        // A number that has its place elsewhere: it is never looked for here.
        let nothing = |place| Arrived { sequence: place as u32 + 1, transit: 0 };
        IpdvPairs { recent: core::array::from_fn(nothing) }
    }
}

impl IpdvPairs {
    /// How many recent sequence numbers are remembered.
    pub const REACH: usize = 16;

    /// Takes a message that arrived for the first time and returns |IPDV| of the pairs it completes: with its
    /// predecessor and with its successor.
    #[inline]
    pub fn arrival(&mut self, sequence: u32, sent: Time, received: Time) -> [Option<Duration>; 2] {
        let transit = transit(sent, received);
        let pairs = [sequence.wrapping_sub(1), sequence.wrapping_add(1)]
            .map(|other| self.get(other).map(|its| Duration::from_nanos(transit.abs_diff(its))));
        self.recent[sequence as usize % Self::REACH] = Arrived { sequence, transit };
        pairs
    }

    fn get(&self, sequence: u32) -> Option<i64> {
        let there = self.recent[sequence as usize % Self::REACH];
        (there.sequence == sequence).then_some(there.transit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn interarrival_jitter_follows_the_formula() {
        // D is 16, 0, then -32 ns: J = 16/16 = 1; 1 - 1/16; and so on, by the real-number formula.
        let mut jitter = InterarrivalJitter::default();
        assert_eq!(jitter.value(), None);
        let scale = 1_000_000;
        let mut expected = 0.0;
        let mut last = None;
        for (i, transit) in [100u64, 116, 116, 84, 300, 100, 90, 95].into_iter().enumerate() {
            let transit = transit * scale;
            let sent = i as u64 * 20_000_000;
            jitter.arrival(at(sent), at(sent + transit));
            if let Some(last) = last.replace(transit) {
                expected += (transit.abs_diff(last) as f64 - expected) / 16.0;
            }
        }
        let value = jitter.value().unwrap().as_nanos() as f64;
        assert!((value - expected).abs() <= 1.0, "{value} for {expected}");
    }

    #[test]
    fn a_constant_difference_of_clocks_is_no_jitter() {
        let mut jitter = InterarrivalJitter::default();
        for i in 0..10 {
            // The receiver's clock is behind: "received" lies before "sent".
            jitter.arrival(at(1_000_000 + i * 10), at(5 + i * 10));
        }
        assert_eq!(jitter.value(), Some(Duration::ZERO));
    }

    #[test]
    fn interarrival_jitter_converges_to_a_steady_difference() {
        let mut jitter = InterarrivalJitter::default();
        for i in 0..1_000u64 {
            jitter.arrival(at(i * 1_000_000), at(i * 1_000_000 + 50_000 + (i % 2) * 160));
        }
        let value = jitter.value().unwrap().as_nanos();
        assert!((159..=161).contains(&value), "{value}");
    }

    #[test]
    fn ipdv_pairs_neighbours_in_any_order_of_arrival() {
        let mut pairs = IpdvPairs::default();
        let ns = |n| Some(Duration::from_nanos(n));
        assert_eq!(pairs.arrival(0, at(0), at(100)), [None, None]);
        assert_eq!(pairs.arrival(2, at(20), at(130)), [None, None]);
        // Message 1 comes last, with a transit of 125: 25 more than 0's, 15 more than 2's.
        assert_eq!(pairs.arrival(1, at(10), at(135)), [ns(25), ns(15)]);
        // 3 is lost: 4 has no neighbour.
        assert_eq!(pairs.arrival(4, at(40), at(140)), [None, None]);
    }

    #[test]
    fn ipdv_crosses_the_wrap_of_sequence_numbers() {
        let mut pairs = IpdvPairs::default();
        pairs.arrival(u32::MAX, at(0), at(7));
        assert_eq!(pairs.arrival(0, at(10), at(20)), [Some(Duration::from_nanos(3)), None]);
    }

    #[test]
    fn ipdv_forgets_what_is_out_of_reach() {
        let mut pairs = IpdvPairs::default();
        pairs.arrival(0, at(0), at(7));
        pairs.arrival(16, at(0), at(9));
        assert_eq!(pairs.arrival(1, at(0), at(9)), [None, None]);
    }
}

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
#[repr(C, packed(4))]
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
///
/// While messages arrive in order and without gaps, only the last can be the neighbour of one to come. The others are kept
/// from a gap on, until it is out of reach.
#[derive(Clone, Debug)]
pub struct IpdvPairs {
    /// A message stands at its sequence number modulo their number, beside its neighbours.
    recent: Option<Box<[Arrived; IpdvPairs::REACH]>>,
    /// The message that arrived last.
    last: Arrived,
    has_last: bool,
    /// Number of messages up to the last that followed the one before in order and without a gap, counted to
    /// [`IpdvPairs::REACH`].
    in_row: u8,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Arrived {
    sequence: u32,
    transit: i64,
}

impl Default for IpdvPairs {
    /// The first message follows, if it has the number 0.
    fn default() -> IpdvPairs {
        let last = Arrived { sequence: u32::MAX, transit: 0 };
        IpdvPairs { recent: None, last, has_last: false, in_row: IpdvPairs::REACH as u8 }
    }
}

impl IpdvPairs {
    /// How many recent sequence numbers are remembered.
    pub const REACH: usize = 16;

    /// Takes a message that arrived for the first time and returns |IPDV| of the pairs it completes: with its
    /// predecessor and with its successor.
    #[inline]
    pub fn arrival(&mut self, sequence: u32, sent: Time, received: Time) -> [Option<Duration>; 2] {
        let arrived = Arrived { sequence, transit: transit(sent, received) };
        let follows = sequence == self.last.sequence.wrapping_add(1);
        let has_gap = usize::from(self.in_row) < Self::REACH;
        let pairs = if follows && !has_gap {
            [self.has_last.then(|| arrived.from(self.last)), None]
        } else {
            self.pair_beside_gap(arrived, has_gap)
        };
        self.in_row = if follows { (self.in_row + 1).min(Self::REACH as u8) } else { 0 };
        (self.last, self.has_last) = (arrived, true);
        pairs
    }

    #[cold]
    fn pair_beside_gap(&mut self, arrived: Arrived, has_gap: bool) -> [Option<Duration>; 2] {
        // Messages are looked for in their own places only, whatever stands in the others.
        let recent = self.recent.get_or_insert_with(|| Box::new([arrived; Self::REACH]));
        if self.has_last && !has_gap {
            **recent = [self.last; Self::REACH];
        }
        let pairs = [arrived.sequence.wrapping_sub(1), arrived.sequence.wrapping_add(1)].map(|other| {
            let there = recent[other as usize % Self::REACH];
            (there.sequence == other).then(|| arrived.from(there))
        });
        recent[arrived.sequence as usize % Self::REACH] = arrived;
        pairs
    }
}

impl Arrived {
    fn from(self, other: Arrived) -> Duration {
        Duration::from_nanos(self.transit.abs_diff(other.transit))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

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

    proptest! {
        /// Against the plain model: the last message of each residue. Messages arrive once, some late, some never.
        #[test]
        fn ipdv_pairs_what_is_in_reach(
            start in prop_oneof![Just(0u32), Just(u32::MAX - 60), any::<u32>()],
            delays in prop::collection::vec((0u8..40, 0u32..40), 1..200),
        ) {
            let mut arrivals: Vec<(u32, u32)> = (0..).zip(&delays)
                .filter(|(_, (kind, _))| *kind != 0)
                .map(|(number, &(kind, late))| (number + if kind == 1 { late } else { 0 }, number))
                .collect();
            arrivals.sort_unstable();
            let mut pairs = IpdvPairs::default();
            let mut recent = BTreeMap::new();
            for (at_number, number) in arrivals {
                let sequence = start.wrapping_add(number);
                let transit = u64::from(at_number * at_number % 97);
                let beside = |other: u32| {
                    let &(its, transit_of_it) = recent.get(&(other % IpdvPairs::REACH as u32))?;
                    (its == other).then(|| Duration::from_nanos(transit.abs_diff(transit_of_it)))
                };
                let expected = [sequence.wrapping_sub(1), sequence.wrapping_add(1)].map(beside);
                prop_assert_eq!(pairs.arrival(sequence, at(1000), at(1000 + transit)), expected);
                recent.insert(sequence % IpdvPairs::REACH as u32, (sequence, transit));
            }
        }
    }

    #[test]
    fn ipdv_forgets_what_is_out_of_reach() {
        let mut pairs = IpdvPairs::default();
        pairs.arrival(0, at(0), at(7));
        pairs.arrival(16, at(0), at(9));
        assert_eq!(pairs.arrival(1, at(0), at(9)), [None, None]);
    }
}

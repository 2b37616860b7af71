//! Loss intervals, as the receiver of TFRC sees them (RFC 5348 section 5, RFC 4342 sections 6.1, 8.6 and 10.2).

use std::collections::VecDeque;

use super::options::Opt;
use super::seq::Seq;
use super::tfrc::INTERVALS;

/// Packets that must have arrived after a hole before it counts as a loss.
const NDUPACK: u8 = 3;
/// Holes that are watched at once; beyond that the oldest counts as lost.
const MOST_HOLES: usize = 32;
/// Losses within four steps of the window counter, one round-trip time, are one loss event.
const ROUND_TRIP: u64 = 4;
/// Lengths have 24 bits, and that of the lossy part 23.
const MAX_LENGTH: u64 = (1 << 24) - 1;
const MAX_LOSS_LENGTH: u64 = (1 << 23) - 1;

/// What a packet that arrives means for the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) number: Seq,
    pub(super) is_data: bool,
    /// Whether it was marked by the network, or its data was found corrupt.
    pub(super) marked: bool,
    /// CCVal.
    pub(super) counter: u8,
    /// NDP Count, 0 without the option.
    pub(super) ndp_count: u64,
}

/// The receiver's history of losses.
#[derive(Clone, Debug)]
pub(super) struct LossHistory {
    high: Seq,
    /// The window counter of `high`, and how far it has come in all.
    counter: u8,
    turned: u64,
    holes: VecDeque<Hole>,
    /// Newest first. Empty before the first loss.
    intervals: VecDeque<Interval>,
    /// Where the present interval begins, and the packets without data in it.
    first: Seq,
    without_data: u64,
}

/// Packets that have not arrived, and may yet.
#[derive(Clone, Copy, Debug)]
struct Hole {
    first: Seq,
    last: Seq,
    /// How far the window counter had come at the packet before it.
    turned: u64,
    arrived_after: u8,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Seq,
    /// The last lost or marked packet of the lossy part.
    lossy_end: Seq,
    /// How far the window counter had come at the packet before `start`.
    turned: u64,
    drops: u64,
    /// Sequence numbers from start to end; of the present interval not known yet.
    length: u64,
    data_length: u64,
}

impl LossHistory {
    /// Begins with the first packet that arrives.
    pub(super) fn new(first: Seq, counter: u8) -> LossHistory {
        LossHistory {
            high: first.minus(1),
            counter,
            turned: 0,
            holes: VecDeque::new(),
            intervals: VecDeque::new(),
            first,
            without_data: 0,
        }
    }

    /// Takes a packet; true if it showed a new loss event. `synthesise` gives the length of the interval before the
    /// first one (RFC 5348 section 6.3.1).
    pub(super) fn insert(&mut self, arrival: Arrival, synthesise: impl Fn() -> f64) -> bool {
        let Arrival { number, is_data, marked, counter, ndp_count } = arrival;
        let ahead = number.distance(self.high);
        let turned_before = self.turned;
        if ahead > 0 {
            self.open_hole(ahead as u64, ndp_count);
            self.high = number;
            if is_data {
                self.turned += u64::from(counter.wrapping_sub(self.counter) & 0xF);
                self.counter = counter;
            } else {
                self.without_data += 1;
            }
        } else {
            self.fill(number);
        }
        let mut is_event = false;
        for hole in self.holes.iter_mut().filter(|hole| number.is_after(hole.last)) {
            hole.arrived_after += 1;
        }
        // A mark is congestion at once, and it settles what is missing before it.
        let settles = marked && is_data;
        while let Some(&hole) = self.holes.front() {
            let is_before = settles && number.is_after(hole.last);
            if hole.arrived_after < NDUPACK && !is_before && self.holes.len() <= MOST_HOLES {
                break;
            }
            self.holes.pop_front();
            is_event |= self.lose(hole.first, hole.last, hole.turned, &synthesise);
        }
        if settles {
            is_event |= self.lose(number, number, turned_before, &synthesise);
        }
        is_event
    }

    /// The lengths that the loss event rate is computed from, the present one first; empty before the first loss.
    pub(super) fn lengths(&self) -> ([f64; INTERVALS + 1], usize) {
        let mut lengths = [0.0; INTERVALS + 1];
        let mut count = 0;
        for (slot, interval) in lengths.iter_mut().zip(&self.intervals) {
            *slot =
                if count == 0 { self.present_data_length(self.high) } else { interval.data_length } as f64;
            count += 1;
        }
        (lengths, count)
    }

    /// Appends Loss Intervals for a packet that acknowledges `ack`, and Dropped Packets `with_drops`.
    pub(super) fn write(&self, ack: Seq, with_drops: bool, into: &mut Vec<u8>) {
        let mut data = [0; 1 + 9 * (INTERVALS + 1)];
        let mut used = 1;
        // What lies behind the first hole belongs to no interval yet.
        let end = self.holes.front().map_or(ack, |hole| hole.first.minus(1));
        let skipped = ack.distance(end).clamp(0, NDUPACK.into()) as u64;
        data[0] = skipped as u8;
        let end = ack.minus(skipped);
        let mut put = |lossless: u64, lossy: u64, data_length: u64| {
            let fields = [lossless.min(MAX_LENGTH), lossy.min(MAX_LOSS_LENGTH), data_length.min(MAX_LENGTH)];
            for (field, slot) in fields.iter().zip(data[used..used + 9].chunks_exact_mut(3)) {
                slot.copy_from_slice(&field.to_be_bytes()[5..]);
            }
            used += 9;
        };
        let length_to = |start: Seq| (end.distance(start) + 1).max(0) as u64;
        match self.intervals.front() {
            None => put(length_to(self.first), 0, 0),
            Some(present) => {
                let lossy = present.loss_length();
                put(length_to(present.start).saturating_sub(lossy), lossy, self.present_data_length(end));
            }
        }
        for past in self.intervals.iter().skip(1) {
            let lossy = past.loss_length();
            put(past.length.saturating_sub(lossy), lossy, past.data_length);
        }
        Opt::LossIntervals(&data[..used]).write(into);
        if with_drops {
            let mut counts = [0; 3 * (INTERVALS + 1)];
            let mut used = 0;
            for interval in &self.intervals {
                let drops = interval.drops.min(interval.loss_length());
                counts[used..used + 3].copy_from_slice(&drops.to_be_bytes()[5..]);
                used += 3;
            }
            // Without any loss, the one interval has none.
            Opt::DroppedPackets(&counts[..used.max(3)]).write(into);
        }
    }

    fn present_data_length(&self, end: Seq) -> u64 {
        let length = (end.distance(self.first) + 1).max(1) as u64;
        length.saturating_sub(self.without_data).max(1)
    }

    fn open_hole(&mut self, ahead: u64, ndp_count: u64) {
        let missing = ahead - 1;
        let without_data = ndp_count.min(missing);
        self.without_data += without_data;
        // The packets without data stand at the end of the hole; if all are, nothing was lost that counts.
        if missing > without_data {
            self.holes.push_back(Hole {
                first: self.high.next(),
                last: self.high.plus(missing - without_data),
                turned: self.turned,
                arrived_after: 0,
            });
        }
    }

    /// A packet arrived late: takes it out of its hole.
    fn fill(&mut self, number: Seq) {
        let Some(index) = self.holes.iter().position(|hole| number.within(hole.first, hole.last)) else {
            return;
        };
        let hole = self.holes[index];
        let before = (number != hole.first).then_some(Hole { last: number.minus(1), ..hole });
        let after = (number != hole.last).then_some(Hole { first: number.next(), ..hole });
        self.holes.remove(index);
        for part in [after, before].into_iter().flatten() {
            self.holes.insert(index, part);
        }
    }

    /// Enters lost or marked packets; true if a new loss event begins with them.
    fn lose(&mut self, first: Seq, last: Seq, turned: u64, synthesise: &impl Fn() -> f64) -> bool {
        let count = last.distance(first) as u64 + 1;
        let Some(present) = self.intervals.front_mut() else {
            // The interval before the first loss gets a length that stands for the rate reached by then.
            let length = (first.distance(self.first)).max(0) as u64;
            let synthetic = (synthesise() as u64).clamp(1, MAX_LENGTH);
            let before = Interval {
                start: self.first,
                lossy_end: self.first.minus(1),
                turned: 0,
                drops: 0,
                length,
                data_length: synthetic,
            };
            self.intervals.push_front(before);
            self.begin(first, last, turned, count);
            return true;
        };
        if turned <= present.turned + ROUND_TRIP {
            present.lossy_end = if last.is_after(present.lossy_end) { last } else { present.lossy_end };
            present.drops += count;
            return false;
        }
        present.length = first.distance(present.start).max(1) as u64;
        present.data_length = present.length.saturating_sub(self.without_data).max(1);
        self.begin(first, last, turned, count);
        true
    }

    fn begin(&mut self, start: Seq, lossy_end: Seq, turned: u64, drops: u64) {
        self.intervals.truncate(INTERVALS);
        self.intervals.push_front(Interval { start, lossy_end, turned, drops, length: 0, data_length: 0 });
        self.first = start;
        self.without_data = 0;
    }
}

impl Interval {
    fn loss_length(&self) -> u64 {
        (self.lossy_end.distance(self.start) + 1).max(0) as u64
    }
}

/// A loss interval as an option reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) lossless: u64,
    pub(super) lossy: u64,
    pub(super) data_length: u64,
}

/// The first number behind the newest interval, and the intervals, newest first. Of several options all but the first
/// have a skip length of 0.
pub(super) fn reported<'p>(
    ack: Seq,
    options: impl Iterator<Item = &'p [u8]>,
) -> Option<(Seq, impl Iterator<Item = Reported>)> {
    let mut options = options.peekable();
    let skip = u64::from(*options.peek()?.first()?);
    let mut is_first = true;
    let intervals = options
        .filter(move |option| core::mem::take(&mut is_first) || option.first() == Some(&0))
        .flat_map(|option| option.get(1..).unwrap_or(&[]).chunks_exact(9))
        .map(|interval| {
            let field = |at: usize| {
                interval[at..at + 3].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
            };
            Reported { lossless: field(0), lossy: field(3) & MAX_LOSS_LENGTH, data_length: field(6) }
        });
    Some((ack.minus(skip).next(), intervals))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::super::options::Options;
    use super::*;

    fn data(number: u64, counter: u8) -> Arrival {
        Arrival { number: Seq::new(number), is_data: true, marked: false, counter, ndp_count: 0 }
    }

    fn write(history: &LossHistory, ack: u64) -> Vec<u8> {
        let mut option = Vec::new();
        history.write(Seq::new(ack), false, &mut option);
        option
    }

    /// The sequence of RFC 4342 section 8.6.2 and RFC 5622 section 8.7.1: packets 10, 19 to 21, 23, 32 and 43 are lost;
    /// one of those in the last interval has no data.
    fn example() -> LossHistory {
        let mut history = LossHistory::new(Seq::new(0), 0);
        let lost = [10, 19, 20, 21, 23, 32, 43];
        for number in (0..=44).filter(|number| !lost.contains(number)) {
            // A round trip between the losses of different intervals.
            let counter = [0, 5, 10, 15][[10, 19, 32].iter().filter(|&&loss| number >= loss - 1).count()];
            let arrival = Arrival { is_data: number != 40, ..data(number, counter) };
            history.insert(arrival, || 15.0);
        }
        history
    }

    #[test]
    fn the_example_of_rfc_4342_comes_out() {
        let found = write(&example(), 44);
        // As in the RFC, but for the historic nonces; and no packet of the interval of 19 to 23 is without data here.
        let expected = [
            193, 39, 2, 0, 0, 10, 0, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 13, 0, 0, 8, 0, 0, 1, 0, 0, 9,
            0, 0, 10, 0, 0, 0, 0, 0, 15,
        ];
        assert_eq!(found, expected);
        let option = Options::new(&found).next();
        let Some(Opt::LossIntervals(data)) = option else { panic!("{option:?}") };
        let (end, intervals) = reported(Seq::new(44), [data].into_iter()).unwrap();
        assert_eq!(end, Seq::new(43));
        let lossy: Vec<u64> = intervals.map(|interval| interval.lossy).collect();
        assert_eq!(lossy, [1, 5, 1, 0]);
    }

    #[test]
    fn the_example_of_rfc_5622_comes_out() {
        let mut option = Vec::new();
        example().write(Seq::new(44), true, &mut option);
        assert_eq!(option[39..], [195, 14, 0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = LossHistory::new(Seq::new(0), 0);
        let mut events = 0;
        for number in (0..100).filter(|number| number % 10 != 5) {
            // Ten packets per step of the counter: 40 per round trip.
            events += u32::from(history.insert(data(number, (number / 10 % 16) as u8), || 100.0));
        }
        // The packets before losses 5, 55 have turned 0 and 5 steps; those between belong to the first.
        assert_eq!(events, 2);
    }

    #[test]
    fn a_late_packet_fills_its_hole() {
        let mut history = LossHistory::new(Seq::new(0), 0);
        for number in [0, 3, 2, 1, 4, 5, 6, 7, 8] {
            assert!(!history.insert(data(number, 0), || 1.0), "packet {number}");
        }
        assert!(history.holes.is_empty());
    }

    #[test]
    fn missing_packets_without_data_are_no_loss() {
        let mut history = LossHistory::new(Seq::new(0), 0);
        history.insert(data(0, 0), || 1.0);
        history.insert(Arrival { ndp_count: 3, ..data(4, 0) }, || 1.0);
        for number in 5..10 {
            assert!(!history.insert(data(number, 0), || 1.0));
        }
        history.insert(Arrival { ndp_count: 1, ..data(12, 0) }, || 1.0);
        let events = (13..16).map(|number| history.insert(data(number, 0), || 1.0));
        assert_eq!(events.collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(history.intervals[0].drops, 1);
    }

    #[test]
    fn a_mark_is_an_event_at_once_and_settles_what_is_missing_before_it() {
        let mut history = LossHistory::new(Seq::new(0), 0);
        history.insert(data(0, 0), || 9.0);
        history.insert(data(2, 0), || 9.0);
        assert!(history.insert(Arrival { marked: true, ..data(3, 0) }, || 9.0));
        assert_eq!(history.intervals[0].start, Seq::new(1));
        assert_eq!((history.intervals[0].drops, history.intervals[0].lossy_end), (2, Seq::new(3)));
        assert_eq!(history.lengths().0[..2], [3.0, 9.0]);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn intervals_cover_everything_without_a_gap(
            packets in prop::collection::vec((0u64..40, 0u8..6, any::<bool>(), 0u64..3), 1..200),
        ) {
            let mut history = LossHistory::new(Seq::new(7), 0);
            let (mut number, mut counter) = (Seq::new(7), 0u8);
            for (step, turn, is_data, ndp_count) in packets {
                number = number.plus(step);
                counter = (counter + turn) & 0xF;
                let arrival = Arrival { number, is_data, marked: step % 7 == 3, counter, ndp_count };
                history.insert(arrival, || 50.0);
                let option = write(&history, history.high.value());
                prop_assert!(option[2] <= 3);
                let (end, intervals) = reported(history.high, [&option[2..]].into_iter()).unwrap();
                let mut low = end;
                for interval in intervals {
                    low = low.minus(interval.lossless + interval.lossy);
                }
                let oldest = history.intervals.back().map_or(history.first, |interval| interval.start);
                prop_assert_eq!(low, oldest);
            }
        }

        #[test]
        fn any_bytes_are_read_as_intervals(bytes in prop::collection::vec(any::<u8>(), 0..253), ack: u64) {
            if let Some((_, intervals)) = reported(Seq::new(ack), [&bytes[..], &bytes[..]].into_iter()) {
                prop_assert!(intervals.count() <= 2 * bytes.len() / 9);
            }
        }
    }
}

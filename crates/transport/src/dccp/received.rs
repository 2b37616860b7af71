//! What has arrived: which packets are duplicates, and the Ack Vectors and Data Dropped options that say so (RFC 4340
//! sections 11.4 and 11.7 and appendix A).

use std::collections::VecDeque;

use super::options::{MAX_OPTION_DATA, Opt};
use super::seq::Seq;

/// States in the two high bits of an Ack Vector's byte.
const RECEIVED: u8 = 0 << 6;
const MARKED: u8 = 1 << 6;
const MISSING: u8 = 3 << 6;
const STATE: u8 = 3 << 6;
/// In a stored state: the data was dropped; the Drop Code stands in the three bits below.
const DROPPED: u8 = 1 << 3;

/// How many packets back a duplicate is recognised; older ones are not delivered at all.
const RECENT: u64 = 1024;
/// How many packets an Ack Vector can go back.
const HISTORY: usize = 2048;
/// Packets of ours that carried a vector and may yet be acknowledged.
const VECTORS: usize = 32;

/// Why a packet's data did not reach the application as sent (RFC 4340 section 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropCode {
    ProtocolConstraints = 0,
    NotListening = 1,
    ReceiveBuffer = 2,
    Corrupt = 3,
}

/// The packets of the peer that were processed.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    high: Option<Seq>,
    /// The last 1024 numbers, by their low bits.
    recent: [u64; (RECENT / 64) as usize],
    /// The state of `high` and of those before it, back to the first that the peer may not know of.
    states: VecDeque<u8>,
    /// How many of them had their data dropped.
    dropped: usize,
    vectors: VecDeque<SentVector>,
}

/// A packet of ours that told of everything up to a number.
#[derive(Clone, Copy, Debug)]
struct SentVector {
    packet: Seq,
    covered: Seq,
}

impl Received {
    /// Forgets everything and takes `first` as the first packet.
    pub(super) fn begin(&mut self, first: Seq) {
        *self = Received::default();
        self.high = Some(first.minus(1));
    }

    /// Whether a packet that arrives with this number was there before, or is too old to tell.
    pub(super) fn is_duplicate(&self, number: Seq) -> bool {
        let Some(high) = self.high else { return false };
        match high.distance(number) {
            ahead if ahead < 0 => false,
            back if back as u64 >= RECENT => true,
            _ => self.recent_bit(number),
        }
    }

    /// Whether this one has arrived; only meaningful for the last 1024.
    pub(super) fn has(&self, number: Seq) -> bool {
        self.high.is_some_and(|high| (0..RECENT as i64).contains(&high.distance(number)))
            && self.recent_bit(number)
    }

    /// Notes a packet that is no duplicate.
    pub(super) fn insert(&mut self, number: Seq, marked: bool) {
        let high = *self.high.get_or_insert(number.minus(1));
        let state = if marked { MARKED } else { RECEIVED };
        let ahead = number.distance(high);
        if ahead > 0 {
            self.advance(high, ahead as u64);
            self.states.push_front(state);
            self.high = Some(number);
        } else if let Some(stored) = self.states.get_mut(ahead.unsigned_abs() as usize) {
            *stored = state;
            // What was told of this packet is no longer true: it must be told again.
            for vector in &mut self.vectors {
                if !number.is_after(vector.covered) {
                    vector.covered = number.minus(1);
                }
            }
        }
        self.recent[word(number)] |= bit(number);
        self.keep(HISTORY);
    }

    /// Notes that a received packet's data was dropped.
    pub(super) fn drop_data(&mut self, number: Seq, code: DropCode) {
        let Some(high) = self.high else { return };
        if let Ok(back) = usize::try_from(high.distance(number))
            && let Some(state) = self.states.get_mut(back)
        {
            *state = *state & STATE | DROPPED | code as u8;
            self.dropped += 1;
        }
    }

    /// Whether there is data to be reported as dropped.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped > 0
    }

    /// Appends Ack Vector options for everything that the peer may not know of, as far as `room` bytes hold it.
    pub(super) fn write_ack_vectors(&self, room: usize, into: &mut Vec<u8>) {
        let states = self.states.iter().map(|state| state & STATE);
        write_runs(Opt::AckVector { nonce: false, vector: &[] }.kind(), states, |_| 64, room, into);
    }

    /// Appends Data Dropped options, if any data was dropped.
    pub(super) fn write_data_dropped(&self, room: usize, into: &mut Vec<u8>) {
        if self.dropped > 0 {
            let blocks = self.states.iter().map(|state| match state & DROPPED {
                0 => 0,
                _ => 0x80 | (state & 7) << 4,
            });
            let longest = |block| if block == 0 { 128 } else { 16 };
            write_runs(Opt::DataDropped(&[]).kind(), blocks, longest, room, into);
        }
    }

    /// Our packet `packet` told the peer of everything so far.
    pub(super) fn told(&mut self, packet: Seq) {
        let Some(covered) = self.high else { return };
        if self.vectors.len() == VECTORS {
            // Every second one is enough to go on with.
            let mut index = 0;
            self.vectors.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
        self.vectors.push_back(SentVector { packet, covered });
    }

    /// The peer received those of our packets for which `received` holds: what they told need not be told again.
    pub(super) fn acknowledged(&mut self, received: impl Fn(Seq) -> bool) {
        let Some(index) = self.vectors.iter().rposition(|vector| received(vector.packet)) else { return };
        let SentVector { covered, .. } = self.vectors[index];
        self.vectors.drain(..=index);
        self.forget_until(covered);
    }

    /// Keeps no more than the newest `count` states: without Ack Vectors nothing else needs them.
    pub(super) fn keep(&mut self, count: usize) {
        if self.states.len() > count {
            self.states.truncate(count);
            self.recount();
        }
    }

    fn forget_until(&mut self, covered: Seq) {
        if let Some(high) = self.high
            && let Ok(keep) = usize::try_from(high.distance(covered))
            && keep < self.states.len()
        {
            self.states.truncate(keep);
            self.recount();
        }
    }

    fn recount(&mut self) {
        if self.dropped > 0 {
            self.dropped = self.states.iter().filter(|&state| state & DROPPED != 0).count();
        }
    }

    /// Makes room for a packet that is `ahead` of `high`: those between are missing.
    fn advance(&mut self, high: Seq, ahead: u64) {
        if ahead > RECENT {
            self.recent.fill(0);
        } else {
            for step in 1..=ahead {
                let number = high.plus(step);
                self.recent[word(number)] &= !bit(number);
            }
        }
        if ahead as usize > HISTORY {
            self.states.clear();
            self.dropped = 0;
        }
        for _ in 1..ahead.min(HISTORY as u64) {
            self.states.push_front(MISSING);
        }
    }

    fn recent_bit(&self, number: Seq) -> bool {
        self.recent[word(number)] & bit(number) != 0
    }
}

fn word(number: Seq) -> usize {
    (number.value() % RECENT / 64) as usize
}

fn bit(number: Seq) -> u64 {
    1 << (number.value() % 64)
}

/// Appends options of this kind whose bytes are runs of equal values, the length of a run less one in the low bits. At
/// the end of the room the oldest are left out.
fn write_runs(
    kind: u8,
    values: impl Iterator<Item = u8>,
    longest: impl Fn(u8) -> u8,
    room: usize,
    into: &mut Vec<u8>,
) {
    let end = into.len() + room;
    let mut values = values.peekable();
    while values.peek().is_some() && into.len() + 3 <= end {
        let start = into.len();
        into.extend_from_slice(&[kind, 0]);
        let end = end.min(start + 2 + MAX_OPTION_DATA);
        while into.len() < end
            && let Some(value) = values.next()
        {
            let mut run = 1;
            while run < longest(value) && values.next_if_eq(&value).is_some() {
                run += 1;
            }
            into.push(value | (run - 1));
        }
        into[start + 1] = (into.len() - start) as u8;
    }
}

/// The packets that Ack Vectors report, newest first, with whether each was received and whether it was marked.
pub(super) fn runs<'p>(
    ack: Seq,
    vectors: impl Iterator<Item = &'p [u8]>,
) -> impl Iterator<Item = (Seq, u64, State)> {
    let mut next = ack;
    vectors.flatten().map(move |&byte| {
        let (newest, length) = (next, u64::from(byte & 63) + 1);
        next = next.minus(length);
        let state = match byte & STATE {
            RECEIVED => State::Received,
            MARKED => State::Marked,
            // The reserved state says nothing of the packet.
            _ => State::Missing,
        };
        (newest, length, state)
    })
}

/// What an Ack Vector says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Received,
    Marked,
    Missing,
}

/// The packets that Data Dropped options report as dropped: the newest of each run, its length and its Drop Code.
pub(super) fn drops<'p>(
    ack: Seq,
    options: impl Iterator<Item = &'p [u8]>,
) -> impl Iterator<Item = (Seq, u64, u8)> {
    let mut next = ack;
    options.flatten().filter_map(move |&block| {
        let is_drop = block & 0x80 != 0;
        let (newest, length) = (next, u64::from(block & if is_drop { 0xF } else { 0x7F }) + 1);
        next = next.minus(length);
        is_drop.then_some((newest, length, block >> 4 & 7))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::super::options::Options;
    use super::*;

    fn vector(received: &Received) -> Vec<u8> {
        let mut options = Vec::new();
        received.write_ack_vectors(usize::MAX / 2, &mut options);
        let data =
            |option| if let Opt::AckVector { vector, .. } = option { vector.to_vec() } else { Vec::new() };
        Options::new(&options).flat_map(data).collect()
    }

    #[test]
    fn the_example_of_rfc_4340_section_11_4_is_encoded_and_read() {
        let mut received = Received::default();
        received.begin(Seq::new(88));
        for number in (88..=93).chain(95..=98).chain([100]) {
            received.insert(Seq::new(number), false);
        }
        received.insert(Seq::new(94), true);
        assert_eq!(vector(&received), [0, 192, 3, 64, 5]);
        let read: Vec<_> = runs(Seq::new(100), [&[0, 192, 3, 64, 5][..]].into_iter()).collect();
        assert_eq!(read[1], (Seq::new(99), 1, State::Missing));
        assert_eq!(read[3], (Seq::new(94), 1, State::Marked));
        assert_eq!(read[4], (Seq::new(93), 6, State::Received));
    }

    #[test]
    fn the_example_of_rfc_4340_section_11_7_is_read() {
        // The section's prose counts packet 95 twice; its bytes say 94 to 92.
        let read: Vec<_> = drops(Seq::new(100), [&[0, 160, 3, 162][..]].into_iter()).collect();
        assert_eq!(read, [(Seq::new(99), 1, 2), (Seq::new(94), 3, 2)]);
    }

    #[test]
    fn dropped_data_is_reported_until_the_peer_knows() {
        let mut received = Received::default();
        received.begin(Seq::new(1));
        for number in 1..=5 {
            received.insert(Seq::new(number), false);
        }
        received.drop_data(Seq::new(4), DropCode::ReceiveBuffer);
        let mut options = Vec::new();
        received.write_data_dropped(100, &mut options);
        assert_eq!(options, [40, 5, 0, 0x80 | 2 << 4, 2]);
        received.told(Seq::new(70));
        received.acknowledged(|packet| packet == Seq::new(70));
        assert!(!received.has_dropped());
        assert_eq!(vector(&received), []);
    }

    #[test]
    fn what_changed_after_it_was_told_is_told_again() {
        let mut received = Received::default();
        received.begin(Seq::new(1));
        received.insert(Seq::new(1), false);
        received.insert(Seq::new(3), false);
        received.told(Seq::new(70));
        received.insert(Seq::new(2), false);
        received.acknowledged(|packet| packet == Seq::new(70));
        assert_eq!(vector(&received), [1]);
    }

    #[test]
    fn a_long_gap_forgets_what_was_before() {
        let mut received = Received::default();
        received.begin(Seq::new(1));
        received.insert(Seq::new(1), false);
        received.insert(Seq::new(1 << 40), false);
        assert!(received.is_duplicate(Seq::new(1)) && !received.is_duplicate(Seq::new((1 << 40) - 1)));
        assert_eq!(received.states.len(), HISTORY);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn vectors_say_exactly_what_arrived(
            start: u64, numbers in prop::collection::vec((0u64..300, any::<bool>()), 1..200),
        ) {
            let start = Seq::new(start);
            let mut received = Received::default();
            received.begin(start);
            let mut model = std::collections::BTreeMap::new();
            for (offset, marked) in numbers {
                let number = start.plus(offset);
                prop_assert_eq!(received.is_duplicate(number), model.contains_key(&offset));
                if model.insert(offset, marked).is_none() {
                    received.insert(number, marked);
                } else {
                    model.insert(offset, received_state(&received, number) == State::Marked);
                }
            }
            let high = *model.keys().last().unwrap();
            let encoded = vector(&received);
            let mut told = Vec::new();
            for (newest, length, state) in runs(start.plus(high), [&encoded[..]].into_iter()) {
                told.extend((0..length).map(|back| (newest.minus(back).distance(start) as u64, state)));
            }
            prop_assert_eq!(told.len() as u64, high + 1);
            for (offset, state) in told {
                let expected = match model.get(&offset) {
                    None => State::Missing,
                    Some(true) => State::Marked,
                    Some(false) => State::Received,
                };
                prop_assert_eq!(state, expected, "packet {}", offset);
            }
        }

        #[test]
        fn any_bytes_are_read_as_runs(bytes in prop::collection::vec(any::<u8>(), 0..300), ack: u64) {
            let total: u64 = runs(Seq::new(ack), [&bytes[..]].into_iter()).map(|(_, length, _)| length).sum();
            prop_assert_eq!(total, bytes.iter().map(|byte| u64::from(byte & 63) + 1).sum::<u64>());
            prop_assert!(drops(Seq::new(ack), [&bytes[..]].into_iter()).count() <= bytes.len());
        }
    }

    fn received_state(received: &Received, number: Seq) -> State {
        let back = received.high.unwrap().distance(number) as usize;
        if received.states[back] & STATE == MARKED { State::Marked } else { State::Received }
    }
}

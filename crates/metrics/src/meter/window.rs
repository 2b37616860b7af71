//! The latest messages of a channel, without gaps.

use std::collections::VecDeque;

use trunkline_core::Time;

use crate::meter::outstanding::Entry;

/// How many messages stand in the channel itself.
const NEAR: usize = 6;

/// A queue of [`Entry`]s. A channel of voice has a few messages on their way: these stand in the channel itself, packed,
/// so that a report touches two cache lines. If they are more, or one cannot be packed, all move to the heap until none
/// is left.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Window {
    /// A ring that begins at `head`. First, so that none of them lies on two cache lines.
    near: [Packed; NEAR],
    #[expect(clippy::box_collection, reason = "only few channels pay for the room that it takes")]
    far: Option<Box<VecDeque<Entry>>>,
    kinds: [Kind; NEAR],
    head: u8,
    length: u8,
    /// How many are settled.
    settled: u32,
    /// Whether all stand in `far`, which is then not empty.
    spread: bool,
}

/// What is to be known of a message that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Packed {
    due: Time,
    /// Nanoseconds from `due` to `sent`.
    late: u32,
    payload: u32,
}

/// Which [`Entry`] it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Sent,
    Dropped,
    Refused,
    Settled,
}

impl Window {
    /// How many messages it has.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.far().map_or(usize::from(self.length), VecDeque::len)
    }

    /// How many of them are settled.
    #[inline]
    pub(super) fn settled(&self) -> usize {
        self.settled as usize
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Entry {
        match self.far() {
            Some(far) => far[index],
            None => self.unpack(self.place(index)),
        }
    }

    /// Replaces what is known of a message that is not settled, nor becomes so.
    #[inline]
    pub(super) fn set(&mut self, index: usize, entry: Entry) {
        match self.far_mut() {
            Some(far) => far[index] = entry,
            None => {
                if !self.pack(self.place(index), entry) {
                    self.spread()[index] = entry;
                }
            }
        }
    }

    /// Marks a message as settled.
    #[inline]
    pub(super) fn settle(&mut self, index: usize) {
        self.settled += 1;
        match self.far_mut() {
            Some(far) => far[index] = Entry::Settled,
            None => self.kinds[self.place(index)] = Kind::Settled,
        }
    }

    /// Appends a message that is not settled.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let length = usize::from(self.length);
        match self.far_mut() {
            Some(far) => far.push_back(entry),
            None => {
                if length < NEAR && self.pack(self.place(length), entry) {
                    self.length += 1;
                } else {
                    self.spread().push_back(entry);
                }
            }
        }
    }

    /// Takes the first message away.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = (self.len() > 0).then(|| self.get(0))?;
        self.settled -= u32::from(entry == Entry::Settled);
        match self.far_mut() {
            Some(far) => {
                far.pop_front();
                self.spread = !far.is_empty();
            }
            None => self.pop_near(),
        }
        Some(entry)
    }

    /// Takes the first message away if it is settled, and says whether it was.
    #[inline]
    pub(super) fn pop_settled(&mut self) -> bool {
        let is_settled = match self.far_mut() {
            Some(far) => {
                let settled = far.pop_front_if(|entry| *entry == Entry::Settled);
                self.spread = !far.is_empty();
                settled.is_some()
            }
            None => {
                let is_settled = self.length > 0 && self.kinds[self.place(0)] == Kind::Settled;
                if is_settled {
                    self.pop_near();
                }
                is_settled
            }
        };
        self.settled -= u32::from(is_settled);
        is_settled
    }

    /// All messages in order.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// All messages, if they stand there.
    #[inline]
    fn far(&self) -> Option<&VecDeque<Entry>> {
        if self.spread { self.far.as_deref() } else { None }
    }

    #[inline]
    fn far_mut(&mut self) -> Option<&mut VecDeque<Entry>> {
        if self.spread { self.far.as_deref_mut() } else { None }
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        let place = usize::from(self.head) + index;
        if place < NEAR { place } else { place - NEAR }
    }

    #[inline]
    fn pop_near(&mut self) {
        self.head = self.place(1) as u8;
        self.length -= 1;
    }

    #[inline]
    fn unpack(&self, place: usize) -> Entry {
        match self.kinds[place] {
            Kind::Unknown => Entry::Unknown,
            Kind::Refused => Entry::Refused,
            Kind::Settled => Entry::Settled,
            kind @ (Kind::Sent | Kind::Dropped) => {
                let Packed { due, late, payload } = self.near[place];
                let sent = Time::from_nanos(due.as_nanos() + u64::from(late));
                if kind == Kind::Sent {
                    Entry::Sent { due, sent, payload }
                } else {
                    Entry::Dropped { due, sent, payload }
                }
            }
        }
    }

    /// Writes a message to a place of the ring, unless there is not enough room for what is known of it.
    #[inline]
    fn pack(&mut self, place: usize, entry: Entry) -> bool {
        let kind = match entry {
            Entry::Sent { due, sent, payload } | Entry::Dropped { due, sent, payload } => {
                let late = sent.as_nanos().checked_sub(due.as_nanos());
                let Some(late) = late.and_then(|late| u32::try_from(late).ok()) else { return false };
                self.near[place] = Packed { due, late, payload };
                if matches!(entry, Entry::Sent { .. }) { Kind::Sent } else { Kind::Dropped }
            }
            Entry::Unknown => Kind::Unknown,
            Entry::Refused => Kind::Refused,
            Entry::Settled => Kind::Settled,
            Entry::Early { .. } => return false,
        };
        self.kinds[place] = kind;
        true
    }

    /// Moves the ring to the heap.
    #[cold]
    fn spread(&mut self) -> &mut VecDeque<Entry> {
        let mut far = self.far.take().unwrap_or_default();
        far.extend((0..usize::from(self.length)).map(|index| self.unpack(self.place(index))));
        (self.head, self.length, self.spread) = (0, 0, true);
        self.far.insert(far)
    }
}

#[cfg(test)]
impl Window {
    /// How many entries there is room for on the heap.
    pub(super) fn capacity(&self) -> usize {
        self.far.as_ref().map_or(0, |far| far.capacity())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let time = || prop_oneof![0u64..100, Just(1 << 33), Just(u64::MAX)].prop_map(Time::from_nanos);
        prop_oneof![
            1 => Just(Entry::Unknown),
            1 => Just(Entry::Refused),
            8 => (0u64..50, 0u64..50, any::<u32>()).prop_map(|(due, late, payload)| Entry::Sent {
                due: Time::from_nanos(due),
                sent: Time::from_nanos(due + late),
                payload,
            }),
            1 => (time(), time()).prop_map(|(due, sent)| Entry::Sent { due, sent, payload: 1 }),
            1 => (time(), time()).prop_map(|(due, sent)| Entry::Dropped { due, sent, payload: 1 }),
            1 => (time(), time()).prop_map(|(received, sent)| Entry::Early {
                received,
                sent,
                reflected: Time::ZERO,
                payload: 1,
            }),
        ]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(Entry),
        Pop,
        PopSettled,
        Set(usize, Entry),
        Settle(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => entry().prop_map(Step::Push),
            1 => Just(Step::Pop),
            3 => Just(Step::PopSettled),
            1 => (any::<usize>(), entry()).prop_map(|(index, entry)| Step::Set(index, entry)),
            4 => (0usize..6).prop_map(Step::Settle),
        ]
    }

    proptest! {
        #[test]
        fn a_window_is_a_queue(steps in prop::collection::vec(step(), 1..200)) {
            let (mut window, mut plain) = (Window::default(), VecDeque::new());
            for step in steps {
                match step {
                    Step::Push(entry) => {
                        window.push(entry);
                        plain.push_back(entry);
                    }
                    Step::Pop => prop_assert_eq!(window.pop(), plain.pop_front()),
                    Step::PopSettled => {
                        let popped = plain.pop_front_if(|entry| *entry == Entry::Settled).is_some();
                        prop_assert_eq!(window.pop_settled(), popped);
                    }
                    Step::Set(index, entry) => {
                        let index = index % plain.len().max(1);
                        if plain.get(index).is_some_and(|old| *old != Entry::Settled) {
                            window.set(index, entry);
                            plain[index] = entry;
                        }
                    }
                    Step::Settle(index) => {
                        if plain.get(index).is_some_and(|old| *old != Entry::Settled) {
                            window.settle(index);
                            plain[index] = Entry::Settled;
                        }
                    }
                }
                let settled = plain.iter().filter(|entry| **entry == Entry::Settled).count();
                prop_assert_eq!((window.len(), window.settled()), (plain.len(), settled));
                let found: Vec<Entry> = (0..plain.len()).map(|index| window.get(index)).collect();
                prop_assert_eq!(found, Vec::from(plain.clone()));
            }
            prop_assert_eq!(window.into_entries().collect::<Vec<_>>(), Vec::from(plain));
        }
    }
}

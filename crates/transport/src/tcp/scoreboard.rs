//! Segments that were sent and are not acknowledged, in the order of their places, with what is known of each (RFC 6675
//! section 3), and in the order of their last transmission (RFC 8985 section 5.2).

use std::collections::VecDeque;

use trunkline_core::Time;

use super::rate::TxState;

/// Marks of a segment.
pub(super) mod mark {
    /// It has arrived out of order.
    pub(crate) const SACKED: u16 = 1;
    /// It counts as lost.
    pub(crate) const LOST: u16 = 2;
    /// A repetition of it is under way.
    pub(crate) const REPEATED: u16 = 4;
    /// It was sent more than once.
    pub(crate) const EVER_REPEATED: u16 = 8;
    /// It carries the SYN, the FIN, PSH.
    pub(crate) const SYN: u16 = 16;
    pub(crate) const FIN: u16 = 32;
    pub(crate) const PUSH: u16 = 64;
    /// It stands in the list by time of sending.
    pub(super) const LISTED: u16 = 128;
    /// It counts as lost because of the time that has passed, not because of what arrived after it.
    pub(crate) const LATE: u16 = 256;
}

/// A segment's number: counted from the first that the scoreboard held, wrapping.
pub(super) type Id = u32;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The place of its SYN, its first byte or its FIN.
    pub(super) place: u64,
    /// When it was sent last.
    pub(super) sent_at: Time,
    /// What was known then; `None` once a sample of the rate was made from it.
    pub(super) tx: Option<TxState>,
    /// Bytes of data.
    pub(super) length: u16,
    pub(super) marks: u16,
    /// Neighbours by time of sending; its own number if there is none.
    before: Id,
    after: Id,
}

impl Sent {
    pub(super) const fn new(place: u64, length: u16, marks: u16, sent_at: Time, tx: TxState) -> Sent {
        Sent { place, sent_at, tx: Some(tx), length, marks, before: 0, after: 0 }
    }

    pub(super) const fn has(&self, marks: u16) -> bool {
        self.marks & marks != 0
    }

    /// The place after it.
    pub(super) const fn end(&self) -> u64 {
        let control = (self.marks & mark::SYN != 0) as u64 + (self.marks & mark::FIN != 0) as u64;
        self.place + self.length as u64 + control
    }
}

/// The segments.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// The number of the first.
    first: Id,
    /// The ends of the list by time of sending.
    oldest: Option<Id>,
    newest: Option<Id>,
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn front(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The numbers of all segments, in the order of their places.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        let first = self.first;
        (0..self.segments.len() as u32).map(move |index| first.wrapping_add(index))
    }

    pub(super) fn first(&self) -> Id {
        self.first
    }

    /// The number after the last segment's.
    pub(super) fn end(&self) -> Id {
        self.first.wrapping_add(self.segments.len() as u32)
    }

    /// The number of the last segment.
    pub(super) fn last(&self) -> Option<Id> {
        (!self.is_empty()).then(|| self.end().wrapping_sub(1))
    }

    pub(super) fn get(&self, id: Id) -> Option<&Sent> {
        self.segments.get(self.index(id))
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Sent> {
        let index = self.index(id);
        self.segments.get_mut(index)
    }

    /// The first segment that ends after `place`.
    pub(super) fn find(&self, place: u64) -> Id {
        let index = self.segments.partition_point(|sent| sent.end() <= place);
        self.first.wrapping_add(index as u32)
    }

    /// Adds a segment behind all others.
    pub(super) fn push(&mut self, sent: Sent) {
        let id = self.end();
        self.segments.push_back(sent);
        self.list(id);
    }

    /// Removes the first segment.
    pub(super) fn pop(&mut self) -> Option<Sent> {
        self.unlist(self.first);
        let sent = self.segments.pop_front();
        self.first = self.first.wrapping_add(u32::from(sent.is_some()));
        sent
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Scoreboard { first: self.end(), ..Scoreboard::default() };
    }

    /// Gives memory back that an empty scoreboard does not need.
    pub(super) fn release(&mut self) {
        if self.is_empty() {
            self.segments = VecDeque::new();
        }
    }

    pub(super) fn is_allocated(&self) -> bool {
        self.segments.capacity() > 0
    }

    /// The segment that was sent longest ago, of those in the list.
    pub(super) fn oldest(&self) -> Option<Id> {
        self.oldest
    }

    /// The one that was sent after this one.
    pub(super) fn sent_after(&self, id: Id) -> Option<Id> {
        let after = self.get(id)?.after;
        (after != id).then_some(after)
    }

    /// Puts a segment at the end of the list by time of sending: it was sent just now.
    pub(super) fn list(&mut self, id: Id) {
        self.unlist(id);
        let newest = self.newest.replace(id);
        if let Some(newest) = newest.and_then(|newest| self.get_mut(newest)) {
            newest.after = id;
        }
        self.oldest.get_or_insert(id);
        if let Some(sent) = self.get_mut(id) {
            (sent.before, sent.after) = (newest.unwrap_or(id), id);
            sent.marks |= mark::LISTED;
        }
    }

    /// Takes a segment out of the list by time of sending.
    pub(super) fn unlist(&mut self, id: Id) {
        let Some(sent) = self.get_mut(id).filter(|sent| sent.has(mark::LISTED)) else { return };
        sent.marks &= !mark::LISTED;
        let before = (sent.before != id).then_some(sent.before);
        let after = (sent.after != id).then_some(sent.after);
        match before.and_then(|before| Some((before, self.get_mut(before)?))) {
            Some((before, sent)) => sent.after = after.unwrap_or(before),
            None => self.oldest = after,
        }
        match after.and_then(|after| Some((after, self.get_mut(after)?))) {
            Some((after, sent)) => sent.before = before.unwrap_or(after),
            None => self.newest = before,
        }
    }

    /// Cuts a segment in two behind `length` bytes. The second half takes the FIN and PSH.
    pub(super) fn split(&mut self, id: Id, length: u16) {
        let Some(&sent) = self.get(id) else { return };
        if length == 0 || length >= sent.length {
            return;
        }
        self.shift(id.wrapping_add(1), 1);
        let mut second = sent;
        second.place = sent.place + u64::from(length);
        second.length = sent.length - length;
        second.marks &= !mark::LISTED;
        let index = self.index(id);
        self.segments.insert(index + 1, second);
        if let Some(first) = self.get_mut(id) {
            first.length = length;
            first.marks &= !(mark::FIN | mark::PUSH);
        }
        if sent.has(mark::LISTED) {
            self.list_behind(id, id.wrapping_add(1));
        }
    }

    /// Joins a segment with the one behind it, which disappears.
    pub(super) fn join(&mut self, id: Id) {
        let next = id.wrapping_add(1);
        let Some(&second) = self.get(next) else { return };
        self.unlist(next);
        let index = self.index(next);
        self.segments.remove(index);
        self.shift(next.wrapping_add(1), -1);
        if let Some(first) = self.get_mut(id) {
            first.length += second.length;
            first.marks |= second.marks & (mark::FIN | mark::PUSH | mark::EVER_REPEATED);
        }
    }

    /// Puts `id` right behind `other` in the list by time of sending.
    fn list_behind(&mut self, other: Id, id: Id) {
        let Some(next) = self.sent_after(other) else { return self.list(id) };
        if let Some(other) = self.get_mut(other) {
            other.after = id;
        }
        if let Some(next) = self.get_mut(next) {
            next.before = id;
        }
        if let Some(sent) = self.get_mut(id) {
            (sent.before, sent.after) = (other, next);
            sent.marks |= mark::LISTED;
        }
    }

    /// Changes all references to segments from `from` on.
    fn shift(&mut self, from: Id, by: i32) {
        let (first, from) = (self.first, from.wrapping_sub(self.first));
        let moved = |id: Id| if id.wrapping_sub(first) >= from { id.wrapping_add_signed(by) } else { id };
        for sent in &mut self.segments {
            (sent.before, sent.after) = (moved(sent.before), moved(sent.after));
        }
        (self.oldest, self.newest) = (self.oldest.map(moved), self.newest.map(moved));
    }

    fn index(&self, id: Id) -> usize {
        id.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    fn sent(place: u64, length: u16, at: u64) -> Sent {
        let tx = TxState {
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost: 0,
            delivered_ce: 0,
            in_flight: 0,
            is_app_limited: false,
        };
        Sent::new(place, length, 0, Time::from_nanos(at), tx)
    }

    /// Places by time of sending.
    fn listed(board: &Scoreboard) -> Vec<u64> {
        let ids = core::iter::successors(board.oldest(), |&id| board.sent_after(id));
        ids.map(|id| board.get(id).expect("it is listed").place).collect()
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Whatever is done, the list by time of sending is that of a plain model, and the places are without a gap.
        #[test]
        fn the_scoreboard_keeps_both_orders(steps in prop::collection::vec((0..6u8, any::<prop::sample::Index>()), 1..100)) {
            let (mut board, mut end) = (Scoreboard::default(), 1);
            let mut model: Vec<u64> = Vec::new();
            for (what, which) in steps {
                let ids: Vec<Id> = board.ids().collect();
                if ids.is_empty() || what == 0 {
                    board.push(sent(end, 100, 0));
                    model.push(end);
                    end += 100;
                    continue;
                }
                let id = ids[which.index(ids.len())];
                let place = board.get(id).expect("it is there").place;
                match what {
                    1 => {
                        let popped = board.pop().expect("it is not empty").place;
                        model.retain(|&place| place != popped);
                    }
                    2 => {
                        board.list(id);
                        model.retain(|&other| other != place);
                        model.push(place);
                    }
                    3 => {
                        board.unlist(id);
                        model.retain(|&other| other != place);
                    }
                    4 => {
                        let length = board.get(id).expect("it is there").length;
                        board.split(id, length / 2);
                        if let Some(at) = model.iter().position(|&other| other == place).filter(|_| length > 1) {
                            model.insert(at + 1, place + u64::from(length / 2));
                        }
                    }
                    _ => {
                        let next = board.get(id.wrapping_add(1)).map(|sent| sent.place);
                        board.join(id);
                        model.retain(|&other| Some(other) != next);
                    }
                }
                prop_assert_eq!(listed(&board), &model[..]);
                let mut expected = board.front().map(|sent| sent.place);
                for id in board.ids() {
                    let sent = board.get(id).expect("it is there");
                    prop_assert_eq!(Some(sent.place), expected);
                    prop_assert_eq!(board.find(sent.place), id);
                    prop_assert_eq!(board.find(sent.end() - 1), id);
                    expected = Some(sent.end());
                }
            }
        }
    }
}

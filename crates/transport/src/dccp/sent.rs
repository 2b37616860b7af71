//! What was sent and not settled yet.

use std::collections::VecDeque;

use trunkline_core::Time;

use super::received::drops;
use super::seq::Seq;

/// How many packets are remembered at most.
const MOST: usize = 8192;
/// How many packets without data, and settled ones, are remembered.
const SETTLED: usize = 256;

/// The latest packets of ours.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The number of the packet at the front.
    first: Seq,
    packets: VecDeque<SentPacket>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    pub(super) at: Time,
    /// Whether it carried data.
    pub(super) is_data: bool,
    /// The value of CCVal.
    pub(super) ccval: u8,
    pub(super) fate: Fate,
    /// Whether its data was reported as dropped.
    dropped: bool,
}

/// What is known of a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Outstanding,
    Acknowledged,
    Lost,
}

/// Data that the peer newly reports as dropped, by Drop Code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NewDrops {
    /// Code 2.
    pub(super) receive_buffer: u64,
    /// The newest with a code that counts as a congestion mark (3 to 7).
    pub(super) marked: Option<Seq>,
}

impl Sent {
    /// Nothing was sent; the first packet will have the number `first`.
    pub(super) fn new(first: Seq) -> Sent {
        Sent { first, packets: VecDeque::new() }
    }

    /// Notes the next packet. Returns one that is forgotten for it although its fate is open.
    pub(super) fn push(&mut self, now: Time, is_data: bool, ccval: u8) -> Option<SentPacket> {
        let packet = SentPacket { at: now, is_data, ccval, fate: Fate::Outstanding, dropped: false };
        self.packets.push_back(packet);
        let settled = |packet: &SentPacket| !packet.is_data || packet.fate != Fate::Outstanding;
        while self.packets.len() > SETTLED && self.packets.front().is_some_and(settled) {
            self.pop();
        }
        if self.packets.len() > MOST { self.pop() } else { None }
    }

    pub(super) fn get(&self, number: Seq) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number.distance(self.first)).ok()?)
    }

    pub(super) fn get_mut(&mut self, number: Seq) -> Option<&mut SentPacket> {
        self.packets.get_mut(usize::try_from(number.distance(self.first)).ok()?)
    }

    /// The number of the oldest that is remembered.
    pub(super) fn first(&self) -> Seq {
        self.first
    }

    /// Everything that is remembered, newest first, with its number.
    pub(super) fn newest_first(&mut self) -> impl Iterator<Item = (Seq, &mut SentPacket)> {
        let first = self.first;
        self.packets.iter_mut().enumerate().rev().map(move |(at, packet)| (first.plus(at as u64), packet))
    }

    /// Forgets the oldest as long as their fate is known.
    pub(super) fn forget_settled(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.fate != Fate::Outstanding) {
            self.pop();
        }
    }

    /// Forgets everything before this number.
    pub(super) fn forget_before(&mut self, number: Seq) {
        while !self.packets.is_empty() && number.is_after(self.first) {
            self.pop();
        }
    }

    /// Notes which data the peer reports as dropped, and returns what is new of it.
    pub(super) fn note_drops<'p>(&mut self, ack: Seq, options: impl Iterator<Item = &'p [u8]>) -> NewDrops {
        let mut new = NewDrops::default();
        for (newest, length, code) in drops(ack, options) {
            for back in 0..length {
                let number = newest.minus(back);
                let Some(packet) = self.get_mut(number) else { break };
                if !core::mem::replace(&mut packet.dropped, true) {
                    match code {
                        0 | 1 => {}
                        2 => new.receive_buffer += 1,
                        _ => new.marked = new.marked.or(Some(number)),
                    }
                }
            }
        }
        new
    }

    /// Whether the peer says of any of these packets that its application does not listen any more (Drop Code 1).
    pub(super) fn reports_nobody_listening<'p>(
        &self,
        ack: Seq,
        options: impl Iterator<Item = &'p [u8]>,
    ) -> bool {
        drops(ack, options).any(|(newest, _, code)| code == 1 && self.get(newest).is_some())
    }

    fn pop(&mut self) -> Option<SentPacket> {
        let packet = self.packets.pop_front()?;
        self.first = self.first.next();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_by_number_until_they_are_settled() {
        let mut sent = Sent::new(Seq::new(u64::MAX));
        for _ in 0..4 {
            assert!(sent.push(Time::ZERO, true, 3).is_none());
        }
        assert_eq!(sent.get(Seq::new(2)).map(|packet| packet.ccval), Some(3));
        assert!(sent.get(Seq::new(3)).is_none() && sent.get(Seq::new(u64::MAX - 1)).is_none());
        for number in [u64::MAX, 1] {
            sent.get_mut(Seq::new(number)).unwrap().fate = Fate::Acknowledged;
        }
        sent.forget_settled();
        assert_eq!(sent.first(), Seq::new(0));
    }

    #[test]
    fn drops_are_new_once() {
        let mut sent = Sent::new(Seq::new(90));
        for _ in 90..=100 {
            sent.push(Time::ZERO, true, 0);
        }
        let option = [0, 160, 3, 0x80 | 3 << 4, 0x80 | 1 << 4];
        let expected = NewDrops { receive_buffer: 1, marked: Some(Seq::new(94)) };
        assert_eq!(sent.note_drops(Seq::new(100), [&option[..]].into_iter()), expected);
        assert_eq!(sent.note_drops(Seq::new(100), [&option[..]].into_iter()), NewDrops::default());
    }

    #[test]
    fn memory_is_bounded() {
        let mut sent = Sent::new(Seq::new(0));
        let mut forgotten = 0;
        for _ in 0..10_000 {
            forgotten += u32::from(sent.push(Time::ZERO, true, 0).is_some());
            sent.push(Time::ZERO, false, 0);
        }
        assert_eq!(sent.packets.len(), MOST);
        assert!(forgotten > 5000, "{forgotten}");
    }
}

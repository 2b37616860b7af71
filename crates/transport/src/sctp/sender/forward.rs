//! Partial reliability (RFC 3758): messages that are given up, and how the peer is told to pass over them.

use trunkline_core::Time;

use super::super::config::Reliability;
use super::super::wire::{self, CHUNK_HEADER, COMMON_HEADER, kind};
use super::{Sender, Sent, State};

impl Sender {
    /// Gives up the messages whose turn it is and for which it is too late.
    pub(super) fn give_up_overdue(&mut self, now: Time) {
        if self.reliability == Reliability::Full {
            return;
        }
        while self.lost > 0
            && let Some(sent) = self.outstanding.iter().find(|sent| sent.state == State::Lost)
            && self.is_overdue(now, sent.message, sent.times)
        {
            self.give_up(now, sent.message);
        }
        while self.cutting.1 == 0 && self.is_overdue(now, self.cutting.0, 0) {
            self.give_up(now, self.cutting.0);
        }
    }

    /// Whether a message is not to be sent (again), if it was so often.
    fn is_overdue(&self, now: Time, number: u64, times: u16) -> bool {
        let Some(message) = self.message(number) else { return false };
        match self.reliability {
            Reliability::Full => false,
            Reliability::Lifetime(lifetime) => message.accepted + lifetime <= now,
            Reliability::Retransmissions(most) => times > most,
        }
    }

    /// Gives up a message, with all its chunks (RFC 3758 section 3.5, rule A3).
    fn give_up(&mut self, now: Time, number: u64) {
        let Some(message) = self.messages.get_mut(number.wrapping_sub(self.first) as usize) else { return };
        self.held -= core::mem::take(&mut message.held);
        let bytes = core::mem::take(&mut message.bytes);
        self.recycle(bytes);
        self.given_up += 1;
        if self.cutting.0 == number {
            self.cutting = (number + 1, 0);
        }
        let begin = self.outstanding.partition_point(|sent| sent.message < number);
        for sent in self.outstanding.iter_mut().skip(begin).take_while(|sent| sent.message == number) {
            match sent.state {
                State::InFlight => self.flight.remove(sent.length),
                State::Lost => self.lost -= 1,
                State::Received => self.beyond_gap -= 1,
                State::GivenUp => {}
            }
            sent.state = State::GivenUp;
        }
        self.advance_forward(now);
        self.release();
    }

    /// Moves the Advanced.Peer.Ack.Point (RFC 3758 section 3.5, rules C1 to C3). It is sent once, and again after a round trip:
    /// if every SACK that is under way were answered, each answer would have another SACK, and the network would be full of them.
    pub(super) fn advance_forward(&mut self, now: Time) {
        let mut index = self.forward.wrapping_sub(self.acknowledged) as usize;
        while self.outstanding.get(index).is_some_and(|sent| sent.state == State::GivenUp) {
            index += 1;
            self.forward = self.forward.wrapping_add(1);
        }
        let (to, at) = self.forwarded;
        let is_told = self.passed_to() == to && now < at + self.rto.round_trip();
        self.forward_due = self.forward != self.acknowledged && !is_told;
    }

    /// The TSN to which the next FORWARD TSN passes.
    fn passed_to(&self) -> u32 {
        self.acknowledged.wrapping_add(self.passed_over() as u32)
    }

    /// The TSNs that are passed over next, by how many they are: as many as have room in a packet with the streams of
    /// their messages.
    fn passed_over(&self) -> usize {
        let most = (self.packet - COMMON_HEADER - CHUNK_HEADER - 4) / 4;
        let count = self.forward.wrapping_sub(self.acknowledged) as usize;
        let begins = |(_, sent): &(usize, &Sent)| sent.offset == 0;
        let mut begins = self.outstanding.iter().enumerate().take(count).skip(1).filter(begins);
        begins.nth(most - 1).map_or(count, |(index, _)| index)
    }

    /// The streams of ordered messages that are passed over, with their sequence numbers; streams come again for each.
    pub(super) fn skipped(&self) -> impl Iterator<Item = (u16, u16)> {
        let count = if self.ordered { self.passed_over() } else { 0 };
        let begins = |(index, sent): &(usize, &Sent)| *index == 0 || sent.offset == 0;
        let begins = self.outstanding.iter().enumerate().take(count).filter(begins);
        begins.filter_map(|(_, sent)| {
            self.message(sent.message).map(|message| (message.stream, message.sequence))
        })
    }

    pub(super) fn write_forward_tsn(&mut self, now: Time, into: &mut Vec<u8>) {
        self.forward_due = false;
        let begin = into.len();
        let to = self.passed_to();
        self.forwarded = (to, now);
        wire::put(into, kind::FORWARD_TSN, 0, &to.to_be_bytes(), &[]);
        for (stream, sequence) in self.skipped() {
            into.extend_from_slice(&stream.to_be_bytes());
            into.extend_from_slice(&sequence.to_be_bytes());
        }
        let length = (into.len() - begin) as u16;
        into[begin + 2..begin + 4].copy_from_slice(&length.to_be_bytes());
        self.timer.get_or_insert(now + self.rto.current());
    }
}

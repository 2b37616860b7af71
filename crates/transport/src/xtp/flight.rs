//! What was sent and not acknowledged yet, packet by packet, and what of it is to be sent again.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::wait::reaches;

/// The packets under way, in the order of their data.
///
/// Every transmission carries a tag: the number of the request for status that it carries itself or that follows it. A
/// report that echoes the tag, and still misses the data, shows that the transmission is lost: the receiver has seen
/// something that was sent not before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    packets: VecDeque<Sent>,
    /// Where packets that are to be sent again begin, the lowest first: a window may have room for no other. May name
    /// data that were acknowledged since.
    again: BinaryHeap<Reverse<u64>>,
}

/// One packet's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) start: u64,
    pub(super) length: usize,
    /// The data end a message.
    pub(super) ends_message: bool,
    tag: u32,
    /// It was sent more than once.
    repeated: bool,
    /// It waits to be sent again.
    waiting: bool,
}

impl Sent {
    pub(super) fn end(&self) -> u64 {
        self.start + self.length as u64
    }
}

impl Flight {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Notes the first transmission of the data that follow all others.
    pub(super) fn sent(&mut self, start: u64, length: usize, ends_message: bool, tag: u32) {
        self.packets.push_back(Sent { start, length, ends_message, tag, repeated: false, waiting: false });
    }

    /// Forgets everything below a number.
    pub(super) fn acknowledge(&mut self, below: u64) {
        while self.packets.front().is_some_and(|packet| packet.end() <= below) {
            self.packets.pop_front();
        }
        if let Some(front) = self.packets.front_mut()
            && front.start < below
        {
            front.length -= (below - front.start) as usize;
            front.start = below;
        }
        if self.packets.is_empty() {
            self.again.clear();
        }
    }

    /// A report misses the bytes from `from` to `to`. `overtaken` says that it has data from behind them: whatever was
    /// sent only once, in order, is lost then, whatever the echo. Returns how many packets are newly to be sent again.
    pub(super) fn missing(&mut self, from: u64, to: u64, echo: u32, overtaken: bool) -> usize {
        let mut found = 0;
        let first = self.first_ending_after(from);
        for packet in self.packets.range_mut(first..) {
            if packet.start >= to {
                break;
            }
            if !packet.waiting && (reaches(echo, packet.tag) || overtaken && !packet.repeated) {
                packet.waiting = true;
                self.again.push(Reverse(packet.start));
                found += 1;
            }
        }
        found
    }

    /// The next packet to be sent again.
    pub(super) fn next_again(&mut self) -> Option<Sent> {
        while let Some(&Reverse(start)) = self.again.peek() {
            let index = self.first_ending_after(start);
            match self.packets.get(index) {
                Some(packet) if packet.waiting => return Some(*packet),
                _ => self.again.pop(),
            };
        }
        None
    }

    /// Whether more than one packet may wait to be sent again.
    pub(super) fn several_again(&self) -> bool {
        self.again.len() > 1
    }

    /// Notes that the first `length` bytes of what [`next_again`](Flight::next_again) gave were sent again; the rest
    /// waits on.
    pub(super) fn sent_again(&mut self, sent: Sent, length: usize, tag: u32) {
        let index = self.first_ending_after(sent.start);
        let Some(packet) = self.packets.get_mut(index) else { return };
        let rest = (length < packet.length).then(|| Sent {
            start: packet.start + length as u64,
            length: packet.length - length,
            ..*packet
        });
        packet.tag = tag;
        packet.repeated = true;
        packet.waiting = false;
        self.again.pop();
        if let Some(rest) = rest {
            packet.length = length;
            packet.ends_message = false;
            self.packets.insert(index + 1, rest);
            self.again.push(Reverse(rest.start));
        }
    }

    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.again.clear();
    }

    fn first_ending_after(&self, number: u64) -> usize {
        self.packets.partition_point(|packet| packet.end() <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets of 100 bytes, each with a request of its own: tags 1 to 10.
    fn ten() -> Flight {
        let mut flight = Flight::default();
        for n in 0..10 {
            flight.sent(n * 100, 100, true, n as u32 + 1);
        }
        flight
    }

    fn resend_all(flight: &mut Flight, tag: u32) -> Vec<u64> {
        let mut starts = Vec::new();
        while let Some(packet) = flight.next_again() {
            starts.push(packet.start);
            flight.sent_again(packet, packet.length, tag);
        }
        starts
    }

    #[test]
    fn only_the_gap_is_sent_again_and_only_once_per_report_of_its_loss() {
        let mut flight = ten();
        assert_eq!(flight.missing(300, 500, 6, true), 2);
        assert_eq!(flight.missing(300, 500, 7, true), 0, "they wait already");
        assert_eq!(resend_all(&mut flight, 11), [300, 400]);
        assert_eq!(flight.missing(300, 500, 10, true), 0, "seen before the retransmission could be");
        assert_eq!(flight.missing(300, 500, 11, true), 2);
        flight.acknowledge(400);
        assert_eq!(resend_all(&mut flight, 12), [400]);
    }

    #[test]
    fn the_end_of_the_flight_is_lost_only_if_a_later_request_was_seen() {
        let mut flight = ten();
        assert_eq!(flight.missing(800, 1000, 8, false), 0);
        assert_eq!(flight.missing(800, 1000, 9, false), 1);
        assert_eq!(resend_all(&mut flight, 11), [800]);
    }

    #[test]
    fn a_packet_can_be_sent_again_in_pieces_and_acknowledged_in_part() {
        let mut flight = ten();
        flight.missing(0, 100, 5, true);
        let packet = flight.next_again().unwrap();
        flight.sent_again(packet, 30, 11);
        let rest = flight.next_again().unwrap();
        assert_eq!((rest.start, rest.length, rest.ends_message), (30, 70, true));
        flight.acknowledge(50);
        let rest = flight.next_again().unwrap();
        assert_eq!((rest.start, rest.length), (50, 50));
        flight.acknowledge(1000);
        assert!(flight.is_empty() && flight.next_again().is_none());
    }
}

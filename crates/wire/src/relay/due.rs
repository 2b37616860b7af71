//! Frames on their way to a station, by the time at which they are due.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use trunkline_core::{Packet, Time};

/// What comes out at one port. Handed out by time, at equal times in the order in which it came in.
///
/// Links deliver in order but for packets that are held back; so the usual ones stand in a line, and a heap has only those
/// that overtake.
#[derive(Debug, Default)]
pub(super) struct Due {
    in_order: VecDeque<Delivery>,
    overtaking: BinaryHeap<Delivery>,
    sequence: u64,
}

#[derive(Debug)]
struct Delivery {
    at: Time,
    sequence: u64,
    packet: Packet,
}

impl Due {
    #[inline]
    pub(super) fn push(&mut self, at: Time, packet: Packet) {
        let delivery = Delivery { at, sequence: self.sequence, packet };
        self.sequence += 1;
        match self.in_order.back() {
            Some(last) if last.at > at => self.overtaking.push(delivery),
            _ => self.in_order.push_back(delivery),
        }
    }

    /// The first that is due by `until`.
    #[inline]
    pub(super) fn pop(&mut self, until: Time) -> Option<(Time, Packet)> {
        let overtakes = match (self.in_order.front(), self.overtaking.peek()) {
            (Some(first), Some(other)) => other > first,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let first = if overtakes { self.overtaking.peek() } else { self.in_order.front() };
        if first?.at > until {
            return None;
        }
        let first = if overtakes { self.overtaking.pop() } else { self.in_order.pop_front() };
        first.map(|delivery| (delivery.at, delivery.packet))
    }

    /// When the first is due.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        let heads = [self.in_order.front(), self.overtaking.peek()];
        heads.into_iter().flatten().map(|delivery| delivery.at).min()
    }
}

/// What is due first is the greatest: a heap gives that first.
impl Ord for Delivery {
    fn cmp(&self, other: &Delivery) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}
impl PartialOrd for Delivery {
    fn partial_cmp(&self, other: &Delivery) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Delivery {
    fn eq(&self, other: &Delivery) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Delivery {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_core::PacketId;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(steps in prop::collection::vec((any::<bool>(), 0u64..50), 1..200)) {
            let mut due = Due::default();
            let mut model: Vec<(Time, PacketId)> = Vec::new();
            for (id, (push, time)) in (0..).zip(steps) {
                let (time, id) = (Time::from_nanos(time), PacketId(id));
                if push {
                    due.push(time, Packet { id, ..Packet::default() });
                    model.push((time, id));
                    model.sort_by_key(|&(at, _)| at);
                } else {
                    let expected = model.first().copied().filter(|&(at, _)| at <= time);
                    prop_assert_eq!(due.pop(time).map(|(at, packet)| (at, packet.id)), expected);
                    if expected.is_some() {
                        model.remove(0);
                    }
                }
                prop_assert_eq!(due.next(), model.first().map(|&(at, _)| at));
            }
        }
    }
}

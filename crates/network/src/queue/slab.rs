//! Packets of many queues in one store: what disciplines with a queue per flow keep them in.
//!
//! A store costs memory for as many packets as ever waited in it at once, however they were spread over its lists, and
//! allocates only to grow beyond that. Every operation takes constant time.

use trunkline_core::{Bytes, Packet};

/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// Holds the packets of any number of [`List`]s.
#[derive(Clone, Debug)]
pub(super) struct Slab {
    packets: Vec<Place>,
    /// The neighbours of each packet. They lie apart since whoever joins a list needs no more of the one before it.
    links: Vec<Links>,
    /// The first place without a packet; the others follow by `next`.
    vacant: u32,
}

/// A packet fills a cache line of most processors: with many lists, every line is one that memory has to be asked for.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Place(Packet);

#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
}

/// Packets in order, which lie in a [`Slab`]: always the same one for the same list.
///
/// The number of packets says where it ends: the links before the first packet and behind the last one mean nothing, so
/// that a packet that leaves does not touch its neighbour's memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    /// The places of the first and the last packet, if there are any.
    first: u32,
    last: u32,
    packets: u32,
    bytes: u64,
}

impl Default for Slab {
    fn default() -> Slab {
        Slab { packets: Vec::new(), links: Vec::new(), vacant: NONE }
    }
}

impl List {
    /// Whether nothing is in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// How many packets are in it.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        u64::from(self.packets)
    }

    /// Their bytes at the network layer.
    #[inline]
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

impl Slab {
    /// Puts `packet` behind the last of `list`.
    #[inline]
    pub(super) fn push_back(&mut self, list: &mut List, packet: Packet) {
        list.packets += 1;
        list.bytes += packet.size.count();
        let links = Links { next: NONE, previous: list.last };
        let place = match self.links.get_mut(self.vacant as usize) {
            Some(vacant) => {
                let place = core::mem::replace(&mut self.vacant, vacant.next);
                *vacant = links;
                self.packets[place as usize].0 = packet;
                place
            }
            None => {
                self.packets.push(Place(packet));
                self.links.push(links);
                (self.links.len() - 1) as u32
            }
        };
        match list.packets {
            1 => list.first = place,
            _ => self.links[list.last as usize].next = place,
        }
        list.last = place;
    }

    /// The first packet of `list`.
    #[inline]
    pub(super) fn front(&self, list: &List) -> Option<&Packet> {
        if list.is_empty() {
            return None;
        }
        self.packets.get(list.first as usize).map(|place| &place.0)
    }

    /// Takes the first packet of `list`.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut List) -> Option<Packet> {
        let (packet, links) = self.take(list, list.first)?;
        list.first = links.next;
        Some(packet)
    }

    /// Takes the last packet of `list`.
    #[inline]
    pub(super) fn pop_back(&mut self, list: &mut List) -> Option<Packet> {
        let (packet, links) = self.take(list, list.last)?;
        list.last = links.previous;
        Some(packet)
    }

    /// Empties a place at one end of `list`; returns what was there, and its neighbours.
    #[inline]
    fn take(&mut self, list: &mut List, place: u32) -> Option<(Packet, Links)> {
        if list.is_empty() {
            return None;
        }
        let packet = core::mem::take(&mut self.packets.get_mut(place as usize)?.0);
        let vacant = core::mem::replace(&mut self.vacant, place);
        let links =
            core::mem::replace(&mut self.links[place as usize], Links { next: vacant, previous: NONE });
        list.packets -= 1;
        list.bytes -= packet.size.count();
        Some((packet, links))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use trunkline_core::PacketId;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        PushBack(usize, u64),
        PopFront(usize),
        PopBack(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0usize..4, 0u64..1600).prop_map(|(list, size)| Step::PushBack(list, size)),
            2 => (0usize..4).prop_map(Step::PopFront),
            1 => (0usize..4).prop_map(Step::PopBack),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn lists_behave_like_deques_of_their_own(steps in steps()) {
            let (mut slab, mut lists) = (Slab::default(), [List::default(); 4]);
            let mut models: [VecDeque<Packet>; 4] = Default::default();
            let mut most = 0;
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::PushBack(list, size) => {
                        let packet = Packet { id: PacketId(id as u64), size: Bytes(size), ..Packet::default() };
                        slab.push_back(&mut lists[list], packet.clone());
                        models[list].push_back(packet);
                    }
                    Step::PopFront(list) => {
                        prop_assert_eq!(slab.pop_front(&mut lists[list]), models[list].pop_front());
                    }
                    Step::PopBack(list) => {
                        prop_assert_eq!(slab.pop_back(&mut lists[list]), models[list].pop_back());
                    }
                }
                for (list, model) in lists.iter().zip(&models) {
                    prop_assert_eq!(slab.front(list), model.front());
                    prop_assert_eq!(list.is_empty(), model.is_empty());
                    prop_assert_eq!(list.packets(), model.len() as u64);
                    prop_assert_eq!(list.bytes().count(), model.iter().map(|p| p.size.count()).sum::<u64>());
                }
                most = most.max(models.iter().map(VecDeque::len).sum());
                prop_assert!(slab.packets.len() <= most, "places of packets that left are used again");
            }
        }
    }
}

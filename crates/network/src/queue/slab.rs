//! Packets of many queues in one store: what disciplines with a queue per flow keep them in.
//!
//! A store costs memory for as many packets as ever waited in it at once, however they were spread over its lists, and
//! allocates only to grow beyond that. Every operation takes constant time.

use trunkline_core::{Bytes, Packet};

/// No node: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Holds the packets of any number of [`List`]s.
#[derive(Clone, Debug)]
pub(super) struct Slab {
    nodes: Vec<Node>,
    /// The first node without a packet; the others follow by `next`.
    vacant: u32,
}

#[derive(Clone, Debug)]
struct Node {
    packet: Packet,
    next: u32,
    previous: u32,
}

/// Packets in order, which lie in a [`Slab`]: always the same one for the same list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    packets: u32,
    bytes: u64,
}

impl Default for Slab {
    fn default() -> Slab {
        Slab { nodes: Vec::new(), vacant: NONE }
    }
}

impl Default for List {
    fn default() -> List {
        List { first: NONE, last: NONE, packets: 0, bytes: 0 }
    }
}

impl List {
    /// Whether nothing is in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
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
        let node = Node { packet, next: NONE, previous: list.last };
        let place = match self.nodes.get_mut(self.vacant as usize) {
            Some(vacant) => {
                let place = self.vacant;
                self.vacant = vacant.next;
                *vacant = node;
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        match self.nodes.get_mut(list.last as usize) {
            Some(last) => last.next = place,
            None => list.first = place,
        }
        list.last = place;
    }

    /// The first packet of `list`.
    #[inline]
    pub(super) fn front(&self, list: &List) -> Option<&Packet> {
        self.nodes.get(list.first as usize).map(|node| &node.packet)
    }

    /// Takes the first packet of `list`.
    #[inline]
    pub(super) fn pop_front(&mut self, list: &mut List) -> Option<Packet> {
        let (packet, next, _) = self.take(list, list.first)?;
        list.first = next;
        match self.nodes.get_mut(next as usize) {
            Some(node) => node.previous = NONE,
            None => list.last = NONE,
        }
        Some(packet)
    }

    /// Takes the last packet of `list`.
    #[inline]
    pub(super) fn pop_back(&mut self, list: &mut List) -> Option<Packet> {
        let (packet, _, previous) = self.take(list, list.last)?;
        list.last = previous;
        match self.nodes.get_mut(previous as usize) {
            Some(node) => node.next = NONE,
            None => list.first = NONE,
        }
        Some(packet)
    }

    /// Empties the node at `place` of `list`; returns what was in it, and its neighbours.
    #[inline]
    fn take(&mut self, list: &mut List, place: u32) -> Option<(Packet, u32, u32)> {
        let node = self.nodes.get_mut(place as usize)?;
        let packet = core::mem::take(&mut node.packet);
        let (next, previous) = (node.next, node.previous);
        node.next = self.vacant;
        self.vacant = place;
        list.packets -= 1;
        list.bytes -= packet.size.count();
        Some((packet, next, previous))
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
                prop_assert!(slab.nodes.len() <= most, "places of packets that left are used again");
            }
        }
    }
}

//! A queue for each flow that has data: what round robin and deficit round robin choose from.
//!
//! A flow's channel exists only while packets of it wait, so channels cost memory for as many as were active at once.
//! Beside that there are four bytes for every flow up to the largest number seen: flows are numbered densely, and a
//! look-up that hashes nothing takes the same time for ten channels as for a million. Every operation takes constant time.

use trunkline_core::{Bytes, Packet};

use super::Backlog;
use super::slab::{List, NONE, Slab};

/// Packets by flow, with the channels in a ring, in which they are served.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    /// The place of each flow's channel in `channels`, or [`NONE`], by the flow's number.
    of_flow: Vec<u32>,
    channels: Vec<Channel>,
    /// The first place without a channel; the others follow by `next`.
    vacant: u32,
    /// The channel whose turn it is.
    first: u32,
    /// The channel before it in the ring.
    last: u32,
    slab: Slab,
    backlog: Backlog,
}

/// In a cache line of its own, for the reason that packets are.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Channel {
    waiting: List,
    flow: u32,
    next: u32,
    previous: u32,
    credit: u64,
}

impl Default for Channels {
    fn default() -> Channels {
        Channels {
            of_flow: Vec::new(),
            channels: Vec::new(),
            vacant: NONE,
            first: NONE,
            last: NONE,
            slab: Slab::default(),
            backlog: Backlog::default(),
        }
    }
}

impl Channels {
    /// Puts `packet` behind those of its flow and returns the place of its channel: a new one if nothing of the flow
    /// waited, with a credit of 0 and the last to have its turn.
    #[inline]
    pub(super) fn push(&mut self, packet: Packet) -> u32 {
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
        let flow = packet.flow.0;
        let place = match self.of_flow.get(flow as usize) {
            Some(&place) if place != NONE => place,
            _ => self.open(flow),
        };
        self.slab.push_back(&mut self.channels[place as usize].waiting, packet);
        place
    }

    /// Takes the oldest packet of a channel, and with the last one the channel.
    #[inline]
    pub(super) fn pop_front(&mut self, place: u32) -> Option<Packet> {
        let packet = self.slab.pop_front(&mut self.channels[place as usize].waiting)?;
        self.settle(place, &packet);
        Some(packet)
    }

    /// Takes the newest packet of a channel, and with the last one the channel.
    pub(super) fn pop_back(&mut self, place: u32) -> Option<Packet> {
        let packet = self.slab.pop_back(&mut self.channels[place as usize].waiting)?;
        self.settle(place, &packet);
        Some(packet)
    }

    /// Ends the turn of the channel that has it: it is now the last of the ring.
    #[inline]
    pub(super) fn rotate(&mut self) {
        if self.first != self.last {
            let place = self.first;
            self.unlink(place);
            self.link(place);
        }
    }

    /// What a discipline keeps for a channel.
    #[inline]
    pub(super) fn credit(&mut self, place: u32) -> &mut u64 {
        &mut self.channels[place as usize].credit
    }

    /// The channel whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The size of the oldest packet of a channel; nothing if it has none.
    #[inline]
    pub(super) fn next_size(&self, place: u32) -> Bytes {
        self.slab.front(&self.channels[place as usize].waiting).map_or(Bytes::ZERO, |packet| packet.size)
    }

    /// What waits in the channel at `place`: nothing if it ended.
    #[inline]
    pub(super) fn waiting(&self, place: u32) -> Backlog {
        let waiting = &self.channels[place as usize].waiting;
        Backlog { packets: waiting.packets(), bytes: waiting.bytes() }
    }

    /// What waits of a flow.
    #[cfg(test)]
    pub(super) fn of(&self, flow: u32) -> Backlog {
        match self.of_flow.get(flow as usize) {
            Some(&place) if place != NONE => self.waiting(place),
            _ => Backlog::default(),
        }
    }

    /// What waits in all of them.
    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn open(&mut self, flow: u32) -> u32 {
        let channel = Channel { waiting: List::default(), flow, next: NONE, previous: NONE, credit: 0 };
        let place = match self.channels.get_mut(self.vacant as usize) {
            Some(vacant) => {
                let place = self.vacant;
                self.vacant = vacant.next;
                *vacant = channel;
                place
            }
            None => {
                self.channels.push(channel);
                (self.channels.len() - 1) as u32
            }
        };
        if self.of_flow.len() <= flow as usize {
            self.of_flow.resize(flow as usize + 1, NONE);
        }
        self.of_flow[flow as usize] = place;
        self.link(place);
        place
    }

    /// Accounts for a packet that was taken, and closes the channel if it was the last.
    #[inline]
    fn settle(&mut self, place: u32, packet: &Packet) {
        self.backlog.packets -= 1;
        self.backlog.bytes = Bytes(self.backlog.bytes.count() - packet.size.count());
        if self.channels[place as usize].waiting.is_empty() {
            self.unlink(place);
            let channel = &mut self.channels[place as usize];
            self.of_flow[channel.flow as usize] = NONE;
            channel.next = self.vacant;
            self.vacant = place;
        }
    }

    /// Makes a channel the last of the ring.
    #[inline]
    fn link(&mut self, place: u32) {
        let last = core::mem::replace(&mut self.last, place);
        match self.channels.get_mut(last as usize) {
            Some(channel) => channel.next = place,
            None => self.first = place,
        }
        let channel = &mut self.channels[place as usize];
        (channel.previous, channel.next) = (last, NONE);
    }

    #[inline]
    fn unlink(&mut self, place: u32) {
        let Channel { previous, next, .. } = self.channels[place as usize];
        match self.channels.get_mut(previous as usize) {
            Some(channel) => channel.next = next,
            None => self.first = next,
        }
        match self.channels.get_mut(next as usize) {
            Some(channel) => channel.previous = previous,
            None => self.last = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::testing::packet;
    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push {
            flow: u32,
            size: u64,
        },
        /// The oldest of the channel whose turn it is.
        PopFront,
        /// The newest of the channel so many places behind it.
        PopBack(usize),
        Rotate,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u32..5, 0u64..1600).prop_map(|(flow, size)| Step::Push { flow, size }),
            2 => Just(Step::PopFront),
            1 => (0usize..5).prop_map(Step::PopBack),
            1 => Just(Step::Rotate),
        ];
        prop::collection::vec(step, 0..200)
    }

    /// The ring as plain as can be: flows with their packets, the one whose turn it is in front.
    #[derive(Default)]
    struct Model(VecDeque<(u32, VecDeque<Packet>)>);

    impl Model {
        fn push(&mut self, packet: Packet) {
            match self.0.iter_mut().find(|(flow, _)| *flow == packet.flow.0) {
                Some((_, packets)) => packets.push_back(packet),
                None => self.0.push_back((packet.flow.0, VecDeque::from([packet]))),
            }
        }

        fn pop(&mut self, place: usize, take: fn(&mut VecDeque<Packet>) -> Option<Packet>) -> Option<Packet> {
            let packet = take(&mut self.0.get_mut(place)?.1);
            self.0.retain(|(_, packets)| !packets.is_empty());
            packet
        }
    }

    proptest! {
        #[test]
        fn the_ring_is_that_of_a_plain_model(steps in steps()) {
            let (mut channels, mut model) = (Channels::default(), Model::default());
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push { flow, size } => {
                        let packet = packet(id as u64, flow, size);
                        let new = channels.of(flow).packets == 0;
                        let place = channels.push(packet.clone());
                        prop_assert!(!new || *channels.credit(place) == 0, "a new channel has a credit");
                        *channels.credit(place) += size + 1;
                        model.push(packet);
                    }
                    Step::PopFront => {
                        let next = channels.first().map(|first| channels.next_size(first));
                        let popped = channels.first().and_then(|first| channels.pop_front(first));
                        prop_assert_eq!(next, popped.as_ref().map(|packet| packet.size));
                        prop_assert_eq!(popped, model.pop(0, VecDeque::pop_front));
                    }
                    Step::PopBack(behind) => {
                        let flow = model.0.get(behind).map(|(flow, _)| *flow as usize);
                        let place = flow.map(|flow| channels.of_flow[flow]);
                        let popped = place.and_then(|place| channels.pop_back(place));
                        prop_assert_eq!(popped, model.pop(behind, VecDeque::pop_back));
                    }
                    Step::Rotate => {
                        channels.rotate();
                        if !model.0.is_empty() {
                            model.0.rotate_left(1);
                        }
                    }
                }
                for (flow, packets) in &model.0 {
                    let bytes = packets.iter().map(|packet| packet.size.count()).sum();
                    let waiting = Backlog { packets: packets.len() as u64, bytes: Bytes(bytes) };
                    prop_assert_eq!(channels.of(*flow), waiting);
                }
                let packets = model.0.iter().map(|(_, packets)| packets.len() as u64).sum::<u64>();
                prop_assert_eq!(channels.backlog().packets, packets);
                let first = channels.first().map(|first| channels.channels[first as usize].flow);
                prop_assert_eq!(first, model.0.front().map(|(flow, _)| *flow));
            }
        }
    }
}

//! What hosts do to messages: handing over in pieces, waiting for the processor.
//!
//! A host without costs is passed by: none of this is on the way of its messages.

use std::collections::BTreeMap;

use trunkline_core::{FlowId, Time};
use trunkline_metrics::Recorder;
use trunkline_transport::framing::Header;
use trunkline_transport::{CloseReason, Message, SendError};

use super::Engine;
use crate::conversation::Side;
use crate::event::Event;
use crate::outlet::Outlet;

/// A message that waits for a processor.
pub(crate) struct Kept {
    pub(crate) conversation: u32,
    pub(crate) side: Side,
    pub(crate) header: Header,
    /// With room for a header before the payload.
    pub(crate) bytes: Vec<u8>,
    pub(crate) what: KeptFor,
}

/// What is done with a kept message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptFor {
    /// Its application gets it.
    Application,
    /// Its transport gets it: the sink's answer.
    Transport,
}

/// A message that a host is handing over to its transport, in pieces. It was observed as sent when the host began.
pub(crate) struct Handing {
    /// All that is sent of it.
    bytes: Vec<u8>,
    /// How many of these the transport has.
    handed: usize,
    waits_for: WaitsFor,
}

/// What a message waits for that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    /// Its event.
    Event,
    /// Room in the transport.
    Room,
    /// That the burst before has left the network.
    Burst,
}

/// How a member's messages get to its transport on a host where that takes time: one after the other.
pub(crate) struct HandOver<'a> {
    pub(crate) member: u32,
    pub(crate) handing: &'a mut BTreeMap<u32, Handing>,
}

impl HandOver<'_> {
    /// Begins with a message, unless the one before it is not with its transport yet.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        bytes: &[u8],
        outlet: &mut Outlet<'_, '_>,
    ) -> Result<(), SendError> {
        if self.handing.contains_key(&self.member) {
            return Err(SendError::Full);
        }
        let at = outlet.begins_at(now);
        let bytes = outlet.copy(bytes);
        self.handing.insert(self.member, Handing { bytes, handed: 0, waits_for: WaitsFor::Event });
        outlet.queue(at, Event::HandOver(self.member));
        Ok(())
    }
}

impl Engine<'_, '_> {
    /// How much processor time the packets and messages of a conversation take, as a multiple of what hosts say.
    pub(crate) fn effort(&self, conversation: u32) -> f64 {
        self.scenario.flows[self.conversations[conversation as usize].flow as usize].effort
    }

    /// The event for which the next piece of a message has waited.
    pub(crate) fn hand_over(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let conversation = self.members[m as usize].conversation;
        self.hand_over_piece(m, recorder);
        if self.conversations[conversation as usize].owner.is_some() {
            self.serve(conversation, Side::Near, recorder);
        }
    }

    /// The transport has room again while a message is handed over.
    pub(crate) fn go_on_handing_over(&mut self, m: u32, recorder: &mut dyn Recorder) {
        if self.handing.get(&m).is_some_and(|handing| handing.waits_for == WaitsFor::Room) {
            self.hand_over_piece(m, recorder);
        }
    }

    /// A packet of a member's source has reached the other end, or was dropped on its way.
    pub(crate) fn left(&mut self, id: FlowId) {
        let index = self.conversation(id);
        let conversation = &mut self.conversations[index as usize];
        conversation.on_their_way = conversation.on_their_way.saturating_sub(1);
        if conversation.on_their_way > 0 {
            return;
        }
        let member = self.member(id);
        let Some(handing) = self.handing.get_mut(&member) else { return };
        if handing.waits_for == WaitsFor::Burst {
            handing.waits_for = WaitsFor::Event;
            let flow = self.members[member as usize].flow;
            let host = self.hosts.get(self.scenario.flows[flow as usize].from);
            let at = host.send_piece(self.now, handing.bytes.len(), handing.handed);
            self.events.push(at, Event::HandOver(member));
        }
    }

    /// Gives the next piece of a message to its transport.
    fn hand_over_piece(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let member = &self.members[m as usize];
        let (id, index) = (member.talker.id(), member.conversation);
        let flow = &self.scenario.flows[member.flow as usize];
        let Some(handing) = self.handing.get_mut(&m) else { return };
        let bytes = &handing.bytes;
        let host = self.hosts.get(flow.from);
        let conversation = &mut self.conversations[index as usize];
        // What keeps the borders of messages takes a message at once.
        let end = match conversation.near.endpoint.features().message_oriented {
            true => bytes.len(),
            false => handing.handed + host.piece(bytes.len(), handing.handed).length,
        };
        let part = &bytes[handing.handed..end];
        let is_last = end == bytes.len();
        let part = if is_last { Message::new(part) } else { Message::piece(part) };
        let taken = match self.network.is_full(conversation.flow, id) {
            true => Err(SendError::Full),
            false => conversation.near.endpoint.send(self.now, part),
        };
        match taken {
            Ok(()) => {}
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                handing.waits_for = WaitsFor::Room;
                return;
            }
            // What was sent of it is lost, and so is the rest.
            Err(SendError::TooLarge { .. } | SendError::Closed(_)) => {
                return self.handed_over(m, recorder);
            }
        }
        let length = bytes.len();
        handing.handed = end;
        if !is_last {
            // Nobody waits until all of a group have a burst.
            let waits = host.one_burst_at_a_time() && conversation.group.is_none();
            handing.waits_for = if waits { WaitsFor::Burst } else { WaitsFor::Event };
            if handing.waits_for == WaitsFor::Event {
                let at = host.send_piece(self.now, length, end);
                self.events.push(at, Event::HandOver(m));
            }
        }
        self.transmit(index, Side::Near, id);
        if is_last {
            self.handed_over(m, recorder);
        }
    }

    /// A message is with its transport: on to the next.
    fn handed_over(&mut self, m: u32, recorder: &mut dyn Recorder) {
        if let Some(handing) = self.handing.remove(&m) {
            self.network.recycle(handing.bytes);
        }
        self.send_waiting(m, recorder);
    }

    /// Keeps a message until its host's processor has time for it.
    pub(crate) fn keep(&mut self, at: Time, kept: Kept) {
        let slot = match self.free_kept.pop() {
            Some(slot) => {
                self.kept[slot as usize] = Some(kept);
                slot
            }
            None => {
                self.kept.push(Some(kept));
                (self.kept.len() - 1) as u32
            }
        };
        self.events.push(at, Event::Kept(slot));
    }

    /// The processor has had time for a kept message.
    pub(crate) fn kept(&mut self, slot: u32, recorder: &mut dyn Recorder) {
        let Some(mut kept) = self.kept[slot as usize].take() else { return };
        self.free_kept.push(slot);
        match kept.what {
            KeptFor::Application => {
                self.deliver(kept.conversation, kept.side, kept.header, &mut kept.bytes, recorder);
            }
            KeptFor::Transport => self.send_back(kept.conversation, kept.side, &kept.header, &kept.bytes),
        }
        self.network.recycle(kept.bytes);
        if self.conversations[kept.conversation as usize].owner.is_some() {
            self.serve(kept.conversation, kept.side, recorder);
        }
    }
}

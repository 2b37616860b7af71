//! From the network to whoever measures: packets to endpoints, endpoints to messages, reflecting.

use trunkline_core::{Destination, FlowId, Packet, Time};
use trunkline_experiment::Framing;
use trunkline_flows::{Delivery, Found, Listener};
use trunkline_metrics::Recorder;
use trunkline_transport::framing::{HEADER_LENGTH, Header};
use trunkline_transport::{CloseReason, Event as Happened, Message, SendError};

use super::Engine;
use super::handing::{Kept, KeptFor};
use crate::conversation::{End, Side};
use crate::event::Event;
use crate::observed::Receiving;

impl Engine<'_, '_> {
    /// Takes a packet that has reached the end of its path.
    pub(crate) fn packet_arrived(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        let side = side(&packet);
        let index = self.conversation(packet.flow);
        let conversation = &mut self.conversations[index as usize];
        let flow = conversation.flow;
        let End { presence, address, .. } = conversation.end(side);
        if presence.is_away {
            return self.network.recycle(packet.bytes);
        }
        let host = address.host;
        if side != Side::Near && !packet.group && self.watched[flow as usize] {
            self.left(packet.flow);
        }
        if let Some(host) = self.hosts.slow_interface(host) {
            let at = host.receive_at_interface(self.now, packet.size);
            let slot = self.network.keep(packet);
            return self.events.push(at, Event::Fetch(slot));
        }
        self.fetch_packet(packet, recorder);
    }

    /// Lets a host's processor work on a packet.
    pub(crate) fn fetch_packet(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        if !self.hosts.cost() {
            return self.take_packet(packet, recorder);
        }
        let side = side(&packet);
        let index = self.conversation(packet.flow);
        let host = self.conversations[index as usize].end(side).address.host;
        let effort = self.effort(index);
        if let Some(host) = self.hosts.slow_receiver(host) {
            let is_group = packet.to == Destination::Everyone;
            let at = host.receive_packet(self.now, packet.size, is_group, effort);
            let slot = self.network.keep(packet);
            return self.events.push(at, Event::Take(slot));
        }
        self.take_packet(packet, recorder);
    }

    /// Gives a packet to its transport.
    pub(crate) fn take_packet(&mut self, mut packet: Packet, recorder: &mut dyn Recorder) {
        let side = side(&packet);
        let index = self.conversation(packet.flow);
        let conversation = &mut self.conversations[index as usize];
        let is_datagram = conversation.owner.is_none();
        let End { endpoint, listener, .. } = conversation.end(side);
        let read = match is_datagram && listener.reads() {
            true => endpoint.receive_now(packet.from, &packet.bytes),
            false => None,
        };
        match read {
            Some(Some(message)) => {
                self.read(index, side, &mut packet.bytes[message], recorder);
            }
            Some(None) => {}
            None => {
                endpoint.handle_packet(self.now, packet.from, packet.ecn, &packet.bytes);
                self.serve(index, side, recorder);
            }
        }
        self.network.recycle(packet.bytes);
    }

    /// Lets an endpoint do what it asked to be called for.
    pub(crate) fn timeout(&mut self, conversation: u32, side: Side, recorder: &mut dyn Recorder) {
        let end = self.conversations[conversation as usize].end(side);
        if end.scheduled != self.now {
            return; // an earlier call took its place
        }
        end.scheduled = Time::MAX;
        if end.presence.is_away {
            return;
        }
        end.endpoint.handle_timeout(self.now);
        self.serve(conversation, side, recorder);
    }

    /// Drains everything an endpoint has to say, until it has nothing more.
    pub(crate) fn serve(&mut self, index: u32, side: Side, recorder: &mut dyn Recorder) {
        let conversation = &mut self.conversations[index as usize];
        let Some(owner) = conversation.owner else {
            // Datagrams: nothing answers by itself, waits or is woken. One look is enough.
            let endpoint = &mut conversation.end(side).endpoint;
            while endpoint.poll_event().is_some() {}
            self.receive(index, side, recorder);
            return;
        };
        loop {
            self.transmit(index, side, owner);
            let mut writable = false;
            while let Some(event) = self.conversations[index as usize].end(side).endpoint.poll_event() {
                match event {
                    Happened::Writable => writable = true,
                    Happened::Connected => {
                        writable = true;
                        if side == Side::Near && self.is_measuring() {
                            self.begin(index, self.now);
                        }
                    }
                    Happened::Closed(_) => {
                        writable = true;
                        if side == Side::Near && self.begin(index, Time::ZERO) {
                            self.count_not_connected(index);
                        }
                    }
                    Happened::Readable => {}
                    Happened::Member(what) => self.membership(index, what),
                }
            }
            let received = self.receive(index, side, recorder);
            if writable {
                match side {
                    Side::Near => self.room_again(index, owner, recorder),
                    Side::Far(_) => self.reflect_backlog(index, side, owner),
                }
            }
            if !writable && !received {
                break;
            }
        }
        let end = self.conversations[index as usize].end(side);
        if let Some(next) = end.endpoint.next_timeout()
            && next < end.scheduled
        {
            end.scheduled = next;
            self.events.push(next, Event::Timeout(index, side.place()));
        }
    }

    /// Lets whoever sends through a conversation go on: its member, or all that share it, none of them always first.
    fn room_again(&mut self, index: u32, owner: FlowId, recorder: &mut dyn Recorder) {
        let conversation = &mut self.conversations[index as usize];
        if conversation.member.is_some() {
            return self.send_waiting(self.member(owner), recorder);
        }
        let turn = conversation.turns;
        conversation.turns = turn.wrapping_add(1);
        let meta = &self.scenario.flows[conversation.flow as usize].meta;
        for m in 0..meta.members {
            let id = FlowId(meta.first.0 + (turn % meta.members + m) % meta.members);
            self.send_waiting(self.member(id), recorder);
        }
    }

    /// Reads all that an endpoint has received; true if that was anything.
    fn receive(&mut self, index: u32, side: Side, recorder: &mut dyn Recorder) -> bool {
        let mut any = false;
        let mut scratch = core::mem::take(&mut self.received);
        loop {
            let End { endpoint, reader, listener, .. } = self.conversations[index as usize].end(side);
            if !listener.reads() || !reader.receive(endpoint.as_mut(), &mut scratch) {
                break;
            }
            any = true;
            self.read(index, side, &mut scratch, recorder);
        }
        self.received = scratch;
        any
    }

    /// Takes the messages that are complete with what an endpoint has received.
    fn read(&mut self, index: u32, side: Side, received: &mut [u8], recorder: &mut dyn Recorder) {
        let mut reader = core::mem::take(&mut self.conversations[index as usize].end(side).reader);
        reader.messages(received, |found| match found {
            Found::Message(header, bytes) => self.message(index, side, header, bytes, recorder),
            Found::Unmatched(bytes) => {
                let now = self.now;
                let (listener, mut out) = self.receiving(index, side, recorder);
                listener.unmatched(now, bytes, &mut out);
            }
        });
        self.conversations[index as usize].end(side).reader = reader;
    }

    /// Takes a whole message, header or the room for it included.
    #[inline]
    fn message(
        &mut self,
        index: u32,
        side: Side,
        header: Header,
        bytes: &mut [u8],
        recorder: &mut dyn Recorder,
    ) {
        if !self.hosts.cost() {
            return self.deliver(index, side, header, bytes, recorder);
        }
        let host = self.conversations[index as usize].end(side).address.host;
        let effort = self.effort(index);
        if let Some(host) = self.hosts.slow_reader(host) {
            let at = host.receive_message(self.now, effort);
            let mut kept = self.network.buffer();
            kept.extend_from_slice(bytes);
            let what = KeptFor::Application;
            return self.keep(at, Kept { conversation: index, side, header, bytes: kept, what });
        }
        self.deliver(index, side, header, bytes, recorder);
    }

    /// Gives a message to its application.
    pub(crate) fn deliver(
        &mut self,
        index: u32,
        side: Side,
        header: Header,
        bytes: &mut [u8],
        recorder: &mut dyn Recorder,
    ) {
        let now = self.now;
        let (listener, mut out) = self.receiving(index, side, recorder);
        match listener.deliver(now, &header, bytes, &mut out) {
            Delivery::Done => {}
            Delivery::Reply(flow, reply) => {
                let mut back = self.network.buffer();
                Listener::reply(now, &header, (flow, reply), bytes, &mut back);
                self.answer(index, side, Header { flow, ..header }, back);
            }
            Delivery::Answered(answer) => {
                let place = self.member(answer.flow);
                let Engine { members, conversations, scenario, covered, hosts, .. } = self;
                let flow_index = conversations[index as usize].flow;
                let flow = &scenario.flows[flow_index as usize];
                let mut out = Receiving { recorder, hosts, covered, flow, side };
                members[place as usize].talker.answered(now, answer, &mut out);
                self.fill(place, recorder);
                self.look_for_the_end(flow_index, recorder);
            }
        }
    }

    /// The listener at an end of a conversation, and where its observations go.
    #[inline]
    fn receiving<'a>(
        &'a mut self,
        index: u32,
        side: Side,
        recorder: &'a mut dyn Recorder,
    ) -> (&'a Listener, Receiving<'a>) {
        let Engine { conversations, scenario, covered, hosts, .. } = self;
        let conversation = &mut conversations[index as usize];
        let flow = &scenario.flows[conversation.flow as usize];
        (&conversation.end(side).listener, Receiving { recorder, hosts, covered, flow, side })
    }

    /// Sends a message back to its source, when the host's processor has time.
    fn answer(&mut self, index: u32, side: Side, asked: Header, bytes: Vec<u8>) {
        // Counts where messages have no headers: there is room for one.
        let length = bytes.len().saturating_sub(HEADER_LENGTH) as u32;
        let header = Header { length, ..asked.reflected(self.now) };
        let host = self.conversations[index as usize].end(side).address.host;
        let effort = self.effort(index);
        if let Some(host) = self.hosts.slow_writer(host) {
            let at = host.send_message(self.now, effort);
            let what = KeptFor::Transport;
            return self.keep(at, Kept { conversation: index, side, header, bytes, what });
        }
        self.send_back(index, side, &header, &bytes);
        self.network.recycle(bytes);
    }

    /// Gives an answer to its transport.
    pub(crate) fn send_back(&mut self, index: u32, side: Side, header: &Header, bytes: &[u8]) {
        let conversation = &mut self.conversations[index as usize];
        let is_stream = conversation.owner.is_some();
        let is_bare = self.scenario.flows[conversation.flow as usize].framing == Framing::None;
        let message = &bytes[if is_bare { HEADER_LENGTH } else { 0 }..];
        let End { endpoint, listener, .. } = conversation.end(side);
        let sent = match listener.has_replies() {
            true => Err(SendError::Full),
            false => endpoint.send(self.now, Message::new(message)),
        };
        match sent {
            Ok(()) => {
                conversation.near.reader.expect(header);
                self.transmit(index, side, header.flow);
            }
            // A conversation with a state of its own has room again later.
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) if is_stream => {
                listener.keep_reply(self.waiting.copy(message));
                conversation.near.reader.expect(header);
            }
            // A datagram that finds no room is lost, as at a full socket.
            Err(_) => listener.lose_reply(),
        }
    }

    fn reflect_backlog(&mut self, index: u32, side: Side, id: FlowId) {
        loop {
            let End { endpoint, listener, .. } = self.conversations[index as usize].end(side);
            if listener.send_reply(self.now, &mut self.waiting, endpoint.as_mut()).is_none() {
                return;
            }
            self.transmit(index, side, id);
        }
    }
}

/// The end that a packet has come to.
fn side(packet: &Packet) -> Side {
    if packet.backward { Side::Near } else { Side::Far(packet.sink) }
}

//! From the network to whoever measures: packets to endpoints, endpoints to messages, reflecting.

use trunkline_core::{Bytes, Destination, FlowId, Packet, Time};
use trunkline_experiment::Framing;
use trunkline_metrics::{Observation, Recorder};
use trunkline_traffic::{Answer, Feedback, Transfer};
use trunkline_transport::framing::{self, HEADER_LENGTH, Header, MessageKind};
use trunkline_transport::{Event as Happened, Message, SendError};

use crate::conversation::Side;
use crate::engine::{Engine, Event};
use crate::hosts::{Kept, KeptFor};

impl Engine<'_> {
    /// Takes a packet that has reached the end of its path.
    pub(crate) fn packet_arrived(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        let side = side(&packet);
        let index = self.place(packet.flow).conversation;
        if self.conversations[index as usize].end(side).is_away {
            return self.network.recycle(packet.bytes);
        }
        if side != Side::Near
            && !packet.group
            && self.watched[self.conversations[index as usize].flow as usize]
        {
            self.left(packet.flow);
        }
        let host = self.conversations[index as usize].end(side).address.host;
        if let Some(host) = self.hosts.slow_interface(host) {
            let at = host.receive_at_interface(self.now, packet.size);
            let slot = self.network.keep(packet);
            return self.events.push(at, Event::Fetch(slot));
        }
        self.fetch_packet(packet, recorder);
    }

    /// Lets a host's processor work on a packet.
    pub(crate) fn fetch_packet(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        let side = side(&packet);
        let index = self.place(packet.flow).conversation;
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
    pub(crate) fn take_packet(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        let side = side(&packet);
        let index = self.place(packet.flow).conversation;
        let endpoint = &mut self.conversations[index as usize].end(side).endpoint;
        endpoint.handle_packet(self.now, packet.from, packet.ecn, &packet.bytes);
        self.network.recycle(packet.bytes);
        self.serve(index, side, recorder);
    }

    /// Lets an endpoint do what it asked to be called for.
    pub(crate) fn timeout(&mut self, conversation: u32, side: Side, recorder: &mut dyn Recorder) {
        let end = self.conversations[conversation as usize].end(side);
        if end.scheduled != self.now {
            return; // an earlier call took its place
        }
        end.scheduled = Time::MAX;
        if end.is_away {
            return;
        }
        end.endpoint.handle_timeout(self.now);
        self.serve(conversation, side, recorder);
    }

    /// Drains everything an endpoint has to say, until it has nothing more.
    pub(crate) fn serve(&mut self, index: u32, side: Side, recorder: &mut dyn Recorder) {
        let Some(owner) = self.conversations[index as usize].owner else {
            // Datagrams: nothing answers by itself, waits or is woken. One look is enough.
            while self.conversations[index as usize].end(side).endpoint.poll_event().is_some() {}
            self.receive(index, side, recorder);
            return;
        };
        loop {
            self.transmit(index, side, owner);
            let mut writable = false;
            while let Some(event) = self.conversations[index as usize].end(side).endpoint.poll_event() {
                match event {
                    Happened::Connected | Happened::Writable | Happened::Closed(_) => writable = true,
                    Happened::Readable => {}
                    Happened::Member(what) => self.membership(index, what),
                }
            }
            let received = self.receive(index, side, recorder);
            if writable {
                match side {
                    Side::Near => self.room_again(index, owner, recorder),
                    Side::Far(_) => self.reflect_backlog(index, side),
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
            return self.send_waiting(self.place(owner).member, recorder);
        }
        let turn = conversation.turns;
        conversation.turns = turn.wrapping_add(1);
        let meta = &self.scenario.flows[conversation.flow as usize].meta;
        for m in 0..meta.members {
            let id = FlowId(meta.first.0 + (turn % meta.members + m) % meta.members);
            self.send_waiting(self.place(id).member, recorder);
        }
    }

    /// Reads all that an endpoint has received; true if that was anything.
    fn receive(&mut self, index: u32, side: Side, recorder: &mut dyn Recorder) -> bool {
        let mut any = false;
        let mut received = core::mem::take(&mut self.received);
        loop {
            let end = self.conversations[index as usize].end(side);
            received.clear();
            if !end.reads() || end.endpoint.receive(&mut received).is_none() {
                break;
            }
            any = true;
            match end.stream.take() {
                None => match framing::decode_message(&received, self.key) {
                    Ok((header, _)) => self.message(index, side, header, &mut received, recorder),
                    Err(_) => self.stray(index, received.len(), recorder),
                },
                Some(mut stream) => {
                    stream.push(&received);
                    while let Some((skipped, header, bytes)) = stream.next() {
                        if skipped > 0 {
                            self.stray(index, skipped, recorder);
                        }
                        self.message(index, side, header, bytes, recorder);
                    }
                    self.conversations[index as usize].end(side).stream = Some(stream);
                }
            }
        }
        self.received = received;
        any
    }

    /// Takes a whole message, header or the room for it included.
    fn message(
        &mut self,
        index: u32,
        side: Side,
        header: Header,
        bytes: &mut [u8],
        recorder: &mut dyn Recorder,
    ) {
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
        let flow_index = self.conversations[index as usize].flow;
        let flow = &self.scenario.flows[flow_index as usize];
        let Header { flow: mut id, channel, sequence, sent, reflected, kind, .. } = header;
        let first = flow.meta.first.0;
        let members = match side {
            Side::Near => first..first + flow.meta.ids(),
            Side::Far(_) => first..first + flow.meta.members,
        };
        if !members.contains(&id.0) || channel >= flow.meta.channels {
            return self.stray(index, bytes.len(), recorder);
        }
        if let Side::Far(sink) = side {
            id.0 += u32::from(sink) * flow.meta.members;
        }
        let is_forward = matches!(kind, MessageKind::Forward | MessageKind::Ask);
        let is_measured = match side {
            Side::Far(_) => is_forward && !flow.reflect,
            Side::Near => kind == MessageKind::Reflected && flow.reflect,
        };
        if is_measured {
            let payload = header.message(bytes);
            let length = Bytes(payload.len() as u64);
            let reader = match side {
                Side::Far(sink) => flow.to[usize::from(sink)].host,
                Side::Near => flow.from,
            };
            let sent = self.hosts.measured([flow.from, reader], sent, self.now);
            let observation = Observation::Received { channel, sequence, sent, reflected, payload: length };
            recorder.record(self.now, id, observation);
            if flow.meta.keeps_payload {
                recorder.payload(id, channel, sequence, &self.covered.uncovered(&header, payload));
            }
        }
        match (side, kind, flow.answer()) {
            (Side::Far(_), MessageKind::Ask, Answer::Bytes(length)) => {
                let mut answered = self.network.buffer();
                framing::answer(
                    &header,
                    self.now,
                    usize::try_from(length).unwrap_or(usize::MAX),
                    &mut answered,
                );
                self.answer(index, side, header, answered);
            }
            (Side::Far(_), MessageKind::Forward | MessageKind::Ask, _) if flow.reflect => {
                let mut whole = self.network.buffer();
                whole.extend_from_slice(bytes);
                // Its id says from which sink it comes back.
                let header = Header { flow: id, ..header };
                header.reflected(self.now).encode(&mut whole);
                self.answer(index, side, header, whole);
            }
            (Side::Near, MessageKind::Reflected, _) => {
                let place = self.place(id).member;
                let source = &mut self.members[place as usize].source;
                source.notify(self.now, Feedback::Answered { channel, sequence });
                while let Some(Transfer { channel, began, bytes }) = source.take_transfer() {
                    recorder.record(self.now, id, Observation::Transferred { channel, began, bytes });
                }
                self.fill(place, recorder);
                self.look_for_the_end(flow_index, recorder);
            }
            (Side::Far(_), MessageKind::Forward | MessageKind::Ask, _) => {}
            _ => self.stray(index, bytes.len(), recorder),
        }
    }

    /// Sends a message back to its source, when the host's processor has time.
    fn answer(&mut self, index: u32, side: Side, asked: Header, bytes: Vec<u8>) {
        let length = (bytes.len() - HEADER_LENGTH) as u32;
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
        let room = if is_bare { HEADER_LENGTH } else { 0 };
        let mut sent = Err(SendError::Full);
        let end = conversation.end(side);
        if end.backlog.is_empty() {
            sent = end.endpoint.send(self.now, Message::new(&bytes[room..]));
        }
        if sent.is_ok() || is_stream {
            conversation.expect(Side::Near, *header);
        }
        match sent {
            Ok(()) => self.transmit(index, side, header.flow),
            // A byte stream promises delivery: the message waits for room. A datagram that finds none is lost, as at a
            // full socket.
            Err(_) if is_stream => {
                let mut kept = self.network.buffer();
                kept.extend_from_slice(&bytes[room..]);
                self.conversations[index as usize].end(side).backlog.push_back(kept);
            }
            Err(_) => {}
        }
    }

    fn reflect_backlog(&mut self, index: u32, side: Side) {
        loop {
            let conversation = &mut self.conversations[index as usize];
            let owner = conversation.owner;
            let end = conversation.end(side);
            let (Some(message), Some(id)) = (end.backlog.pop_front(), owner) else { return };
            if end.endpoint.send(self.now, Message::new(&message)) == Err(SendError::Full) {
                end.backlog.push_front(message);
                return;
            }
            self.network.recycle(message);
            self.transmit(index, side, id);
        }
    }

    /// Bytes that are no message of this run.
    fn stray(&self, index: u32, bytes: usize, recorder: &mut dyn Recorder) {
        let conversation = &self.conversations[index as usize];
        let first = self.scenario.flows[conversation.flow as usize].meta.first;
        let observation = Observation::Stray { bytes: Bytes(bytes as u64) };
        recorder.record(self.now, conversation.member.unwrap_or(first), observation);
    }
}

/// The end that a packet has come to.
fn side(packet: &Packet) -> Side {
    if packet.backward { Side::Near } else { Side::Far(packet.sink) }
}

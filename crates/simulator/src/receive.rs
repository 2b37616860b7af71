//! From the network to whoever measures: packets to endpoints, endpoints to messages, reflecting.

use trunkline_core::{Bytes, FlowId, Packet, Time};
use trunkline_metrics::{Observation, Recorder};
use trunkline_traffic::Feedback;
use trunkline_transport::framing::{self, HEADER_LENGTH, Header, MessageKind};
use trunkline_transport::{Event as Happened, Message, SendError};

use crate::conversation::Side;
use crate::engine::{Engine, Event};

impl Engine<'_> {
    /// Takes a packet that has reached the end of its path.
    pub(crate) fn packet_arrived(&mut self, packet: Packet, recorder: &mut dyn Recorder) {
        let side = if packet.backward { Side::Near } else { Side::Far };
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
        end.endpoint.handle_timeout(self.now);
        self.serve(conversation, side, recorder);
    }

    /// Drains everything an endpoint has to say, until it has nothing more.
    pub(crate) fn serve(&mut self, index: u32, side: Side, recorder: &mut dyn Recorder) {
        let Some(owner) = self.conversations[index as usize].member else {
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
                }
            }
            let received = self.receive(index, side, recorder);
            if writable {
                match side {
                    Side::Near => self.send_waiting(self.place(owner).member, recorder),
                    Side::Far => self.reflect_backlog(index),
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
            self.events.push(next, Event::Timeout(index, side));
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
                    while let Some(message) = stream.next() {
                        if message.skipped > 0 {
                            self.stray(index, message.skipped, recorder);
                        }
                        self.message(index, side, message.header, message.bytes, recorder);
                    }
                    self.conversations[index as usize].end(side).stream = Some(stream);
                }
            }
        }
        self.received = received;
        any
    }

    /// Takes a whole message, header included.
    fn message(
        &mut self,
        index: u32,
        side: Side,
        header: Header,
        bytes: &mut [u8],
        recorder: &mut dyn Recorder,
    ) {
        let flow_index = self.conversations[index as usize].flow;
        let flow = &self.scenario.flows[flow_index as usize];
        let Header { flow: id, channel, sequence, sent, reflected, kind, .. } = header;
        let members = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
        if !members.contains(&id.0) || channel >= flow.meta.channels {
            return self.stray(index, bytes.len(), recorder);
        }
        match (side, kind) {
            (Side::Far, MessageKind::Forward) if flow.reflect => self.reflect(index, id, bytes),
            (Side::Far, MessageKind::Forward) | (Side::Near, MessageKind::Reflected) => {
                let payload = &bytes[HEADER_LENGTH..];
                let length = Bytes(payload.len() as u64);
                let observation =
                    Observation::Received { channel, sequence, sent, reflected, payload: length };
                recorder.record(self.now, id, observation);
                if flow.meta.keeps_payload {
                    recorder.payload(id, channel, sequence, payload);
                }
                if side == Side::Near {
                    let place = self.place(id).member;
                    let source = &mut self.members[place as usize].source;
                    source.notify(self.now, Feedback::Answered { channel, sequence });
                    self.fill(place, recorder);
                }
            }
            _ => self.stray(index, bytes.len(), recorder),
        }
    }

    /// Sends a message back to its source.
    fn reflect(&mut self, index: u32, id: FlowId, bytes: &mut [u8]) {
        framing::reflect_in_place(bytes, self.now);
        let far = &mut self.conversations[index as usize].far;
        let mut sent = Err(SendError::Full);
        if far.backlog.is_empty() {
            sent = far.endpoint.send(self.now, Message::new(bytes));
        }
        let is_stream = self.conversations[index as usize].member.is_some();
        match sent {
            Ok(()) => self.transmit(index, Side::Far, id),
            // A byte stream promises delivery: the message waits for room. A datagram that finds none is lost, as at a
            // full socket.
            Err(_) if is_stream => {
                let mut kept = self.network.buffer();
                kept.extend_from_slice(bytes);
                self.conversations[index as usize].far.backlog.push_back(kept);
            }
            Err(_) => {}
        }
    }

    fn reflect_backlog(&mut self, index: u32) {
        loop {
            let conversation = &mut self.conversations[index as usize];
            let (Some(message), Some(id)) = (conversation.far.backlog.pop_front(), conversation.member)
            else {
                return;
            };
            if conversation.far.endpoint.send(self.now, Message::new(&message)) == Err(SendError::Full) {
                conversation.far.backlog.push_front(message);
                return;
            }
            self.network.recycle(message);
            self.transmit(index, Side::Far, id);
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

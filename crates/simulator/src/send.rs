//! From a source to the network: producing, sending, waiting for a full transport, giving up.

use trunkline_core::{Bytes, FlowId, Packet, Time};
use trunkline_experiment::{Framing, Sink};
use trunkline_metrics::{Observation, Recorder};
use trunkline_traffic::{Feedback, Overflow};
use trunkline_transport::framing::{HEADER_LENGTH, Header, MessageKind};
use trunkline_transport::{CloseReason, Message, SendError, drain};

use crate::conversation::Side;
use crate::engine::{Engine, Event};
use crate::member::{self, Member, Name, Waiting};

impl Engine<'_> {
    /// Sends what a member's source has due, as far as the transport takes it.
    pub(crate) fn produce(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let member = &mut self.members[m as usize];
        member.source_scheduled = Time::MAX;
        let conversation = member.conversation;
        self.fill(m, recorder);
        if self.conversations[conversation as usize].owner.is_some() {
            // An engine with a state of its own wants to be looked after; a datagram has left already.
            self.serve(conversation, Side::Near, recorder);
        }
    }

    /// Gives up the message that has waited for the whole send timeout, as a blocking send would.
    pub(crate) fn give_up(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let member = &mut self.members[m as usize];
        let conversation = member.conversation;
        let (Some(timeout), Some(queue)) =
            (member::send_timeout(self.scenario, member.flow), &mut member.queue)
        else {
            return;
        };
        if queue.handing.is_some() {
            return; // the transport has begun to take it
        }
        if queue.head_since + timeout > self.now {
            return; // the transport took it meanwhile
        }
        let Some(message) = queue.messages.pop_front() else { return };
        queue.head_since = self.now;
        self.refused(m, message.name, message.bytes.len() - HEADER_LENGTH, recorder);
        self.network.recycle(message.bytes);
        self.arm_send_timeout(m);
        self.fill(m, recorder);
        self.serve(conversation, Side::Near, recorder);
    }

    /// At the end of the run: what a source wanted sent and its transport never took is refused, so that a blocked sender
    /// cannot hide its own queue. A source without a pace wanted nothing in particular.
    pub(crate) fn refuse_the_rest(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let mut is_blocked = self.members[m as usize].is_waiting();
        if let Some(queue) = &mut self.members[m as usize].queue
            && queue.handing.take().is_some()
        {
            queue.messages.pop_front(); // reported as sent when the host began with it
        }
        let source = &self.scenario.flows[self.members[m as usize].flow as usize].source;
        if (trunkline_traffic::KINDS[source.kind].needs_flow_control)(&source.values) {
            return;
        }
        while is_blocked {
            while let Some(message) = self.pop_waiting(m) {
                self.refused(m, message.name, message.bytes.len() - HEADER_LENGTH, recorder);
            }
            self.messages.clear();
            let member = &mut self.members[m as usize];
            if member.source.next_due().is_some_and(|due| due <= self.now) {
                member.source.produce(self.now, &mut self.messages);
                self.report_overflows(m, recorder);
            }
            let messages = core::mem::take(&mut self.messages);
            for (index, produced) in messages.messages().iter().enumerate() {
                let sequence = self.members[m as usize].next_sequence(produced.channel);
                let asks = produced.asks;
                let name = Name { channel: produced.channel, sequence, due: produced.due, asks };
                self.wait(m, name, messages.bytes(index));
            }
            self.messages = messages;
            is_blocked = self.members[m as usize].is_waiting();
        }
    }

    /// Produces and sends until the source is not due or the transport is full, and queues the next call.
    pub(crate) fn fill(&mut self, m: u32, recorder: &mut dyn Recorder) {
        loop {
            let member = &mut self.members[m as usize];
            if member.is_waiting() || self.is_over {
                return; // called again when the transport has room
            }
            match member.source.next_due() {
                Some(due) if due <= self.now => {
                    self.network.begin(member.flow as usize);
                    self.messages.clear();
                    member.source.produce(self.now, &mut self.messages);
                    self.report_overflows(m, recorder);
                    if self.messages.messages().is_empty() {
                        return; // nothing came although it was due: never ask twice at one moment
                    }
                    self.send_produced(m, recorder);
                }
                Some(due) => {
                    if due < member.source_scheduled {
                        member.source_scheduled = due;
                        self.events.push(due, Event::Source(m));
                    }
                    return;
                }
                None => {
                    let flow = member.flow;
                    return self.look_for_the_end(flow, recorder);
                }
            }
        }
    }

    /// Reports samples that found no room in the FIFOs of a member's source while it was asked for messages.
    #[inline]
    fn report_overflows(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let id = self.members[m as usize].id;
        for Overflow { channel, at, samples } in self.messages.take_overflows() {
            recorder.record(at, id, Observation::Overflowed { channel, samples });
        }
    }

    /// Sends what has waited, now that the transport takes messages again, and lets the source go on.
    pub(crate) fn send_waiting(&mut self, m: u32, recorder: &mut dyn Recorder) {
        if self.hands_over_slowly(m) {
            return self.go_on_handing_over(m, recorder);
        }
        while let Some(mut message) = self.pop_waiting(m) {
            let payload = message.bytes.len() - HEADER_LENGTH;
            match self.offer(m, message.name, &mut message.bytes) {
                Ok(()) => self.sent(m, message.name, payload, recorder),
                Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                    if let Some(queue) = &mut self.members[m as usize].queue {
                        queue.messages.push_front(message);
                    }
                    return;
                }
                Err(SendError::TooLarge { .. } | SendError::Closed(_)) => {
                    self.refused(m, message.name, payload, recorder);
                }
            }
            self.network.recycle(message.bytes);
            if let Some(queue) = &mut self.members[m as usize].queue {
                queue.head_since = self.now;
            }
            self.arm_send_timeout(m);
        }
        self.members[m as usize].source.notify(self.now, Feedback::Writable);
        self.fill(m, recorder);
    }

    /// Puts every packet that an endpoint wants to send on its path, as packets of the member `id`.
    pub(crate) fn transmit(&mut self, conversation: u32, side: Side, id: FlowId) {
        let now = self.now;
        let conversation = &mut self.conversations[conversation as usize];
        let flow = &self.scenario.flows[conversation.flow as usize];
        let (priority, group) = (flow.priority, conversation.group);
        let (network, events) = (&mut self.network, &mut self.events);
        let mut buffer = network.buffer();
        let (end, sent) = match side {
            Side::Near => (&mut conversation.near, &mut conversation.on_their_way),
            Side::Far(_) => (conversation.end(side), &mut 0),
        };
        let from = end.address;
        let mut host = self.hosts.slow_sender(from.host);
        drain(end.endpoint.as_mut(), now, &mut buffer, |transmit, bytes| {
            let to_group = group == Some(transmit.to);
            let sink = match side {
                Side::Far(sink) => sink,
                Side::Near if to_group => 0,
                Side::Near => {
                    let is_there = |sink: &Sink| sink.host == usize::from(transmit.to.host);
                    flow.to.iter().position(is_there).unwrap_or(0) as u16
                }
            };
            let packet = Packet {
                flow: id,
                size: transmit.size,
                ecn: transmit.ecn,
                priority,
                backward: side != Side::Near,
                sink,
                group: to_group,
                from,
                bytes: core::mem::replace(bytes, network.buffer()),
                ..Packet::default()
            };
            *sent = sent.wrapping_add(u32::from(!to_group));
            let mut departs = transmit.earliest;
            if let Some(host) = &mut host {
                departs = departs.max(host.send_packet(now, transmit.size, flow.effort));
            }
            if departs > now {
                network.depart_later(departs, packet, events);
            } else {
                network.send(now, packet, events);
            }
        });
        network.recycle(buffer);
    }

    /// Sends the messages that the source has just produced; those that the transport does not take wait.
    fn send_produced(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let mut messages = core::mem::take(&mut self.messages);
        let slowly = self.hands_over_slowly(m);
        for index in 0..messages.messages().len() {
            let produced = &messages.messages()[index];
            let (channel, due) = (produced.channel, produced.due);
            let member = &mut self.members[m as usize];
            let asks = produced.asks;
            let name = Name { channel, sequence: member.next_sequence(channel), due, asks };
            let bytes = messages.bytes_mut(index);
            let payload = bytes.len() - HEADER_LENGTH;
            let taken = match member.is_waiting() || slowly {
                true => Err(SendError::Full), // behind those that wait already
                false => self.offer(m, name, bytes),
            };
            match taken {
                Ok(()) => self.sent(m, name, payload, recorder),
                Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                    self.wait(m, name, bytes)
                }
                Err(SendError::TooLarge { .. } | SendError::Closed(_)) => {
                    self.refused(m, name, payload, recorder)
                }
            }
        }
        self.messages = messages;
        if slowly {
            self.begin_handing_over(m, recorder);
        }
    }

    /// Keeps a message until the transport takes it.
    fn wait(&mut self, m: u32, name: Name, bytes: &[u8]) {
        let mut kept = self.network.buffer();
        kept.extend_from_slice(bytes);
        let queue = self.members[m as usize].queue.get_or_insert_default();
        queue.messages.push_back(Waiting { name, bytes: kept });
        if queue.messages.len() == 1 {
            queue.head_since = self.now;
            self.arm_send_timeout(m);
        }
    }

    fn pop_waiting(&mut self, m: u32) -> Option<Waiting> {
        self.members[m as usize].queue.as_mut()?.messages.pop_front()
    }

    /// Writes the header into the room before the payload, hands the message to the transport, and sends what follows.
    fn offer(&mut self, m: u32, name: Name, bytes: &mut [u8]) -> Result<(), SendError> {
        let header = self.header(m, name, bytes.len());
        let Member { id, conversation, flow, .. } = self.members[m as usize];
        if self.network.is_full(flow, id) {
            return Err(SendError::Full);
        }
        let pair = &mut self.conversations[conversation as usize];
        let framing = self.scenario.flows[flow as usize].framing;
        if framing == Framing::None {
            pair.near.endpoint.send(self.now, Message::new(&bytes[HEADER_LENGTH..]))?;
            pair.expect(Side::Far(0), header);
        } else {
            self.covered.keep(&self.scenario.flows[flow as usize], &header, bytes);
            let sent = header.stamp(bytes, self.scenario.flows[flow as usize].cover());
            pair.near.endpoint.send(self.now, Message::new(sent))?;
        }
        self.transmit(conversation, Side::Near, id);
        Ok(())
    }

    /// The header, in front of it, of a message that is sent now, `length` with the room for it.
    pub(crate) fn header(&self, m: u32, name: Name, length: usize) -> Header {
        Header {
            key: self.key,
            length: (length - HEADER_LENGTH) as u32,
            place: trunkline_transport::framing::Place::Before,
            flow: self.members[m as usize].id,
            sequence: name.sequence,
            channel: name.channel,
            kind: if name.asks { MessageKind::Ask } else { MessageKind::Forward },
            late: self.now.since(name.due),
            sent: self.now,
            reflected: Time::ZERO,
        }
    }

    pub(crate) fn sent(&self, m: u32, name: Name, payload: usize, recorder: &mut dyn Recorder) {
        let Name { channel, sequence, due, .. } = name;
        let sent = Observation::Sent { channel, sequence, due, payload: Bytes(payload as u64) };
        self.for_each_sink(m, false, |id| recorder.record(self.now, id, sent));
    }

    fn refused(&self, m: u32, name: Name, payload: usize, recorder: &mut dyn Recorder) {
        let Name { channel, sequence, due, .. } = name;
        let refused = Observation::Refused { channel, sequence, due, payload: Bytes(payload as u64) };
        self.for_each_sink(m, true, |id| recorder.record(self.now, id, refused));
    }

    pub(crate) fn arm_send_timeout(&mut self, m: u32) {
        let member = &self.members[m as usize];
        if member.is_waiting()
            && let Some(timeout) = member::send_timeout(self.scenario, member.flow)
        {
            self.events.push(self.now + timeout, Event::GiveUp(m));
        }
    }
}

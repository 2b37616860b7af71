//! One member of a flow: its source, its two endpoints, and the messages between them.

use std::collections::VecDeque;

use trunkline_core::{Bytes, Duration, FlowId, Packet, Seed, Time};
use trunkline_experiment::{Flow, Scenario, Transport};
use trunkline_metrics::Observation;
use trunkline_traffic::{Feedback, Source};
use trunkline_transport::framing::{self, Deframer, HEADER_LENGTH, Header, Key, MessageKind};
use trunkline_transport::{CloseReason, Endpoint, Message, SendError, drain};

use crate::SimulationError;
use crate::engine::{Context, Event};
use crate::transports::{self, Made};

/// How many reflected messages may wait for a full byte stream.
const BACKLOG_LIMIT: usize = 16;

/// Which end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where the source is.
    Near,
    /// Where the sink or the reflector is.
    Far,
}

/// A member of a flow.
pub(crate) struct Member<'s> {
    flow: &'s Flow,
    id: FlowId,
    source: Box<dyn Source>,
    /// Messages so far, per channel.
    sequences: Vec<u32>,
    near: End,
    far: End,
    /// Messages that the transport did not take yet, in order, with the time since which the first is its next.
    waiting: VecDeque<Waiting>,
    head_since: Time,
    send_timeout: Option<Duration>,
    source_scheduled: Time,
}

/// What tells a message from all others of its member.
#[derive(Clone, Copy)]
struct Name {
    channel: u16,
    sequence: u32,
    due: Time,
}

/// A message that waits for the transport: header room and payload.
struct Waiting {
    name: Name,
    bytes: Vec<u8>,
}

/// One end of the conversation.
struct End {
    endpoint: Box<dyn Endpoint>,
    /// For byte streams: finds the messages again.
    stream: Option<Deframer>,
    /// Reflected messages that the transport did not take yet.
    backlog: VecDeque<Vec<u8>>,
    scheduled: Time,
}

impl<'s> Member<'s> {
    pub(crate) fn new(
        scenario: &'s Scenario,
        flow_index: usize,
        member: u32,
        key: Key,
        seed: Seed,
    ) -> Result<Member<'s>, SimulationError> {
        let flow = &scenario.flows[flow_index];
        let refused = |reason: String| SimulationError::Flow { flow: flow.meta.name.clone(), reason };
        let source = scenario.build_source(flow_index, member, seed).map_err(refused)?;
        let (near, far) = transports::endpoints(scenario, flow, member, key, seed).map_err(refused)?;
        let id = flow.member(member);
        Ok(Member {
            flow,
            id,
            source,
            sequences: vec![0; usize::from(flow.meta.channels)],
            near: End::new(near),
            far: End::new(far),
            waiting: VecDeque::new(),
            head_since: Time::ZERO,
            send_timeout: match &flow.transport {
                Transport::Tcp(options) => options.send_timeout,
                Transport::Udp(_) => None,
            },
            source_scheduled: Time::MAX,
        })
    }

    /// Sends what the source has due, as far as the transport takes it.
    pub(crate) fn produce(&mut self, context: &mut Context<'_, '_>) {
        self.source_scheduled = Time::MAX;
        self.fill(context);
        self.serve(Side::Near, context);
    }

    /// Takes a packet that has reached the end of its path.
    pub(crate) fn packet_arrived(&mut self, packet: Packet, context: &mut Context<'_, '_>) {
        let side = if packet.backward { Side::Near } else { Side::Far };
        self.end(side).endpoint.handle_packet(context.now, packet.from, packet.ecn, &packet.bytes);
        context.network.recycle(packet.bytes);
        self.serve(side, context);
    }

    /// Lets an endpoint do what it asked to be called for.
    pub(crate) fn timeout(&mut self, side: Side, context: &mut Context<'_, '_>) {
        let end = self.end(side);
        if end.scheduled != context.now {
            return; // an earlier call took its place
        }
        end.scheduled = Time::MAX;
        end.endpoint.handle_timeout(context.now);
        self.serve(side, context);
    }

    /// Gives up the message that has waited for the whole send timeout, as a blocking send would.
    pub(crate) fn give_up(&mut self, context: &mut Context<'_, '_>) {
        let Some(timeout) = self.send_timeout else { return };
        if self.waiting.is_empty() || self.head_since + timeout > context.now {
            return; // the transport took it meanwhile
        }
        if let Some(message) = self.waiting.pop_front() {
            self.refused(message.name, message.bytes.len() - HEADER_LENGTH, context);
            context.network.recycle(message.bytes);
        }
        self.head_since = context.now;
        self.arm_send_timeout(context);
        self.fill(context);
        self.serve(Side::Near, context);
    }

    /// The transport's counters, of both ends.
    pub(crate) fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.near.endpoint.counters(count);
        self.far.endpoint.counters(count);
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        }
    }

    /// Drains everything an endpoint has to say, until it has nothing more.
    fn serve(&mut self, side: Side, context: &mut Context<'_, '_>) {
        loop {
            self.transmit(side, context);
            let mut writable = false;
            while let Some(event) = self.end(side).endpoint.poll_event() {
                use trunkline_transport::Event as Happened;
                match event {
                    Happened::Connected | Happened::Writable | Happened::Closed(_) => writable = true,
                    Happened::Readable => {}
                }
            }
            let received = self.receive(side, context);
            if writable {
                match side {
                    Side::Near => self.send_waiting(context),
                    Side::Far => self.reflect_backlog(context),
                }
            }
            if !writable && !received {
                break;
            }
        }
        let end = self.end(side);
        if let Some(next) = end.endpoint.next_timeout()
            && next < end.scheduled
        {
            end.scheduled = next;
            context.events.push(next.max(context.now), Event::Timeout(self.id.0, side));
        }
    }

    /// Puts every packet that an endpoint wants to send on its path.
    fn transmit(&mut self, side: Side, context: &mut Context<'_, '_>) {
        let (id, priority) = (self.id, self.flow.priority);
        let now = context.now;
        let mut buffer = context.network.buffer();
        let (network, events) = (&mut *context.network, &mut *context.events);
        let from = transports::address(self.flow, self.id, side);
        drain(self.end(side).endpoint.as_mut(), now, &mut buffer, |transmit, bytes| {
            let packet = Packet {
                flow: id,
                size: transmit.size,
                ecn: transmit.ecn,
                priority,
                backward: side == Side::Far,
                from,
                bytes: core::mem::replace(bytes, network.buffer()),
                ..Packet::default()
            };
            if transmit.earliest > now {
                network.depart_later(transmit.earliest, packet, events);
            } else {
                network.send(now, packet, events);
            }
        });
        context.network.recycle(buffer);
    }

    /// Produces and sends until the source is not due or the transport is full, and queues the next call.
    fn fill(&mut self, context: &mut Context<'_, '_>) {
        while self.waiting.is_empty() {
            match self.source.next_due() {
                Some(due) if due <= context.now => {
                    context.messages.clear();
                    self.source.produce(context.now, context.messages);
                    if context.messages.messages().is_empty() {
                        break; // nothing came although it was due: never ask twice at one moment
                    }
                    self.send_produced(context);
                }
                Some(due) => {
                    if due < self.source_scheduled {
                        self.source_scheduled = due;
                        context.events.push(due, Event::Source(self.id.0));
                    }
                    break;
                }
                None => break,
            }
        }
    }

    /// Sends the messages that the source has just produced; those that the transport does not take wait.
    fn send_produced(&mut self, context: &mut Context<'_, '_>) {
        for index in 0..context.messages.messages().len() {
            let produced = &context.messages.messages()[index];
            let (channel, due) = (produced.channel, produced.due);
            let counter = &mut self.sequences[usize::from(channel)];
            let sequence = *counter;
            *counter = counter.wrapping_add(1);
            let name = Name { channel, sequence, due };
            let bytes = context.messages.bytes_mut(index);
            let payload = bytes.len() - HEADER_LENGTH;
            let taken = match self.waiting.is_empty() {
                true => self.offer(name, bytes, context.key, context.now),
                false => Err(SendError::Full), // behind those that wait already
            };
            match taken {
                Ok(()) => {
                    self.sent(name, payload, context);
                    self.transmit(Side::Near, context);
                }
                Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                    let mut bytes = context.network.buffer();
                    bytes.extend_from_slice(context.messages.bytes_mut(index));
                    self.waiting.push_back(Waiting { name, bytes });
                    if self.waiting.len() == 1 {
                        self.head_since = context.now;
                        self.arm_send_timeout(context);
                    }
                }
                Err(SendError::TooLarge { .. } | SendError::Closed(_)) => self.refused(name, payload, context),
            }
        }
    }

    /// Sends what has waited, now that the transport takes messages again, and lets the source go on.
    fn send_waiting(&mut self, context: &mut Context<'_, '_>) {
        while let Some(mut message) = self.waiting.pop_front() {
            let payload = message.bytes.len() - HEADER_LENGTH;
            match self.offer(message.name, &mut message.bytes, context.key, context.now) {
                Ok(()) => {
                    self.sent(message.name, payload, context);
                    self.transmit(Side::Near, context);
                }
                Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                    self.waiting.push_front(message);
                    return;
                }
                Err(SendError::TooLarge { .. } | SendError::Closed(_)) => {
                    self.refused(message.name, payload, context);
                }
            }
            context.network.recycle(message.bytes);
            self.head_since = context.now;
            self.arm_send_timeout(context);
        }
        self.source.notify(context.now, Feedback::Writable);
        self.fill(context);
    }

    /// Writes the header into the room before the payload and hands the message to the transport.
    fn offer(&mut self, name: Name, bytes: &mut [u8], key: Key, now: Time) -> Result<(), SendError> {
        let header = Header {
            key,
            length: (bytes.len() - HEADER_LENGTH) as u32,
            flow: self.id,
            sequence: name.sequence,
            channel: name.channel,
            kind: MessageKind::Forward,
            late: now.since(name.due),
            sent: now,
            reflected: Time::ZERO,
        };
        header.encode(bytes);
        self.near.endpoint.send(now, Message::new(bytes))
    }

    fn sent(&self, name: Name, payload: usize, context: &mut Context<'_, '_>) {
        let Name { channel, sequence, due } = name;
        let payload = Bytes(payload as u64);
        context.recorder.record(context.now, self.id, Observation::Sent { channel, sequence, due, payload });
    }

    fn refused(&self, name: Name, payload: usize, context: &mut Context<'_, '_>) {
        let Name { channel, sequence, due } = name;
        let payload = Bytes(payload as u64);
        context.recorder.record(context.now, self.id, Observation::Refused { channel, sequence, due, payload });
    }

    fn arm_send_timeout(&self, context: &mut Context<'_, '_>) {
        if let Some(timeout) = self.send_timeout
            && !self.waiting.is_empty()
        {
            context.events.push(context.now + timeout, Event::GiveUp(self.id.0));
        }
    }

    /// Reads all that an endpoint has received; true if that was anything.
    fn receive(&mut self, side: Side, context: &mut Context<'_, '_>) -> bool {
        let mut any = false;
        // A reflector reads no more than it can send back: the backlog holds the sender back by flow control.
        while self.end(side).backlog.len() < BACKLOG_LIMIT {
            let mut received = core::mem::take(context.received);
            received.clear();
            let got = self.end(side).endpoint.receive(&mut received).is_some();
            if got {
                any = true;
                match self.end(side).stream.take() {
                    None => match framing::decode_message(&received, context.key) {
                        Ok((header, _)) => self.message(side, header, &mut received, context),
                        Err(_) => self.stray(received.len(), context),
                    },
                    Some(mut stream) => {
                        stream.push(&received);
                        while let Some(message) = stream.next() {
                            if message.skipped > 0 {
                                self.stray(message.skipped, context);
                            }
                            self.message(side, message.header, message.bytes, context);
                        }
                        self.end(side).stream = Some(stream);
                    }
                }
            }
            *context.received = received;
            if !got {
                break;
            }
        }
        any
    }

    /// Takes a whole message, header included.
    fn message(&mut self, side: Side, header: Header, bytes: &mut [u8], context: &mut Context<'_, '_>) {
        match (side, header.kind) {
            (Side::Far, MessageKind::Forward) if self.flow.reflect => {
                framing::reflect_in_place(bytes, context.now);
                let sent = self.far.backlog.is_empty()
                    && self.far.endpoint.send(context.now, Message::new(bytes)).is_ok();
                if !sent && self.far.stream.is_some() {
                    // A byte stream promises delivery: keep the message until there is room. A datagram that finds
                    // no room is lost, as at a full socket.
                    let mut kept = context.network.buffer();
                    kept.extend_from_slice(bytes);
                    self.far.backlog.push_back(kept);
                }
            }
            (Side::Far, MessageKind::Forward) | (Side::Near, MessageKind::Reflected) => {
                let payload = &bytes[HEADER_LENGTH..];
                let Header { channel, sequence, sent, reflected, .. } = header;
                if usize::from(channel) >= self.sequences.len() {
                    return self.stray(bytes.len(), context);
                }
                let observation = Observation::Received {
                    channel,
                    sequence,
                    sent,
                    reflected,
                    payload: Bytes(payload.len() as u64),
                };
                context.recorder.record(context.now, self.id, observation);
                if self.flow.meta.keeps_payload {
                    context.recorder.payload(self.id, channel, sequence, payload);
                }
                if side == Side::Near {
                    self.source.notify(context.now, Feedback::Answered { channel, sequence });
                    self.fill(context);
                }
            }
            _ => self.stray(bytes.len(), context),
        }
    }

    fn stray(&self, bytes: usize, context: &mut Context<'_, '_>) {
        let observation = Observation::Stray { bytes: Bytes(bytes as u64) };
        context.recorder.record(context.now, self.id, observation);
    }

    fn reflect_backlog(&mut self, context: &mut Context<'_, '_>) {
        while let Some(message) = self.far.backlog.pop_front() {
            if self.far.endpoint.send(context.now, Message::new(&message)) == Err(SendError::Full) {
                self.far.backlog.push_front(message);
                return;
            }
            context.network.recycle(message);
        }
    }
}

impl End {
    fn new((endpoint, stream): Made) -> End {
        End { endpoint, stream, backlog: VecDeque::new(), scheduled: Time::MAX }
    }
}

//! The receiving half of a flow.

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_core::{Bytes, FlowId, Time};
use trunkline_experiment::Flow;
use trunkline_metrics::Observation;
use trunkline_transport::framing::{self, Cover, Header, MessageKind};
use trunkline_transport::{CloseReason, Conversation, Message, SendError};

use crate::buffers::Buffers;
use crate::observer::Observer;
use crate::talker::Answer;

/// As many replies may wait for room; then nothing more is read, so that flow control holds the sender back.
const BACKLOG: usize = 16;

/// The part of a flow's spec by which either end recognises its messages and answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerSpec {
    /// Id of the first member.
    pub first: u32,
    /// How many members there are.
    pub members: u32,
    /// How many ids: one for each member and sink.
    pub ids: u32,
    /// How many channels each member has.
    pub channels: u16,
    /// Whether sinks send every message back, so that latency is measured as round trip.
    pub reflect: bool,
    /// Payload of the answer to a message that asks for one; without this it is treated like any other.
    pub answer: Option<u32>,
    /// What headers of answers may be.
    pub cover: Cover,
    /// Whether the payload of received messages is observed too.
    pub keeps_payload: bool,
}

/// The end of a flow at which a listener is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the sources are.
    Source,
    /// Where a sink or reflector is, by its place among those of the flow.
    Sink(u16),
}

/// What a message calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing more: it is observed where it is measured, or not of this run.
    Done,
    /// A reply to its source.
    Reply(FlowId, Reply),
    /// It is a reply itself, for [`Talker::answered`](crate::Talker::answered).
    Answered(Answer),
}

/// What goes back to the source of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The message itself.
    Whole,
    /// A message with a payload of so many bytes, and what its header may be.
    Bytes(usize, Cover),
}

impl ListenerSpec {
    /// What the ends of this flow have to know in `sim`. On sockets the header of an answer may be another one.
    pub fn of(flow: &Flow) -> ListenerSpec {
        ListenerSpec {
            first: flow.meta.first.0,
            members: flow.meta.members,
            ids: flow.meta.ids(),
            channels: flow.meta.channels,
            reflect: flow.reflect,
            answer: match flow.answer() {
                trunkline_experiment::Answer::Bytes(length) => {
                    Some(u32::try_from(length).unwrap_or(u32::MAX))
                }
                trunkline_experiment::Answer::None | trunkline_experiment::Answer::Echo => None,
            },
            cover: flow.cover(),
            keeps_payload: flow.meta.keeps_payload,
        }
    }

    /// Whether anything comes back of the flow.
    pub fn is_answered(&self) -> bool {
        self.reflect || self.answer.is_some()
    }

    /// What a message with this header, which has come to this end of a conversation of these members, calls for, and
    /// whether its latency is measured here; `None` if it is no message of theirs, or none for this end.
    #[inline]
    fn matches(&self, at: Time, side: Side, own: &Range<u32>, header: &Header) -> Option<(bool, Delivery)> {
        let place = header.flow.0.wrapping_sub(self.first);
        let ids = if side == Side::Source { self.ids } else { self.members };
        let member = if place < self.members { place } else { place.checked_rem(self.members)? };
        if place >= ids || header.channel >= self.channels || !own.contains(&(self.first + member)) {
            return None;
        }
        match (side, header.kind) {
            (Side::Source, MessageKind::Reflected) => {
                let Header { flow, channel, sequence, .. } = *header;
                Some((self.reflect, Delivery::Answered(Answer { flow, channel, sequence, at })))
            }
            (Side::Sink(sink), MessageKind::Forward | MessageKind::Ask) => {
                let flow = FlowId(header.flow.0 + u32::from(sink) * self.members);
                let reply = match (header.kind, self.answer) {
                    (MessageKind::Ask, Some(length)) => {
                        Delivery::Reply(flow, Reply::Bytes(length as usize, self.cover))
                    }
                    _ if self.reflect => Delivery::Reply(flow, Reply::Whole),
                    _ => Delivery::Done,
                };
                Some((!self.reflect, reply))
            }
            // The last message of a stream: it is no measured one.
            (Side::Sink(_), MessageKind::End) => Some((false, Delivery::Done)),
            (Side::Source, _) | (Side::Sink(_), MessageKind::Reflected) => None,
        }
    }
}

impl Reply {
    /// Bytes of the reply, header included, to a message with this header.
    pub fn length(self, header: &Header) -> usize {
        match self {
            Reply::Whole => header.sent_length(),
            Reply::Bytes(length, cover) => length + cover.of(header.sequence).added(length),
        }
    }
}

/// Tells messages of its flows from unmatched ones, observes them, and keeps the replies that the conversation did not
/// take yet. A [`Reader`](crate::Reader) finds the messages.
#[derive(Debug)]
pub struct Listener {
    side: Side,
    flows: Arc<[ListenerSpec]>,
    /// Ids of the members that the conversation belongs to. What cannot be matched counts on the first of them.
    own: Range<u32>,
    backlog: VecDeque<Vec<u8>>,
    not_reflected: u64,
}

impl Listener {
    /// A listener at this end of a conversation that belongs to the members with these ids, which are of these flows.
    /// What it cannot match counts on the first of them.
    pub fn new(side: Side, flows: Arc<[ListenerSpec]>, own: Range<u32>) -> Listener {
        Listener { side, flows, own, backlog: VecDeque::new(), not_reflected: 0 }
    }

    /// Observes bytes that are no message of this run.
    pub fn unmatched(&self, at: Time, bytes: usize, out: &mut impl Observer) {
        out.observe(at, FlowId(self.own.start), Observation::Stray { bytes: Bytes(bytes as u64) }, None);
    }

    /// Takes a message that has come `at` this time, header included, observes it if its latency is measured here, and
    /// returns what it calls for. One that is not of these flows, or not for this end, is unmatched.
    #[inline]
    pub fn deliver(&self, at: Time, header: &Header, bytes: &[u8], out: &mut impl Observer) -> Delivery {
        let header = &header.at(at);
        let matched =
            self.flows.iter().find_map(|flow| Some((flow, flow.matches(at, self.side, &self.own, header)?)));
        let Some((flow, (is_measured, delivery))) = matched else {
            self.unmatched(at, bytes.len(), out);
            return Delivery::Done;
        };
        if is_measured {
            let message = header.message(bytes);
            let id = match self.side {
                Side::Source => header.flow,
                Side::Sink(sink) => FlowId(header.flow.0 + u32::from(sink) * flow.members),
            };
            let received = Observation::Received {
                channel: header.channel,
                sequence: header.sequence,
                sent: header.sent,
                reflected: header.reflected,
                payload: Bytes(message.len() as u64),
            };
            out.observe(at, id, received, flow.keeps_payload.then_some(message));
        }
        delivery
    }

    /// Appends the reply to a message to `into`. Its id says from which sink it comes.
    #[inline]
    pub fn reply(
        at: Time,
        header: &Header,
        (flow, reply): (FlowId, Reply),
        bytes: &[u8],
        into: &mut Vec<u8>,
    ) {
        let header = Header { flow, ..*header };
        match reply {
            Reply::Bytes(length, cover) => framing::answer(&header, at, length, cover, into),
            Reply::Whole => {
                let start = into.len();
                into.extend_from_slice(bytes);
                header.reflected(at).encode(&mut into[start..]);
            }
        }
    }

    /// Whether it should receive more: not while replies wait.
    #[inline]
    pub fn reads(&self) -> bool {
        self.backlog.len() < BACKLOG
    }

    /// Whether replies wait for the conversation.
    #[inline]
    pub fn has_replies(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Lets a reply wait behind the others, until [`send_reply`](Self::send_reply).
    pub fn keep_reply(&mut self, reply: Vec<u8>) {
        self.backlog.push_back(reply);
    }

    /// Sends the first reply that waits, and returns how long it was; `None` if none waits or the conversation is full.
    /// One that the conversation will never take is counted as not reflected.
    pub fn send_reply<C: Conversation + ?Sized>(
        &mut self,
        now: Time,
        buffers: &mut Buffers,
        conversation: &mut C,
    ) -> Option<usize> {
        let reply = self.backlog.pop_front()?;
        match conversation.send(now, Message::new(&reply)) {
            Ok(()) => {}
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                self.backlog.push_front(reply);
                return None;
            }
            Err(SendError::TooLarge { .. } | SendError::Closed(_)) => self.not_reflected += 1,
        }
        let length = reply.len();
        buffers.recycle(reply);
        Some(length)
    }

    /// Counts a reply that was lost.
    pub fn lose_reply(&mut self) {
        self.not_reflected += 1;
    }

    /// Replies that the conversation did not take.
    pub fn not_reflected(&self) -> u64 {
        self.not_reflected
    }
}

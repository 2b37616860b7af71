//! Messages on their way from talkers to a conversation.

use core::ops::Range;

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_experiment::{Flow, Framing};
use trunkline_metrics::Observation;
use trunkline_traffic::{KINDS, MessageBuffer};
use trunkline_transport::framing::{Cover, HEADER_LENGTH, Header, Key, MessageKind, Place};

use crate::observer::Observer;

/// The part of a flow's spec that its talkers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TalkerSpec {
    /// The run's key.
    pub key: Key,
    /// Where the header of a message stands; `None` if messages travel without one.
    pub cover: Option<Cover>,
    /// How long a message may be the next to go before it is given up.
    pub send_timeout: Option<Duration>,
    /// Whether the sources send as fast as the transport takes it: then they want nothing in particular, and nothing is
    /// refused when they cannot send.
    pub is_saturating: bool,
}

impl TalkerSpec {
    /// Of a flow whose two ends one driver carries (`sim`): it restores what headers cover, and needs none where the
    /// transport keeps the order.
    pub fn in_one(flow: &Flow, key: Key) -> TalkerSpec {
        let cover = (flow.framing != Framing::None).then(|| flow.cover());
        TalkerSpec { cover, ..TalkerSpec::on_sockets(flow, key) }
    }

    /// Of a flow on real sockets, where the other end has nothing but the packets.
    pub fn on_sockets(flow: &Flow, key: Key) -> TalkerSpec {
        TalkerSpec {
            key,
            cover: Some(flow.cover_on_sockets()),
            send_timeout: flow.transport.send_timeout(),
            is_saturating: (KINDS[flow.source.kind].needs_flow_control)(&flow.source.values),
        }
    }

    /// How much of the room of [`HEADER_LENGTH`] bytes before a message is not sent, `length` being that of both.
    pub fn unsent_room(&self, length: usize) -> usize {
        self.cover.map_or(HEADER_LENGTH, |cover| cover.unsent_room(length))
    }
}

/// Identifies a message among all others of its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) channel: u16,
    pub(crate) sequence: u32,
    pub(crate) due: Time,
    /// Whether its sink is to answer it.
    pub(crate) asks: bool,
}

impl Name {
    /// The header of the message if it is sent now; `length` includes the room for a header.
    #[inline]
    pub(crate) fn header(self, flow: FlowId, now: Time, length: usize, key: Key) -> Header {
        Header {
            key,
            length: (length - HEADER_LENGTH) as u32,
            place: Place::Before,
            flow,
            sequence: self.sequence,
            channel: self.channel,
            kind: if self.asks { MessageKind::Ask } else { MessageKind::Forward },
            late: now.since(self.due),
            sent: now,
            reflected: Time::ZERO,
        }
    }

    /// `length` includes the room for a header.
    #[inline]
    pub(crate) fn sent(self, length: usize) -> Observation {
        let Name { channel, sequence, due, .. } = self;
        Observation::Sent { channel, sequence, due, payload: payload(length) }
    }

    /// `length` includes the room for a header.
    pub(crate) fn refused(self, length: usize) -> Observation {
        let Name { channel, sequence, due, .. } = self;
        Observation::Refused { channel, sequence, due, payload: payload(length) }
    }
}

fn payload(length: usize) -> Bytes {
    Bytes((length - HEADER_LENGTH) as u64)
}

/// Messages that talkers have produced and no conversation has been offered yet, in one piece of memory: a driver may
/// hand many of them to the kernel at once.
#[derive(Debug)]
pub struct Lane {
    pub(crate) messages: MessageBuffer,
    /// Beside every message: whose it is, and its number.
    pub(crate) names: Vec<(FlowId, u32)>,
    /// How many of them have been offered.
    pub(crate) offered: usize,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane { messages: MessageBuffer::with_headroom(HEADER_LENGTH), names: Vec::new(), offered: 0 }
    }
}

impl Lane {
    /// How many messages it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Forgets all messages and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.messages.clear();
        self.names.clear();
        self.offered = 0;
    }

    /// Whose the message at this place is.
    pub fn flow(&self, place: usize) -> FlowId {
        self.names[place].0
    }

    /// When the source wanted the message at this place sent.
    pub fn due(&self, place: usize) -> Time {
        self.messages.messages()[place].due
    }

    /// Bytes that are sent of the messages at these places, headers included.
    pub fn bytes(&self, places: Range<usize>, spec: &TalkerSpec) -> usize {
        let sent = |range: &Range<usize>| range.len() - spec.unsent_room(range.len());
        self.messages.messages()[places].iter().map(|message| sent(&message.range)).sum()
    }

    /// Writes the headers of messages that are about to be sent.
    pub fn stamp(&mut self, places: Range<usize>, now: Time, spec: &TalkerSpec) {
        let Some(cover) = spec.cover else { return };
        for place in places {
            let (name, flow) = (self.name(place), self.flow(place));
            let bytes = self.messages.bytes_mut(place);
            name.header(flow, now, bytes.len(), spec.key).stamp(bytes, cover);
        }
    }

    /// What is sent of a message whose header has been written.
    pub fn stamped(&self, place: usize, spec: &TalkerSpec) -> &[u8] {
        let (bytes, sequence) = (self.messages.bytes(place), self.name(place).sequence);
        let spec = TalkerSpec { cover: spec.cover.map(|cover| cover.of(sequence)), ..*spec };
        &bytes[spec.unsent_room(bytes.len())..]
    }

    /// Observes that the transport took a message.
    pub fn sent(&self, place: usize, at: Time, out: &mut impl Observer) {
        out.observe(at, self.flow(place), self.name(place).sent(self.messages.bytes(place).len()), None);
    }

    /// Observes that a message was given up.
    pub fn refuse(&self, place: usize, at: Time, out: &mut impl Observer) {
        out.observe(at, self.flow(place), self.name(place).refused(self.messages.bytes(place).len()), None);
    }

    #[inline]
    pub(crate) fn name(&self, place: usize) -> Name {
        let message = &self.messages.messages()[place];
        Name { channel: message.channel, sequence: self.names[place].1, due: message.due, asks: message.asks }
    }
}

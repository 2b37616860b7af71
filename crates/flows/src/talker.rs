//! The sending half of a flow's member.

use std::collections::VecDeque;

use trunkline_core::{FlowId, Time};
use trunkline_metrics::Observation;
use trunkline_traffic::{Feedback, MessageBuffer, Overflow, Source, Transfer};
use trunkline_transport::framing::{HEADER_LENGTH, Header, MessageKind};
use trunkline_transport::{CloseReason, Conversation, Message, SendError};

use crate::buffers::Buffers;
use crate::lane::{Lane, Name, TalkerSpec};
use crate::observer::Observer;

/// A source, and what its conversation did not take yet.
///
/// A driver asks the source for messages when it is due ([`produce`](Self::produce)), and sends each through its
/// conversation ([`send_next`](Self::send_next)). Once the conversation is full, messages wait here, in order, and the
/// source is not asked until they are gone ([`send_waiting`](Self::send_waiting)) or were given up
/// ([`give_up`](Self::give_up)). Every call takes the time: one call sends one message, so that a driver in real time
/// can stamp each with its own.
pub struct Talker {
    source: Box<dyn Source>,
    sequences: Sequences,
    queue: Option<Box<Queue>>,
    id: FlowId,
    /// Whether its conversation has ended, and nothing else would hold its source back.
    is_cut_off: bool,
    /// Messages in a row that were larger than the conversation takes.
    too_large: u16,
}

/// Number of messages in a row, all too large, after which a saturating source ends: where sizes vary, the next one may fit.
const MAX_TOO_LARGE: u16 = 1000;

/// Instead of the source of a member whose connection does not stand yet.
struct AwaitsConnection;

impl Source for AwaitsConnection {
    fn next_due(&self) -> Option<Time> {
        None
    }

    fn produce(&mut self, _: Time, _: &mut MessageBuffer) {}

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        false
    }
}

/// Messages so far, per channel.
enum Sequences {
    One(u32),
    Many(Box<[u32]>),
}

/// Messages that wait for the conversation, in order.
#[derive(Default)]
struct Queue {
    messages: VecDeque<Waiting>,
    /// Since when the first of them is the next to go.
    head_since: Time,
}

struct Waiting {
    name: Name,
    /// Header room and payload.
    bytes: Vec<u8>,
}

/// A reply that has come back to the source of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The member, as the sink that replied has it.
    pub flow: FlowId,
    /// The channel of the message.
    pub channel: u16,
    /// Its sequence number.
    pub sequence: u32,
    /// When the reply came.
    pub at: Time,
}

/// The result of a call that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to send.
    Nothing,
    /// One message has been taken or refused.
    Sent,
    /// The conversation took nothing: the message waits.
    Full,
}

impl Talker {
    /// The member with this id, whose source has so many channels. Its connection stands when the run begins, or it needs
    /// none.
    pub fn new(source: Box<dyn Source>, id: FlowId, channels: u16) -> Talker {
        let sequences = match channels {
            0 | 1 => Sequences::One(0),
            _ => Sequences::Many(vec![0; usize::from(channels)].into()),
        };
        Talker { source, sequences, queue: None, id, is_cut_off: false, too_large: 0 }
    }

    /// The same without its source, which [begins](Self::begin) when the member's connection stands.
    pub fn awaiting_connection(id: FlowId, channels: u16) -> Talker {
        Talker::new(Box::new(AwaitsConnection), id, channels)
    }

    /// Gives the member its source, since its connection stands: in every driver a source starts after that. A source whose
    /// connection can no longer be made starts too, and all its messages are refused.
    pub fn begin(&mut self, source: Box<dyn Source>) {
        self.source = source;
    }

    /// The member's id.
    #[inline]
    pub fn id(&self) -> FlowId {
        self.id
    }

    /// When its source has the next message due; `None` while messages wait, or when it has none.
    #[inline]
    pub fn next_due(&self) -> Option<Time> {
        if self.is_cut_off || self.is_waiting() { None } else { self.source.next_due() }
    }

    /// Whether messages wait for the conversation.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| !queue.messages.is_empty())
    }

    /// Whether nothing will ever be due again, and nothing waits.
    pub fn is_finished(&self) -> bool {
        self.is_cut_off || (self.source.is_finished() && !self.is_waiting())
    }

    /// From when on nothing is due and no answer is awaited, as its source knows; see [`Source::over_at`].
    pub fn over_at(&self) -> Option<Time> {
        self.source.over_at()
    }

    /// Whether its conversation has ended under a saturating source: it sends nothing more.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The last message of a stream, after which nothing follows.
    pub fn goodbye(&self, now: Time, spec: &TalkerSpec) -> [u8; HEADER_LENGTH] {
        let name = Name { channel: 0, sequence: 0, due: now, asks: false };
        let header = name.header(self.id, now, HEADER_LENGTH, spec.key);
        let mut message = [0; HEADER_LENGTH];
        Header { kind: MessageKind::End, ..header }.encode(&mut message);
        message
    }

    /// Asks the source for what is due, and appends it to the lane; returns how many messages that are. A source that
    /// is due and gives none is over: it must not be asked again at the same moment.
    #[inline]
    pub fn produce(&mut self, now: Time, lane: &mut Lane, out: &mut impl Observer) -> usize {
        let before = lane.names.len();
        self.source.produce(now, &mut lane.messages);
        for Overflow { channel, at, samples } in lane.messages.take_overflows() {
            out.observe(at, self.id, Observation::Overflowed { channel, samples }, None);
        }
        for message in &lane.messages.messages()[before..] {
            let counter = match &mut self.sequences {
                Sequences::One(counter) => counter,
                Sequences::Many(counters) => &mut counters[usize::from(message.channel)],
            };
            lane.names.push((self.id, *counter));
            *counter = counter.wrapping_add(1);
        }
        lane.names.len() - before
    }

    /// Sends the next message of the lane, all of whose messages are this member's; behind others that wait, or if the
    /// conversation is full, it waits too. The lane is empty after its last message.
    #[inline]
    pub fn send_next<C: Conversation + ?Sized>(
        &mut self,
        now: Time,
        (spec, lane, buffers): (&TalkerSpec, &mut Lane, &mut Buffers),
        conversation: &mut C,
        out: &mut impl Observer,
    ) -> Progress {
        let place = lane.offered;
        if place >= lane.names.len() {
            lane.clear();
            return Progress::Nothing;
        }
        lane.offered += 1;
        let name = lane.name(place);
        let bytes = lane.messages.bytes_mut(place);
        if !self.is_waiting() && self.offer(now, name, bytes, spec, conversation, out) {
            return Progress::Sent;
        }
        let queue = self.queue.get_or_insert_default();
        if queue.messages.is_empty() {
            queue.head_since = now;
        }
        queue.messages.push_back(Waiting { name, bytes: buffers.copy(bytes) });
        Progress::Full
    }

    /// Sends the first message that waits, now that the conversation may have room. If none waits, notifies the source
    /// that the conversation is writable.
    pub fn send_waiting<C: Conversation + ?Sized>(
        &mut self,
        now: Time,
        (spec, buffers): (&TalkerSpec, &mut Buffers),
        conversation: &mut C,
        out: &mut impl Observer,
    ) -> Progress {
        let waiting = self.queue.as_mut().and_then(|queue| queue.messages.pop_front());
        let Some(Waiting { name, mut bytes }) = waiting else {
            self.source.notify(now, Feedback::Writable);
            return Progress::Nothing;
        };
        let is_done = self.offer(now, name, &mut bytes, spec, conversation, out);
        let queue = self.queue.get_or_insert_default();
        if !is_done {
            queue.messages.push_front(Waiting { name, bytes });
            return Progress::Full;
        }
        queue.head_since = now;
        buffers.recycle(bytes);
        Progress::Sent
    }

    /// When the first message that waits will have waited for the whole send timeout.
    #[inline]
    pub fn gives_up_at(&self, spec: &TalkerSpec) -> Option<Time> {
        let queue = self.queue.as_ref().filter(|queue| !queue.messages.is_empty())?;
        Some(queue.head_since + spec.send_timeout?)
    }

    /// Gives up the first message that waits if it has waited for the whole send timeout, as a blocking send would;
    /// returns whether it had.
    pub fn give_up(
        &mut self,
        now: Time,
        (spec, buffers): (&TalkerSpec, &mut Buffers),
        out: &mut impl Observer,
    ) -> bool {
        if self.gives_up_at(spec).is_none_or(|at| at > now) {
            return false;
        }
        let is_given_up = self.refuse_first(now, buffers, out);
        if let Some(queue) = &mut self.queue {
            queue.head_since = now;
        }
        is_given_up
    }

    /// Notifies the source at `now` that a message has been answered, and observes the transfers that this ends.
    pub fn answered(&mut self, now: Time, answer: Answer, out: &mut impl Observer) {
        let Answer { flow, channel, sequence, at } = answer;
        self.source.notify(now, Feedback::Answered { channel, sequence });
        while let Some(Transfer { channel, began, bytes }) = self.source.take_transfer() {
            out.observe(at, flow, Observation::Transferred { channel, began, bytes }, None);
        }
    }

    /// Refuses all messages that wait: nothing more is sent. Those of a saturating source are only forgotten, since it
    /// wanted nothing in particular.
    pub fn refuse_waiting(
        &mut self,
        now: Time,
        (spec, buffers): (&TalkerSpec, &mut Buffers),
        out: &mut impl Observer,
    ) {
        if spec.is_saturating {
            self.queue = None;
        }
        while self.refuse_first(now, buffers, out) {}
    }

    /// At the end of a run: refuses what waits and, behind it, what the source has had due, so that a blocked sender
    /// cannot hide its own queue.
    pub fn refuse_overdue(
        &mut self,
        now: Time,
        (spec, lane, buffers): (&TalkerSpec, &mut Lane, &mut Buffers),
        out: &mut impl Observer,
    ) {
        self.refuse_waiting(now, (spec, buffers), out);
        if spec.is_saturating || self.is_cut_off {
            return;
        }
        lane.clear();
        while self.source.next_due().is_some_and(|due| due <= now) && self.produce(now, lane, out) > 0 {
            (0..lane.len()).for_each(|place| lane.refuse(place, now, out));
            lane.clear();
        }
    }

    /// Offers a message, with room for its header, to the conversation; false if that takes nothing now. What it will
    /// never take is refused.
    #[inline]
    fn offer<C: Conversation + ?Sized>(
        &mut self,
        now: Time,
        name: Name,
        bytes: &mut [u8],
        spec: &TalkerSpec,
        conversation: &mut C,
        out: &mut impl Observer,
    ) -> bool {
        let length = bytes.len();
        let header = name.header(self.id, now, length, spec.key);
        let sent = match spec.cover {
            None => &bytes[HEADER_LENGTH..],
            Some(cover) => {
                if cover.of(header.sequence).place(length - HEADER_LENGTH).is_within() {
                    out.covering(&header, &bytes[HEADER_LENGTH..]);
                }
                header.stamp(bytes, cover)
            }
        };
        match conversation.send(now, Message::new(sent)) {
            Ok(()) => {
                self.too_large = 0;
                if spec.cover.is_none() {
                    out.unframed(&header);
                }
                out.observe(now, self.id, name.sent(length), None);
            }
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => return false,
            Err(error) => {
                if let SendError::TooLarge { limit } = error {
                    let added = spec.cover.map_or(0, |cover| cover.added(limit));
                    out.oversize(limit.saturating_sub(added));
                }
                out.observe(now, self.id, name.refused(length), None);
                let is_too_large = matches!(error, SendError::TooLarge { .. });
                self.too_large = self.too_large.saturating_add(is_too_large.into());
                // Nothing would hold back a saturating source: it ends with its conversation, or when nothing fits.
                let is_final = matches!(error, SendError::Closed(_)) || self.too_large >= MAX_TOO_LARGE;
                self.is_cut_off |= spec.is_saturating && is_final;
            }
        }
        true
    }

    fn refuse_first(&mut self, now: Time, buffers: &mut Buffers, out: &mut impl Observer) -> bool {
        let waiting = self.queue.as_mut().and_then(|queue| queue.messages.pop_front());
        let Some(Waiting { name, bytes }) = waiting else { return false };
        out.observe(now, self.id, name.refused(bytes.len()), None);
        buffers.recycle(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talker_leaves_room_in_a_cache_line() {
        // A driver with 10,000 of them keeps a place and two indices beside each.
        assert!(size_of::<Talker>() <= 48, "{} bytes", size_of::<Talker>());
    }
}

//! What is sent: messages cut into DATA chunks, repeated until they are acknowledged (RFC 9260 section 6), or given up and
//! passed over (RFC 3758).

mod acknowledge;
mod forward;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use trunkline_core::Time;

use super::config::{Reliability, SctpConfig};
use super::rto::{Congestion, Rto};
use super::wire::{self, CHUNK_HEADER, COMMON_HEADER, DATA_HEADER, kind};

/// Payload protocol identifiers: none for bytes as they are, and RFC 8831's for "empty", since a chunk without user data
/// is not allowed: it goes as one zero byte.
const PLAIN: u32 = 0;
pub(super) const EMPTY: u32 = 57;

/// Flags of DATA chunks (RFC 9260 section 3.3.1).
pub(super) const LAST: u8 = 1;
pub(super) const FIRST: u8 = 2;
pub(super) const UNORDERED: u8 = 4;

/// So many chunks are outstanding at most: gap blocks count no further than 16 bits, and sequence numbers of a stream are told
/// apart up to half of their range.
const MOST_OUTSTANDING: usize = 32_767;
/// Max.Burst (RFC 9260 section 16): maximum number of packets of new data that leave at once.
const MAX_BURST: u32 = 4;
/// So many buffers of messages are kept for the next.
const SPARE: usize = 64;

/// The sending half of an association.
pub(super) struct Sender {
    /// Numbers count messages from the first that is still held.
    messages: VecDeque<Message>,
    first: u64,
    /// The message that the next new chunk is cut from, and where.
    cutting: (u64, usize),
    /// Chunks from the one behind `acknowledged` on.
    outstanding: VecDeque<Sent>,
    acknowledged: u32,
    /// The Advanced.Peer.Ack.Point of RFC 3758: all before it is acknowledged or given up.
    forward: u32,
    /// Whether the peer has to be told of that.
    forward_due: bool,
    /// The TSN to which the peer was last told to pass, and when.
    forwarded: (u32, Time),
    /// What is on its way, chunks to be sent again, and chunks that were acknowledged behind a gap.
    flight: Flight,
    lost: usize,
    beyond_gap: usize,
    /// What the peer has room for, beside what is on its way.
    peer_window: usize,
    /// Whether a chunk was sent for which the peer had no room, to hear when it has.
    probing: bool,
    /// A SACK has come since the last timeout.
    heard: bool,
    /// One packet may exceed the congestion window: the first of a fast retransmission (RFC 9260 section 7.2.4, step 3).
    is_fast: bool,
    /// Packets of new data that may still leave before the next SACK, timeout or message (RFC 9260 section 6.1, rule D).
    burst: u32,
    congestion: Congestion,
    rto: Rto,
    /// Round trips are measured with chunks from this TSN on, so that there is one measurement in each.
    measured_to: u32,
    timer: Option<Time>,
    /// When new data was sent last.
    sent: Time,
    streams: u16,
    stream: u16,
    sequences: Vec<u16>,
    ordered: bool,
    reliability: Reliability,
    /// The largest packet, how much of a message goes into one, and the largest message.
    packet: usize,
    piece: usize,
    max_message: usize,
    held: usize,
    spare: Vec<Vec<u8>>,
    pub(super) retransmissions: u64,
    pub(super) given_up: u64,
}

struct Message {
    bytes: Vec<u8>,
    /// What it counts in the send buffer.
    held: usize,
    protocol: u32,
    stream: u16,
    /// Known from the first chunk on.
    sequence: u16,
    accepted: Time,
}

/// A chunk that has been sent.
struct Sent {
    message: u64,
    offset: usize,
    length: usize,
    state: State,
    times: u16,
    missing: u8,
    /// It was marked for a fast retransmission, which happens once (RFC 9260 section 7.2.4).
    is_fast: bool,
    at: Time,
}

/// Chunks that are on their way: their bytes with headers and padding, for which the path must have room, and those of user
/// data, for which the peer must.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flight {
    chunks: usize,
    data: usize,
}

impl Flight {
    fn add(&mut self, length: usize) {
        self.chunks += chunk_size(length);
        self.data += length;
    }

    fn remove(&mut self, length: usize) {
        self.chunks -= chunk_size(length);
        self.data -= length;
    }
}

/// What a DATA chunk with so much user data takes in a packet.
const fn chunk_size(length: usize) -> usize {
    DATA_HEADER + length.next_multiple_of(4)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// To be sent again.
    Lost,
    /// Received, with a gap before it.
    Received,
    GivenUp,
}

impl Sender {
    /// Of an association that begins with the TSN `first`.
    pub(super) fn new(config: &SctpConfig, first: u32) -> Sender {
        let packet = config.packet();
        Sender {
            messages: VecDeque::new(),
            first: 0,
            cutting: (0, 0),
            outstanding: VecDeque::new(),
            acknowledged: first.wrapping_sub(1),
            forward: first.wrapping_sub(1),
            forward_due: false,
            forwarded: (first.wrapping_sub(1), Time::ZERO),
            flight: Flight::default(),
            lost: 0,
            beyond_gap: 0,
            peer_window: 0,
            probing: false,
            heard: false,
            is_fast: false,
            burst: MAX_BURST,
            congestion: Congestion::new(packet),
            rto: Rto::default(),
            measured_to: first,
            timer: None,
            sent: Time::ZERO,
            streams: config.streams,
            stream: 0,
            sequences: Vec::new(),
            ordered: config.ordered,
            reliability: config.reliability,
            packet,
            piece: packet - COMMON_HEADER - DATA_HEADER,
            max_message: config.max_message(),
            held: 0,
            spare: Vec::new(),
            retransmissions: 0,
            given_up: 0,
        }
    }

    /// What the peer has said of itself: its window, how many streams it accepts, and whether it lets itself be told what
    /// was given up.
    pub(super) fn agree(&mut self, window: u32, streams: u16, can_forward: bool) {
        self.peer_window = window as usize;
        // As for an end's own: it must be able to put it together.
        self.max_message = self.max_message.min((self.peer_window / 2).max(1));
        self.streams = self.streams.min(streams).max(1);
        self.sequences = vec![0; usize::from(self.streams)];
        if !can_forward {
            self.reliability = Reliability::Full;
        }
    }

    /// The largest message that the peer can put together.
    pub(super) fn max_message(&self) -> usize {
        self.max_message
    }

    /// The TSN before the first that is sent.
    pub(super) fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    pub(super) fn rto(&self) -> trunkline_core::Duration {
        self.rto.current()
    }

    pub(super) fn rto_mut(&mut self) -> &mut Rto {
        &mut self.rto
    }

    /// When new data was sent last.
    pub(super) fn sent(&self) -> Time {
        self.sent
    }

    /// Whether a message fits into the send buffer: within it, or as the only one.
    pub(super) fn has_room(&self, length: usize, limit: usize) -> bool {
        self.held == 0 || self.held + length.max(1) <= limit
    }

    /// Whether all that was accepted has been acknowledged or given up, and the peer knows.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.outstanding.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.outstanding.clear();
        (self.flight, self.lost, self.beyond_gap, self.held) = (Flight::default(), 0, 0, 0);
        (self.timer, self.forward_due) = (None, false);
    }

    /// Accepts a message.
    pub(super) fn push(&mut self, now: Time, message: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(if message.is_empty() { &[0] } else { message });
        let protocol = if message.is_empty() { EMPTY } else { PLAIN };
        let (stream, held) = (self.stream, bytes.len());
        self.messages.push_back(Message { bytes, held, protocol, stream, sequence: 0, accepted: now });
        self.held += held;
        self.burst = MAX_BURST;
        self.stream = (stream + 1) % self.streams;
    }

    /// When to be called next.
    pub(super) fn timer(&self) -> Option<Time> {
        self.timer
    }

    /// Handles the expired retransmission timer (RFC 9260 section 6.3.3). Returns true if that is an error of the path, which it
    /// is not while SACKs report a full window (section 6.1, rule A).
    pub(super) fn handle_timeout(&mut self, now: Time) -> bool {
        if self.timer.is_none_or(|at| at > now) {
            return false;
        }
        let is_full = core::mem::take(&mut self.heard) && (self.probing || self.peer_window == 0);
        self.timer = None;
        self.burst = MAX_BURST;
        self.rto.back_off();
        self.congestion.timed_out();
        self.is_fast = false;
        for sent in &mut self.outstanding {
            if sent.state == State::InFlight {
                sent.state = State::Lost;
                self.lost += 1;
            }
            sent.missing = 0;
        }
        self.flight = Flight::default();
        self.forward_due = self.forward != self.acknowledged;
        !is_full
    }

    /// How long the next chunk is that may be sent now; `None` if none may.
    pub(super) fn next_length(&mut self, now: Time) -> Option<usize> {
        self.give_up_overdue(now);
        if self.forward_due {
            return Some(CHUNK_HEADER + 4 + self.skipped().count() * 4);
        }
        let may = self.flight.chunks < self.congestion.window();
        if self.lost > 0 {
            let next = self.outstanding.iter().find(|sent| sent.state == State::Lost)?;
            return (may || self.is_fast).then_some(DATA_HEADER + next.length);
        }
        let length = self.next_piece()?.1;
        let has_room = length <= self.peer_window || self.flight.data == 0;
        (may && has_room && self.burst > 0 && self.outstanding.len() < MOST_OUTSTANDING)
            .then_some(DATA_HEADER + length)
    }

    /// Appends to a packet the chunks that may be sent now and fit into it; whether any are DATA.
    pub(super) fn write(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let begin = into.len();
        let (mut repeats, mut has_new) = (false, false);
        while let Some(length) = self.next_length(now)
            && into.len() + length <= self.packet
        {
            if self.forward_due {
                self.write_forward_tsn(now, into);
            } else if self.lost > 0 {
                self.write_again(now, into);
                repeats = true;
            } else {
                self.write_new(now, into);
                has_new = true;
            }
        }
        self.retransmissions += u64::from(repeats);
        self.burst -= u32::from(has_new);
        // That was one packet.
        self.is_fast &= into.len() == begin;
        into.len() > begin
    }

    /// Forgets messages that no chunk needs any more.
    fn release(&mut self) {
        let needed = self.outstanding.front().map_or(self.cutting.0, |sent| sent.message);
        while self.first < needed
            && let Some(message) = self.messages.pop_front()
        {
            self.first += 1;
            self.held -= message.held;
            self.recycle(message.bytes);
        }
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }

    fn next_tsn(&self) -> u32 {
        self.acknowledged.wrapping_add(1).wrapping_add(self.outstanding.len() as u32)
    }

    fn message(&self, number: u64) -> Option<&Message> {
        self.messages.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The message to be cut, and how long the piece is.
    fn next_piece(&self) -> Option<(u64, usize)> {
        let (number, offset) = self.cutting;
        Some((number, (self.message(number)?.bytes.len() - offset).min(self.piece)))
    }

    fn write_new(&mut self, now: Time, into: &mut Vec<u8>) {
        let Some((number, length)) = self.next_piece() else { return };
        if self.outstanding.is_empty() {
            let timeouts = now.since(self.sent).as_nanos() / self.rto.current().as_nanos();
            self.congestion.rested(timeouts);
        }
        self.sent = now;
        let (tsn, offset) = (self.next_tsn(), self.cutting.1);
        if let Some(message) = self.messages.get_mut((number - self.first) as usize)
            && offset == 0
            && self.ordered
        {
            let sequence = &mut self.sequences[usize::from(message.stream)];
            message.sequence = *sequence;
            *sequence = sequence.wrapping_add(1);
        }
        let is_last = self.put_data(into, number, offset, length, tsn);
        self.cutting = if is_last { (number + 1, 0) } else { (number, offset + length) };
        self.probing |= length > self.peer_window;
        self.peer_window = self.peer_window.saturating_sub(length);
        self.flight.add(length);
        self.timer.get_or_insert(now + self.rto.current());
        self.outstanding.push_back(Sent {
            message: number,
            offset,
            length,
            state: State::InFlight,
            times: 1,
            missing: 0,
            is_fast: false,
            at: now,
        });
    }

    fn write_again(&mut self, now: Time, into: &mut Vec<u8>) {
        let Some(index) = self.outstanding.iter().position(|sent| sent.state == State::Lost) else { return };
        let sent = &mut self.outstanding[index];
        sent.state = State::InFlight;
        sent.times = sent.times.saturating_add(1);
        sent.missing = 0;
        sent.at = now;
        let (number, offset, length) = (sent.message, sent.offset, sent.length);
        self.lost -= 1;
        self.flight.add(length);
        // RFC 9260 section 6.3.2, rule R3, and 7.2.4 for the first.
        if index == 0 || self.timer.is_none() {
            self.timer = Some(now + self.rto.current());
        }
        self.put_data(into, number, offset, length, self.acknowledged.wrapping_add(1 + index as u32));
    }

    /// Appends a DATA chunk; whether it is the last of its message.
    fn put_data(&self, into: &mut Vec<u8>, number: u64, offset: usize, length: usize, tsn: u32) -> bool {
        let Some(message) = self.message(number) else { return true };
        let is_last = offset + length == message.bytes.len();
        let mut flags = if offset == 0 { FIRST } else { 0 };
        flags |= if is_last { LAST } else { 0 } | if self.ordered { 0 } else { UNORDERED };
        let mut head = [0; DATA_HEADER - CHUNK_HEADER];
        head[..4].copy_from_slice(&tsn.to_be_bytes());
        head[4..6].copy_from_slice(&message.stream.to_be_bytes());
        head[6..8].copy_from_slice(&message.sequence.to_be_bytes());
        head[8..].copy_from_slice(&message.protocol.to_be_bytes());
        wire::put(into, kind::DATA, flags, &head, &message.bytes[offset..offset + length]);
        is_last
    }
}

//! What is sent: messages cut into DATA chunks, repeated until they are acknowledged (RFC 9260 section 6), or given up and
//! passed over (RFC 3758).

mod forward;

use std::collections::VecDeque;

use trunkline_core::Time;

use super::config::{Reliability, SctpConfig};
use super::rto::{Congestion, Rto};
use super::wire::{self, CHUNK_HEADER, COMMON_HEADER, DATA_HEADER, is_later, kind};

/// Payload protocol identifiers: none for bytes as they are, and RFC 8831's for "empty", since a chunk without user data
/// is not allowed: it goes as one zero byte.
const PLAIN: u32 = 0;
pub(super) const EMPTY: u32 = 57;

/// Flags of DATA chunks (RFC 9260 section 3.3.1).
pub(super) const LAST: u8 = 1;
pub(super) const FIRST: u8 = 2;
pub(super) const UNORDERED: u8 = 4;

/// Reports that a chunk is missing until it is sent again (RFC 9260 section 7.2.4).
const MISSING: u8 = 3;
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
    /// Bytes on their way, chunks to be sent again, and chunks that were acknowledged behind a gap.
    flight: usize,
    lost: usize,
    beyond_gap: usize,
    /// What the peer has room for, beside what is on its way.
    peer_window: usize,
    /// Whether a chunk was sent for which the peer had no room, to hear when it has.
    probing: bool,
    /// Whether a packet may leave whatever the congestion window: the first of a fast retransmission.
    is_fast: bool,
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
    /// The largest packet, and how much of a message goes into one.
    packet: usize,
    piece: usize,
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
    /// It has been sent again for being reported missing, which is done once.
    was_fast: bool,
    at: Time,
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
        let packet = config.max_packet - config.encapsulation.headers();
        Sender {
            messages: VecDeque::new(),
            first: 0,
            cutting: (0, 0),
            outstanding: VecDeque::new(),
            acknowledged: first.wrapping_sub(1),
            forward: first.wrapping_sub(1),
            forward_due: false,
            flight: 0,
            lost: 0,
            beyond_gap: 0,
            peer_window: 0,
            probing: false,
            is_fast: false,
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
            piece: (packet - COMMON_HEADER - DATA_HEADER) & !3,
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
        self.streams = self.streams.min(streams).max(1);
        self.sequences = vec![0; usize::from(self.streams)];
        if !can_forward {
            self.reliability = Reliability::Full;
        }
    }

    /// The TSN before the first that is sent.
    pub(super) fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    pub(super) fn rto(&self) -> trunkline_core::Duration {
        self.rto.current()
    }

    /// Whether a message fits into the send buffer: within it, or as the only one.
    pub(super) fn has_room(&self, length: usize, limit: usize) -> bool {
        self.held == 0 || self.held + length <= limit
    }

    /// Whether all that was accepted has been acknowledged or given up, and the peer knows.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.outstanding.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.outstanding.clear();
        (self.flight, self.lost, self.beyond_gap, self.held) = (0, 0, 0, 0);
        (self.timer, self.forward_due) = (None, false);
    }

    /// Accepts a message.
    pub(super) fn push(&mut self, now: Time, message: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(if message.is_empty() { &[0] } else { message });
        let protocol = if message.is_empty() { EMPTY } else { PLAIN };
        let (stream, held) = (self.stream, message.len());
        self.messages.push_back(Message { bytes, held, protocol, stream, sequence: 0, accepted: now });
        self.held += held;
        self.stream = (stream + 1) % self.streams;
    }

    /// When to be called next.
    pub(super) fn timer(&self) -> Option<Time> {
        self.timer
    }

    /// Does what is due (RFC 9260 section 6.3.3).
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = None;
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
        self.flight = 0;
        self.forward_due = self.forward != self.acknowledged;
    }

    /// How long the next chunk is that may be sent now; `None` if none may.
    pub(super) fn next_length(&mut self, now: Time) -> Option<usize> {
        self.give_up_overdue(now);
        if self.forward_due {
            return Some(CHUNK_HEADER + 4 + self.skipped().count() * 4);
        }
        let may = self.flight < self.congestion.window();
        if self.lost > 0 {
            let next = self.outstanding.iter().find(|sent| sent.state == State::Lost)?;
            return (may || self.is_fast).then_some(DATA_HEADER + next.length);
        }
        let length = self.next_piece()?.1;
        (may && (length <= self.peer_window || self.flight == 0)).then_some(DATA_HEADER + length)
    }

    /// Appends to a packet the chunks that may be sent now and fit into it; whether any are DATA.
    pub(super) fn write(&mut self, now: Time, into: &mut Vec<u8>) -> bool {
        let begin = into.len();
        let mut repeats = false;
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
            }
        }
        self.retransmissions += u64::from(repeats);
        // That was one packet.
        self.is_fast &= into.len() == begin;
        into.len() > begin
    }

    /// Takes a SACK, or what a SHUTDOWN acknowledges: the gap blocks are pairs of numbers of 16 bits (RFC 9260 section
    /// 3.3.4).
    pub(super) fn acknowledge(&mut self, now: Time, cumulative: u32, window: Option<u32>, blocks: &[u8]) {
        let advance = cumulative.wrapping_sub(self.acknowledged) as usize;
        if is_later(self.acknowledged, cumulative) || advance > self.outstanding.len() {
            return; // an old one, or of what was never sent
        }
        let flight = self.flight;
        let mut bytes = 0;
        let mut latest = None;
        for _ in 0..advance {
            let Some(sent) = self.outstanding.pop_front() else { break };
            self.acknowledged = self.acknowledged.wrapping_add(1);
            match sent.state {
                State::InFlight => self.flight -= sent.length,
                State::Lost => self.lost -= 1,
                State::Received => self.beyond_gap -= 1,
                State::GivenUp => {}
            }
            if matches!(sent.state, State::InFlight | State::Lost) {
                bytes += sent.length;
                latest = Some((self.acknowledged, sent.times, sent.at));
            }
        }
        if is_later(self.acknowledged, self.forward) {
            self.forward = self.acknowledged;
        }
        self.release();
        if !blocks.is_empty() || self.beyond_gap > 0 {
            bytes += self.take_gaps(blocks, advance > 0, &mut latest);
        }
        if let Some((tsn, 1, at)) = latest
            && !is_later(self.measured_to, tsn)
        {
            self.rto.measure(now.since(at));
            self.measured_to = self.next_tsn();
        }
        if advance > 0 {
            self.congestion.acknowledged(cumulative, bytes, flight);
            self.timer = (!self.outstanding.is_empty()).then(|| now + self.rto.current());
        }
        if let Some(window) = window {
            self.peer_window = (window as usize).saturating_sub(self.flight);
            self.probe_again(advance > 0);
        }
        self.advance_forward();
    }

    /// Marks what has been received behind gaps, and what is missing by that; returns how many bytes are new.
    fn take_gaps(&mut self, blocks: &[u8], advanced: bool, latest: &mut Option<(u32, u16, Time)>) -> usize {
        let mut blocks = blocks.chunks_exact(4).map(|block| {
            let number = |at| usize::from(wire::u16_at(block, at).unwrap_or_default());
            (number(0), number(2))
        });
        let mut block = blocks.next();
        let (mut bytes, mut highest_new, mut highest) = (0, 0, 0);
        for (index, sent) in self.outstanding.iter_mut().enumerate() {
            let offset = index + 1;
            while block.is_some_and(|(_, end)| end < offset) {
                block = blocks.next();
            }
            let is_received = block.is_some_and(|(start, _)| start <= offset);
            match (is_received, sent.state) {
                (true, State::InFlight | State::Lost) => {
                    match sent.state {
                        State::InFlight => self.flight -= sent.length,
                        _ => self.lost -= 1,
                    }
                    self.beyond_gap += 1;
                    sent.state = State::Received;
                    bytes += sent.length;
                    highest_new = offset;
                    let tsn = self.acknowledged.wrapping_add(offset as u32);
                    *latest = Some((tsn, sent.times, sent.at));
                }
                // The peer has thrown it away again.
                (false, State::Received) => {
                    sent.state = State::Lost;
                    self.beyond_gap -= 1;
                    self.lost += 1;
                }
                _ => {}
            }
            if is_received {
                highest = offset;
            }
        }
        // RFC 9260 section 7.2.4: while it recovers, and the peer goes on, everything below the highest counts.
        let below = if self.congestion.is_recovering() && advanced { highest } else { highest_new };
        for sent in self.outstanding.iter_mut().take(below.saturating_sub(1)) {
            if sent.state != State::InFlight || sent.was_fast {
                continue;
            }
            sent.missing += 1;
            if sent.missing >= MISSING {
                (sent.state, sent.was_fast) = (State::Lost, true);
                self.flight -= sent.length;
                self.lost += 1;
                let last = self.acknowledged.wrapping_add(1).wrapping_add(below as u32);
                self.is_fast |= self.congestion.lost(last);
            }
        }
        bytes
    }

    /// The window has opened: what was sent into the closed one was thrown away, and need not wait for the timer.
    fn probe_again(&mut self, advanced: bool) {
        if advanced {
            self.probing = false;
        }
        if let Some(sent) = self.outstanding.front_mut()
            && self.probing
            && sent.state == State::InFlight
            && self.peer_window > 0
        {
            sent.state = State::Lost;
            self.flight -= sent.length;
            self.lost += 1;
            self.probing = false;
        }
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
        self.flight += length;
        self.timer.get_or_insert(now + self.rto.current());
        self.outstanding.push_back(Sent {
            message: number,
            offset,
            length,
            state: State::InFlight,
            times: 1,
            missing: 0,
            was_fast: false,
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
        self.flight += length;
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

//! The states of a connection, and what a segment does in each (RFC 793 section 3.9).

use trunkline_core::{Address, Duration};

use super::TcpEndpoint;
use super::receiver::{Receiver, Text};
use super::sender::Sender;
use super::wire::{self, Header};
use crate::CloseReason;

/// RFC 793 section 3.2. CLOSED is where a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// How long an end that closed first stays to answer the peer's last segment: twice the segment lifetime of 4.3BSD, 30 s
/// (RFC 793 section 3.3 has 2 minutes).
const TIME_WAIT: Duration = Duration::from_secs(60);

impl TcpEndpoint {
    /// Takes a segment (RFC 793's SEGMENT ARRIVES).
    pub(super) fn take(&mut self, from: Address, header: &Header, data: &[u8]) {
        match self.state {
            State::Closed => self.refuse(from, header, data),
            State::Listen => self.take_listening(from, header, data),
            State::SynSent => self.take_connecting(from, header, data),
            _ => self.take_synchronized(from, header, data),
        }
    }

    /// Tells the application what has come of a segment.
    pub(super) fn settle(&mut self) {
        if self.progress.refused && self.sender.has_room() && self.unsendable().is_none() {
            self.progress.refused = false;
            self.pending.writable = true;
            self.awaits_writer = true;
        }
    }

    /// Sends nothing after what was taken.
    pub(super) fn finish(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            State::SynReceived => State::SynReceived,
            State::Listen | State::SynSent => {
                self.sender.clear();
                self.end(CloseReason::Local);
                State::Closed
            }
            ended => return self.state = ended,
        };
        self.sender.finish();
    }

    /// Ends the connection at once, and tells the peer.
    pub(super) fn abort(&mut self, reason: CloseReason) {
        if let Some(peer) = self.peer.filter(|_| self.state != State::Closed) {
            let flags = if self.state == State::SynSent { wire::RST } else { wire::RST | wire::ACK };
            let acknowledgement = self.receiver.acknowledgement();
            let sequence = self.sender.sequence();
            self.reset = Some((peer, Header { sequence, acknowledgement, flags, ..Header::default() }));
        }
        self.die(reason);
    }

    fn take_listening(&mut self, from: Address, header: &Header, data: &[u8]) {
        if header.has(wire::RST | wire::ACK) {
            return self.refuse(from, header, data);
        }
        if header.has(wire::SYN) {
            self.peer = Some(from);
            self.synchronize(header);
            self.state = State::SynReceived;
        }
    }

    fn take_connecting(&mut self, from: Address, header: &Header, data: &[u8]) {
        let acknowledged =
            if header.has(wire::ACK) { self.sender.place(header.acknowledgement) } else { Some(1) };
        if acknowledged.is_none_or(|place| place == 0) {
            return self.refuse(from, header, data);
        }
        if header.has(wire::RST) {
            if header.has(wire::ACK) {
                self.die(CloseReason::Reset);
            }
            return;
        }
        if !header.has(wire::SYN) {
            return;
        }
        self.unanswered = None;
        if header.has(wire::ACK) {
            self.sender.acknowledged(self.now, 1, header.window, false);
            self.synchronize(header);
            self.receiver.acknowledge_now();
            self.establish();
        } else {
            // Both connect at once.
            self.synchronize(header);
            self.sender.repeat_syn();
            self.state = State::SynReceived;
        }
    }

    fn take_synchronized(&mut self, from: Address, header: &Header, data: &[u8]) {
        let first = self.receiver.place(header.sequence);
        let ahead = first - self.receiver.expected();
        let is_beyond = ahead > self.receiver.room() as i64;
        let is_beside = is_beyond || ahead < 0;
        if header.has(wire::RST) {
            if !is_beside {
                self.take_reset();
            }
            return;
        }
        if is_beyond {
            if header.length(data.len()) > 0 {
                self.receiver.acknowledge_now();
            }
            return;
        }
        self.unanswered = None;
        if header.has(wire::SYN) {
            if !is_beside {
                self.refuse(from, header, data);
                return self.die(CloseReason::Reset);
            }
            self.receiver.acknowledge_now();
        }
        if !header.has(wire::ACK) {
            return;
        }
        let Some(place) = self.sender.place(header.acknowledgement) else {
            return match self.state {
                State::SynReceived => self.refuse(from, header, data),
                // Where each knows of something that the other has not sent, they would go on for ever.
                _ if is_beside && header.length(data.len()) == 0 => {}
                _ => self.receiver.acknowledge_now(),
            };
        };
        if self.state == State::SynReceived {
            if place == 0 {
                return self.refuse(from, header, data);
            }
            self.establish();
        }
        let alone = header.length(data.len()) == 0;
        self.sender.acknowledged(self.now, place, header.window, alone);
        self.sender.update_window(first, place, header.window);
        let (fin, push) = (header.has(wire::FIN), header.has(wire::PSH));
        let place = first + i64::from(header.has(wire::SYN));
        if self.receiver.accept(self.now, Text { place, data, push, fin }) {
            self.pending.readable = true;
            self.is_held = true;
        }
        if fin && self.state == State::TimeWait {
            self.linger = Some(self.now + TIME_WAIT);
        }
        self.advance();
    }

    /// The peer ends the connection at once. Who listened and has not connected yet listens on.
    fn take_reset(&mut self) {
        match self.state {
            State::SynReceived if self.is_passive => {
                let initial = self.sender.sequence();
                self.sender = Sender::new(&self.config, initial);
                self.receiver = Receiver::new(&self.config);
                self.peer = None;
                self.unanswered = None;
                self.state = State::Listen;
            }
            State::TimeWait => {
                self.linger = None;
                self.state = State::Closed;
            }
            _ => self.die(CloseReason::Reset),
        }
    }

    /// Takes what a SYN says.
    fn synchronize(&mut self, header: &Header) {
        let mss = self.sender.agree(header.mss);
        self.receiver.begin(header.sequence, mss);
        let acknowledged = u64::from(header.has(wire::ACK));
        self.sender.update_window(0, acknowledged, header.window);
    }

    fn establish(&mut self) {
        self.pending.connected = true;
        // It may have been closed meanwhile.
        self.state = if self.sender.is_finishing() { State::FinWait1 } else { State::Established };
    }

    /// Goes on to the state that follows from which FINs have arrived.
    fn advance(&mut self) {
        let (is_acknowledged, is_finished) = (self.sender.is_finished(), self.receiver.is_finished());
        if is_acknowledged {
            self.end(CloseReason::Local);
        } else if is_finished && !self.progress.closing {
            self.end(CloseReason::Peer);
        }
        self.state = match (self.state, is_acknowledged, is_finished) {
            (State::Established, _, true) => State::CloseWait,
            (State::FinWait1, false, true) => State::Closing,
            (State::FinWait1, true, false) => State::FinWait2,
            (State::FinWait1 | State::FinWait2 | State::Closing, true, true) => {
                self.linger = Some(self.now + TIME_WAIT);
                State::TimeWait
            }
            (State::LastAck, true, _) => State::Closed,
            (state, ..) => state,
        };
    }

    /// Answers a segment that belongs to no connection (RFC 793 section 3.4, "Reset Generation").
    fn refuse(&mut self, from: Address, header: &Header, data: &[u8]) {
        if header.has(wire::RST) {
            return;
        }
        let reset = if header.has(wire::ACK) {
            Header { sequence: header.acknowledgement, flags: wire::RST, ..Header::default() }
        } else {
            let acknowledgement = header.sequence.wrapping_add(header.length(data.len()));
            Header { acknowledgement, flags: wire::RST | wire::ACK, ..Header::default() }
        };
        self.reset = Some((from, reset));
    }

    /// The connection is over, with whatever waited to be sent.
    fn die(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.sender.clear();
        (self.linger, self.unanswered) = (None, None);
        self.progress.refused = false;
        self.pending.writable = false;
        self.end(reason);
    }

    /// Tells the application of the end, once; of a worse one where it has not heard yet.
    fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.replace(reason).is_none() || self.pending.closed.is_some() {
            self.pending.closed = Some(reason);
        }
    }
}

//! SCTP (RFC 9260) with partial reliability (RFC 3758), over UDP (RFC 6951) or IP.
//!
//! Packets are the SCTP packets themselves; the headers of UDP and IP count in [`Transmit::size`]. The ports are those
//! of the addresses. Differences from a kernel's SCTP: there is one address per end, and a peer that begins anew ends the
//! association, as an abort does. A message is never delivered in parts, and an end sends none larger than half of the window
//! that its peer offered.

mod association;
mod config;
mod fuzz;
mod handshake;
mod kind;
mod path;
mod receiver;
mod rto;
mod sender;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::VecDeque;

use trunkline_core::{Address, Bytes, Duration, Ecn, Seed, Stream, Time};

use crate::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, PendingEvents, Received, SendError,
    Transmit, features,
};
use association::State;
pub use config::{Encapsulation, MAX_MESSAGE, MIN_PACKET, Reliability, SctpConfig, SctpConfigError};
#[doc(hidden)]
pub use fuzz::fuzz_sctp;
pub use kind::KIND;
use path::Path;
use receiver::Receiver;
use sender::Sender;
use wire::{Fault, Header, kind as chunk};

/// One end of an SCTP association.
///
/// `send` takes a message whole or answers [`SendError::Full`]: a message counts in the send buffer until the peer has
/// acknowledged it, or it was given up as [`Reliability`] says. A graceful close still delivers what was taken;
/// [`Event::Closed`] comes when the peer has acknowledged all of it. SCTP has no half-closed state (RFC 9260 section
/// 1.5.1): when the peer closes, nothing more is taken here either, and [`Event::Closed`] comes when its last message
/// has been received.
pub struct SctpEndpoint {
    local: Address,
    /// Whom it talks with; a listening end has none until somebody has proved its address.
    peer: Option<Address>,
    config: SctpConfig,
    state: State,
    /// Its own verification tag, which the peer's packets carry, and the peer's.
    tag: u32,
    peer_tag: u32,
    sender: Sender,
    receiver: Receiver,
    path: Path,
    draws: Stream,
    /// With which cookies are made.
    key: [u64; 2],
    /// The cookie that is sent back.
    cookie: Vec<u8>,
    /// When the request of the state is repeated, and after how long then.
    repeat: Option<Time>,
    patience: Duration,
    /// Packets that are no data, with whom they are for.
    outgoing: VecDeque<(Address, Vec<u8>)>,
    /// Since when a packet that wants an answer has had none.
    unanswered: Option<Time>,
    progress: Progress,
    pending: PendingEvents,
    counters: Counters,
    now: Time,
    next: Option<Time>,
}

/// How far the conversation has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The length of a message that was refused, when nobody has been told that there is room again.
    refused: Option<usize>,
    closing: bool,
    ended: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
    after_close: u64,
}

impl SctpEndpoint {
    /// An end that connects to `peer`. All that it draws (tags, the initial TSN and a key) comes from `seed`.
    ///
    /// # Errors
    /// If a port is 0 or a value of `config` out of its range.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &SctpConfig,
        seed: u64,
    ) -> Result<SctpEndpoint, SctpConfigError> {
        config.check(&[local.port, peer.port])?;
        Ok(SctpEndpoint::new(local, Some(peer), config, seed))
    }

    /// An end that waits for the first peer who connects to `local`.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn listen(local: Address, config: &SctpConfig, seed: u64) -> Result<SctpEndpoint, SctpConfigError> {
        config.check(&[local.port])?;
        Ok(SctpEndpoint::new(local, None, config, seed))
    }

    fn new(local: Address, peer: Option<Address>, config: &SctpConfig, seed: u64) -> SctpEndpoint {
        let mut draws = Seed::new(seed, 0).stream("sctp");
        let key = [draws.bits(), draws.bits()];
        SctpEndpoint {
            local,
            peer,
            config: config.clone(),
            state: State::Closed,
            tag: 0,
            peer_tag: 0,
            sender: Sender::new(config, 0),
            receiver: Receiver::new(config.window, 0, 0),
            path: Path::new(config.heartbeat),
            draws,
            key,
            cookie: Vec::new(),
            repeat: None,
            patience: rto::RTO_INITIAL,
            outgoing: VecDeque::new(),
            unanswered: None,
            progress: Progress::default(),
            pending: PendingEvents::default(),
            counters: Counters::default(),
            now: Time::ZERO,
            next: None,
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.is_some() {
            return;
        }
        self.progress.ended = Some(reason);
        self.progress.refused = None;
        self.pending.writable = false;
        self.pending.closed = Some(reason);
        self.state = State::Closed;
        self.unanswered = None;
        self.repeat = None;
        self.sender.clear();
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        match (self.progress, self.state) {
            (Progress { closing: true, .. }, _) => Some(CloseReason::Local),
            (Progress { ended: Some(reason), .. }, _) => Some(reason),
            (_, State::Established) => None,
            (_, State::Closed | State::CookieWait | State::CookieEchoed) => Some(CloseReason::NotConnected),
            _ => Some(CloseReason::Peer),
        }
    }

    /// Tells the application what has come of an input.
    fn settle(&mut self) {
        if let Some(length) = self.progress.refused
            && self.sender.has_room(length, self.config.send_buffer)
            && self.unsendable().is_none()
        {
            self.progress.refused = None;
            self.pending.writable = true;
        }
    }

    /// Says when to be called next.
    fn schedule(&mut self) {
        let sender = self.sender.timer();
        let receiver = self.receiver.timer().filter(|_| self.state.exchanges());
        let path = self.path.timer().filter(|_| self.state.tests_path());
        let all = [self.repeat, sender, receiver, path, self.deadline()];
        // All that was due has been done.
        let soon = self.now + Duration::from_nanos(1);
        self.next = all.into_iter().flatten().min().map(|at| at.max(soon));
    }

    /// Counts a timeout without an answer, and ends the association if there are too many (RFC 9260 sections 5.1 and 8.1).
    fn count_error(&mut self) {
        let most = match self.state {
            State::CookieWait | State::CookieEchoed => path::MAX_INIT_RETRANSMITS,
            _ => self.config.max_retransmissions.unwrap_or(0),
        };
        if self.path.count_error(self.config.max_retransmissions.map(|_| most)) {
            let silence = self.unanswered.map_or(Duration::ZERO, |since| self.now.since(since));
            self.abort();
            self.end(CloseReason::TimedOut(silence));
        }
    }

    /// When the peer counts as gone.
    fn deadline(&self) -> Option<Time> {
        Some(self.unanswered? + self.config.timeout?)
    }

    /// Writes the next packet of data or acknowledgements; false if there is none to be sent now.
    fn write_data(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(peer) = self.peer.filter(|_| self.state.exchanges()) else { return false };
        wire::begin(into, self.local.port, peer.port, self.peer_tag);
        let next = self.sender.next_length(self.now);
        let room = self.config.packet() - into.len();
        // An acknowledgement that may wait goes along where it has room beside the data.
        let fits = || next.is_some_and(|next| next + self.receiver.sack_length(room) <= room);
        if self.receiver.is_due(self.now) || (self.receiver.owes_acknowledgement() && fits()) {
            self.receiver.write_sack(into, room);
        }
        let has_data = self.sender.write(self.now, into);
        if into.len() == wire::COMMON_HEADER {
            return false;
        }
        wire::seal(into);
        if has_data {
            self.unanswered.get_or_insert(self.now);
        }
        true
    }
}

impl Conversation for SctpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        let (length, limit) = (message.bytes.len(), self.sender.max_message());
        if length > limit {
            return Err(SendError::TooLarge { limit });
        }
        if !self.sender.has_room(length, self.config.send_buffer) {
            self.progress.refused = Some(length);
            return Err(SendError::Full);
        }
        self.sender.push(now, message.bytes);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let length = self.receiver.read(into)?;
        self.receiver.announce_window();
        Some(Received { length, ecn: Ecn::NotCapable })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.poll(self.receiver.readable() > 0)
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        let was_closing = core::mem::replace(&mut self.progress.closing, true);
        if self.progress.ended.is_some() || (how == Close::Graceful && was_closing) {
            return;
        }
        self.progress.refused = None;
        self.pending.writable = false;
        match (how, self.state) {
            (Close::Graceful, State::Established) => {
                self.state = State::ShutdownPending;
                self.shut_down();
            }
            // On its way already, as the peer wants it.
            (Close::Graceful, State::ShutdownReceived | State::ShutdownAckSent) => {}
            _ => {
                self.abort();
                self.end(CloseReason::Local);
            }
        }
    }

    fn features(&self) -> &'static Features {
        let ordered = self.config.ordered && self.config.streams == 1;
        match (self.config.reliability == Reliability::Full, ordered) {
            (true, true) => &features::SCTP,
            (true, false) => &features::SCTP_UNORDERED,
            (false, true) => &features::SCTP_PARTIAL,
            (false, false) => &features::SCTP_PARTIAL_UNORDERED,
        }
    }
}

impl Endpoint for SctpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, _ecn: Ecn, packet: &[u8]) {
        self.now = now;
        self.start();
        match Header::verify(packet) {
            Ok((header, _)) if header.destination != self.local.port || header.source != from.port => {
                self.counters.strays += 1;
            }
            Ok(_) if self.progress.ended.is_some() && self.peer != Some(from) => self.counters.strays += 1,
            Ok((header, chunks)) if self.progress.ended.is_some() => {
                self.counters.after_close += 1;
                self.answer_stray(from, &header, chunks);
            }
            Ok((header, chunks)) => {
                if self.take(from, &header, chunks) {
                    self.counters.packets_received += 1;
                } else {
                    self.counters.strays += 1;
                }
                self.settle();
            }
            Err(Fault::Malformed) => self.counters.malformed += 1,
            Err(Fault::Checksum) => self.counters.checksum_errors += 1,
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.start();
        if self.repeat.is_some_and(|at| at <= now) {
            self.patience = rto::doubled(self.patience);
            self.count_error();
            self.request();
        }
        if self.sender.handle_timeout(now) {
            self.count_error();
        }
        if self.state.tests_path() {
            self.test_path();
        }
        if let (Some(deadline), Some(timeout)) = (self.deadline(), self.config.timeout)
            && deadline <= now
        {
            self.abort();
            self.end(CloseReason::TimedOut(timeout));
        }
        self.settle();
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        const REQUESTS: [u8; 5] =
            [chunk::INIT, chunk::HEARTBEAT, chunk::COOKIE_ECHO, chunk::SHUTDOWN, chunk::SHUTDOWN_ACK];
        self.now = now;
        self.start();
        into.clear();
        let to = if let Some((to, packet)) = self.outgoing.pop_front() {
            if self.progress.ended.is_none() && REQUESTS.contains(&packet[wire::COMMON_HEADER]) {
                self.unanswered.get_or_insert(now);
            }
            *into = packet;
            to
        } else if self.write_data(into) {
            self.settle();
            self.peer.unwrap_or_default()
        } else {
            into.clear();
            // What was given up may have been the last.
            self.shut_down();
            self.settle();
            if !self.outgoing.is_empty() {
                return self.poll_transmit(now, into);
            }
            self.schedule();
            return None;
        };
        self.counters.packets_sent += 1;
        let size = Bytes((into.len() + self.config.encapsulation.headers()) as u64);
        Some(Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO })
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("retransmissions", self.sender.retransmissions);
        count("heartbeats-sent", self.path.heartbeats);
        count("path-failures", self.path.failures);
        count("given-up", self.sender.given_up);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
        count("receive-buffer-full", self.receiver.refused);
        count("after-close", self.counters.after_close);
    }
}

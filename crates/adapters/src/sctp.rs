//! SCTP (RFC 9260) with partial reliability (RFC 3758), over UDP (RFC 6951) or IP: dcsctp's engine behind [`Endpoint`].
//!
//! Packets are the SCTP packets themselves; the headers of UDP and IP count in [`Transmit::size`]. The ports are those
//! of the addresses. What differs from a kernel's SCTP, and so from `live`: one address per end, no heartbeats while
//! nothing is to be sent (a peer that vanishes then is noticed with the next message).
//!
//! The engine writes every packet as text for its log, whether or not there is one: it is slower than it need be, in
//! wall time.

mod config;
mod engine;
mod fuzz;
mod held;
mod packet;
#[cfg(test)]
mod tests;
mod window;

use std::collections::VecDeque;

use dcsctp::api::{ErrorKind, SocketEvent};
use trunkline_core::{Address, Bytes, Duration, Ecn, Time};
use trunkline_transport::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit,
    features,
};

pub use config::{Encapsulation, MAX_MESSAGE, MIN_PACKET, Reliability, SctpConfig, SctpConfigError};
use engine::Engine;
#[doc(hidden)]
pub use fuzz::fuzz_sctp;
use held::Held;
use packet::{Fault, Header, chunk};
use window::Window;

/// One end of an SCTP association.
///
/// `send` takes a message whole or answers [`SendError::Full`]: a message counts in the send buffer until the peer has
/// acknowledged it, or it was given up as [`Reliability`] says. A graceful close still delivers what was taken;
/// [`Event::Closed`] comes when the peer has acknowledged all of it. SCTP has no half-closed state (RFC 9260 section
/// 1.5.1): when the peer closes, nothing more is taken here either, and [`Event::Closed`] comes when its last message
/// has been received.
///
/// It may be moved to another thread until it is driven for the first time. Whoever moves it later finds its association
/// over, as if reset.
pub struct SctpEndpoint {
    local: Address,
    /// Whom it talks with; of a listening end that of the last request.
    peer: Option<Address>,
    config: SctpConfig,
    /// There is none until a connecting end is driven, or a listening end hears of somebody.
    engine: Option<Engine>,
    seed: u64,
    progress: Progress,
    outgoing: VecDeque<Vec<u8>>,
    /// Messages taken out of an engine that is about to forget them.
    inbox: VecDeque<Vec<u8>>,
    held: Held,
    /// Since when a packet that wants an answer has had none.
    unanswered: Option<Time>,
    /// The engine did not understand the last packet.
    rejected: bool,
    window: Window,
    /// The window that the peer has announced last.
    peer_window: u32,
    now: Time,
    next: Option<Time>,
    pending: Pending,
    counters: Counters,
}

/// How far the association has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    connected: bool,
    /// The length of a message that was refused, when nobody has been told that there is room again.
    refused: Option<usize>,
    closing: bool,
    ended: Option<CloseReason>,
}

/// Events that have not been polled yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    connected: bool,
    readable: bool,
    writable: bool,
    closed: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    retransmissions: u64,
    given_up: u64,
    checksum_errors: u64,
    malformed: u64,
    strays: u64,
    /// Sent into a closed window.
    no_room: u64,
    after_close: u64,
}

impl SctpEndpoint {
    /// An end that connects to `peer`. All that it draws (tags and the initial TSN) comes from `seed`.
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
        SctpEndpoint {
            local,
            peer,
            config: config.clone(),
            engine: None,
            seed,
            progress: Progress::default(),
            outgoing: VecDeque::new(),
            inbox: VecDeque::new(),
            held: Held::default(),
            unanswered: None,
            rejected: false,
            window: Window::new(config.window),
            peer_window: 0,
            now: Time::ZERO,
            next: None,
            pending: Pending::default(),
            counters: Counters::default(),
        }
    }

    /// Lets a connecting end begin.
    fn start(&mut self) {
        if let (Some(peer), None, None) = (self.peer, &self.engine, self.progress.ended) {
            let mut engine = Engine::new(self.local.port, peer.port, &self.config, self.seed);
            engine.advance(self.now);
            engine.connect();
            self.engine = Some(engine);
            self.settle();
        }
    }

    /// Whether a packet is from the peer. A listening end without an association takes whoever asks for one: the
    /// handshake needs no state of it until the peer has proved its address (RFC 9260 section 5.1).
    fn admit(&mut self, from: Address, header: &Header) -> bool {
        if header.destination != self.local.port || header.source != from.port || from.port == 0 {
            return false;
        }
        if self.peer == Some(from) {
            return true;
        }
        let asks = matches!(header.chunk, chunk::INIT | chunk::COOKIE_ECHO);
        let free = self.engine.as_ref().is_none_or(Engine::is_closed) && !self.progress.connected;
        if !asks || !free || self.progress.ended.is_some() {
            return false;
        }
        let draws = self.engine.as_ref().map_or(self.seed, Engine::draws);
        self.engine = Some(Engine::new(self.local.port, from.port, &self.config, draws));
        self.peer = Some(from);
        true
    }

    /// Gives the engine a packet of the peer.
    fn take(&mut self, packet: &[u8]) {
        self.save_messages();
        let Some(engine) = &mut self.engine else { return };
        engine.advance(self.now);
        let before = engine.messages();
        self.peer_window = packet::announced(packet).unwrap_or(self.peer_window);
        // The engine does not read what a SHUTDOWN acknowledges, and would repeat it until its peer gives up.
        if let Some(sack) = packet::sack_of_shutdown(packet, self.peer_window) {
            engine.handle_input(&sack);
        }
        engine.handle_input(packet);
        self.pending.readable |= engine.messages() > before;
        self.rejected = false;
        self.settle();
        if self.rejected {
            self.counters.malformed += 1;
        } else {
            self.counters.packets_received += 1;
            self.unanswered = None;
        }
        self.save_messages();
    }

    /// An engine that shuts down forgets what has not been read with the last packet.
    fn save_messages(&mut self) {
        if let Some(engine) = &mut self.engine
            && engine.is_shutting_down()
        {
            self.inbox.extend(core::iter::from_fn(|| engine.next_message()));
        }
    }

    /// Draws the conclusions from what the engine tells.
    fn settle(&mut self) {
        while let Some(event) = self.engine.as_mut().and_then(Engine::poll_event) {
            match event {
                SocketEvent::SendPacket(packet) => self.queue(packet),
                SocketEvent::OnConnected() => {
                    self.progress.connected = true;
                    self.pending.connected = true;
                    self.with_engine(Engine::agree_on_streams);
                }
                SocketEvent::OnClosed() if self.progress.closing => self.end(CloseReason::Local),
                SocketEvent::OnClosed() => self.end(CloseReason::Peer),
                // A peer that has begun anew does not know what was under way.
                SocketEvent::OnAborted(..) | SocketEvent::OnConnectionRestarted() => {
                    self.end(CloseReason::Reset);
                    self.with_engine(Engine::abort);
                }
                SocketEvent::OnLifecycleMessageExpired(_)
                | SocketEvent::OnLifecycleMessageMaybeExpired(_) => {
                    self.counters.given_up += 1;
                }
                SocketEvent::OnLifecycleEnd(id) => self.held.release(id.value() - 1),
                SocketEvent::OnError(ErrorKind::ParseFailed, _) => self.rejected = true,
                _ => {}
            }
        }
        if self.engine.as_ref().is_some_and(Engine::is_elsewhere) {
            self.end(CloseReason::Reset);
        }
        if let Some(length) = self.progress.refused
            && self.held.has_room(length, self.config.send_buffer)
            && self.unsendable().is_none()
        {
            self.progress.refused = None;
            self.pending.writable = true;
        }
        if let Some(retransmissions) = self.engine.as_ref().and_then(Engine::retransmissions) {
            self.counters.retransmissions = retransmissions;
        }
    }

    fn with_engine(&mut self, run: impl FnOnce(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            run(engine);
        }
    }

    fn queue(&mut self, mut packet: Vec<u8>) {
        let size = self.config.window;
        if let Some(window) = packet::announce(&mut packet, |kind, n| Engine::announced(size, kind, n)) {
            self.window.announced(window);
        }
        self.outgoing.push_back(packet);
    }

    fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.is_some() {
            return;
        }
        self.progress.ended = Some(reason);
        self.progress.refused = None;
        self.pending.writable = false;
        self.pending.closed = Some(reason);
        self.unanswered = None;
        self.held.clear();
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        let peer_closes = || self.engine.as_ref().is_none_or(|engine| !engine.is_established());
        match self.progress {
            Progress { closing: true, .. } => Some(CloseReason::Local),
            Progress { ended: Some(reason), .. } => Some(reason),
            Progress { connected: false, .. } => Some(CloseReason::NotConnected),
            _ => peer_closes().then_some(CloseReason::Peer),
        }
    }

    /// Tells the peer how large the window is.
    fn announce_window(&mut self) {
        let repeated = self.window.repeated();
        if let Some(engine) = &mut self.engine
            && engine.is_established()
            && !repeated.is_empty()
        {
            engine.handle_input(repeated);
        }
        self.settle();
    }

    /// Says when to be called next.
    fn schedule(&mut self) {
        let engine = self.engine.as_ref().and_then(Engine::next_timeout);
        let later = |at: Time| if at > self.now { at } else { self.now + Duration::from_nanos(1) };
        self.next = [engine, self.deadline()].into_iter().flatten().min().map(later);
    }

    /// When the peer counts as gone.
    fn deadline(&self) -> Option<Time> {
        Some(self.unanswered? + self.config.timeout?)
    }
}

impl Conversation for SctpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        let (length, limit) = (message.bytes.len(), self.config.max_message());
        if length > limit {
            return Err(SendError::TooLarge { limit });
        }
        if !self.held.has_room(length, self.config.send_buffer) {
            self.progress.refused = Some(length);
            return Err(SendError::Full);
        }
        let Some(engine) = &mut self.engine else {
            return Err(SendError::Closed(CloseReason::NotConnected));
        };
        engine.advance(now);
        if !engine.send(message.bytes, self.held.next()) {
            return Err(SendError::Closed(CloseReason::Peer));
        }
        self.held.push(length);
        self.settle();
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let saved = self.inbox.pop_front();
        let message = match saved {
            Some(message) => message,
            None => self.engine.as_mut()?.next_message()?,
        };
        into.extend_from_slice(&message);
        self.window.read(message.len());
        if self.window.has_opened(self.engine.as_ref().is_none_or(|engine| engine.messages() == 0)) {
            if let Some(refused) = self.window.take_refused() {
                self.window.admit(&refused);
                self.take(&refused);
            }
            self.announce_window();
        }
        Some(Received { length: message.len(), ecn: Ecn::NotCapable })
    }

    fn poll_event(&mut self) -> Option<Event> {
        let pending = &mut self.pending;
        if core::mem::take(&mut pending.connected) {
            Some(Event::Connected)
        } else if core::mem::take(&mut pending.readable) {
            Some(Event::Readable)
        } else if core::mem::take(&mut pending.writable) {
            Some(Event::Writable)
        } else if pending.closed == Some(CloseReason::Peer) && !self.inbox.is_empty() {
            None
        } else {
            pending.closed.take().map(Event::Closed)
        }
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        if self.progress.ended.is_some() || (how == Close::Graceful && self.progress.closing) {
            self.progress.closing = true;
            return;
        }
        self.progress.closing = true;
        self.progress.refused = None;
        self.pending.writable = false;
        if let Some(engine) = &mut self.engine {
            engine.advance(now);
            match how {
                Close::Graceful if self.progress.connected => engine.shut_down(),
                Close::Graceful | Close::Abort => engine.abort(),
            }
        }
        self.settle();
        self.save_messages();
        if self.engine.as_ref().is_none_or(Engine::is_closed) {
            self.end(CloseReason::Local);
        }
    }

    fn features(&self) -> &'static Features {
        const UNORDERED: Features = Features { ordered: false, ..features::SCTP };
        const PARTIAL: Features = Features { reliable: false, ..features::SCTP };
        const PARTIAL_UNORDERED: Features = Features { ordered: false, ..PARTIAL };
        let ordered = self.config.ordered && self.config.streams == 1;
        match (self.config.reliability == Reliability::Full, ordered) {
            (true, true) => &features::SCTP,
            (true, false) => &UNORDERED,
            (false, true) => &PARTIAL,
            (false, false) => &PARTIAL_UNORDERED,
        }
    }
}

impl Endpoint for SctpEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, _ecn: Ecn, packet: &[u8]) {
        self.now = now;
        let header = match Header::verify(packet) {
            Ok(header) => header,
            Err(Fault::Malformed) => return self.counters.malformed += 1,
            Err(Fault::Checksum) => return self.counters.checksum_errors += 1,
        };
        if !self.admit(from, &header) {
            return self.counters.strays += 1;
        }
        if self.progress.ended.is_none() {
            if self.window.refuses(packet) {
                self.counters.no_room += 1;
                self.unanswered = None;
                return self.announce_window();
            }
            self.window.admit(packet);
            return self.take(packet);
        }
        self.counters.after_close += 1;
        match &mut self.engine {
            // The peer has not heard that the association is over.
            Some(engine) if header.chunk == chunk::SHUTDOWN_ACK => {
                engine.handle_input(packet);
                self.settle();
            }
            _ => self.outgoing.extend(header.out_of_the_blue()),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.start();
        if let Some(engine) = &mut self.engine {
            engine.advance(now);
            self.settle();
        }
        if let (Some(deadline), Some(timeout)) = (self.deadline(), self.config.timeout)
            && deadline <= now
        {
            self.end(CloseReason::TimedOut(timeout));
            self.with_engine(Engine::abort);
            self.settle();
        }
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        self.start();
        into.clear();
        if let (Some(packet), Some(to)) = (self.outgoing.pop_front(), self.peer) {
            *into = packet;
            self.counters.packets_sent += 1;
            if self.progress.ended.is_none() && packet::wants_answer(into) {
                self.unanswered.get_or_insert(now);
            }
            let size = Bytes((into.len() + self.config.encapsulation.headers()) as u64);
            return Some(Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO });
        }
        self.schedule();
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("retransmissions", self.counters.retransmissions);
        count("given-up", self.counters.given_up);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
        count("strays", self.counters.strays);
        count("receive-buffer-full", self.counters.no_room);
        count("after-close", self.counters.after_close);
    }
}

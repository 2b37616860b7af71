//! QUIC (RFC 9000, RFC 9001, RFC 9002, RFC 9221): quinn-proto's engine behind [`Endpoint`].
//!
//! Packets are UDP datagrams, or their payload where a socket makes the headers ([`Encapsulation`]). One
//! connection carries everything that a conversation sends, in one of three ways ([`Mode`]). The connecting end trusts
//! one certificate, that of a given [`Fingerprint`], and both ends speak TLS 1.3 with one cipher suite.
//!
//! In virtual time, times, sizes and order of packets follow from the seeds. Their bytes do not: keys of encryption are
//! the system's random numbers, as they must be.

mod clock;
mod config;
mod course;
mod fuzz;
mod identity;
mod kind;
mod patience;
mod receiving;
mod relief;
mod seeds;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes as Buffer, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, ServerConfig,
    ValidationTokenConfig,
};
use trunkline_core::{Address, Bytes, Duration, Ecn, Time};
use trunkline_transport::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, PendingEvents, Received, SendError,
    Transmit, features, host_of, ipv4_of,
};

use clock::instant;
pub use config::{
    CongestionControl, DATAGRAM_OVERHEAD, HEADERS, MAX_MESSAGE, Mode, PACKET, QuicConfig, QuicConfigError,
};
#[doc(hidden)]
pub use fuzz::fuzz_quic;
pub use identity::{Fingerprint, Identity};
pub use kind::KIND;
use patience::Patience;
use receiving::Receiving;
use relief::Relief;
use seeds::Seeds;
use sending::Sending;
pub use trunkline_transport::udp::Encapsulation;
use trunkline_transport::udp::{Fault, UDP_HEADER_LENGTH, Variant};

/// Application error codes of CONNECTION_CLOSE (RFC 9000 section 19.19): all has been said, or it is broken off.
const DONE: u32 = 0;
const ABORTED: u32 = 1;

/// How long an end that has sent and received everything still answers a peer that has not heard so.
const LINGER: Duration = Duration::from_secs(3);

/// One end of a QUIC connection.
///
/// `send` takes a message whole or answers [`SendError::Full`]: on streams, what does not fit into the send buffer waits
/// beside it, and nothing more is taken until that is gone. The limit of [`SendError::TooLarge`] for datagrams is what
/// the packet holds with the longest headers.
///
/// A graceful close still delivers what was taken (datagrams: sends it), then finishes this end's stream. On one stream
/// the peer may go on sending until it closes too; in the other modes the end of one is the end of both.
pub struct QuicEndpoint {
    engine: quinn_proto::Endpoint,
    role: Role,
    local: Address,
    encapsulation: Encapsulation,
    link: Option<(ConnectionHandle, Connection)>,
    mode: Mode,
    window: usize,
    sending: Sending,
    receiving: Receiving,
    patience: Patience,
    relief: Relief,
    timeout: Option<Duration>,
    progress: Progress,
    pending: PendingEvents,
    /// Packets that belong to no connection.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    now: Time,
    next: Option<Time>,
    counters: Counters,
}

enum Role {
    /// Connects when it is first asked for packets: only then it knows the time.
    Connecting { peer: SocketAddr, config: Option<Box<ClientConfig>> },
    /// Waits for the first peer who completes a handshake.
    Listening,
}

/// How far the conversation has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    connected: bool,
    closing: bool,
    ended: Option<CloseReason>,
    /// The connection is closed, by whomever: nothing can be sent.
    over: bool,
    /// Over without a farewell: the engine may not send any more.
    silent: bool,
    /// When both directions had come to their end, or a packet came after that.
    done: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_sent: u64,
    packets_received: u64,
    malformed: u64,
    checksum_errors: u64,
    strays: u64,
}

impl QuicEndpoint {
    /// An end that connects to `peer`, which must have the certificate of this fingerprint. The engine's choices
    /// (numbers that it skips, parameters that it adds) come from `seed`.
    ///
    /// # Errors
    /// If a port is 0 or a value of `config` out of its range.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &QuicConfig,
        fingerprint: Fingerprint,
        seed: u64,
    ) -> Result<QuicEndpoint, QuicConfigError> {
        config.check(&[local.port, peer.port])?;
        let seeds = Seeds::new(seed);
        let mut client = ClientConfig::new(Arc::new(fingerprint.client(config.mode)?));
        let relief = Relief::default();
        client.transport_config(config.transport(&relief));
        client.initial_dst_cid_provider(seeds.first_connection_id());
        let role = Role::Connecting { peer: socket_address(peer), config: Some(Box::new(client)) };
        QuicEndpoint::new(local, config, role, &seeds, None, relief)
    }

    /// An end that waits at `local` for the first peer who connects, and shows it this identity.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn listen(
        local: Address,
        config: &QuicConfig,
        identity: &Identity,
        seed: u64,
    ) -> Result<QuicEndpoint, QuicConfigError> {
        config.check(&[local.port])?;
        let seeds = Seeds::new(seed);
        let mut server = ServerConfig::new(Arc::new(identity.server(config.mode)?), seeds.token_key());
        let mut no_tokens = ValidationTokenConfig::default();
        no_tokens.sent(0);
        let relief = Relief::default();
        server
            .transport_config(config.transport(&relief))
            .validation_token_config(no_tokens)
            .migration(false);
        QuicEndpoint::new(local, config, Role::Listening, &seeds, Some(Arc::new(server)), relief)
    }

    fn new(
        local: Address,
        config: &QuicConfig,
        role: Role,
        seeds: &Seeds,
        server: Option<Arc<ServerConfig>>,
        relief: Relief,
    ) -> Result<QuicEndpoint, QuicConfigError> {
        let settings = Arc::new(seeds.endpoint_config(config.payload())?);
        Ok(QuicEndpoint {
            engine: quinn_proto::Endpoint::new(settings, server, false, None),
            next: matches!(role, Role::Connecting { .. }).then(|| after(Time::ZERO)),
            role,
            local,
            encapsulation: config.encapsulation,
            link: None,
            mode: config.mode,
            window: config.window,
            sending: Sending::new(config.mode),
            receiving: Receiving::new(config.mode, config.window),
            patience: Patience::new(config.timeout),
            relief,
            timeout: config.timeout,
            progress: Progress::default(),
            pending: PendingEvents::default(),
            replies: VecDeque::new(),
            now: Time::ZERO,
            counters: Counters::default(),
        })
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        let Progress { connected, closing, ended, over, .. } = self.progress;
        match ended {
            Some(reason @ (CloseReason::Reset | CloseReason::TimedOut(_) | CloseReason::Untrusted)) => {
                Some(reason)
            }
            _ if closing => Some(CloseReason::Local),
            _ if !connected => Some(CloseReason::NotConnected),
            Some(reason) if self.mode != Mode::Stream => Some(reason),
            _ if over => Some(CloseReason::Peer),
            _ => None,
        }
    }

    fn linger_until(&self) -> Option<Time> {
        Some(self.progress.done? + LINGER)
    }

    /// Calls the engine if it asked for that, and before, where it would wait too long.
    fn wake(&mut self) {
        let Some((_, connection)) = &mut self.link else { return };
        let Some(asked) = connection.poll_timeout().map(clock::time) else { return };
        if asked <= self.now {
            connection.handle_timeout(instant(self.now));
        } else if self.patience.shortened(asked) <= self.now {
            let confirmed = self.is_confirmed();
            let Some((_, connection)) = &mut self.link else { return };
            // Before, it is packets of the handshake that must be sent again.
            self.relief.give(!confirmed);
            if confirmed && self.patience.nudge() {
                connection.ping();
            } else {
                // Also if congestion control let no question out: the engine is told that its time has come.
                connection.handle_timeout(instant(asked));
            }
        }
    }

    /// Whether the handshake is confirmed (RFC 9001 section 4.1.2).
    fn is_confirmed(&self) -> bool {
        match self.role {
            Role::Listening => self.progress.connected,
            Role::Connecting { .. } => self
                .link
                .as_ref()
                .is_some_and(|(_, connection)| connection.stats().frame_rx.handshake_done > 0),
        }
    }

    /// When the peer should be asked whether it is there.
    fn question(&self) -> Option<Time> {
        let asks = self.progress.connected && !self.progress.over && self.sending.waits();
        self.patience.question().filter(|_| asks)
    }

    fn deadline(&self) -> Option<Time> {
        self.patience.deadline().filter(|_| !self.progress.over)
    }

    /// Makes a packet of the engine ready to leave.
    fn leave(&mut self, to: SocketAddr, ecn: Option<EcnCodepoint>, packet: &mut Vec<u8>) -> Transmit {
        self.counters.packets_sent += 1;
        let to = address(to);
        let size = Bytes((packet.len() + HEADERS) as u64);
        if self.encapsulation == Encapsulation::Udp {
            packet.splice(..0, [0; UDP_HEADER_LENGTH]);
            Variant::Udp.write(self.local, to, packet);
        }
        let ecn = match ecn {
            None => Ecn::NotCapable,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
        };
        Transmit { to, ecn, size, earliest: Time::ZERO }
    }

    fn update_next(&mut self) {
        self.next = None;
        if self.progress.silent {
            return;
        }
        let engine = self.link.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let engine = engine.map(|at| self.patience.shortened(clock::time(at)));
        let times = [engine, self.deadline(), self.question(), self.linger_until()];
        // What was due by now has been done, or waits for something else: the engine sees to it at its next moment.
        self.next = times.into_iter().flatten().min().map(|at| at.max(after(self.now)));
    }
}

impl Conversation for QuicEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        match &mut self.link {
            Some((_, connection)) => self.sending.send(connection, message.bytes),
            None => Err(SendError::Closed(CloseReason::NotConnected)),
        }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let (_, connection) = self.link.as_mut()?;
        let received = self.receiving.receive(connection, into)?;
        self.conclude();
        Some(received)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.writable |= self.sending.take_writable();
        self.pending.writable &= !self.progress.closing;
        self.pending.poll(false)
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        if how == Close::Graceful && self.progress.closing {
            return;
        }
        self.progress.closing = true;
        if how == Close::Graceful && self.progress.connected && !self.progress.over {
            self.sending.finish();
            return;
        }
        self.start_nothing();
        self.shut(ABORTED);
        self.end(CloseReason::Local);
    }

    fn features(&self) -> &'static Features {
        match self.mode {
            Mode::Datagrams => &features::QUIC_DATAGRAMS,
            Mode::Stream => &features::QUIC,
            Mode::Streams => &features::QUIC_STREAMS,
        }
    }
}

impl Endpoint for QuicEndpoint {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.now = now;
        if self.progress.silent {
            return;
        }
        // QUIC's encryption finds damage too, but not in the packets by which versions are negotiated and addresses are
        // proved: on those it relies on UDP's checksum.
        let packet = match self.encapsulation {
            Encapsulation::Udp => Variant::Udp.read(from, self.local, packet),
            Encapsulation::UdpPayload => Ok(packet),
        };
        let packet = match packet {
            Ok(packet) => packet,
            Err(Fault::Malformed | Fault::Coverage) => return self.counters.malformed += 1,
            Err(Fault::Checksum) => return self.counters.checksum_errors += 1,
            Err(Fault::Stray) => return self.counters.strays += 1,
        };
        self.counters.packets_received += 1;
        let mut reply = Vec::new();
        let event = self.engine.handle(
            instant(now),
            socket_address(from),
            None,
            codepoint(ecn),
            BytesMut::from(packet),
            &mut reply,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => self.deliver(handle, event, ecn),
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming),
            Some(DatagramEvent::Response(transmit)) => {
                reply.truncate(transmit.size);
                self.replies.push_back((transmit.destination, reply));
            }
            None => self.counters.strays += 1,
        }
        if self.relief.is_given() {
            self.relief.give(!self.is_confirmed());
        }
        self.observe();
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if self.progress.silent {
            return;
        }
        self.wake();
        self.observe();
        if let (Some(deadline), Some(timeout)) = (self.deadline(), self.timeout)
            && deadline <= now
        {
            if self.progress.connected || matches!(self.role, Role::Connecting { .. }) {
                self.progress.silent = true;
                self.progress.over = true;
                self.end(CloseReason::TimedOut(timeout));
            } else if let Some((_, connection)) = &mut self.link {
                // Whoever began to connect is gone. Others may come.
                connection.close(instant(now), ABORTED.into(), Buffer::new());
                self.patience = Patience::new(None);
            }
        }
        if self.question().is_some_and(|at| at <= now)
            && let Some((_, connection)) = &mut self.link
        {
            connection.ping();
            self.patience.asked(now);
        }
        if self.linger_until().is_some_and(|until| until <= now) {
            self.shut(DONE);
        }
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        into.clear();
        self.start();
        if let Some((to, reply)) = self.replies.pop_front() {
            into.extend_from_slice(&reply);
            return Some(self.leave(to, None, into));
        }
        while !self.progress.silent
            && let Some((_, connection)) = &mut self.link
        {
            if let Some(packet) = connection.poll_transmit(instant(now), 1, into) {
                self.patience.sent(now, &connection.stats());
                return Some(self.leave(packet.destination, packet.ecn, into));
            }
            self.observe();
            let Some((_, connection)) = &mut self.link else { break };
            if !self.sending.advance(connection) {
                break;
            }
        }
        self.update_next();
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("packets-sent", self.counters.packets_sent);
        count("packets-received", self.counters.packets_received);
        count("malformed", self.counters.malformed);
        count("checksum-errors", self.counters.checksum_errors);
        count("strays", self.counters.strays);
        count("receive-buffer-full", self.receiving.dropped());
        let Some((_, connection)) = &self.link else { return };
        let stats = connection.stats();
        count("packets-lost", stats.path.lost_packets);
        count("congestion-events", stats.path.congestion_events);
        count("datagrams-sent", stats.frame_tx.datagram);
        count("datagrams-received", stats.frame_rx.datagram);
    }
}

/// The engine answers where packets came from, and those addresses were made by [`socket_address`].
fn address(of: SocketAddr) -> Address {
    let host = match of {
        SocketAddr::V4(address) => host_of(address.ip().octets()),
        SocketAddr::V6(_) => None,
    };
    Address { host: host.unwrap_or_default(), port: of.port() }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::CongestionExperienced => Some(EcnCodepoint::Ce),
    }
}

fn socket_address(address: Address) -> SocketAddr {
    SocketAddr::from((ipv4_of(address.host), address.port))
}

fn after(now: Time) -> Time {
    now + Duration::from_nanos(1)
}

//! TCP in virtual time: smoltcp's engine behind [`Endpoint`].
//!
//! Packets are whole IPv4 packets with the addresses of [`ipv4_of`]. Every conversation has an engine of its own
//! (smoltcp walks all its sockets for every packet). What differs from a kernel's TCP, and so from `live`: the sender
//! ignores selective acknowledgements and handles one loss per round trip, and its retransmission timer is never below
//! one second.

mod config;
mod device;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpListenEndpoint, Ipv4Address};
use trunkline_core::{Address, Bytes, Duration, Ecn, Time};
use trunkline_transport::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, PendingEvents, Received, SendError,
    Transmit, features, ipv4_of,
};

pub use config::{CongestionControl, TcpConfig, TcpConfigError};
use device::Port;
use segment::{Fault, Segment};

/// Bytes of IPv4 and TCP headers in front of a segment's payload.
const HEADERS: usize = 40;

/// One end of a TCP connection.
///
/// `send` takes a message whole or answers [`SendError::Full`]: what does not fit into the send buffer waits beside it,
/// and nothing more is taken until that is gone. A graceful close still delivers what was taken; [`Event::Closed`]
/// comes when the peer has acknowledged all of it. When the peer closes, [`Event::Closed`] comes after its last byte
/// has been received; this end may go on sending until it closes too.
pub struct TcpEndpoint {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    mtu: usize,
    mss: usize,
    nodelay: bool,
    timeout: Option<Duration>,
    /// Answers that the engine gave while it took a packet, before all else it wants to send.
    replies: VecDeque<Vec<u8>>,
    spares: Vec<Vec<u8>>,
    /// The part of the last message that the send buffer had no room for yet.
    rest: Vec<u8>,
    rest_fed: usize,
    /// Received but not read when the connection passed away; the engine would forget it with the connection.
    leftover: Vec<u8>,
    progress: Progress,
    /// Data has arrived and the application has not had its turn to read it. The acknowledgement waits for that (until
    /// the engine's next microsecond at most), as in Linux: sent at once it would announce a window smaller by what is
    /// about to be read, and throughput would be that of a smaller window.
    held: bool,
    /// The engine was stuck, and keep-alives run until it moves again.
    woken: bool,
    /// Since when something that needs an answer has had none.
    unanswered: Option<Time>,
    now: Time,
    next: Option<Time>,
    pending: PendingEvents,
    sent: Sent,
    counters: Counters,
}

/// How far the conversation has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    connected: bool,
    /// A message was refused, and nobody has been told that there is room again.
    refused: bool,
    closing: bool,
    ended: Option<CloseReason>,
    /// Over without a farewell: the engine may not send any more.
    silent: bool,
}

/// What of the sequence space has been used.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// The sequence number after the highest that was sent.
    highest: Option<u32>,
    /// Payload bytes that the engine took but never sent.
    unsent: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    segments_sent: u64,
    segments_received: u64,
    retransmissions: u64,
    checksum_errors: u64,
    malformed: u64,
}

impl TcpEndpoint {
    /// An end that connects to `peer`. All that it draws (the initial sequence number) comes from `seed`.
    ///
    /// # Errors
    /// If a port is 0 or a value of `config` out of its range.
    pub fn connect(
        local: Address,
        peer: Address,
        config: &TcpConfig,
        seed: u64,
    ) -> Result<TcpEndpoint, TcpConfigError> {
        config.check(&[local.port, peer.port])?;
        let mut endpoint = TcpEndpoint::new(local, config, seed);
        let socket = endpoint.sockets.get_mut::<tcp::Socket<'_>>(endpoint.handle);
        let peer = (ip_of(peer), peer.port);
        socket.connect(endpoint.interface.context(), peer, local.port).map_err(|_| TcpConfigError::Port)?;
        endpoint.update_next();
        Ok(endpoint)
    }

    /// An end that waits for the first peer who connects to `local`.
    ///
    /// # Errors
    /// If the port is 0 or a value of `config` out of its range.
    pub fn listen(local: Address, config: &TcpConfig, seed: u64) -> Result<TcpEndpoint, TcpConfigError> {
        config.check(&[local.port])?;
        let mut endpoint = TcpEndpoint::new(local, config, seed);
        let at = IpListenEndpoint { addr: Some(ip_of(local)), port: local.port };
        endpoint.socket().listen(at).map_err(|_| TcpConfigError::Port)?;
        Ok(endpoint)
    }

    fn new(local: Address, config: &TcpConfig, seed: u64) -> TcpEndpoint {
        let mtu = config.mss + HEADERS;
        let mut settings = Config::new(HardwareAddress::Ip);
        settings.random_seed = seed;
        let mut interface = Interface::new(settings, &mut Port::idle(mtu), Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The one address fits: the engine has room for two. The prefix makes every host a neighbour.
            let _ = addresses.push(IpCidr::new(ip_of(local), 8));
        });
        let buffer = |size| tcp::SocketBuffer::new(vec![0; size]);
        let mut socket = tcp::Socket::new(buffer(config.window), buffer(config.send_buffer));
        socket.set_nagle_enabled(!config.nodelay);
        socket.set_congestion_control(match config.congestion_control {
            CongestionControl::None => tcp::CongestionControl::None,
            CongestionControl::Reno => tcp::CongestionControl::Reno,
            CongestionControl::Cubic => tcp::CongestionControl::Cubic,
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        TcpEndpoint {
            interface,
            sockets,
            handle,
            mtu,
            mss: config.mss,
            nodelay: config.nodelay,
            timeout: config.timeout,
            replies: VecDeque::new(),
            spares: Vec::new(),
            rest: Vec::new(),
            rest_fed: 0,
            leftover: Vec::new(),
            progress: Progress::default(),
            held: false,
            woken: false,
            unanswered: None,
            now: Time::ZERO,
            next: None,
            pending: PendingEvents::default(),
            sent: Sent::default(),
            counters: Counters::default(),
        }
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn state(&self) -> State {
        self.sockets.get::<tcp::Socket<'_>>(self.handle).state()
    }

    /// Hands the engine what it has room for.
    fn feed(&mut self) {
        if !self.rest.is_empty() {
            let fed = self.rest_fed;
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
            // An engine that can no longer send takes nothing; then the conversation ends by another way.
            let taken = socket.send_slice(&self.rest[fed..]).unwrap_or(0);
            self.rest_fed += taken;
            self.sent.unsent += taken;
            if self.rest_fed == self.rest.len() {
                self.rest.clear();
                self.rest_fed = 0;
                if self.progress.closing {
                    self.socket().close();
                }
            }
        }
        if self.progress.refused && self.rest.is_empty() && self.socket().can_send() {
            self.progress.refused = false;
            self.pending.writable = !self.progress.closing;
        }
    }

    /// Without Nagle, smoltcp sends whatever fits into the rest of the window, however little ("silly window"). Hence
    /// Nagle is on as long as a full segment waits, which is the sender's avoidance of RFC 9293 section 3.8.6.2.1.
    fn avoid_silly_window(&mut self) {
        if self.nodelay {
            let full_segment_waits = self.sent.unsent + (self.rest.len() - self.rest_fed) >= self.mss;
            self.socket().set_nagle_enabled(full_segment_waits);
        }
    }

    /// When a zero window opens, smoltcp stops all timers, even if sent data beyond the new window is unacknowledged (a
    /// fast retransmission may have sent it): nothing would ever happen again. Keep-alives make the peer repeat its
    /// acknowledgement, and three of those start the retransmission.
    fn wake_stuck_engine(&mut self) {
        let sending = [State::Established, State::CloseWait, State::FinWait1, State::Closing, State::LastAck]
            .contains(&self.state());
        let stuck = sending
            && !self.woken
            && self.socket().send_queue() > 0
            && self.interface.poll_at(instant(self.now), &self.sockets).is_none();
        if stuck {
            self.woken = true;
            self.socket().set_keep_alive(Some(smoltcp::time::Duration::from_secs(1)));
        }
    }

    /// Draws the conclusions from the engine's state after something happened.
    fn observe(&mut self, reset: bool) {
        let state = self.state();
        let synchronized =
            !matches!(state, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        if synchronized && !self.progress.connected {
            self.progress.connected = true;
            self.pending.connected = true;
        }
        let unread = self.socket().can_recv();
        if state == State::TimeWait && unread {
            let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
            read(socket, &mut self.leftover);
        }
        match state {
            State::Closed if reset => self.end(CloseReason::Reset),
            State::FinWait2 | State::TimeWait | State::Closed if self.progress.closing => {
                self.end(CloseReason::Local)
            }
            State::CloseWait if !unread => self.end(CloseReason::Peer),
            _ => {}
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.is_some() {
            return;
        }
        self.progress.ended = Some(reason);
        self.pending.closed = Some(reason);
        if reason != CloseReason::Peer {
            self.pending.writable = false;
            self.progress.refused = false;
            self.rest.clear();
            self.rest_fed = 0;
        }
    }

    /// Why nothing more can be sent, if so.
    fn unsendable(&self) -> Option<CloseReason> {
        match self.progress {
            Progress { ended: Some(reason @ (CloseReason::Reset | CloseReason::TimedOut(_))), .. } => {
                Some(reason)
            }
            Progress { closing: true, .. } => Some(CloseReason::Local),
            Progress { connected: false, .. } => Some(CloseReason::NotConnected),
            _ => None,
        }
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.unanswered? + self.timeout?)
    }

    fn update_next(&mut self) {
        if self.progress.silent {
            self.next = None;
            return;
        }
        self.avoid_silly_window();
        self.wake_stuck_engine();
        let engine = self.interface.poll_at(instant(self.now), &self.sockets).map(|at| {
            // An engine time at or before now means "at once". Whoever has drained it has nothing left to send, so
            // that follows a `receive`, or the engine is held; the next microsecond is its next moment.
            let at = Time::from_nanos((at.total_micros() as u64).saturating_mul(1_000));
            if at > self.now { at } else { after(self.now) }
        });
        let held = self.held.then(|| after(self.now));
        let deadline = self.deadline().map(|at| if at > self.now { at } else { after(self.now) });
        self.next = [engine, held, deadline].into_iter().flatten().min();
    }

    /// Books a packet that leaves, and says where it goes.
    fn account(&mut self, packet: &[u8]) -> Transmit {
        let size = Bytes(packet.len() as u64);
        let mut to = Address::default();
        if let Some(segment) = Segment::trusted(packet) {
            to = segment.to;
            self.counters.segments_sent += 1;
            if segment.length > 0 && !segment.reset {
                self.unanswered.get_or_insert(self.now);
                let end = segment.sequence.wrapping_add(segment.length);
                let highest = self.sent.highest.unwrap_or(segment.sequence);
                let new = end.wrapping_sub(highest) as i32;
                if (segment.sequence.wrapping_sub(highest) as i32) < 0 {
                    self.counters.retransmissions += 1;
                }
                if new > 0 {
                    self.sent.highest = Some(end);
                    self.sent.unsent =
                        self.sent.unsent.saturating_sub((new as u32).min(segment.payload) as usize);
                }
            }
        }
        Transmit { to, ecn: Ecn::NotCapable, size, earliest: Time::ZERO }
    }
}

impl Conversation for TcpEndpoint {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.now = now;
        if let Some(reason) = self.unsendable() {
            return Err(SendError::Closed(reason));
        }
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
        if !self.rest.is_empty() || !socket.can_send() {
            self.progress.refused = true;
            return Err(SendError::Full);
        }
        let taken = socket.send_slice(message.bytes).unwrap_or(0);
        self.held = false;
        self.sent.unsent += taken;
        self.rest.extend_from_slice(&message.bytes[taken..]);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let before = into.len();
        into.append(&mut self.leftover);
        read(self.socket(), into);
        let length = into.len() - before;
        if length == 0 {
            return None;
        }
        self.held = false;
        self.observe(false);
        self.update_next();
        Some(Received { length, ecn: Ecn::NotCapable })
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.pending.poll(false)
    }

    fn close(&mut self, now: Time, how: Close) {
        self.now = now;
        match how {
            Close::Abort => {
                self.held = false;
                self.progress.closing = true;
                self.rest.clear();
                self.rest_fed = 0;
                self.socket().abort();
            }
            Close::Graceful if self.progress.closing => return,
            Close::Graceful => {
                self.held = false;
                self.progress.closing = true;
                self.pending.writable = false;
                if self.rest.is_empty() {
                    self.socket().close();
                }
            }
        }
        self.observe(false);
    }

    fn features(&self) -> &'static Features {
        &features::TCP
    }
}

impl Endpoint for TcpEndpoint {
    fn handle_packet(&mut self, now: Time, _from: Address, _ecn: Ecn, packet: &[u8]) {
        self.now = now;
        let segment = match Segment::verify(packet) {
            Ok(segment) => segment,
            Err(Fault::Malformed) => return self.counters.malformed += 1,
            Err(Fault::Checksum) => return self.counters.checksum_errors += 1,
        };
        self.counters.segments_received += 1;
        self.unanswered = None;
        let (unread, unacknowledged) = (self.socket().recv_queue(), self.socket().send_queue());
        let mut reply = self.spares.pop().unwrap_or_default();
        reply.clear();
        let mut port = Port::receiving(self.mtu, packet, &mut reply);
        self.interface.poll_ingress_single(instant(now), &mut port, &mut self.sockets);
        if reply.is_empty() {
            self.spares.push(reply);
        } else {
            self.replies.push_back(reply);
        }
        if self.woken && self.socket().send_queue() < unacknowledged {
            self.woken = false;
            self.socket().set_keep_alive(None);
        }
        if self.socket().recv_queue() > unread {
            self.pending.readable = true;
            self.held = true;
        }
        self.observe(segment.reset);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.held = false;
        if let (Some(deadline), Some(timeout)) = (self.deadline(), self.timeout)
            && deadline <= now
        {
            self.progress.silent = true;
            self.unanswered = None;
            self.socket().abort();
            self.end(CloseReason::TimedOut(timeout));
        }
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        into.clear();
        if let Some(reply) = self.replies.pop_front() {
            into.extend_from_slice(&reply);
            self.spares.push(reply);
            return Some(self.account(into));
        }
        if !self.progress.silent && !self.held {
            self.feed();
            self.avoid_silly_window();
            self.interface.poll_egress(instant(now), &mut Port::sending(self.mtu, into), &mut self.sockets);
            if !into.is_empty() {
                return Some(self.account(into));
            }
        }
        self.observe(false);
        self.update_next();
        None
    }

    fn next_timeout(&self) -> Option<Time> {
        self.next
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("segments-sent", self.counters.segments_sent);
        count("segments-received", self.counters.segments_received);
        count("retransmissions", self.counters.retransmissions);
        count("checksum-errors", self.counters.checksum_errors);
        count("malformed", self.counters.malformed);
    }
}

/// Appends all that the engine has for the application.
fn read(socket: &mut tcp::Socket<'_>, into: &mut Vec<u8>) {
    while socket.can_recv() {
        // The buffer is a ring: what wraps around comes in two pieces.
        let taken = socket.recv(|bytes| {
            into.extend_from_slice(bytes);
            (bytes.len(), bytes.len())
        });
        if !taken.is_ok_and(|length| length > 0) {
            break;
        }
    }
}

/// The engine counts microseconds: rounded down going in; its own times come out exact.
fn instant(time: Time) -> Instant {
    Instant::from_micros((time.as_nanos() / 1_000) as i64)
}

/// The engine's next moment.
fn after(now: Time) -> Time {
    Time::from_nanos((now.as_nanos() / 1_000 + 1).saturating_mul(1_000))
}

fn ip_of(address: Address) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from(ipv4_of(address.host)))
}

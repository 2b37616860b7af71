//! One engine and the socket that carries its packets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_io::udp::{EcnField, SendBatch};
use trunkline_transport::framing::{Deframer, Header, Key, decode_message};
use trunkline_transport::{Close, CloseReason, Endpoint, Event, Message, SendError};

use super::sockets::Intake;

/// When the socket has no room, it is asked again after so long.
const RETRY: Duration = Duration::from_micros(200);
/// As many packets are handed to the kernel at once.
const BURST: usize = 32;
/// So many buffers of packets are kept for the next.
const SPARE: usize = 2 * BURST;

/// Counters by name.
pub(crate) type Counters = BTreeMap<String, u64>;

/// A protocol engine whose packets travel through a socket.
pub(crate) struct Engine {
    endpoint: Box<dyn Endpoint + Send>,
    /// The peer, as the endpoint knows it.
    peer: Address,
    route: Route,
    intake: Intake,
    key: Key,
    /// For byte streams: finds the messages again.
    deframer: Option<Deframer>,
    ecn: EcnField,
    /// Packets that leave, now or later, in their order: paced, or waiting for room in the socket.
    held: VecDeque<Held>,
    spare: Vec<Vec<u8>>,
    /// Until when the socket is taken to have no room.
    blocked: Time,
    batch: SendBatch,
    /// Where the endpoint writes messages.
    received: Vec<u8>,
    is_connected: bool,
    closed: Option<CloseReason>,
    loss: Loss,
    counters: Own,
}

/// Where the peer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// The socket is connected to it.
    Fixed,
    /// Wherever the latest packet of its host came from, until the engine has connected with it.
    Follows(IpAddr, Option<SocketAddr>),
}

/// A path that loses every so-manieth packet, for tests; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    every: u32,
    counted: u32,
}

struct Held {
    at: Time,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// What is counted beside what the endpoint counts.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    /// Packets that the socket refused.
    unsent: u64,
    /// Packets of other hosts.
    strangers: u64,
}

/// What comes out of an engine.
pub(crate) enum Found<'e> {
    /// A message, header included.
    Message(Header, &'e mut [u8]),
    /// So many bytes that are no message of this run.
    Stray(usize),
}

impl Loss {
    pub(crate) fn every(every: u32) -> Loss {
        Loss { every, counted: 0 }
    }

    pub(crate) fn strikes(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        self.counted = (self.counted + 1) % self.every;
        self.counted == 0
    }
}

impl Engine {
    /// An engine whose packets go through `socket`, and whose messages are those of the flows `ids`.
    ///
    /// # Errors
    /// If the socket has no address.
    pub(crate) fn new(
        endpoint: Box<dyn Endpoint + Send>,
        peer: Address,
        (socket, route, intake): (&UdpSocket, Route, Intake),
        (key, ids): (Key, core::ops::Range<u32>),
        loss: Loss,
    ) -> io::Result<Engine> {
        let features = endpoint.features();
        let deframer = (!features.message_oriented).then(|| Deframer::new(key, ids));
        Ok(Engine {
            peer,
            route,
            intake,
            key,
            deframer,
            ecn: EcnField::new(socket)?,
            held: VecDeque::new(),
            spare: Vec::new(),
            blocked: Time::ZERO,
            batch: SendBatch::with_capacity(BURST),
            received: Vec::new(),
            is_connected: !features.connection_oriented,
            closed: None,
            loss,
            counters: Own::default(),
            endpoint,
        })
    }

    /// Takes a datagram that has arrived.
    pub(crate) fn arrived(&mut self, now: Time, source: Option<SocketAddr>, ecn: Ecn, datagram: &[u8]) {
        if let Route::Follows(host, latest) = &mut self.route {
            if source.is_none_or(|source| source.ip() != *host) {
                self.counters.strangers += 1;
                return;
            }
            *latest = source;
        }
        if let Some(packet) = self.intake.packet(datagram) {
            self.endpoint.handle_packet(now, self.peer, ecn, packet);
        }
    }

    /// Lets the endpoint do what is due.
    pub(crate) fn due(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    /// When it wants to be looked after again.
    pub(crate) fn wake(&self) -> Time {
        let held = self.held.front().map_or(Time::MAX, |held| held.at.max(self.blocked));
        self.endpoint.next_timeout().unwrap_or(Time::MAX).min(held)
    }

    /// Hands every packet that may leave to the socket.
    pub(crate) fn transmit(&mut self, now: Time, socket: &UdpSocket) {
        loop {
            self.flush(now, socket);
            if now < self.blocked || !self.stage(now) {
                return;
            }
        }
    }

    /// Takes packets from the endpoint, at most as many as leave at once; false if it had none.
    fn stage(&mut self, now: Time) -> bool {
        for place in 0..BURST {
            let mut bytes = self.spare.pop().unwrap_or_default();
            let Some(transmit) = self.endpoint.poll_transmit(now, &mut bytes) else {
                self.recycle(bytes);
                return place > 0;
            };
            if self.loss.strikes() {
                self.recycle(bytes);
            } else {
                self.intake.sends(&bytes);
                self.held.push_back(Held { at: transmit.earliest, ecn: transmit.ecn, bytes });
            }
        }
        true
    }

    /// Sends the held packets whose time has come, as many at once as there are with one ECN field. What the socket refuses
    /// for another reason than room is lost, as in any network.
    fn flush(&mut self, now: Time, socket: &UdpSocket) {
        while now >= self.blocked
            && let Some(&Held { at, ecn, .. }) = self.held.front()
            && at <= now
        {
            // A packet without its ECN field is as good as one through a network that clears it.
            let _ = self.ecn.set(socket, ecn);
            let sent = match self.put(now, ecn, socket) {
                // An ICMP error tells of an earlier packet that found nobody; the ones at hand were not tried yet.
                Err(error) if !has_no_room(&error) => self.put(now, ecn, socket),
                sent => sent,
            };
            let gone = match sent {
                Ok(sent) => sent,
                Err(error) if has_no_room(&error) => {
                    self.blocked = now + RETRY;
                    return;
                }
                Err(_) => {
                    self.counters.unsent += 1;
                    1
                }
            };
            for _ in 0..gone {
                let Some(Held { bytes, .. }) = self.held.pop_front() else { return };
                self.recycle(bytes);
            }
        }
    }

    /// Hands the first of the held packets to the socket, and says how many that took.
    fn put(&mut self, now: Time, ecn: Ecn, socket: &UdpSocket) -> io::Result<usize> {
        match (self.route, self.held.front()) {
            (Route::Fixed, _) => {
                let leaving = self.held.iter().take_while(|held| held.at <= now && held.ecn == ecn);
                self.batch.send(socket, leaving.map(|held| held.bytes.as_slice()))
            }
            (Route::Follows(_, Some(peer)), Some(held)) => socket.send_to(&held.bytes, peer).map(|_| 1),
            (Route::Follows(..), _) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// What has happened: true if the endpoint may take messages now, or never will again.
    pub(crate) fn take_events(&mut self, socket: &UdpSocket) -> bool {
        let mut writable = false;
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Connected => {
                    self.is_connected = true;
                    self.settle(socket);
                    writable = true;
                }
                Event::Writable => writable = true,
                Event::Closed(reason) => {
                    self.closed = Some(reason);
                    writable = true;
                }
                Event::Readable | Event::Member(_) => {}
            }
        }
        writable
    }

    /// Reads once from the endpoint and says what came out; false if it had nothing.
    pub(crate) fn receive(&mut self, mut found: impl FnMut(Found<'_>)) -> bool {
        self.received.clear();
        if self.endpoint.receive(&mut self.received).is_none() {
            return false;
        }
        let Some(deframer) = &mut self.deframer else {
            match decode_message(&self.received, self.key) {
                Ok((header, _)) => found(Found::Message(header, &mut self.received)),
                Err(_) => found(Found::Stray(self.received.len())),
            }
            return true;
        };
        deframer.push(&self.received);
        while let Some(framed) = deframer.next() {
            if framed.skipped > 0 {
                found(Found::Stray(framed.skipped));
            }
            found(Found::Message(framed.header, framed.bytes));
        }
        true
    }

    /// Hands a message to the endpoint.
    pub(crate) fn send(&mut self, now: Time, message: &[u8]) -> Result<(), SendError> {
        self.endpoint.send(now, Message::new(message))
    }

    /// Ends the conversation, for which there is no more than this moment.
    pub(crate) fn close(&mut self, now: Time, socket: &UdpSocket) {
        self.endpoint.close(now, Close::Graceful);
        self.transmit(now, socket);
    }

    /// Where the peer is, with the port in the packets if the socket has none.
    pub(crate) fn peer(&self, socket: &UdpSocket) -> Option<SocketAddr> {
        let mut peer = socket.peer_addr().ok()?;
        if peer.port() == 0 {
            peer.set_port(self.peer.port);
        }
        Some(peer)
    }

    /// Whether messages can be exchanged.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Why the conversation is over, if it is.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Adds what it has counted.
    pub(crate) fn count(&self, into: &mut Counters) {
        let mut count = |name: &str, more: u64| match into.get_mut(name) {
            Some(counter) => *counter += more,
            None => _ = into.insert(name.to_owned(), more),
        };
        self.endpoint.counters(&mut count);
        count("packets-refused-by-socket", self.counters.unsent);
        count("packets-of-strangers", self.counters.strangers);
    }

    /// The peer has been agreed on: nobody else is heard any more.
    fn settle(&mut self, socket: &UdpSocket) {
        if let Route::Follows(_, Some(peer)) = self.route
            && socket.connect(peer).is_ok()
        {
            self.route = Route::Fixed;
        }
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }
}

/// Whether a socket did not take a packet because others wait in it.
pub(crate) fn has_no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

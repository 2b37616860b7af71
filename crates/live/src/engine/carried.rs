//! A protocol engine whose packets travel through a socket, whatever its messages are.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_io::udp::{EcnField, ReceiveBatch, SendBatch, Wait};
use trunkline_transport::{Close, CloseReason, Endpoint, Event, Features, Message, SendError};

use super::sockets::Intake;

/// When the socket has no room, it is asked again after so long.
const RETRY: Duration = Duration::from_micros(200);
/// As many datagrams are taken from the kernel at once, so often before others have their turn.
const BATCH: usize = 16;
const BATCHES: usize = 4;
/// The largest packet of IPv4, with its header, as raw sockets receive it.
const LARGEST: usize = 65_535;
/// As many packets are handed to the kernel at once.
const BURST: usize = 32;
/// So many buffers of packets are kept for the next.
const SPARE: usize = 2 * BURST;

/// Counters by name.
pub type Counters = BTreeMap<String, u64>;

/// Memory for what sockets receive, for any number of engines of one thread.
pub fn receive_batch() -> ReceiveBatch {
    ReceiveBatch::new(BATCH, LARGEST)
}

/// A protocol engine whose packets travel through a socket. The socket does not block; it is given with every call.
///
/// Nothing happens by itself: after every input its owner calls [`transmit`](Self::transmit), and again when it is
/// [`wake`](Self::wake).
pub struct Carried {
    endpoint: Box<dyn Endpoint + Send>,
    /// The peer, as the endpoint knows it.
    peer: Address,
    route: Route,
    intake: Intake,
    ecn: EcnField,
    /// Packets that leave, now or later, in their order: paced, or waiting for room in the socket.
    held: VecDeque<Held>,
    spare: Vec<Vec<u8>>,
    /// Until when the socket is taken to have no room.
    blocked: Time,
    batch: SendBatch,
    is_connected: bool,
    closed: Option<CloseReason>,
    loss: Loss,
    counters: Own,
}

/// Where the peer is.
#[derive(Clone, Copy, Debug)]
pub enum Route {
    /// The socket is connected to it.
    Fixed,
    /// Wherever the latest packet of its host came from, until the engine has connected with it.
    Follows(IpAddr, Option<SocketAddr>),
}

/// A path that loses every so-manieth packet, for tests; 0 for none.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
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

impl Loss {
    /// Every so-manieth.
    pub fn every(every: u32) -> Loss {
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

impl Carried {
    /// An engine whose packets go through `socket`, which has its marks already.
    ///
    /// # Errors
    /// If the socket has no address.
    pub fn new(
        endpoint: Box<dyn Endpoint + Send>,
        peer: Address,
        (socket, route, intake): (&UdpSocket, Route, Intake),
        loss: Loss,
    ) -> io::Result<Carried> {
        Ok(Carried {
            peer,
            route,
            intake,
            ecn: EcnField::new(socket)?,
            held: VecDeque::new(),
            spare: Vec::new(),
            blocked: Time::ZERO,
            batch: SendBatch::with_capacity(BURST),
            is_connected: !endpoint.features().connection_oriented,
            closed: None,
            loss,
            counters: Own::default(),
            endpoint,
        })
    }

    /// What the transport promises.
    pub fn features(&self) -> &'static Features {
        self.endpoint.features()
    }

    /// Takes what has arrived at the socket, at the times of `clock`. Errors tell of packets of ours that found nobody: the
    /// engine notices by itself.
    pub fn take_arrivals(&mut self, socket: &UdpSocket, batch: &mut ReceiveBatch, clock: &impl Fn() -> Time) {
        for _ in 0..BATCHES {
            let count = batch.receive(socket, Wait::Poll).unwrap_or(0);
            let now = clock();
            for datagram in 0..count {
                let (source, ecn) = (batch.source(datagram), batch.ecn(datagram));
                self.arrived(now, source, ecn, batch.datagram(datagram));
            }
            if count < BATCH {
                break;
            }
        }
    }

    /// Takes a datagram that has arrived.
    fn arrived(&mut self, now: Time, source: Option<SocketAddr>, ecn: Ecn, datagram: &[u8]) {
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
    pub fn due(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    /// When it wants to be looked after again.
    pub fn wake(&self) -> Time {
        let held = self.held.front().map_or(Time::MAX, |held| held.at.max(self.blocked));
        self.endpoint.next_timeout().unwrap_or(Time::MAX).min(held)
    }

    /// Hands every packet that may leave to the socket.
    pub fn transmit(&mut self, now: Time, socket: &UdpSocket) {
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
    pub fn take_events(&mut self, socket: &UdpSocket) -> bool {
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

    /// Appends what has arrived, as [`Conversation::receive`](trunkline_transport::Conversation::receive) does; false if
    /// nothing has.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> bool {
        self.endpoint.receive(into).is_some()
    }

    /// The endpoint as its application sees it.
    pub(crate) fn conversation(&mut self) -> &mut (dyn Endpoint + Send) {
        self.endpoint.as_mut()
    }

    /// Hands a message to the endpoint.
    ///
    /// # Errors
    /// The endpoint's: nothing was taken then.
    pub fn send(&mut self, now: Time, message: &[u8]) -> Result<(), SendError> {
        self.endpoint.send(now, Message::new(message))
    }

    /// Ends the conversation, for which there is no more than this moment.
    pub fn close(&mut self, now: Time, socket: &UdpSocket) {
        self.endpoint.close(now, Close::Graceful);
        self.transmit(now, socket);
    }

    /// Where the peer is, with the port in the packets if the socket has none.
    pub fn peer(&self, socket: &UdpSocket) -> Option<SocketAddr> {
        let mut peer = socket.peer_addr().ok()?;
        if peer.port() == 0 {
            peer.set_port(self.peer.port);
        }
        Some(peer)
    }

    /// Whether messages can be exchanged.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Why the conversation is over, if it is.
    pub fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Adds what it has counted.
    pub fn count(&self, into: &mut Counters) {
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
fn has_no_room(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

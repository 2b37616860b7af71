//! The side that is asked for sessions.

mod known;
mod peers;
mod roles;
mod shares;
mod stop;

use core::ops::RangeInclusive;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread;

use ring::rand::{SecureRandom as _, SystemRandom};
use trunkline_core::{Bytes, Duration};
use trunkline_io::admission::{Admission, Places, Ticket};
use trunkline_io::{Interest, PollSet};
use trunkline_peer::message::{Enrolment, Purpose};
use trunkline_peer::wire::{Frame, Message as _};
use trunkline_peer::{Beginning, Fingerprint, Identity, Peer, PeerError, Refusal, RefusalKind};

use crate::choice::TransportChoice;
use crate::client::DEFAULT_PORT;
use crate::control::wire::{self, Opened, ToClient, ToServer};
use crate::control::{Channel, ended};
use crate::error::SessionError;
use crate::key::{Nonces, SharedKey};
use crate::keys::Keys;
use crate::line::{Ended, Line};
use crate::lines;
use crate::request::{Facts, Key, Request, Role};
use crate::session::{Session, Terms};
use crate::wait::Waiter;
use known::{Known, OF_CLIENT};
pub use peers::Peers;
pub(crate) use roles::echo;
pub use shares::Bounds;
use shares::{Held, Share, Shares, Source};
pub use stop::Stop;

/// How long a client may take for its first line, and until its packets arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections without a session yet. Each has a thread.
const STRANGERS: Places = Places { total: 64, of_source: 16 };

/// Interval of the check that clients with a session are still known.
const REVIEW: Duration = Duration::from_secs(2);

/// The refusal of a key that is not, or no longer, known.
const NOT_KNOWN: &str = "it does not know the key of this host; run `trunkline peer pair` or start it with `--pair` there, \
    and pair again with `--pair CODE` here";

/// The refusal of pairing where no keys are kept.
const NO_PAIRING: &str = "it keeps no keys; start it with `--pair`";

/// What clients are told then.
const STOPPED: &str = "the server is being stopped";

/// How large the packets of a source may be: smaller ones would cost more than they measure.
const SOURCE_PACKETS: RangeInclusive<u32> = 64..=60_000;

/// Where and for whom a server is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Where the control port is.
    pub address: SocketAddr,
    /// The addresses that it serves.
    pub peers: Peers,
    /// The key that a client must have, if any, unless it has paired.
    pub key: Option<SharedKey>,
    /// The keys of this host, with those of clients that it has paired with. These are served from every address.
    pub keys: Option<Keys>,
    /// The most that it gives to all clients together.
    pub all: Bounds,
    /// The most that it gives to one address, or IPv6 network of 64 bits.
    pub each: Bounds,
    /// The longest that a [`Role::Source`] sends.
    pub longest_source: Duration,
}

impl Default for ServerOptions {
    /// All addresses of the host at the default port, for [private networks](Peers::Near). 16 sessions, 100 Mbit/s for a
    /// minute and 256 MiB for all; 8 sessions, 80 Mbit/s and 128 MiB for one address.
    fn default() -> ServerOptions {
        ServerOptions {
            address: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), DEFAULT_PORT),
            peers: Peers::Near,
            key: None,
            keys: None,
            all: Bounds { sessions: 16, rate: 100_000_000, memory: Bytes(256 << 20) },
            each: Bounds { sessions: 8, rate: 80_000_000, memory: Bytes(128 << 20) },
            longest_source: Duration::from_secs(60),
        }
    }
}

/// Who a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Nothing is known but its address.
    Stranger,
    /// This host has paired with it.
    Known(Fingerprint),
}

/// What a server does with sessions that it does not serve itself.
pub trait Handler: Send + Sync {
    /// What it says of itself. The server fills in its transports and bounds.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// Whether it takes a session of [`Role::Play`]; asked before anything is opened.
    ///
    /// # Errors
    /// Why not, in a sentence for the client.
    fn admit(&self, request: &Request, from: SocketAddr) -> Result<(), String>;

    /// Plays or records until the session or the server ends, on a thread of the session's own.
    fn play(&self, session: &mut Session, stop: &Stop);

    /// A client has paired with this host, or has failed to, for this reason.
    fn paired(&self, _from: SocketAddr, _outcome: Result<&Peer, &str>) {}

    /// Stands around every session of another role, which `serve` serves until it ends: to tell of them.
    fn around(&self, session: &mut Session, serve: &mut dyn FnMut(&mut Session)) {
        serve(session);
    }
}

/// A server that plays nothing: it reflects, and takes and gives bulk.
impl Handler for () {
    fn admit(&self, _: &Request, _: SocketAddr) -> Result<(), String> {
        Err("this server does not play audio; start one with `trunkline receive`".to_owned())
    }

    fn play(&self, _: &mut Session, _: &Stop) {}
}

/// Listens on a control port and serves sessions.
pub struct Server<H = ()> {
    listener: TcpListener,
    options: ServerOptions,
    handler: H,
    transports: Vec<TransportChoice>,
    /// Connections without a session yet.
    door: Arc<Admission>,
    shares: Shares,
    known: Known,
}

impl<H: Handler> Server<H> {
    /// Opens the control port.
    ///
    /// # Errors
    /// If it cannot.
    pub fn bind(options: ServerOptions, handler: H) -> Result<Server<H>, SessionError> {
        let listener = listen(options.address).map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "the port is in use; choose another, or stop the server that uses it".to_owned()
                }
                io::ErrorKind::AddrNotAvailable => "it is not an address of this host".to_owned(),
                _ => error.to_string(),
            };
            SessionError::Listen { address: options.address, reason }
        })?;
        let transports = lines::available();
        let shares = Shares::new(options.all, options.each);
        Ok(Server {
            listener,
            options,
            handler,
            transports,
            door: Admission::new(STRANGERS),
            shares,
            known: Known::default(),
        })
    }

    /// Where the control port is.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How many sessions there are now.
    pub fn clients(&self) -> usize {
        self.shares.sessions()
    }

    /// Serves until it is stopped, and all sessions have ended.
    ///
    /// # Errors
    /// If the system cannot accept connections.
    pub fn serve(&self, stop: &Stop) -> Result<(), SessionError> {
        self.listener.set_nonblocking(true).map_err(SessionError::system("cannot set up a listener"))?;
        thread::scope(|scope| {
            let mut set = PollSet::default();
            while !stop.is_stopped() {
                let both = [(self.listener.as_fd(), Interest::Read), (stop.wakeup().as_fd(), Interest::Read)];
                let patience = if self.options.keys.is_some() { REVIEW } else { Duration::MAX };
                set.wait(both, patience).map_err(SessionError::system("cannot wait for events"))?;
                // Keys that cannot be read revoke nobody.
                self.known.cut(|key| !matches!(self.client(key), Ok(None)));
                match self.listener.accept() {
                    Ok((stream, peer)) => self.admit(scope, stream, peer, stop),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The client has gone again, or we are out of descriptors: a moment later there may be some.
                    Err(_) => trunkline_io::pace::sleep(Duration::from_millis(10)),
                }
            }
            Ok(())
        })
    }

    /// Gives a client a thread. Another one that has no session yet may lose its place to it.
    fn admit<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        stream: TcpStream,
        peer: SocketAddr,
        stop: &'scope Stop,
    ) {
        let Ok(control) = Channel::new(stream, "client", crate::now()) else { return };
        let Ok(cutter) = control.stream().try_clone() else { return };
        let ticket = self.door.enter(peer.ip(), move || {
            // One that has ended by itself need not be cut.
            let _ = cutter.shutdown(Shutdown::Both);
        });
        let work = move || self.attend(control, peer, ticket, stop);
        // Without a thread, the connection's end tells.
        let _ = thread::Builder::new().name("session".to_owned()).spawn_scoped(scope, work);
    }

    /// Serves one client from its first message to its end.
    fn attend(&self, mut control: Channel, peer: SocketAddr, ticket: Ticket, stop: &Stop) {
        let client = match self.greet(&mut control, peer, stop) {
            Ok(Some(client)) => client,
            Ok(None) => return,
            Err(refusal) => return refuse(&mut control, refusal),
        };
        let (_entered, ticket) = match client {
            Client::Stranger => (None, Some(ticket)),
            Client::Known(key) => {
                ticket.known();
                let Some(entered) = self.known.enter(key, control.stream()) else {
                    let why =
                        format!("one client may have {OF_CLIENT} connections at once; end another one first");
                    return refuse(&mut control, Refusal::new(RefusalKind::Limit, why));
                };
                (Some(entered), None)
            }
        };
        let opened = self.open(&mut control, client, peer, stop);
        let (line, terms, mut share) = match opened {
            Ok(opened) => opened,
            Err(why) => return refuse(&mut control, Refusal::new(RefusalKind::Other, why)),
        };
        let mut session = Session::server(line, control, terms);
        if let Err(ended) = await_greeting(&mut session, stop) {
            return session.end(crate::now(), &ended);
        }
        if let Some(ticket) = ticket {
            ticket.known();
        }
        let handler = &self.handler;
        match session.request().role {
            Role::Echo => handler.around(&mut session, &mut |session| roles::echo(session, stop)),
            Role::Sink => handler.around(&mut session, &mut |session| roles::sink(session, stop)),
            Role::Source { rate, packet, lasting } => handler.around(&mut session, &mut |session| {
                let plan = roles::Plan { rate, packet: packet as usize, lasting };
                roles::source(session, plan, stop);
                // A client that stays on keeps no rate from others.
                share.release_rate();
                roles::sink(session, stop);
            }),
            Role::Play => handler.play(&mut session, stop),
        }
        if stop.is_stopped() {
            session.end(crate::now(), &Ended(STOPPED.to_owned()));
        }
    }

    /// Finds out who a client is, and pairs with it if that is what it wants; then `None`.
    fn greet(&self, control: &mut Channel, peer: SocketAddr, stop: &Stop) -> Result<Option<Client>, Refusal> {
        let deadline = crate::now() + PATIENCE;
        let began = control.wait_until(deadline, Some(stop), |control, _| control.frames().beginning());
        match began.map_err(other)? {
            Some(Beginning::Tls) => {
                let identity = self.identity().map_err(|error| self.unable(peer, &error))?;
                control.frames().secure(&identity).map_err(other)?;
            }
            Some(Beginning::Frame) => {}
            Some(Beginning::Line) => {
                // A connection that is closed with bytes unread may lose what was sent.
                let _ = control.stream().read(&mut [0; wire::LARGEST]);
                // Who does not read it sees the end of the connection.
                let _ = control.frames().send_bytes(&wire::too_old());
                return Ok(None);
            }
            None if stop.is_stopped() => return Err(Refusal::new(RefusalKind::Stopping, STOPPED)),
            None => return Err(late("greeting")),
        }
        let hello = match control.wait(deadline, Some(stop)).map_err(other)? {
            Some(frame) => control.frames().hello(frame).map_err(other)?,
            None if stop.is_stopped() => return Err(Refusal::new(RefusalKind::Stopping, STOPPED)),
            None => return Err(late("greeting")),
        };
        let key = control.frames().peer_fingerprint();
        match (hello.purpose, key) {
            (Purpose::Session, None) => {
                if !self.options.peers.include(peer.ip()) {
                    let why = peers::refusal(&self.options.peers, peer);
                    return Err(Refusal::new(RefusalKind::Permission, why));
                }
                Ok(Some(Client::Stranger))
            }
            (Purpose::Session, Some(key)) => {
                match self.client(&key).map_err(|error| self.unable(peer, &error))? {
                    Some(_) => Ok(Some(Client::Known(key))),
                    None => Err(Refusal::new(RefusalKind::NotEnrolled, NOT_KNOWN)),
                }
            }
            (Purpose::Pair, Some(key)) => {
                self.pair(control, key, peer, stop)?;
                Ok(None)
            }
            (Purpose::Pair, None) => Err(Refusal::new(RefusalKind::Other, "pairing needs TLS")),
            (Purpose::Control | Purpose::Join { .. } | Purpose::FarEnd, _) => {
                let why = "this is a server of `trunkline reflect` or `trunkline receive`, not an agent";
                Err(Refusal::new(RefusalKind::Other, why))
            }
        }
    }

    /// Judges a client that wants to pair, and tells it and the handler the outcome.
    fn pair(
        &self,
        control: &mut Channel,
        key: Fingerprint,
        peer: SocketAddr,
        stop: &Stop,
    ) -> Result<(), Refusal> {
        let Some(keys) = &self.options.keys else {
            return Err(Refusal::new(RefusalKind::NoCode, NO_PAIRING));
        };
        control.frames().welcome(keys.name()).map_err(other)?;
        let Some(frame) = control.wait(crate::now() + PATIENCE, Some(stop)).map_err(other)? else {
            return Err(late("pairing code"));
        };
        let request =
            Enrolment::from_frame(frame).map_err(|error| other(control.frames().not_understood(&error)))?;
        let paired = keys.pairing().and_then(|pairing| {
            pairing.admit_on(control.frames(), request, key, &keys.clients()?, jiff::Timestamp::now())
        });
        match paired {
            Ok(client) => self.handler.paired(peer, Ok(&client)),
            Err(PeerError::Refused { refusal, .. }) => self.handler.paired(peer, Err(&refusal.why)),
            Err(error) => self.handler.paired(peer, Err(&error.to_string())),
        }
        Ok(())
    }

    /// The key of this host; a new one for each connection if it has paired with nobody.
    fn identity(&self) -> Result<Identity, PeerError> {
        match &self.options.keys {
            Some(keys) if keys.exist() => keys.identity(),
            _ => Identity::generate(),
        }
    }

    /// The client with this key, if this host has paired with it.
    fn client(&self, key: &Fingerprint) -> Result<Option<Peer>, PeerError> {
        self.options.keys.as_ref().map_or(Ok(None), |keys| keys.client(key))
    }

    /// The keys cannot be read: the reason is for the owner only.
    fn unable(&self, peer: SocketAddr, error: &PeerError) -> Refusal {
        self.handler.paired(peer, Err(&error.to_string()));
        Refusal::new(RefusalKind::Environment, "the server cannot read its keys; its terminal says why")
    }

    /// Hears what a client wants, and opens its line; or says why not.
    fn open(
        &self,
        control: &mut Channel,
        client: Client,
        peer: SocketAddr,
        stop: &Stop,
    ) -> Result<(Box<dyn Line>, Terms, Share<'_>), String> {
        let name = self.options.keys.as_ref().map_or("", Keys::name);
        control.frames().welcome(name).map_err(|error| error.to_string())?;
        let open = match control.wait(crate::now() + PATIENCE, Some(stop)) {
            Ok(Some(frame)) => frame,
            Ok(None) if stop.is_stopped() => return Err(STOPPED.to_owned()),
            Ok(None) => return Err(format!("no request for a session arrived within {PATIENCE}")),
            Err(error) => return Err(ended(error).0),
        };
        let request = match ToServer::from_frame(open.clone()) {
            Ok(ToServer::Open { request }) => *request,
            Ok(_) => return Err("a session must start with `open`".to_owned()),
            Err(error) => {
                return Err(format!(
                    "the client sent a message that this version does not understand: {error}"
                ));
            }
        };
        let shared = self.options.key.filter(|_| client == Client::Stranger);
        let proved = shared.map(|key| prove(control, &key, &open, stop)).transpose()?;
        self.check(&request, peer)?;
        let share = self.share(&request, client, peer)?;
        let local = control.stream().local_addr().map_err(|error| error.to_string())?.ip().to_canonical();
        let (key, seed) = (Key(u64::from_be_bytes(random()?)), u64::from_be_bytes(random()?));
        let line_terms = lines::Terms { request: &request, key, seed };
        let (line, port) = lines::far(&line_terms, local, peer.ip().to_canonical())
            .map_err(|why| format!("transport `{}` cannot be set up: {why}", request.transport))?;
        let (most_rate, longest_source) = (self.most_rate(), self.options.longest_source);
        let transports = self.transports.clone();
        let facts = Facts { transports, most_rate, longest_source, ..self.handler.facts() };
        let proof = proved
            .zip(shared)
            .map(|(nonces, shared)| shared.server_proof(&nonces, &Opened::proved(key, port, seed)));
        let opened = Opened { key, port, seed, facts: facts.clone(), proof };
        control.say(&ToClient::Opened(Box::new(opened))).map_err(|Ended(why)| why)?;
        Ok((line, Terms { request, facts, key, peer }, share))
    }

    /// The most that a source may ask for.
    fn most_rate(&self) -> u64 {
        self.options.all.rate.min(self.options.each.rate)
    }

    /// Reserves what a session needs.
    fn share(&self, request: &Request, client: Client, peer: SocketAddr) -> Result<Share<'_>, String> {
        let source = match client {
            Client::Stranger => Source::stranger(peer.ip()),
            Client::Known(key) => Source::Key(key),
        };
        let rate = if let Role::Source { rate, .. } = request.role { rate } else { 0 };
        let memory = request.transport.transport().buffers().count();
        self.shares.reserve(source, Held { sessions: 1, rate, memory })
    }

    /// Whether this is within the server's bounds.
    fn check(&self, request: &Request, peer: SocketAddr) -> Result<(), String> {
        let (most_rate, longest_source) = (self.most_rate(), self.options.longest_source);
        let (buffers, most) = (request.transport.transport().buffers(), Bytes(lines::MOST_BUFFER as u64));
        if buffers > most {
            return Err(format!(
                "transport `{}` needs {buffers} of buffers, but a client may request at most {most}; make its \
                window or send buffer smaller",
                request.transport
            ));
        }
        match request.role {
            Role::Play => self.handler.admit(request, peer),
            Role::Source { rate, .. } if rate == 0 || rate > most_rate => {
                Err(format!("it sends from 1 to {most_rate} bit/s, not {rate}"))
            }
            Role::Source { lasting, .. } if lasting > longest_source => {
                Err(format!("it sends for at most {longest_source}, not {lasting}"))
            }
            Role::Source { packet, .. } if !SOURCE_PACKETS.contains(&packet) => {
                let (least, most) = (SOURCE_PACKETS.start(), SOURCE_PACKETS.end());
                Err(format!("it sends packets of {least} to {most} bytes, not of {packet}"))
            }
            Role::Echo | Role::Sink | Role::Source { .. } => Ok(()),
        }
    }
}

/// Waits for the first packet with the key.
fn await_greeting(session: &mut Session, stop: &Stop) -> Result<(), Ended> {
    let deadline = crate::now() + PATIENCE;
    let mut waiter = Waiter::default();
    while !session.is_open() {
        waiter.wait(session, Some(stop.wakeup()), deadline);
        if stop.is_stopped() {
            return Err(Ended(STOPPED.to_owned()));
        }
        if crate::now() >= deadline {
            return Err(Ended(format!("no packet with the key arrived within {PATIENCE}")));
        }
        let opened = session.open(crate::now());
        // One that ends in the moment in which it begins has begun.
        if !session.is_open() {
            opened?;
        }
    }
    Ok(())
}

fn refuse(control: &mut Channel, refusal: Refusal) {
    // Who does not hear it sees the end of the connection.
    let _ = control.say(&ToClient::Refused { refusal });
}

/// A refusal of what a client has sent.
fn other(error: PeerError) -> Refusal {
    Refusal::new(RefusalKind::Other, error.to_string())
}

fn late(what: &str) -> Refusal {
    Refusal::new(RefusalKind::Other, format!("no {what} arrived within {PATIENCE}"))
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system provides no random numbers".to_owned())?;
    Ok(bytes)
}

/// Requires a proof that a client with this first line has the key.
fn prove(control: &mut Channel, key: &SharedKey, open: &Frame, stop: &Stop) -> Result<Nonces, String> {
    let server = random()?;
    control.say(&ToClient::Challenge { nonce: server }).map_err(|Ended(why)| why)?;
    match control.wait(crate::now() + PATIENCE, Some(stop)) {
        Ok(Some(frame)) => {
            let Ok(ToServer::Proof { nonce: client, proof }) = ToServer::from_frame(frame) else {
                return Err("a `challenge` is answered with a `proof`".to_owned());
            };
            let nonces = Nonces { server, client };
            match key.accepts_client(&nonces, &open.body, &proof) {
                true => Ok(nonces),
                false => Err("the key is not that of this server; use a copy of its `--key-file`".to_owned()),
            }
        }
        Ok(None) if stop.is_stopped() => Err(STOPPED.to_owned()),
        Ok(None) => Err(format!("no `proof` arrived within {PATIENCE}")),
        Err(error) => Err(ended(error).0),
    }
}

/// On every address means on those of IPv4 too, where the system lets one socket have both.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(error)
            if address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED)
                && error.kind() != io::ErrorKind::AddrInUse =>
        {
            // A host without IPv6.
            TcpListener::bind(SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), address.port()))
        }
        result => result,
    }
}

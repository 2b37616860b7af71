//! The side that is asked for sessions.

mod roles;
mod stop;

use core::ops::RangeInclusive;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use ring::rand::{SecureRandom as _, SystemRandom};
use trunkline_core::{Bytes, Duration};
use trunkline_io::{Interest, PollSet};
use trunkline_metrics::clocks::Turning;

use crate::choice::TransportChoice;
use crate::client::DEFAULT_PORT;
use crate::control::Channel;
use crate::control::wire::{self, ToClient, ToServer, VERSION, Welcome};
use crate::error::SessionError;
use crate::line::{Ended, Line};
use crate::lines;
use crate::request::{Facts, Key, Request, Role};
use crate::session::{Session, Terms};
use crate::wait::Waiter;
pub(crate) use roles::echo;
pub use stop::Stop;

/// How long a client may take for its first line, and until its packets arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// What clients are told then.
const STOPPED: &str = "the server is being stopped";

/// How large the packets of a source may be: smaller ones would cost more than they measure.
const SOURCE_PACKETS: RangeInclusive<u32> = 64..=60_000;

/// Where and for whom a server is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Where the control port is.
    pub address: SocketAddr,
    /// So many sessions at once.
    pub most_clients: usize,
    /// The most that is sent to all clients together that ask for bulk, in bits per second.
    pub most_rate: u64,
    /// And for how long at a time.
    pub longest_source: Duration,
}

impl Default for ServerOptions {
    /// All addresses of the host at the default port; 16 sessions; 100 Mbit/s for a minute.
    fn default() -> ServerOptions {
        ServerOptions {
            address: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), DEFAULT_PORT),
            most_clients: 16,
            most_rate: 100_000_000,
            longest_source: Duration::from_secs(60),
        }
    }
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
    clients: AtomicUsize,
    /// Bits per second that sources have been granted.
    granted: Mutex<u64>,
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
        Ok(Server {
            listener,
            options,
            handler,
            transports,
            clients: AtomicUsize::new(0),
            granted: Mutex::default(),
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
        self.clients.load(Ordering::Relaxed)
    }

    /// Serves until it is stopped, and all sessions have ended.
    ///
    /// # Errors
    /// If the system cannot accept connections.
    pub fn serve(&self, stop: &Stop) -> Result<(), SessionError> {
        self.listener.set_nonblocking(true).map_err(SessionError::system("a listener cannot be set up"))?;
        thread::scope(|scope| {
            let mut set = PollSet::default();
            while !stop.is_stopped() {
                let both = [(self.listener.as_fd(), Interest::Read), (stop.wakeup().as_fd(), Interest::Read)];
                set.wait(both, Duration::MAX).map_err(SessionError::system("the system cannot wait"))?;
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

    /// Gives a client a thread, if it may have one.
    fn admit<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        stream: TcpStream,
        peer: SocketAddr,
        stop: &'scope Stop,
    ) {
        let Ok(mut control) = Channel::new(stream, "client", crate::now()) else { return };
        if self.clients.fetch_add(1, Ordering::Relaxed) >= self.options.most_clients {
            self.clients.fetch_sub(1, Ordering::Relaxed);
            return refuse(&mut control, "it has reached its maximum number of clients; try again later");
        }
        let guard = Leaving(&self.clients);
        let work = move || {
            let _guard = guard;
            self.attend(control, peer, stop);
        };
        // Without a thread, the connection's end tells.
        let _ = thread::Builder::new().name("session".to_owned()).spawn_scoped(scope, work);
    }

    /// Serves one client from its first line to its end.
    fn attend(&self, mut control: Channel, peer: SocketAddr, stop: &Stop) {
        let opened = self.welcome(&mut control, peer, stop);
        let (line, terms, mut granted) = match opened {
            Ok(opened) => opened,
            Err(why) => return refuse(&mut control, &why),
        };
        let mut session = Session::server(line, control, terms);
        if let Err(ended) = await_greeting(&mut session, stop) {
            return session.end(crate::now(), &ended);
        }
        let handler = &self.handler;
        match session.request().role {
            Role::Echo => handler.around(&mut session, &mut |session| roles::echo(session, stop)),
            Role::Sink => handler.around(&mut session, &mut |session| roles::sink(session, stop)),
            Role::Source { rate, packet, lasting } => handler.around(&mut session, &mut |session| {
                let plan = roles::Plan { rate, packet: packet as usize, lasting };
                roles::source(session, plan, stop);
                // A client that stays on keeps no rate from others.
                granted.release();
                roles::sink(session, stop);
            }),
            Role::Play => handler.play(&mut session, stop),
        }
        if stop.is_stopped() {
            session.end(crate::now(), &Ended(STOPPED.to_owned()));
        }
    }

    /// Hears what a client wants, and opens its line; or says why not.
    fn welcome(
        &self,
        control: &mut Channel,
        peer: SocketAddr,
        stop: &Stop,
    ) -> Result<(Box<dyn Line>, Terms, Granted<'_>), String> {
        let read = |line: &[u8]| match wire::version_of(line) {
            Some(VERSION) => wire::read::<ToServer>(line),
            Some(other) => {
                Err(format!("version {other} of the control protocol; this server speaks version {VERSION}"))
            }
            None => Err("no version of the control protocol".to_owned()),
        };
        let request = match control.wait(crate::now() + PATIENCE, Some(stop), read) {
            Ok(Some(ToServer::Hello(hello))) => hello.request,
            Ok(Some(_)) => return Err("a session must start with `hello`".to_owned()),
            Ok(None) if stop.is_stopped() => return Err(STOPPED.to_owned()),
            Ok(None) => return Err(format!("no `hello` arrived within {PATIENCE}")),
            Err(Ended(why)) => return Err(why),
        };
        self.check(&request, peer)?;
        let granted = self.grant(&request)?;
        let local = control.stream().local_addr().map_err(|error| error.to_string())?.ip().to_canonical();
        let (key, seed) = (Key(random()?), random()?);
        let line_terms = lines::Terms { request: &request, key, seed };
        let (line, port) = lines::far(&line_terms, local, peer.ip().to_canonical())
            .map_err(|why| format!("transport `{}` cannot be set up: {why}", request.transport))?;
        let ServerOptions { most_rate, longest_source, .. } = self.options;
        let transports = self.transports.clone();
        let facts = Facts { transports, most_rate, longest_source, ..self.handler.facts() };
        let clock = Turning::of(trunkline_io::clock::IS_FREE);
        let welcome = Welcome { key, port, seed, facts: facts.clone(), clock };
        control.say(&ToClient::Welcome(Box::new(welcome))).map_err(|Ended(why)| why)?;
        Ok((line, Terms { request, facts, key, peer }, granted))
    }

    /// Reserves the rate of a source, which all sources share.
    fn grant(&self, request: &Request) -> Result<Granted<'_>, String> {
        let rate = if let Role::Source { rate, .. } = request.role { rate } else { 0 };
        let most = self.options.most_rate;
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let left = most.saturating_sub(*granted);
        if rate > left {
            return Err(format!(
                "it sends at most {most} bit/s to all clients together, of which {granted} bit/s are in use; \
                request at most {left} bit/s, or try again later"
            ));
        }
        *granted += rate;
        Ok(Granted { granted: &self.granted, rate })
    }

    /// Whether this is within the server's bounds.
    fn check(&self, request: &Request, peer: SocketAddr) -> Result<(), String> {
        let ServerOptions { most_rate, longest_source, .. } = self.options;
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

/// The rate that a source has been granted, until it has sent everything.
struct Granted<'s> {
    granted: &'s Mutex<u64>,
    rate: u64,
}

impl Granted<'_> {
    fn release(&mut self) {
        *self.granted.lock().unwrap_or_else(PoisonError::into_inner) -= core::mem::take(&mut self.rate);
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Counts a client out, also when its thread panics.
struct Leaving<'c>(&'c AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

fn refuse(control: &mut Channel, why: &str) {
    // Who does not hear it sees the end of the connection.
    let _ = control.say(&ToClient::Refuse { version: VERSION, why: why.to_owned() });
}

fn random() -> Result<u64, String> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system provides no random numbers".to_owned())?;
    Ok(u64::from_be_bytes(bytes))
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

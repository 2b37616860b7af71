//! The side that asks for a session.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};

use trunkline_core::{Duration, Time};
use trunkline_peer::message::Purpose;
use trunkline_peer::wire::Message as _;
use trunkline_peer::{Beginning, PeerError};

use crate::control::wire::{Opened, ToClient, ToServer};
use crate::control::{Channel, ended};
use crate::error::SessionError;
use crate::key::{Nonces, SharedKey};
use crate::keys::{Keys, SESSIONS};
use crate::line::Ended;
use crate::lines;
use crate::request::Request;
use crate::server::random;
use crate::session::{Session, Terms};
use crate::wait::Waiter;

/// The TCP port at which servers listen.
pub const DEFAULT_PORT: u16 = 4780;

/// Interval of greetings until the server has received one.
const GREET: Duration = Duration::from_millis(50);

/// Opens sessions.
#[derive(Clone, Debug)]
pub struct Client {
    /// Timeout of each step.
    pub patience: Duration,
    /// The key that the server has too, if it asks for one.
    pub key: Option<SharedKey>,
    /// The keys of this host, with those of servers that it has paired with.
    pub keys: Option<Keys>,
}

impl Default for Client {
    fn default() -> Client {
        Client { patience: Duration::from_secs(5), key: None, keys: None }
    }
}

impl Client {
    /// Opens a session with a server: `HOST`, `HOST:PORT`, an address or `[ADDRESS]:PORT`, or the name of a server that this
    /// host has paired with. When it returns, packets over the transport have reached the server.
    ///
    /// A server that this host has paired with must hold its key. The control connection is then encrypted, and the server
    /// knows this host.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect(&self, server: &str, request: Request) -> Result<Session, SessionError> {
        let known = match &self.keys {
            Some(keys) => keys.server(server).map_err(SessionError::Keys)?.map(|peer| (keys, peer)),
            None => None,
        };
        let (stream, address) = match &known {
            Some((_, peer)) => self.reach(peer.address.as_deref().unwrap_or(server))?,
            None => self.reach(server)?,
        };
        let mut control = Channel::new(stream, "server", crate::now())
            .map_err(SessionError::system("cannot set up a connection"))?;
        if let Some((keys, peer)) = &known {
            let identity = keys.identity().map_err(SessionError::Keys)?;
            let pinned = control.frames().pin(&SESSIONS, server, &identity, peer.fingerprint);
            pinned.map_err(|error| failed(error, address))?;
        }
        let opened = self.open(&mut control, &request, known.is_some(), address)?;
        let Opened { key, port, seed, facts, .. } = opened;
        let local = control.stream().local_addr().map_err(SessionError::system("a socket has no address"))?;
        let mut data = address;
        data.set_port(port);
        let line = {
            let terms = lines::Terms { request: &request, key, seed };
            let refused =
                |reason| SessionError::Transport { transport: request.transport.to_string(), reason };
            lines::near(&terms, (local.ip(), data), self.patience).map_err(refused)?
        };
        let session = Session::client(line, control, Terms { request, facts, key, peer: address });
        self.greet(session, data)
    }

    /// Greets the server and agrees on the terms of a session.
    fn open(
        &self,
        control: &mut Channel,
        request: &Request,
        is_known: bool,
        address: SocketAddr,
    ) -> Result<Opened, SessionError> {
        let strange = |reason: String| SessionError::Protocol { address, reason };
        let failed = |error| failed(error, address);
        let gone = |Ended(why): Ended| SessionError::Ended { address, why };
        let refused = |why: String| SessionError::Refused { address, why };
        let silent = || SessionError::Silent { address, patience: self.patience };
        control.frames().greet(Purpose::Session).map_err(failed)?;
        let open = ToServer::Open { request: Box::new(request.clone()) };
        let open = open.to_frame().map_err(|error| strange(error.to_string()))?;
        control.frames().send_frame(&open).map_err(failed)?;
        // Every server answers; one of the protocol before frames answers with a line.
        let deadline = crate::now() + self.patience;
        let began = if is_known {
            Some(Beginning::Tls)
        } else {
            control.wait_until(deadline, None, |control, _| control.frames().beginning()).map_err(failed)?
        };
        if began == Some(Beginning::Line) {
            return Err(SessionError::TooOld { address });
        }
        let first = control.wait(deadline, None).map_err(failed)?.ok_or_else(silent)?;
        control.frames().welcomed(first).map_err(failed)?;

        let next = |control: &mut Channel| -> Result<ToClient, SessionError> {
            let frame =
                control.wait(crate::now() + self.patience, None).map_err(failed)?.ok_or_else(silent)?;
            ToClient::from_frame(frame).map_err(|error| {
                strange(format!("it sent a message that this version does not understand: {error}"))
            })
        };
        let mut said = next(control)?;
        let mut proved = None;
        if let ToClient::Challenge { nonce: server } = said {
            let Some(key) = self.key else {
                let why =
                    "it serves only holders of its key; name a copy of its key's file with `--key-file`";
                return Err(refused(why.to_owned()));
            };
            let nonces = Nonces { server, client: random().map_err(strange)? };
            let proof = key.client_proof(&nonces, &open.body);
            control.say(&ToServer::Proof { nonce: nonces.client, proof }).map_err(gone)?;
            proved = Some((key, nonces));
            said = next(control)?;
        }
        let opened = match said {
            ToClient::Opened(opened) => *opened,
            ToClient::Refused { refusal } => return Err(refused(refusal.why)),
            _ => return Err(strange("it does not begin with the parameters of a session".to_owned())),
        };
        let is_proved = proved.zip(opened.proof).is_some_and(|((shared, nonces), proof)| {
            shared.accepts_server(&nonces, &Opened::proved(opened.key, opened.port, opened.seed), &proof)
        });
        // Its own key says more than one that several hosts have.
        if self.key.is_some() && !is_proved && !is_known {
            let why = "it does not prove that it has the key of `--key-file`; does it use `--key-file`, with the \
                       same key?";
            return Err(refused(why.to_owned()));
        }
        Ok(opened)
    }

    /// Resolves the name and connects to the first address that answers.
    fn reach(&self, server: &str) -> Result<(TcpStream, SocketAddr), SessionError> {
        let name = |reason: String| SessionError::Name { name: server.to_owned(), reason };
        let addresses = match (server.parse::<core::net::IpAddr>(), server.contains(':')) {
            (Ok(address), _) => Ok(vec![SocketAddr::new(address, DEFAULT_PORT)]),
            (Err(_), true) => server.to_socket_addrs().map(Vec::from_iter),
            (Err(_), false) => (server, DEFAULT_PORT).to_socket_addrs().map(Vec::from_iter),
        };
        let addresses = addresses.map_err(|error| name(error.to_string()))?;
        let mut failed = name("it has no address".to_owned());
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.patience.to_std()) {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => failed = SessionError::Unreachable { address, error },
            }
        }
        Err(failed)
    }

    /// Sends greetings until the server has heard one.
    fn greet(&self, mut session: Session, data: SocketAddr) -> Result<Session, SessionError> {
        let deadline = crate::now() + self.patience;
        let mut next = Time::ZERO;
        let mut waiter = Waiter::default();
        while !session.is_open() {
            let now = crate::now();
            if now >= deadline {
                let transport = session.request().transport.to_string();
                return Err(SessionError::NotHeard { transport, address: data, patience: self.patience });
            }
            if now >= next {
                session.greet(now);
                next = now + GREET;
            }
            let address = session.peer();
            session.open(crate::now()).map_err(|Ended(why)| SessionError::Ended { address, why })?;
            if !session.is_open() {
                waiter.wait(&session, None, next.min(deadline));
            }
        }
        Ok(session)
    }
}

/// Why there is no session, of what went wrong on the control connection.
fn failed(error: PeerError, address: SocketAddr) -> SessionError {
    match error {
        PeerError::Refused { refusal, .. } => SessionError::Refused { address, why: refusal.why },
        PeerError::Protocol { reason, .. } => SessionError::Protocol { address, reason },
        error @ (PeerError::WrongKey { .. } | PeerError::NotSpoken { .. } | PeerError::Version { .. }) => {
            SessionError::Keys(error)
        }
        error => SessionError::Ended { address, why: ended(error).0 },
    }
}

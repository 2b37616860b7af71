//! The side that asks for a session.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};

use trunkline_core::{Duration, Time};

use crate::control::Channel;
use crate::control::wire::{self, Hello, ToClient, ToServer, VERSION, Welcome};
use crate::error::SessionError;
use crate::key::{Nonces, SharedKey};
use crate::line::Ended;
use crate::lines;
use crate::request::Request;
use crate::server::random;
use crate::session::{Session, Terms};
use crate::wait::Waiter;

/// The TCP port at which servers listen.
pub const DEFAULT_PORT: u16 = 4780;

/// How often a client greets until it is heard.
const GREET: Duration = Duration::from_millis(50);

/// Opens sessions.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// How long it waits for each step.
    pub patience: Duration,
    /// The key that the server has too, if it asks for one.
    pub key: Option<SharedKey>,
}

impl Default for Client {
    fn default() -> Client {
        Client { patience: Duration::from_secs(5), key: None }
    }
}

impl Client {
    /// Opens a session with a server: `HOST`, `HOST:PORT`, an address or `[ADDRESS]:PORT`. When it returns, packets over the
    /// transport have reached the server.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect(&self, server: &str, request: Request) -> Result<Session, SessionError> {
        let (stream, address) = self.reach(server)?;
        let gone = |Ended(why): Ended| SessionError::Ended { address, why };
        let strange = |reason: String| SessionError::Protocol { address, reason };
        let mut control = Channel::new(stream, "server", crate::now())
            .map_err(SessionError::system("a connection cannot be set up"))?;
        let hello = ToServer::Hello(Box::new(Hello { version: VERSION, request: request.clone() }));
        control.say(&hello).map_err(gone)?;
        let read = |line: &[u8]| Ok(wire::read(line));
        let mut said = control.wait(crate::now() + self.patience, None, read).map_err(gone)?;
        let mut proved = None;
        if let Some(Ok(ToClient::Challenge { nonce: server })) = said {
            let Some(key) = self.key else {
                let why =
                    "it serves only holders of its key; name a copy of its key's file with `--key-file`";
                return Err(SessionError::Refused { address, why: why.to_owned() });
            };
            let nonces = Nonces { server, client: random().map_err(strange)? };
            let proof = key.client_proof(&nonces, &wire::line(&hello));
            control.say(&ToServer::Proof { nonce: nonces.client, proof }).map_err(gone)?;
            proved = Some((key, nonces));
            said = control.wait(crate::now() + self.patience, None, read).map_err(gone)?;
        }
        let Welcome { key, port, seed, facts, clock, proof } = match said {
            Some(Ok(ToClient::Welcome(welcome))) => *welcome,
            Some(Ok(ToClient::Refuse { why, .. })) => return Err(SessionError::Refused { address, why }),
            Some(Ok(_)) => return Err(strange("it does not begin with a welcome".to_owned())),
            Some(Err(error)) => {
                return Err(strange(format!(
                    "it sent a message that this version does not understand: {error}"
                )));
            }
            None => return Err(SessionError::Silent { address, patience: self.patience }),
        };
        let is_proved = proved.zip(proof).is_some_and(|((shared, nonces), proof)| {
            shared.accepts_server(&nonces, &Welcome::proved(key, port, seed), &proof)
        });
        if self.key.is_some() && !is_proved {
            let why = "it does not prove that it has the key of `--key-file`; is the key its own, and does it use one?";
            return Err(SessionError::Refused { address, why: why.to_owned() });
        }
        let local = control.stream().local_addr().map_err(SessionError::system("a socket has no address"))?;
        let mut data = address;
        data.set_port(port);
        let line = {
            let terms = lines::Terms { request: &request, key, seed };
            let refused =
                |reason| SessionError::Transport { transport: request.transport.to_string(), reason };
            lines::near(&terms, (local.ip(), data), self.patience).map_err(refused)?
        };
        let session = Session::client(line, control, Terms { request, facts, key, peer: address }, clock);
        self.greet(session, data)
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

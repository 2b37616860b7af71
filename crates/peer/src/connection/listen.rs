//! The listening end.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::poll::PollFlags;
use rustls::ServerConfig;
use trunkline_core::Duration;

use super::Connection;
use super::handshake;
use super::shared::{Pulse, is_later, wait_for};
use crate::error::PeerError;
use crate::identity::Identity;
use crate::tls;
use crate::wire::STRANGER_FRAME;

/// Hears who connects. Anybody may who holds a key; the caller judges by [`Connection::peer_fingerprint`].
#[derive(Debug)]
pub struct Listener {
    /// In non-blocking mode.
    socket: TcpListener,
    config: Arc<ServerConfig>,
    pulse: Pulse,
    local: SocketAddr,
}

/// Somebody who has connected, and about whom nothing is known but the address.
#[derive(Debug)]
pub struct Incoming {
    socket: TcpStream,
    peer: SocketAddr,
    config: Arc<ServerConfig>,
    pulse: Pulse,
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// If the address is none of this host's, or somebody else has the port.
    pub fn bind(address: impl ToSocketAddrs + ToString, identity: &Identity) -> Result<Listener, PeerError> {
        let failed = |error| PeerError::Listen { address: address.to_string(), error };
        Listener::on(TcpListener::bind(&address).map_err(failed)?, identity)
    }

    /// Listens on a socket that was bound before.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn on(socket: TcpListener, identity: &Identity) -> Result<Listener, PeerError> {
        let failed = |error| PeerError::System { what: "cannot set up a socket", error };
        socket.set_nonblocking(true).map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        let config = Arc::new(tls::server(identity)?);
        Ok(Listener { socket, config, pulse: Pulse::default(), local })
    }

    /// Its connections have another pulse than the usual one.
    #[must_use]
    pub fn with_pulse(self, pulse: Pulse) -> Listener {
        Listener { pulse, ..self }
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The next who connects; `None` if nobody does within so long. Never waits for somebody who has connected: that is
    /// [`Incoming::handshake`]'s, for a thread of its own.
    ///
    /// # Errors
    /// If the system has no socket left, or the listener is broken. Rest a little before trying again.
    pub fn accept_within(&self, patience: Duration) -> Result<Option<Incoming>, PeerError> {
        let failed = |error| PeerError::System { what: "cannot accept connections", error };
        let began = Instant::now();
        loop {
            match self.socket.accept() {
                Ok((socket, peer)) => {
                    let config = Arc::clone(&self.config);
                    return Ok(Some(Incoming { socket, peer, config, pulse: self.pulse }));
                }
                Err(error) if is_later(&error) => {}
                // They have changed their mind.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(failed(error)),
            }
            let left = patience - began.elapsed().into();
            if left.is_zero() {
                return Ok(None);
            }
            wait_for(&self.socket, PollFlags::POLLIN, left).map_err(failed)?;
        }
    }

    /// The next who connects.
    ///
    /// # Errors
    /// As [`accept_within`](Listener::accept_within).
    pub fn accept(&self) -> Result<Incoming, PeerError> {
        loop {
            if let Some(incoming) = self.accept_within(Duration::from_secs(60))? {
                return Ok(incoming);
            }
        }
    }
}

/// To wait for connections beside other things.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// To wait for the first bytes beside other things.
impl AsFd for Incoming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Incoming {
    /// From where.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// What ends it from another thread, whatever it is waiting for.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn cutter(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let socket = self.socket.try_clone()?;
        // Fails only where there is no connection any more.
        Ok(move || _ = socket.shutdown(Shutdown::Both))
    }

    /// Exchanges keys. Only small frames are accepted until the caller [trusts](Connection::trust) the other end.
    ///
    /// # Errors
    /// If the other end does not finish in time, speaks something else, or cannot show that its key is its own.
    pub fn handshake(self, patience: Duration) -> Result<Connection, PeerError> {
        let shared = handshake::answer(self.socket, self.peer, self.config, patience, self.pulse)?;
        Connection::new(shared, STRANGER_FRAME)
    }
}

//! Sockets of other programs' conversations.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use ring::rand::{SecureRandom as _, SystemRandom};
use trunkline_core::Time;
use trunkline_io::Interest;
use trunkline_io::udp::{ReceiveBatch, SocketOptions, Wait};
use trunkline_transport::udp::MAX_MESSAGE;
use trunkline_transport::{Features, features};

use super::ForeignError;
use crate::line::Ended;
use crate::line::queued::{Carrier, Offer};
use crate::settings::Settings;

/// As many datagrams are taken from the kernel at once, so often before others have their turn.
const BATCH: usize = 32;
const BATCHES: usize = 4;

/// Hears what comes to a socket, and sends nothing.
pub(super) struct Listener {
    socket: UdpSocket,
    /// Who is heard; everybody if there are none.
    sources: Vec<IpAddr>,
    received: ReceiveBatch,
}

impl Listener {
    pub(super) fn new(socket: UdpSocket, sources: Vec<IpAddr>) -> Listener {
        Listener { socket, sources, received: ReceiveBatch::new(BATCH, MAX_MESSAGE) }
    }
}

impl Carrier for Listener {
    fn descriptors<'l>(&'l self, _: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        add(self.socket.as_fd(), Interest::Read);
    }

    fn offer(&mut self, _: Time, _: &[u8]) -> Offer {
        Offer::Lost
    }

    fn receive(
        &mut self,
        _: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        for _ in 0..BATCHES {
            let count = self.received.receive(&self.socket, Wait::Poll).unwrap_or(0);
            let at = crate::now();
            for place in 0..count {
                let source = self.received.source(place).map(|source| source.ip());
                if self.sources.is_empty() || source.is_some_and(|source| self.sources.contains(&source)) {
                    arrived(at, self.received.datagram(place));
                } else {
                    *strays += 1;
                }
            }
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }

    fn next_timeout(&self, _: bool) -> Option<Time> {
        None
    }

    fn features(&self) -> &'static Features {
        &features::UDP
    }

    fn largest(&self) -> usize {
        MAX_MESSAGE
    }

    fn close(&mut self, _: Time) {}
}

/// Marks what a socket sends, and keeps it from ever waiting.
pub(super) fn set_up(socket: &UdpSocket, settings: &Settings) -> io::Result<()> {
    settings.marking().apply(socket)?;
    socket.set_nonblocking(true)
}

pub(super) fn options(settings: &Settings) -> SocketOptions {
    let buffer = settings.buffer.map(|bytes| bytes as usize);
    SocketOptions { send_buffer: buffer, receive_buffer: buffer, priority: settings.priority }
}

/// The unspecified address of the same family.
pub(crate) fn any(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The first address of `HOST` or `HOST:PORT`.
pub(crate) fn resolve(name: &str, default_port: u16) -> Result<SocketAddr, ForeignError> {
    let wrong = |reason: String| ForeignError::Name { name: name.to_owned(), reason };
    let found = match name.parse::<IpAddr>() {
        Ok(address) => return Ok(SocketAddr::new(address, default_port)),
        Err(_) if name.contains(':') => name.to_socket_addrs(),
        Err(_) => (name, default_port).to_socket_addrs(),
    };
    let mut found = found.map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("it has no address".to_owned()))
}

/// Random bytes of the system's.
pub(super) fn random<const BYTES: usize>() -> Result<[u8; BYTES], ForeignError> {
    let mut bytes = [0; BYTES];
    let drawn = SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives none"));
    drawn.map_err(ForeignError::socket("cannot draw random numbers"))?;
    Ok(bytes)
}

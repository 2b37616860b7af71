//! How a connection begins: TCP, then TLS, all within one patience.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Instant;

use nix::poll::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, ServerConfig, ServerConnection};
use trunkline_core::Duration;

use super::Connection;
use super::shared::{Pulse, Shared, describe, is_later, wait_for};
use crate::error::PeerError;
use crate::fingerprint::Fingerprint;
use crate::identity::{self, Identity};
use crate::service::Service;
use crate::tls::{self, Expected};
use crate::wire::MAX_FRAME;

/// Connects with the agent at `host:port` (or `host`, with the usual port), which must hold the expected key.
///
/// # Errors
/// If the address is none, nothing answers there in time, or what answers does not hold that key.
pub fn connect(
    address: &str,
    identity: &Identity,
    expected: &Fingerprint,
    patience: Duration,
) -> Result<Connection, PeerError> {
    connect_with(&Service::AGENT, address, identity, Expected::Key(*expected), (patience, Pulse::default()))
}

impl Connection {
    /// As [`connect`], with another pulse than the usual one.
    ///
    /// # Errors
    /// As [`connect`].
    pub fn open(
        address: &str,
        identity: &Identity,
        expected: &Fingerprint,
        patience: Duration,
        pulse: Pulse,
    ) -> Result<Connection, PeerError> {
        connect_with(&Service::AGENT, address, identity, Expected::Key(*expected), (patience, pulse))
    }
}

pub(crate) fn connect_with(
    service: &'static Service,
    address: &str,
    identity: &Identity,
    expected: Expected,
    (patience, pulse): (Duration, Pulse),
) -> Result<Connection, PeerError> {
    let deadline = Deadline::new(patience);
    let socket = reach(service, address, &deadline)?;
    let who = format!("the {} at {address}", service.what);
    let (config, found) = tls::client(identity, expected.clone())?;
    // The name is not sent: it stands for nothing.
    let name = ServerName::try_from(identity::NAME).map_err(cryptography)?;
    let tls = ClientConnection::new(Arc::new(config), name).map_err(cryptography)?;
    match shake_hands(socket, tls.into(), who, &deadline, pulse) {
        Ok(shared) => Connection::new(shared, MAX_FRAME),
        Err(error) => Err(match (expected, found.get()) {
            (Expected::Key(expected), Some(&found)) if found != expected => {
                PeerError::WrongKey { service, address: address.to_owned(), expected, found }
            }
            (Expected::Beginning(symbols), Some(&found)) if found.first(symbols.len()) != symbols => {
                PeerError::OtherHost { service, address: address.to_owned(), found }
            }
            _ => error,
        }),
    }
}

/// The listening end's part in it.
pub(super) fn answer(
    socket: TcpStream,
    peer: SocketAddr,
    config: Arc<ServerConfig>,
    patience: Duration,
    pulse: Pulse,
) -> Result<Shared, PeerError> {
    let tls = ServerConnection::new(config).map_err(cryptography)?;
    shake_hands(socket, tls.into(), format!("the peer at {peer}"), &Deadline::new(patience), pulse)
}

/// When patience ends.
struct Deadline {
    patience: Duration,
    began: Instant,
}

impl Deadline {
    fn new(patience: Duration) -> Deadline {
        Deadline { patience, began: Instant::now() }
    }

    fn left(&self, who: &str, step: &'static str) -> Result<Duration, PeerError> {
        let left = self.patience - self.began.elapsed().into();
        if left.is_zero() {
            return Err(PeerError::TimedOut { who: who.to_owned(), patience: self.patience, step });
        }
        Ok(left)
    }
}

/// A TCP connection with the first address of the host that answers.
fn reach(service: &'static Service, address: &str, deadline: &Deadline) -> Result<TcpStream, PeerError> {
    let no_address =
        |reason: String| PeerError::Address { service, address: address.chars().take(200).collect(), reason };
    let (host, port) = host_and_port(address, service.port).map_err(no_address)?;
    let resolved = (host.as_str(), port).to_socket_addrs();
    let addresses: Vec<_> = resolved
        .map_err(|error| no_address(format!("cannot resolve the name `{host}` ({error})")))?
        .collect();
    let mut last = None;
    for (tried, to) in addresses.iter().enumerate() {
        // Each has its share of what is left, so that a dead first address does not take it all.
        let share = deadline.left(address, "connecting")? / (addresses.len() - tried) as u64;
        match TcpStream::connect_timeout(to, share.max(Duration::from_millis(1)).to_std()) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(error),
        }
    }
    let address = address.to_owned();
    Err(match last {
        None => no_address("the name has no address".to_owned()),
        Some(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => PeerError::NothingListens { service, address },
            io::ErrorKind::TimedOut => {
                PeerError::TimedOut { who: address, patience: deadline.patience, step: "connecting" }
            }
            _ => PeerError::Unreachable { address, error },
        },
    })
}

/// The two parts of `host:port`, `[v6]:port`, `host`, `v6` or `[v6]`.
fn host_and_port(address: &str, usual: u16) -> Result<(String, u16), String> {
    let is_v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    if is_v6(address) {
        return Ok((address.to_owned(), usual));
    }
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("the `[` is not closed")?;
            if !is_v6(host) {
                return Err(format!("`{host}` is not an IPv6 address"));
            }
            (
                host,
                if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or("`:` is missing")?) },
            )
        }
        None => address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
    };
    let is_host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err("there is no host in it".to_owned());
    }
    let port = match port {
        None => usual,
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => return Err(format!("`{port}` is not a port (1 to 65535)")),
            Ok(port) => port,
        },
    };
    Ok((host.to_owned(), port))
}

/// TLS, and who the other end is.
fn shake_hands(
    socket: TcpStream,
    mut tls: rustls::Connection,
    who: String,
    deadline: &Deadline,
    pulse: Pulse,
) -> Result<Shared, PeerError> {
    const STEP: &str = "exchanging keys";
    let system = |error| PeerError::System { what: "cannot set up a socket", error };
    let broken = |error: io::Error| PeerError::CutOff { who: who.clone(), reason: describe(&error) };
    socket.set_nonblocking(true).map_err(system)?;
    socket.set_nodelay(true).map_err(system)?;
    let peer = socket.peer_addr().map_err(broken)?;
    let local = socket.local_addr().map_err(broken)?;
    loop {
        while tls.wants_write() {
            match tls.write_tls(&mut &socket) {
                Ok(_) => {}
                Err(error) if is_later(&error) => {
                    wait_for(&socket, PollFlags::POLLOUT, deadline.left(&who, STEP)?).map_err(broken)?;
                }
                Err(error) => return Err(broken(error)),
            }
        }
        if !tls.is_handshaking() {
            break;
        }
        match tls.read_tls(&mut &socket) {
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {
                if let Err(error) = tls.process_new_packets() {
                    // The other end is told what is wrong, if it can be.
                    let _ = tls.write_tls(&mut &socket);
                    return Err(not_spoken(who, &error));
                }
            }
            Err(error) if is_later(&error) => {
                wait_for(&socket, PollFlags::POLLIN, deadline.left(&who, STEP)?).map_err(broken)?;
            }
            Err(error) => return Err(broken(error)),
        }
        // A peer that sends a little now and then gets no longer than one that sends nothing.
        deadline.left(&who, STEP)?;
    }
    if tls.alpn_protocol() != Some(tls::PROTOCOL) {
        return Err(PeerError::NotSpoken { who, reason: "it requests a different protocol".to_owned() });
    }
    let certificate = tls.peer_certificates().and_then(|all| all.first());
    let fingerprint = match certificate.map(Fingerprint::of_certificate) {
        Some(Ok(fingerprint)) => fingerprint,
        Some(Err(error)) => return Err(not_spoken(who, &error)),
        None => return Err(PeerError::NotSpoken { who, reason: "it presents no certificate".to_owned() }),
    };
    Ok(Shared::new(socket, tls, who, (peer, local), fingerprint, pulse))
}

pub(super) fn not_spoken(who: String, error: &rustls::Error) -> PeerError {
    let reason = match error {
        rustls::Error::InvalidMessage(_) => "it does not send TLS".to_owned(),
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
        | rustls::Error::PeerIncompatible(
            rustls::PeerIncompatible::SupportedVersionsExtensionRequired
            | rustls::PeerIncompatible::Tls13RequiredForQuic
            | rustls::PeerIncompatible::Tls12NotOfferedOrEnabled
            | rustls::PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => "it does not support TLS 1.3".to_owned(),
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "it has a different key than expected".to_owned()
        }
        other => other.to_string(),
    };
    PeerError::NotSpoken { who, reason }
}

fn cryptography(error: impl core::fmt::Display) -> PeerError {
    PeerError::Cryptography(error.to_string())
}

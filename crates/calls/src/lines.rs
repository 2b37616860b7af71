//! From a transport to the line that carries it, at either end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use trunkline_core::{Bytes, Duration, Seed};
use trunkline_experiment::Transport;
use trunkline_flows::{Carrier, FlowSpec, Pair};
use trunkline_io::tcp::{self, StreamProtocol, TcpSetup};
use trunkline_io::udp::{self, SocketOptions};
use trunkline_live::engine::{self, Carried, Intake, Loss, Route};
use trunkline_transport::kind::Sockets;
use trunkline_transport::tcp::TcpOptions;
use trunkline_transport::{Features, features};

use crate::choice::TransportChoice;
use crate::error::SessionError;
use crate::line::Line;
use crate::line::engine::EngineCarrier;
use crate::line::queued::{self, Queued};
use crate::line::stream::{Awaited, StreamCarrier};
use crate::line::udp::{Peer, UdpCarrier};
use crate::request::{Key, Request, Role};
use crate::settings::Settings;

/// Buffers of the sockets of engines, in bytes: what the kernel loses there, the engine takes for congestion.
const ENGINE_BUFFER: usize = 1 << 20;
/// The most memory that a client can ask for, in bytes: for a socket of the server, and for the buffers of an engine.
pub(crate) const MOST_BUFFER: usize = 16 << 20;

/// The client's end, between these addresses. It may still be connecting.
///
/// # Errors
/// Why the transport cannot be set up.
pub(crate) fn near(
    terms: &Terms<'_>,
    (local, peer): (IpAddr, SocketAddr),
    patience: Duration,
) -> Result<Box<dyn Line>, String> {
    let Terms { request, key, .. } = *terms;
    match Way::of(request.transport.transport())? {
        Way::Datagrams(sort) => {
            let socket = sort.open(&request.settings, SocketAddr::new(local, 0), Some(peer))?;
            Ok(line(request, UdpCarrier::new(socket, Peer::Known(peer), sort.features())))
        }
        Way::Stream(protocol, options) => {
            let stream = tcp::connect(local, peer, &setup(request, protocol, &options), patience)
                .and_then(|stream| {
                    request.settings.marking().apply(&stream)?;
                    stream.set_nonblocking(true)?;
                    Ok(stream)
                })
                .map_err(said)?;
            Ok(line(request, StreamCarrier::open(stream, key, features_of(protocol))))
        }
        Way::Engine => {
            let (spec, Pair { near, far }) = engines(terms, [local, peer.ip()])?;
            let carrier = spec.carrier();
            let socket = open(request, carrier, SocketAddr::new(local, 0), Some(peer))?;
            let intake = Intake::of(carrier, [local, peer.ip()], near.address, far.address);
            let carried =
                Carried::new(near.endpoint, far.address, (&socket, Route::Fixed, intake), Loss::default());
            Ok(line(request, EngineCarrier::new(carried.map_err(said)?, socket, key)))
        }
    }
}

/// The server's end for the first packet with the key from `host`, and its port.
///
/// # Errors
/// Why the transport cannot be set up.
pub(crate) fn far(terms: &Terms<'_>, local: IpAddr, host: IpAddr) -> Result<(Box<dyn Line>, u16), String> {
    let Terms { request, key, .. } = *terms;
    let any_port = SocketAddr::new(local, 0);
    match Way::of(request.transport.transport())? {
        Way::Datagrams(sort) => {
            let socket = sort.open(&request.settings, any_port, None)?;
            let port = socket.local_addr().map_err(said)?.port();
            Ok((line(request, UdpCarrier::new(socket, Peer::Awaited(host, key), sort.features())), port))
        }
        Way::Stream(protocol, options) => {
            let listener = tcp::listen(any_port, &setup(request, protocol, &options)).map_err(said)?;
            listener.set_nonblocking(true).map_err(said)?;
            let port = listener.local_addr().map_err(said)?.port();
            let awaited = Awaited { listener, host, key, marking: request.settings.marking() };
            Ok((line(request, StreamCarrier::listen(awaited, features_of(protocol))), port))
        }
        Way::Engine => {
            let (spec, Pair { near, far }) = engines(terms, [host, local])?;
            let carrier = spec.carrier();
            let socket = open(request, carrier, any_port, None)?;
            let port = socket.local_addr().map_err(said)?.port();
            let intake = Intake::of(carrier, [host, local], far.address, near.address);
            let way = (&socket, Route::Follows(host, None), intake);
            let carried = Carried::new(far.endpoint, near.address, way, Loss::default()).map_err(said)?;
            Ok((line(request, EngineCarrier::new(carried, socket, key)), port))
        }
    }
}

/// A line of UDP without a session: packets travel as they are, for formats of others. Without a `peer`, whoever sends
/// first to `local` is the peer.
///
/// # Errors
/// What the system says.
pub fn udp_line(
    local: SocketAddr,
    peer: Option<SocketAddr>,
    settings: &Settings,
) -> Result<Box<dyn Line>, SessionError> {
    let sort = Datagrams { buffer: settings.buffer.map(|bytes| Bytes(bytes.into())), coverage: None };
    let socket =
        sort.open(settings, local, peer).map_err(|reason| SessionError::Listen { address: local, reason })?;
    let peer = peer.map_or(Peer::Anybody, Peer::Known);
    Ok(Box::new(Queued::new(UdpCarrier::new(socket, peer, sort.features()), settings.send_timeout)))
}

/// The transports that this host offers, each as it is written, with the options that make a difference of kind.
pub fn available() -> Vec<TransportChoice> {
    const ALL: [&str; 13] = [
        "udp",
        "udp-lite",
        "tcp",
        "mptcp",
        "dccp",
        "{ kind = \"dccp\", congestion-control = \"ccid-3\" }",
        "sctp",
        "{ kind = \"sctp\", style = \"one-to-many\" }",
        "{ kind = \"sctp\", engine = \"kernel\" }",
        "xtp",
        "quic",
        "{ kind = \"quic\", mode = \"datagrams\" }",
        "urp",
    ];
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let opens = |choice: &TransportChoice| {
        let request = Request::new(Role::Echo, choice.clone());
        far(&Terms { request: &request, key: Key(0), seed: 0 }, here, here).is_ok()
    };
    ALL.iter().filter_map(|written| written.parse().ok()).filter(opens).collect()
}

/// What both ends know of the line between them.
pub(crate) struct Terms<'r> {
    pub(crate) request: &'r Request,
    pub(crate) key: Key,
    /// From which both make the endpoints of a protocol engine.
    pub(crate) seed: u64,
}

/// What carries a transport: sockets of the kernel's, or an engine of ours.
enum Way {
    Datagrams(Datagrams),
    Stream(StreamProtocol, TcpOptions),
    Engine,
}

impl Way {
    fn of(transport: &Transport) -> Result<Way, String> {
        if let Some(reason) = transport.only_simulated().or(transport.not_for_sessions()) {
            return Err(reason);
        }
        let datagrams = |coverage| Way::Datagrams(Datagrams { buffer: transport.socket_buffer(), coverage });
        Ok(match transport.sockets() {
            Sockets::Datagrams => datagrams(None),
            Sockets::Carried(Carrier::UdpLite { coverage }) => datagrams(Some(coverage)),
            Sockets::Carried(_) => Way::Engine,
            Sockets::Stream(protocol, options) => Way::Stream(protocol, options),
        })
    }
}

/// The kernel's sockets for datagrams.
struct Datagrams {
    buffer: Option<Bytes>,
    /// That of UDP-Lite's checksums, if it is UDP-Lite.
    coverage: Option<Option<u16>>,
}

impl Datagrams {
    fn open(
        &self,
        settings: &Settings,
        local: SocketAddr,
        peer: Option<SocketAddr>,
    ) -> Result<UdpSocket, String> {
        let buffer = self.buffer.map(|bytes| bytes.count() as usize).or(settings.buffer());
        let buffer = buffer.map(|bytes| bytes.min(MOST_BUFFER));
        let options = SocketOptions { send_buffer: buffer, receive_buffer: buffer, priority: None };
        let opened = match self.coverage {
            None => udp::open(local, peer, options),
            Some(coverage) => udp::open_lite(local, peer, options, coverage),
        };
        let prepared = opened.and_then(|(socket, _)| {
            socket.set_nonblocking(true)?;
            settings.marking().apply(&socket)?;
            Ok(socket)
        });
        prepared.map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => {
                "the kernel has no UDP-Lite (IP protocol 136); use transport `udp`".to_owned()
            }
            io::ErrorKind::AddrInUse => "the port is in use; choose another".to_owned(),
            io::ErrorKind::AddrNotAvailable => "it is not an address of this host".to_owned(),
            _ => error.to_string(),
        })
    }

    fn features(&self) -> &'static Features {
        match self.coverage {
            None => &features::UDP,
            Some(None) => &features::UDP_LITE,
            Some(Some(_)) => &features::UDP_LITE_PARTIAL,
        }
    }
}

/// Opens a socket for an engine.
fn open(
    request: &Request,
    carrier: Carrier,
    local: SocketAddr,
    peer: Option<SocketAddr>,
) -> Result<UdpSocket, String> {
    let socket = engine::open(
        carrier,
        local,
        peer,
        request.settings.buffer().unwrap_or(ENGINE_BUFFER).min(MOST_BUFFER) as u64,
    )
    .map_err(said)?;
    request.settings.marking().apply(&socket).map_err(said)?;
    Ok(socket)
}

/// Both endpoints of an engine's conversation between a client and a server at these addresses.
fn engines(terms: &Terms<'_>, network: [IpAddr; 2]) -> Result<(FlowSpec, Pair), String> {
    let transport = terms.request.transport.transport().clone();
    let spec = FlowSpec::between("session", transport).over_sockets(network)?;
    let pair = spec.pair(0, Seed::new(terms.seed, 0))?;
    Ok((spec, pair))
}

fn setup(request: &Request, protocol: StreamProtocol, options: &TcpOptions) -> TcpSetup {
    let setup = trunkline_live::stream_setup(protocol, options);
    let window = setup.window.or(request.settings.buffer()).map(|bytes| bytes.min(MOST_BUFFER));
    TcpSetup { window, ..setup }
}

fn features_of(protocol: StreamProtocol) -> &'static Features {
    match protocol {
        StreamProtocol::Tcp => &features::TCP,
        StreamProtocol::Mptcp => &features::MPTCP,
        StreamProtocol::Sctp => &features::SCTP,
    }
}

fn line(request: &Request, carrier: impl queued::Carrier + 'static) -> Box<dyn Line> {
    let patience = request.transport.transport().send_timeout().unwrap_or(request.settings.send_timeout);
    Box::new(Queued::new(carrier, patience))
}

fn said(error: impl core::fmt::Display) -> String {
    error.to_string()
}

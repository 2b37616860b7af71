//! From a transport to the line that carries it, at either end.

use std::net::{IpAddr, SocketAddr};

use trunkline_core::Duration;
use trunkline_experiment::Transport;
use trunkline_io::udp::{self, SocketOptions};
use trunkline_transport::features;

use crate::line::Line;
use crate::line::queued::Queued;
use crate::line::udp::{Peer, UdpCarrier};
use crate::request::{Key, Request};

/// The client's end of a line, between these addresses.
///
/// # Errors
/// Why the transport cannot be set up.
pub(crate) fn near(
    request: &Request,
    (local, peer): (SocketAddr, SocketAddr),
    _seed: u64,
    _patience: Duration,
) -> Result<Box<dyn Line>, String> {
    let local = SocketAddr::new(local.ip(), 0);
    match request.transport.transport() {
        Transport::Udp(_) => {
            let (socket, _) = udp::open(local, Some(peer), options(request)).map_err(said)?;
            socket.set_nonblocking(true).map_err(said)?;
            Ok(Box::new(Queued::new(
                UdpCarrier::new(socket, Peer::Known(peer), &features::UDP),
                patience(request),
            )))
        }
        _ => Err("not yet".to_owned()),
    }
}

/// The server's end of a line for the first packet with the key from `host`, and its port.
///
/// # Errors
/// Why the transport cannot be set up.
pub(crate) fn far(
    request: &Request,
    (local, host): (SocketAddr, IpAddr),
    key: Key,
    _seed: u64,
) -> Result<(Box<dyn Line>, u16), String> {
    match request.transport.transport() {
        Transport::Udp(_) => {
            let (socket, _) = udp::open(local, None, options(request)).map_err(said)?;
            socket.set_nonblocking(true).map_err(said)?;
            let port = socket.local_addr().map_err(said)?.port();
            let carrier = UdpCarrier::new(socket, Peer::Awaited(host, key), &features::UDP);
            Ok((Box::new(Queued::new(carrier, patience(request))), port))
        }
        _ => Err("not yet".to_owned()),
    }
}

fn options(request: &Request) -> SocketOptions {
    let buffer = request.settings.buffer.map(|bytes| bytes as usize);
    SocketOptions { send_buffer: buffer, receive_buffer: buffer, priority: request.settings.priority }
}

fn patience(request: &Request) -> Duration {
    request.transport.transport().send_timeout().unwrap_or(request.settings.send_timeout)
}

fn said(error: impl core::fmt::Display) -> String {
    error.to_string()
}

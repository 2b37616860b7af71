//! The sockets of engines.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use trunkline_io::udp::SocketOptions;

/// Opens a socket for an engine, connected to its peer if that is known.
pub(crate) fn open(local: SocketAddr, peer: Option<SocketAddr>, buffer: u64) -> io::Result<UdpSocket> {
    let buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
    let options = SocketOptions { receive_buffer: Some(buffer), send_buffer: Some(buffer), priority: None };
    let (socket, _) = trunkline_io::udp::open(local, peer, options)?;
    socket.set_nonblocking(true)?;
    // Where the system cannot tell, no packet was marked.
    let _ = trunkline_io::udp::tell_ecn(&socket);
    Ok(socket)
}

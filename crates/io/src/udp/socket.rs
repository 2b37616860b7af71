//! Opening and setting up sockets.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use trunkline_core::Duration;

/// How a socket is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Size of the send buffer in bytes, as the system counts it; its default if absent.
    pub send_buffer: Option<usize>,
    /// Size of the receive buffer in bytes, as the system counts it; its default if absent.
    pub receive_buffer: Option<usize>,
    /// The kernel's priority of what is sent (`SO_PRIORITY`), by which the host's own queues sort. Linux only.
    pub priority: Option<u32>,
}

/// Sizes of a socket's buffers as the system granted them, in bytes. Linux grants twice what was asked for and uses
/// part of it for its own books; without privilege it grants no more than `net.core.rmem_max` and `wmem_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// For sending.
    pub send: usize,
    /// For receiving.
    pub receive: usize,
}

/// As many datagrams one call of segmentation offload may make (the kernel's `UDP_MAX_SEGMENTS` of 2019; newer ones
/// allow 128).
pub const MAX_SEGMENTS: usize = 64;

/// Opens a socket at `local`, connected to `peer` if there is one, and says how large its buffers are.
pub fn open(
    local: SocketAddr,
    peer: Option<SocketAddr>,
    options: SocketOptions,
) -> io::Result<(UdpSocket, Buffers)> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    bind(socket, local, peer, options)
}

/// The same for UDP-Lite (RFC 3828). Checksums cover so many bytes of the payload of what is sent, and what is received
/// must have as much covered; without `coverage` they cover everything, and any will do.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the kernel has none; what the system says of the rest.
pub fn open_lite(
    local: SocketAddr,
    peer: Option<SocketAddr>,
    options: SocketOptions,
    coverage: Option<u16>,
) -> io::Result<(UdpSocket, Buffers)> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::from(UDP_LITE)))
        .map_err(crate::unsupported_protocol)?;
    if let Some(coverage) = coverage {
        set_coverage(&socket, coverage)?;
    }
    bind(socket, local, peer, options)
}

/// UDP-Lite's protocol number in IP (IANA).
const UDP_LITE: i32 = 136;

/// Sets a new socket up, binds it and connects it.
pub(crate) fn bind(
    socket: Socket,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    options: SocketOptions,
) -> io::Result<(UdpSocket, Buffers)> {
    set_buffers(&socket, options)?;
    if let Some(priority) = options.priority {
        set_priority(&socket, priority)?;
    }
    socket.bind(&local.into())?;
    if let Some(peer) = peer {
        socket.connect(&peer.into())?;
    }
    let buffers = Buffers { send: socket.send_buffer_size()?, receive: socket.recv_buffer_size()? };
    Ok((socket.into(), buffers))
}

/// A blocking receive gives up after so long; for ever if zero.
pub fn set_receive_timeout(socket: &UdpSocket, timeout: Duration) -> io::Result<()> {
    socket.set_read_timeout((!timeout.is_zero()).then_some(timeout.to_std()))
}

/// Segmentation offload: what is sent through the socket at once from now on is cut into datagrams of `size` bytes, at
/// most [`MAX_SEGMENTS`] of them; 0 ends it.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the system cannot.
pub fn set_segment_size(socket: &UdpSocket, size: u16) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return super::system::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, libc::c_int::from(size));
    #[cfg(not(target_os = "linux"))]
    return if size == 0 { Ok(()) } else { Err(unsupported(socket)) };
}

/// Has the kernel stamp every datagram on arrival; [`ReceiveBatch::stamp`](super::ReceiveBatch::stamp) reads it. The
/// first datagrams after this call may come without.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the system cannot.
pub fn stamp_received(socket: &UdpSocket) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return super::system::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    #[cfg(not(target_os = "linux"))]
    return Err(unsupported(socket));
}

/// Root may exceed the system-wide limit, and a measurement wants what it asked for.
#[cfg(target_os = "linux")]
fn set_buffers(socket: &Socket, options: SocketOptions) -> io::Result<()> {
    use super::system::set_option;
    let as_int = |size: usize| libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX);
    if let Some(size) = options.send_buffer
        && set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, as_int(size)).is_err()
    {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = options.receive_buffer
        && set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, as_int(size)).is_err()
    {
        socket.set_recv_buffer_size(size)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn set_buffers(socket: &Socket, options: SocketOptions) -> io::Result<()> {
    options.send_buffer.map_or(Ok(()), |size| socket.set_send_buffer_size(size))?;
    options.receive_buffer.map_or(Ok(()), |size| socket.set_recv_buffer_size(size))
}

#[cfg(target_os = "linux")]
fn set_priority(socket: &Socket, priority: u32) -> io::Result<()> {
    let priority = libc::c_int::try_from(priority).unwrap_or(libc::c_int::MAX);
    super::system::set_option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority)
}

#[cfg(not(target_os = "linux"))]
fn set_priority(_: &Socket, _: u32) -> io::Result<()> {
    Ok(())
}

/// The kernel counts the header too.
#[cfg(target_os = "linux")]
fn set_coverage(socket: &Socket, coverage: u16) -> io::Result<()> {
    // linux/udp.h
    const UDPLITE_SEND_CSCOV: libc::c_int = 10;
    const UDPLITE_RECV_CSCOV: libc::c_int = 11;
    let covered = libc::c_int::from(coverage) + 8;
    super::system::set_option(socket, UDP_LITE, UDPLITE_SEND_CSCOV, covered)?;
    super::system::set_option(socket, UDP_LITE, UDPLITE_RECV_CSCOV, covered)
}

#[cfg(not(target_os = "linux"))]
fn set_coverage(_: &Socket, _: u16) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn unsupported(_: &UdpSocket) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

//! The ECN field (RFC 3168) of datagrams that are sent and received, where the system lets us at it: on Linux.

use std::io;
use std::net::UdpSocket;

use trunkline_core::Ecn;

/// The ECN field of what a socket sends; the kernel is told only when it changes, and the socket's other marks stay.
#[derive(Debug)]
pub struct EcnField {
    is_v6: bool,
    marks: system::Marks,
    current: Ecn,
}

impl EcnField {
    /// Of a socket that was just opened and marked: not capable.
    ///
    /// # Errors
    /// If the socket has no address.
    pub fn new(socket: &UdpSocket) -> io::Result<EcnField> {
        let is_v6 = socket.local_addr()?.is_ipv6();
        Ok(EcnField { is_v6, marks: system::marks(socket, is_v6)?, current: Ecn::NotCapable })
    }

    /// What is sent through the socket from now on has this field.
    ///
    /// # Errors
    /// What the system says: [`io::ErrorKind::Unsupported`] where it cannot.
    pub fn set(&mut self, socket: &UdpSocket, ecn: Ecn) -> io::Result<()> {
        if ecn != self.current {
            system::send(socket, self.is_v6, self.marks, ecn)?;
            self.current = ecn;
        }
        Ok(())
    }
}

/// Has the kernel tell the ECN field of every datagram; [`ReceiveBatch::ecn`](super::ReceiveBatch::ecn) reads it.
///
/// # Errors
/// What the system says: [`io::ErrorKind::Unsupported`] where it cannot.
pub fn tell_ecn(socket: &UdpSocket) -> io::Result<()> {
    system::receive(socket, socket.local_addr()?.is_ipv6())
}

#[cfg(target_os = "linux")]
mod system {
    use socket2::SockRef;

    use super::*;
    use crate::udp::system::set_option;

    /// The code point of differentiated services, in its place, and the priority.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Marks(u32, u32);

    pub(super) fn marks(socket: &UdpSocket, is_v6: bool) -> io::Result<Marks> {
        let socket = SockRef::from(socket);
        let field = if is_v6 { socket.tclass_v6() } else { socket.tos_v4() };
        Ok(Marks(field? & !3, socket.priority()?))
    }

    pub(super) fn send(socket: &UdpSocket, is_v6: bool, marks: Marks, ecn: Ecn) -> io::Result<()> {
        let bits = u32::from(ecn.bits());
        let (socket, Marks(code_point, priority)) = (SockRef::from(socket), marks);
        if is_v6 {
            return socket.set_tclass_v6(code_point | bits);
        }
        socket.set_tos_v4(code_point | bits)?;
        // The field comes with a priority of its own.
        socket.set_priority(priority)
    }

    pub(super) fn receive(socket: &UdpSocket, is_v6: bool) -> io::Result<()> {
        match is_v6 {
            true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            false => set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Marks;

    pub(super) fn marks(_: &UdpSocket, _: bool) -> io::Result<Marks> {
        Ok(Marks)
    }

    pub(super) fn send(_: &UdpSocket, _: bool, _: Marks, _: Ecn) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn receive(_: &UdpSocket, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

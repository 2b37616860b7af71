//! The ECN field (RFC 3168) of datagrams that are sent and received, where the system lets us at it: on Linux.

use std::io;
use std::net::UdpSocket;

use trunkline_core::Ecn;

/// The ECN field of what a socket sends; the kernel is told only when it changes.
#[derive(Debug)]
pub struct EcnField {
    is_v6: bool,
    current: Ecn,
}

impl EcnField {
    /// Of a socket that was just opened: not capable.
    ///
    /// # Errors
    /// If the socket has no address.
    pub fn new(socket: &UdpSocket) -> io::Result<EcnField> {
        Ok(EcnField { is_v6: socket.local_addr()?.is_ipv6(), current: Ecn::NotCapable })
    }

    /// What is sent through the socket from now on has this field.
    ///
    /// # Errors
    /// What the system says: [`io::ErrorKind::Unsupported`] where it cannot.
    pub fn set(&mut self, socket: &UdpSocket, ecn: Ecn) -> io::Result<()> {
        if ecn != self.current {
            system::send(socket, self.is_v6, ecn)?;
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

/// The field in the last two bits of IPv4's type of service and IPv6's traffic class.
#[cfg(target_os = "linux")]
pub(super) fn from_bits(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::CongestionExperienced,
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use crate::udp::system::set_option;

    pub(super) fn send(socket: &UdpSocket, is_v6: bool, ecn: Ecn) -> io::Result<()> {
        let bits = match ecn {
            Ecn::NotCapable => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::CongestionExperienced => 3,
        };
        match is_v6 {
            true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, bits),
            false => set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, bits),
        }
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

    pub(super) fn send(_: &UdpSocket, _: bool, _: Ecn) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn receive(_: &UdpSocket, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

//! How the packets of a socket are marked for queues: the network's, by differentiated services, and the host's own.

use std::io;
use std::os::fd::AsFd;

/// Marks of all packets that a socket sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// The differentiated services code point (RFC 2474), 0 to 63: 46 is expedited forwarding (RFC 3246).
    pub dscp: u8,
    /// The kernel's priority (`SO_PRIORITY`), by which the host's own queues sort: 0 to 6, or what the code point comes
    /// with if absent. More than 6 needs `CAP_NET_ADMIN`. Linux only.
    pub priority: Option<u32>,
}

impl Marking {
    /// Marks what this socket of IPv4 or IPv6 sends from now on, whatever its protocol.
    ///
    /// # Errors
    /// What the system says.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let field = u32::from(self.dscp & 63) << 2;
        let socket = socket2::SockRef::from(socket);
        match socket.local_addr()?.domain() {
            socket2::Domain::IPV6 => socket.set_tclass_v6(field)?,
            _ => socket.set_tos_v4(field)?,
        }
        match self.priority {
            // Behind the code point, which comes with a priority of its own on Linux (`rt_tos2priority`).
            #[cfg(target_os = "linux")]
            Some(priority) => socket.set_priority(priority),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::UdpSocket;

    use socket2::SockRef;
    use trunkline_core::Ecn;

    use super::*;
    use crate::udp::EcnField;

    #[test]
    fn marks_stay_when_the_ecn_field_changes() {
        let marking = Marking { dscp: 46, priority: Some(6) };
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).unwrap();
            marking.apply(&socket).unwrap();
            let field = || match address.starts_with('[') {
                true => SockRef::from(&socket).tclass_v6().unwrap(),
                false => SockRef::from(&socket).tos_v4().unwrap(),
            };
            assert_eq!((field(), SockRef::from(&socket).priority().unwrap()), (46 << 2, 6), "{address}");
            let mut ecn = EcnField::new(&socket).unwrap();
            ecn.set(&socket, Ecn::Ect0).unwrap();
            assert_eq!((field(), SockRef::from(&socket).priority().unwrap()), (46 << 2 | 2, 6), "{address}");
            ecn.set(&socket, Ecn::NotCapable).unwrap();
            assert_eq!((field(), SockRef::from(&socket).priority().unwrap()), (46 << 2, 6), "{address}");
        }
    }
}

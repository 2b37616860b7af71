//! UDP sockets that hear a multicast group, and send to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::udp::{Buffers, SocketOptions};

/// A group as a host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address and port. For IPv6 the scope names the interface where it is joined and from where it is sent to; zero
    /// lets the system choose.
    pub address: SocketAddr,
    /// For IPv4 the interface's own address does so; unspecified lets the system choose.
    pub interface: Ipv4Addr,
    /// Routers that what is sent may pass, plus one (`IP_MULTICAST_TTL`, `IPV6_MULTICAST_HOPS`).
    pub hops: u8,
    /// Whether members on this host hear what is sent here (`IP_MULTICAST_LOOP`).
    pub is_heard_here: bool,
}

impl Group {
    /// This group, on an interface of the system's choice, not beyond the network there, and heard on this host too.
    pub fn new(address: SocketAddr) -> Group {
        Group { address, interface: Ipv4Addr::UNSPECIFIED, hops: 1, is_heard_here: true }
    }

    /// The same on the interface with this address of IPv4.
    pub fn on(self, interface: Ipv4Addr) -> Group {
        Group { interface, ..self }
    }

    /// Opens a socket that hears what is sent to the group, as may others on this host, and nothing else.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the address is no group's; what the system says of the rest, such as that there
    /// is no such interface.
    pub fn listen(&self, options: SocketOptions) -> io::Result<(UdpSocket, Buffers)> {
        let socket = Socket::new(Domain::for_address(self.address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        match self.address {
            address if !address.ip().is_multicast() => {
                let reason = format!("{} is not a multicast group", address.ip());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            SocketAddr::V4(address) => socket.join_multicast_v4(address.ip(), &self.interface)?,
            SocketAddr::V6(address) => socket.join_multicast_v6(address.ip(), address.scope_id())?,
        }
        self.hear_only_joined(&socket)?;
        // Bound to the group: what is sent to the port at other addresses stays out.
        crate::udp::bind(socket, self.address, None, options)
    }

    /// Opens a socket at `local` from which is sent to the group.
    ///
    /// # Errors
    /// What the system says.
    pub fn speak(&self, local: IpAddr, options: SocketOptions) -> io::Result<(UdpSocket, Buffers)> {
        let (socket, buffers) = crate::udp::open(SocketAddr::new(local, 0), None, options)?;
        let set = SockRef::from(&socket);
        match self.address {
            SocketAddr::V4(_) => {
                set.set_multicast_if_v4(&self.interface)?;
                set.set_multicast_ttl_v4(u32::from(self.hops))?;
                set.set_multicast_loop_v4(self.is_heard_here)?;
            }
            SocketAddr::V6(address) => {
                set.set_multicast_if_v6(address.scope_id())?;
                set.set_multicast_hops_v6(u32::from(self.hops))?;
                set.set_multicast_loop_v6(self.is_heard_here)?;
            }
        }
        Ok((socket, buffers))
    }

    /// Linux delivers groups that anybody on the host has joined, on any interface, unless it is told not to.
    #[cfg(target_os = "linux")]
    fn hear_only_joined(&self, socket: &Socket) -> io::Result<()> {
        match self.address {
            SocketAddr::V4(_) => socket.set_multicast_all_v4(false),
            SocketAddr::V6(_) => socket.set_multicast_all_v6(false),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn hear_only_joined(&self, _: &Socket) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{ReceiveBatch, Wait, set_receive_timeout};
    use trunkline_testkit::skips::{Missing, skip_without};

    fn heard(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
        let mut batch = ReceiveBatch::new(1, 100);
        let count = batch.receive(socket, Wait::Block).unwrap();
        (count == 1).then(|| (batch.datagram(0).to_vec(), batch.source(0).unwrap()))
    }

    fn two_members_hear_one_speaker(group: Group, local: IpAddr) {
        let members = [0, 1].map(|_| group.listen(SocketOptions::default()).unwrap().0);
        let (speaker, _) = group.speak(local, SocketOptions::default()).unwrap();
        let port = speaker.local_addr().unwrap().port();
        for member in &members {
            set_receive_timeout(member, trunkline_core::Duration::from_millis(200)).unwrap();
        }
        speaker.send_to(b"all", group.address).unwrap();
        for member in &members {
            let (bytes, source) = heard(member).unwrap();
            assert_eq!((bytes.as_slice(), source.port()), (b"all".as_slice(), port));
        }
    }

    /// A port of this process, so that tests beside this one are not heard.
    fn port(offset: u16) -> u16 {
        20_000 + (std::process::id() % 10_000) as u16 + offset
    }

    #[test]
    fn a_group_of_ipv4_is_heard_by_all_who_joined() {
        let address = SocketAddr::new("239.255.77.1".parse().unwrap(), port(0));
        let group = Group::new(address).on(Ipv4Addr::LOCALHOST);
        two_members_hear_one_speaker(group, Ipv4Addr::LOCALHOST.into());
        // What is sent to the port of one host does not reach the group.
        let (member, _) = group.listen(SocketOptions::default()).unwrap();
        set_receive_timeout(&member, trunkline_core::Duration::from_millis(50)).unwrap();
        let (speaker, _) = group.speak(Ipv4Addr::LOCALHOST.into(), SocketOptions::default()).unwrap();
        speaker.send_to(b"one", (Ipv4Addr::LOCALHOST, address.port())).unwrap();
        assert_eq!(heard(&member), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_group_of_ipv6_is_heard_by_all_who_joined() {
        // Interface-local: nothing leaves the host. The loopback interface itself cannot multicast with IPv6.
        let interfaces = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        let other = interfaces.lines().find(|line| !line.ends_with(" lo"));
        let Some(index) = other.and_then(|line| u32::from_str_radix(line.split(' ').nth(1)?, 16).ok()) else {
            return skip_without(Missing::Ipv6, "no interface that can multicast has IPv6");
        };
        let address = std::net::SocketAddrV6::new("ff01::77:1".parse().unwrap(), port(1), 0, index);
        let group = Group::new(address.into());
        let any = std::net::Ipv6Addr::UNSPECIFIED.into();
        two_members_hear_one_speaker(group, any);
        // Whoever does not want to be heard here is not.
        let (member, _) = group.listen(SocketOptions::default()).unwrap();
        set_receive_timeout(&member, trunkline_core::Duration::from_millis(50)).unwrap();
        let group = Group { is_heard_here: false, ..group };
        let (speaker, _) = group.speak(any, SocketOptions::default()).unwrap();
        speaker.send_to(b"others", group.address).unwrap();
        assert_eq!(heard(&member), None);
    }

    #[test]
    fn an_address_of_one_host_is_no_group() {
        let group = Group::new("127.0.0.1:5000".parse().unwrap());
        let error = group.listen(SocketOptions::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "127.0.0.1 is not a multicast group");
    }
}

//! Raw IP sockets: the packets of a protocol that the kernel does not know, without the IP header when they are sent.
//!
//! They are datagram sockets without ports, so they have the type of UDP's and everything in [`udp`](crate::udp) works on
//! them: batches, time stamps, the ECN field. The kernel gives every packet of a protocol to every raw socket of that
//! protocol that is bound to the destination and not connected to another host: whose it is, is for the user to find out.
//! On one host that includes what a socket has sent itself.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::udp::{Buffers, SocketOptions};

/// Opens a socket for packets of this IP protocol at `local`, connected to `peer` if there is one, and says how large its
/// buffers are. The checksums of the protocol are the user's to make and to check.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] without the right to (on Linux `CAP_NET_RAW`); what the system says of the rest.
pub fn open(
    protocol: u8,
    local: IpAddr,
    peer: Option<IpAddr>,
    options: SocketOptions,
) -> io::Result<(UdpSocket, Buffers)> {
    let local = SocketAddr::new(local, 0);
    let socket =
        Socket::new(Domain::for_address(local), Type::RAW, Some(Protocol::from(i32::from(protocol))))?;
    crate::udp::bind(socket, local, peer.map(|peer| SocketAddr::new(peer, 0)), options)
}

/// The protocol's packet in what a raw socket received: IPv4's sockets deliver the IP header too, IPv6's do not. `None` if
/// there is less than a header.
pub fn payload(is_v6: bool, received: &[u8]) -> Option<&[u8]> {
    if is_v6 {
        return Some(received);
    }
    let words = usize::from(received.first()? & 0xF);
    received.get(4 * words.max(5)..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::{ReceiveBatch, Wait, set_receive_timeout};
    use trunkline_testkit::skips::skip;

    /// IANA's first number for experiments (RFC 3692).
    const EXPERIMENT: u8 = 253;

    #[test]
    fn packets_travel_without_their_ip_headers() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let receiver = match open(EXPERIMENT, address, None, SocketOptions::default()) {
                Ok((receiver, _)) => receiver,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{address}: {error}");
                    skip("raw sockets need CAP_NET_RAW, which this user does not have");
                    continue;
                }
            };
            set_receive_timeout(&receiver, trunkline_core::Duration::from_secs(5)).unwrap();
            let (sender, _) = open(EXPERIMENT, address, Some(address), SocketOptions::default()).unwrap();
            sender.send(b"raw").unwrap();
            let mut batch = ReceiveBatch::new(4, 100);
            assert_eq!(batch.receive(&receiver, Wait::Block).unwrap(), 1);
            assert_eq!(payload(address.is_ipv6(), batch.datagram(0)), Some(b"raw".as_slice()));
            assert_eq!(batch.source(0).map(|source| source.ip()), Some(address));
        }
    }

    #[test]
    fn what_is_shorter_than_its_header_has_no_payload() {
        assert_eq!(payload(false, &[]), None);
        assert_eq!(payload(false, &[0x46; 23]), None);
        assert_eq!(payload(false, &[0x46; 24]), Some([].as_slice()));
        assert_eq!(payload(true, &[]), Some([].as_slice()));
    }
}

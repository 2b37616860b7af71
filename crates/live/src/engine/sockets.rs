//! The sockets of engines, and which of what they receive is a conversation's.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use trunkline_core::Address;
use trunkline_flows::Carrier;
use trunkline_io::udp::SocketOptions;
use trunkline_io::{raw, udp};

use crate::error::LiveError;

/// Opens a socket for an engine, connected to its peer if that is known. Raw sockets have no ports: those of the addresses
/// do not matter.
///
/// # Errors
/// What the system says.
pub fn open(
    carrier: Carrier,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    buffer: u64,
) -> io::Result<UdpSocket> {
    let buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
    let options = SocketOptions { receive_buffer: Some(buffer), send_buffer: Some(buffer), priority: None };
    let (socket, _) = match carrier {
        Carrier::Udp => udp::open(local, peer, options),
        Carrier::UdpLite { coverage } => udp::open_lite(local, peer, options, coverage),
        Carrier::Ip { protocol, .. } => raw::open(protocol, local.ip(), peer.map(|peer| peer.ip()), options),
    }?;
    socket.set_nonblocking(true)?;
    // Where the system cannot tell, no packet was marked.
    let _ = udp::tell_ecn(&socket);
    Ok(socket)
}

/// What it means that a socket for this flow could not be opened.
pub(crate) fn not_opened(
    flow: &str,
    carrier: Carrier,
    local: SocketAddr,
) -> impl Fn(io::Error) -> LiveError + use<> {
    let flow = flow.to_owned();
    move |error| {
        let reason = match (carrier, error.kind()) {
            (Carrier::Ip { protocol, .. }, io::ErrorKind::PermissionDenied) => format!(
                "raw sockets for IP protocol {protocol} need the capability CAP_NET_RAW; run as root, give it to the \
                 program with `setcap cap_net_raw+ep`, or use `encapsulation = \"udp\"`"
            ),
            (Carrier::UdpLite { .. }, io::ErrorKind::Unsupported) => {
                "the kernel has no UDP-Lite (IP protocol 136); use transport `udp`".to_owned()
            }
            _ => return LiveError::binding(local.ip(), local.port())(error),
        };
        LiveError::Flow { flow: flow.clone(), reason }
    }
}

/// Which of what a socket receives are packets of a conversation, and where in it they stand.
#[derive(Clone, Debug)]
pub enum Intake {
    /// All, as they are.
    Whole,
    /// Of what all conversations of a protocol receive, that which is not for another.
    Raw {
        /// Whether the socket is one of IPv6.
        is_v6: bool,
        /// Which.
        known: Known,
    },
}

/// By what packets of a raw socket are known.
#[derive(Clone, Debug)]
pub enum Known {
    /// The ports of the source and of the destination, with which they begin.
    Ports([u8; 4]),
    /// The protocol finds out.
    ByProtocol,
    /// The same between ends on one host, where what was sent comes back: those of which a copy was sent, by their hashes,
    /// are taken for it.
    NotSent(VecDeque<u64>),
}

/// A copy that has not come back when so many others have been sent is lost.
const COPIES: usize = 1024;

impl Intake {
    /// Of packets that come to the first of these addresses from the second.
    pub fn of(carrier: Carrier, network: [IpAddr; 2], local: Address, peer: Address) -> Intake {
        if !matches!(carrier, Carrier::Ip { .. }) {
            return Intake::Whole;
        }
        let [[a, b], [c, d]] = [peer, local].map(|end| end.port.to_be_bytes());
        let known = match carrier {
            Carrier::Ip { has_ports: true, .. } => Known::Ports([a, b, c, d]),
            _ if network[0] == network[1] => Known::NotSent(VecDeque::new()),
            _ => Known::ByProtocol,
        };
        Intake::Raw { is_v6: network[0].is_ipv6(), known }
    }

    /// The packet in what was received, if it may be of this conversation.
    pub(super) fn packet<'d>(&mut self, received: &'d [u8]) -> Option<&'d [u8]> {
        let Intake::Raw { is_v6, known } = self else { return Some(received) };
        let packet = raw::payload(*is_v6, received)?;
        let is_ours = match known {
            Known::Ports(ports) => packet.starts_with(ports),
            Known::ByProtocol => true,
            Known::NotSent(copies) => {
                let hash = hash(packet);
                let copy = copies.iter().position(|&sent| sent == hash);
                copy.is_none_or(|place| copies.remove(place).is_none())
            }
        };
        is_ours.then_some(packet)
    }

    /// Takes note of a packet that is sent.
    pub(super) fn sends(&mut self, packet: &[u8]) {
        if let Intake::Raw { known: Known::NotSent(copies), .. } = self {
            if copies.len() >= COPIES {
                copies.pop_front();
            }
            copies.push_back(hash(packet));
        }
    }
}

fn hash(packet: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(packet);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Address = Address { host: 0, port: 0x0102 };
    const FAR: Address = Address { host: 1, port: 0x0304 };

    fn network(addresses: [&str; 2]) -> [IpAddr; 2] {
        addresses.map(|address| address.parse().unwrap())
    }

    #[test]
    fn packets_with_ports_are_known_by_them() {
        let mut intake =
            Intake::of(Carrier::Ip { protocol: 33, has_ports: true }, network(["::1"; 2]), NEAR, FAR);
        assert_eq!(intake.packet(&[3, 4, 1, 2, 9]), Some([3, 4, 1, 2, 9].as_slice()));
        for other in [&[1, 2, 3, 4, 9][..], &[3, 4, 1, 5], &[3, 4], &[]] {
            assert_eq!(intake.packet(other), None);
        }
        let mut v4 =
            Intake::of(Carrier::Ip { protocol: 132, has_ports: true }, network(["127.0.0.1"; 2]), NEAR, FAR);
        let received = [&[0x45][..], &[0; 19], &[3, 4, 1, 2]].concat();
        assert_eq!(v4.packet(&received), Some([3, 4, 1, 2].as_slice()));
        assert_eq!(v4.packet(&received[..19]), None);
    }

    #[test]
    fn on_one_host_what_was_sent_comes_back_once() {
        let mut intake =
            Intake::of(Carrier::Ip { protocol: 36, has_ports: false }, network(["::1"; 2]), NEAR, FAR);
        intake.sends(&[1; 32]);
        intake.sends(&[2; 32]);
        intake.sends(&[1; 32]);
        for (packet, is_ours) in [(1, false), (3, true), (2, false), (2, true), (1, false), (1, true)] {
            assert_eq!(intake.packet(&[packet; 32]).is_some(), is_ours, "{packet}");
        }
        let mut elsewhere =
            Intake::of(Carrier::Ip { protocol: 36, has_ports: false }, network(["::1", "::2"]), NEAR, FAR);
        elsewhere.sends(&[1; 32]);
        assert!(elsewhere.packet(&[1; 32]).is_some());
    }

    #[test]
    fn a_missing_right_is_named_with_what_to_do() {
        let local = "127.0.0.1:0".parse().unwrap();
        let told = |carrier, kind: io::ErrorKind| not_opened("voice", carrier, local)(kind.into());
        let error = told(Carrier::Ip { protocol: 33, has_ports: true }, io::ErrorKind::PermissionDenied);
        assert!(error.is_bad_input());
        assert_eq!(
            error.to_string(),
            "flow `voice` cannot be set up: raw sockets for IP protocol 33 need the capability CAP_NET_RAW; run as \
             root, give it to the program with `setcap cap_net_raw+ep`, or use `encapsulation = \"udp\"`"
        );
        let error = told(Carrier::UdpLite { coverage: None }, io::ErrorKind::Unsupported).to_string();
        assert_eq!(
            error,
            "flow `voice` cannot be set up: the kernel has no UDP-Lite (IP protocol 136); use transport `udp`"
        );
        let error = told(Carrier::Udp, io::ErrorKind::AddrInUse);
        assert!(matches!(error, LiveError::PortInUse { .. }));
    }
}

//! What a relay reads in the headers of a frame, and what it writes there.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use trunkline_core::{Bytes, Ecn};

use super::FlowKey;
use crate::checksum::updated;
use crate::device::Layer;

pub(super) const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Header of UDP and UDP-Lite.
const UDP_HEADER: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xDD];

/// Protocol numbers (IANA).
pub(super) const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
pub(super) const ICMPV6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// The extension headers of IPv6 that may precede the transport's (RFC 8200 section 4), but for the fragment header.
const EXTENSIONS: [u8; 4] = [0, 43, 60, 135];
const FRAGMENT: u8 = 44;

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where the network layer begins.
    pub network: usize,
    /// Where the transport layer begins; the frame's end if it carries no IP.
    pub transport: usize,
    /// What tells its flow from others; `None` if it carries no IP.
    pub key: Option<FlowKey>,
    /// The ECN field.
    pub ecn: Ecn,
    /// The urgency for priority queues: 0 for the highest precedence, 7 for none (RFC 791; RFC 2474 section 4.2.2).
    pub urgency: u16,
    /// Whether a router that cannot pass it on must not cut it, but say so.
    pub indivisible: bool,
}

impl Header {
    /// Reads the headers of a frame; what is cut off or makes no sense carries no IP.
    #[inline]
    pub fn read(layer: Layer, frame: &[u8]) -> Header {
        let network = network(layer);
        let packet = frame.get(network..).unwrap_or_default();
        let may_be = |kind: [u8; 2]| layer == Layer::Ip || frame.get(12..ETHERNET) == Some(&kind);
        let header = match packet.first().map(|byte| byte >> 4) {
            Some(4) if may_be(ETHERTYPE_IPV4) => Header::of_ipv4(network, packet),
            Some(6) if may_be(ETHERTYPE_IPV6) => Header::of_ipv6(network, packet),
            _ => None,
        };
        header.unwrap_or(Header {
            network: network.min(frame.len()),
            transport: frame.len(),
            key: None,
            ecn: Ecn::NotCapable,
            urgency: 0,
            indivisible: false,
        })
    }

    /// Bytes at the network layer.
    pub fn size(&self, frame: &[u8]) -> Bytes {
        Bytes((frame.len() - self.network) as u64)
    }

    fn of_ipv4(network: usize, packet: &[u8]) -> Option<Header> {
        let fixed: &[u8; IPV4] = packet.first_chunk()?;
        let length = usize::from(fixed[0] & 0xF) * 4;
        if length < IPV4 || packet.len() < length {
            return None;
        }
        let address =
            |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
        // More fragments, or not the first: ports are in the first only, and all of them go one way.
        let is_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3FFF != 0;
        let protocol = fixed[9];
        Some(Header {
            network,
            transport: network + length,
            key: Some(FlowKey {
                addresses: [address(12), address(16)],
                ports: if is_fragment { [0; 2] } else { ports(protocol, &packet[length..]) },
                protocol,
            }),
            ecn: Ecn::of_bits(fixed[1]),
            urgency: urgency(fixed[1]),
            indivisible: fixed[6] & 0x40 != 0,
        })
    }

    fn of_ipv6(network: usize, packet: &[u8]) -> Option<Header> {
        let fixed: &[u8; IPV6] = packet.first_chunk()?;
        let class = (fixed[0] << 4) | (fixed[1] >> 4);
        let mut addresses = [[0; 16]; 2];
        addresses.as_flattened_mut().copy_from_slice(&fixed[8..]);
        let (mut protocol, mut at, mut is_fragment) = (fixed[6], IPV6, false);
        while !is_fragment && (EXTENSIONS.contains(&protocol) || protocol == FRAGMENT) {
            let &[next, length] = packet.get(at..)?.first_chunk()?;
            // A fragment header is 8 bytes long; the others say how many times 8 follow the first. Behind it there are more
            // headers in the first fragment only.
            is_fragment = protocol == FRAGMENT;
            let length = if is_fragment { 0 } else { usize::from(length) };
            (protocol, at) = (next, at + 8 + 8 * length);
        }
        Some(Header {
            network,
            transport: network + at.min(packet.len()),
            key: Some(FlowKey {
                addresses: addresses.map(|address| IpAddr::V6(Ipv6Addr::from(address))),
                ports: if is_fragment {
                    [0; 2]
                } else {
                    ports(protocol, packet.get(at..).unwrap_or_default())
                },
                protocol,
            }),
            ecn: Ecn::of_bits(class),
            urgency: urgency(class),
            indivisible: true,
        })
    }
}

/// The payload of a frame that is a whole datagram of UDP or UDP-Lite.
pub(crate) fn datagram(layer: Layer, frame: &[u8]) -> Option<&[u8]> {
    let header = Header::read(layer, frame);
    // Fragments have no ports.
    header.key.filter(|key| matches!(key.protocol, UDP | UDP_LITE) && key.ports != [0; 2])?;
    frame.get(header.transport + UDP_HEADER..)
}

/// Where the network layer begins.
const fn network(layer: Layer) -> usize {
    match layer {
        Layer::Ip => 0,
        Layer::Ethernet => ETHERNET,
    }
}

/// The port numbers at the start of the transport's header. The identification of an echo tells flows apart as a port does,
/// and is the same both ways.
#[inline]
fn ports(protocol: u8, transport: &[u8]) -> [u16; 2] {
    let word = |at: usize| transport.get(at..at + 2).map_or(0, |word| u16::from_be_bytes([word[0], word[1]]));
    match (protocol, transport.first()) {
        (TCP | UDP | DCCP | SCTP | UDP_LITE, _) => [word(0), word(2)],
        (ICMP, Some(0 | 8)) | (ICMPV6, Some(128 | 129)) => [word(4); 2],
        _ => [0; 2],
    }
}

fn urgency(class: u8) -> u16 {
    u16::from(7 - (class >> 5))
}

/// Marks the packet in a frame "congestion experienced", and keeps the checksum of its header right; false if it bears the
/// mark already.
pub fn mark(layer: Layer, frame: &mut [u8]) -> bool {
    let Some(packet) = frame.get_mut(network(layer)..) else { return false };
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= IPV4 && packet[1] & 3 != 3 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = updated(u16::from_be_bytes([packet[10], packet[11]]), old, new);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            true
        }
        // IPv6 has no checksum, and the transports' leave the traffic class out.
        Some(6) if packet.len() >= IPV6 && packet[1] & 0x30 != 0x30 => {
            packet[1] |= 0x30;
            true
        }
        _ => false,
    }
}

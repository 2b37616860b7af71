//! The addresses and other identifying fields of a packet, out of the bytes of its frame.

use std::net::IpAddr;

use etherparse::{
    EtherType, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, LaxNetSlice, LaxSlicedPacket, TcpOptionElement,
    TransportSlice,
};

use super::reader::Frame;

/// Both ends of a conversation, in the direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Addresses {
    pub(super) protocol: u8,
    pub(super) from: (IpAddr, u16),
    pub(super) to: (IpAddr, u16),
}

impl Addresses {
    pub(super) fn reversed(self) -> Addresses {
        Addresses { from: self.to, to: self.from, ..self }
    }
}

/// A packet.
#[derive(Debug)]
pub(super) struct Seen<'b> {
    pub(super) addresses: Addresses,
    /// Bytes at the network layer.
    pub(super) bytes: u32,
    pub(super) ttl: u8,
    /// IP's identification, and the offset of a fragment.
    pub(super) identification: u32,
    pub(super) fragment: u16,
    pub(super) tcp: Option<Tcp>,
    /// The captured part of UDP's or another protocol's payload.
    pub(super) payload: &'b [u8],
    /// The bytes of the transport's header that identify the packet, for TCP.
    pub(super) header: &'b [u8],
    pub(super) is_outbound: Option<bool>,
}

/// Fields of TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp {
    pub(super) sequence: u32,
    pub(super) acknowledged: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    /// Bytes of the headers of IP and TCP.
    pub(super) headers: u32,
    pub(super) payload: u32,
    pub(super) mss: Option<u16>,
    /// Time stamps: value and echo.
    pub(super) timestamps: Option<(u32, u32)>,
}

/// The packet in a frame; `None` if it is none of IP.
pub(super) fn packet<'b>(frame: &Frame<'b>) -> Option<Seen<'b>> {
    const ETHERNET: u32 = 1;
    const RAW: [u32; 4] = [12, 14, 101, 228];
    const IPV6: u32 = 229;
    const COOKED: u32 = 113;
    const COOKED_2: u32 = 276;
    const LOOPBACK: [u32; 2] = [0, 108];
    let bytes = frame.bytes;
    let of_type = |at: usize, payload: usize| {
        let kind = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        Some(LaxSlicedPacket::from_ether_type(EtherType(kind), bytes.get(payload..)?))
    };
    let (sliced, is_outbound) = match frame.link_type {
        ETHERNET => (LaxSlicedPacket::from_ethernet(bytes).ok()?, None),
        kind if RAW.contains(&kind) || kind == IPV6 => (LaxSlicedPacket::from_ip(bytes).ok()?, None),
        kind if LOOPBACK.contains(&kind) => (LaxSlicedPacket::from_ip(bytes.get(4..)?).ok()?, None),
        COOKED => (of_type(14, 16)?, cooked(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]))),
        COOKED_2 => (of_type(0, 20)?, cooked((*bytes.get(10)?).into())),
        _ => return None,
    };
    let network = network(sliced.net.as_ref()?)?;
    let offset = |of: usize, start: usize| u32::try_from(of.checked_sub(start)?).ok();
    // A segment that the interface will divide may have no length yet.
    let length = match network.length {
        0 => frame.length.checked_sub(offset(network.header, bytes.as_ptr().addr())?)?,
        length => length,
    };
    let addresses = |ports: (u16, u16)| Addresses {
        protocol: network.protocol,
        from: (network.from, ports.0),
        to: (network.to, ports.1),
    };
    let seen = Seen {
        addresses: addresses((0, 0)),
        bytes: length,
        ttl: network.ttl,
        identification: network.identification,
        fragment: network.fragment,
        tcp: None,
        payload: network.payload,
        header: &[],
        is_outbound: frame.is_outbound.or(is_outbound),
    };
    if network.is_fragment {
        return Some(seen);
    }
    Some(match sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let headers =
                offset(tcp.slice().as_ptr().addr(), network.header)? + tcp.header_slice().len() as u32;
            let (mut mss, mut timestamps) = (None, None);
            for option in tcp.options_iterator().flatten() {
                match option {
                    TcpOptionElement::MaximumSegmentSize(size) => mss = Some(size),
                    TcpOptionElement::Timestamp(value, echo) => timestamps = Some((value, echo)),
                    _ => {}
                }
            }
            let header = tcp.header_slice();
            let own = Tcp {
                sequence: tcp.sequence_number(),
                acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
                syn: tcp.syn(),
                fin: tcp.fin(),
                headers,
                payload: length.saturating_sub(headers),
                mss,
                timestamps,
            };
            // Without the ports, which NAT rewrites, and the checksum, which the interface fills in.
            let ports = (tcp.source_port(), tcp.destination_port());
            Seen {
                addresses: addresses(ports),
                tcp: Some(own),
                header: header.get(4..16)?,
                payload: tcp.payload(),
                ..seen
            }
        }
        Some(TransportSlice::Udp(udp)) => Seen {
            addresses: addresses((udp.source_port(), udp.destination_port())),
            payload: udp.payload(),
            ..seen
        },
        _ => seen,
    })
}

/// The header of IP.
struct Network<'b> {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    /// Bytes with the header, or 0.
    length: u32,
    ttl: u8,
    identification: u32,
    fragment: u16,
    is_fragment: bool,
    /// Address of its first byte.
    header: usize,
    payload: &'b [u8],
}

fn network<'b>(net: &LaxNetSlice<'b>) -> Option<Network<'b>> {
    match net {
        LaxNetSlice::Ipv4(slice) => {
            let (header, payload) = (slice.header(), slice.payload());
            Some(Network {
                from: header.source_addr().into(),
                to: header.destination_addr().into(),
                protocol: payload.ip_number.0,
                length: header.total_len().into(),
                ttl: header.ttl(),
                identification: header.identification().into(),
                fragment: header.fragments_offset().value(),
                is_fragment: payload.fragmented,
                header: header.slice().as_ptr().addr(),
                payload: payload.payload,
            })
        }
        LaxNetSlice::Ipv6(slice) => {
            let (header, payload) = (slice.header(), slice.payload());
            // The lax parser keeps a chain of extensions that is cut, behind whose end its iterator would read.
            let whole = Ipv6ExtensionsSlice::from_slice(header.next_header(), slice.extensions().slice());
            let extensions = whole.into_iter().flat_map(|(extensions, ..)| extensions);
            let fragment = extensions.into_iter().find_map(|extension| match extension {
                Ipv6ExtensionSlice::Fragment(fragment) => {
                    Some((fragment.identification(), fragment.fragment_offset().value()))
                }
                _ => None,
            });
            Some(Network {
                from: header.source_addr().into(),
                to: header.destination_addr().into(),
                protocol: payload.ip_number.0,
                length: if header.payload_length() == 0 {
                    0
                } else {
                    u32::from(header.payload_length()) + 40
                },
                ttl: header.hop_limit(),
                identification: fragment.map_or(0, |(identification, _)| identification),
                fragment: fragment.map_or(0, |(_, offset)| offset),
                is_fragment: payload.fragmented,
                header: header.slice().as_ptr().addr(),
                payload: payload.payload,
            })
        }
        _ => None,
    }
}

/// Direction by the type of a cooked packet.
fn cooked(kind: u16) -> Option<bool> {
    match kind {
        0 => Some(false),
        4 => Some(true),
        _ => None,
    }
}

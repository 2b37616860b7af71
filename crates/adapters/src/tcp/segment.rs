//! What can be read from a TCP/IP packet on its way past: the engine does not tell.

use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, TcpPacket};
use trunkline_core::Address;
use trunkline_transport::host_of;

/// The fields of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where it goes.
    pub(super) to: Address,
    /// Its first byte's sequence number.
    pub(super) sequence: u32,
    /// Payload bytes.
    pub(super) payload: u32,
    /// Sequence numbers that it takes: payload, SYN and FIN.
    pub(super) length: u32,
    /// Whether it resets the connection.
    pub(super) reset: bool,
}

/// Why a packet is not for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Lengths, version or protocol are wrong.
    Malformed,
    /// The checksum of the IP header or of the segment is wrong.
    Checksum,
}

impl Segment {
    /// Reads a packet that came from the network, and verifies both checksums.
    pub(super) fn verify(packet: &[u8]) -> Result<Segment, Fault> {
        let ip = Ipv4Packet::new_checked(packet).map_err(|_| Fault::Malformed)?;
        if !ip.verify_checksum() {
            return Err(Fault::Checksum);
        }
        let plain = ip.version() == 4 && !ip.more_frags() && ip.frag_offset() == 0;
        if !plain || ip.next_header() != IpProtocol::Tcp || usize::from(ip.total_len()) != packet.len() {
            return Err(Fault::Malformed);
        }
        let tcp = TcpPacket::new_checked(ip.payload()).map_err(|_| Fault::Malformed)?;
        if !tcp.verify_checksum(&IpAddress::Ipv4(ip.src_addr()), &IpAddress::Ipv4(ip.dst_addr())) {
            return Err(Fault::Checksum);
        }
        Ok(Segment::of(&ip, &tcp))
    }

    /// Reads a packet that the engine has written.
    pub(super) fn trusted(packet: &[u8]) -> Option<Segment> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        Some(Segment::of(&ip, &tcp))
    }

    fn of(ip: &Ipv4Packet<&[u8]>, tcp: &TcpPacket<&[u8]>) -> Segment {
        Segment {
            to: Address { host: host_of(ip.dst_addr().octets()).unwrap_or_default(), port: tcp.dst_port() },
            sequence: tcp.seq_number().0 as u32,
            payload: tcp.payload().len() as u32,
            length: tcp.segment_len() as u32,
            reset: tcp.rst(),
        }
    }
}

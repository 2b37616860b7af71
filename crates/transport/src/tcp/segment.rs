//! TCP segments (RFC 9293 section 3.1): the header and its checksum.

mod options;
#[cfg(test)]
mod tests;

use core::net::{IpAddr, Ipv4Addr};

use trunkline_core::Address;

pub(super) use options::{MAX_WINDOW_SCALE, Options, SackBlock};

use crate::addressing::ipv4_of;
use crate::checksum;

/// TCP's protocol number in IP (IANA).
pub(super) const IP_PROTOCOL: u8 = 6;
/// Bytes of the header without options (RFC 9293 section 3.1).
pub(super) const HEADER: usize = 20;
/// Bytes of the IPv4 header below it.
pub(super) const IPV4_HEADER: usize = 20;
/// Bytes that the options of one segment can take.
pub(super) const MAX_OPTIONS: usize = 40;

/// Control bits (RFC 9293 section 3.1), with ECN's (RFC 3168 section 6.1) and AE (RFC 9768 section 3.1).
pub(super) const FIN: u16 = 1;
pub(super) const SYN: u16 = 2;
pub(super) const RST: u16 = 4;
pub(super) const PSH: u16 = 8;
pub(super) const ACK: u16 = 16;

pub(super) const ECE: u16 = 64;
pub(super) const CWR: u16 = 128;
pub(super) const AE: u16 = 256;

const CHECKSUM: core::ops::Range<usize> = 16..18;

/// The fields of a header. The ports are those of the addresses. Urgent data is delivered in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u16,
    /// As it stands in the header: not scaled.
    pub(super) window: u16,
    pub(super) options: Options,
}

/// Why a packet is no segment for this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Too short, or its options end behind its end.
    Malformed,
    /// The checksum is wrong.
    Checksum,
    /// For another port, or from a port that is not its sender's.
    Stray,
}

impl Header {
    /// Whether any of these control bits is set.
    pub(super) const fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers that the segment occupies with this many bytes of data (RFC 9293 section 3.4).
    pub(super) const fn length(&self, data: usize) -> u32 {
        data as u32 + self.has(SYN) as u32 + self.has(FIN) as u32
    }

    /// Writes a segment whose data stands in two pieces, as in a ring.
    pub(super) fn write(&self, from: Address, to: Address, data: [&[u8]; 2], into: &mut Vec<u8>) {
        let mut header = [0; HEADER + MAX_OPTIONS];
        let options = self.options.write(&mut header[HEADER..]);
        header[0..2].copy_from_slice(&from.port.to_be_bytes());
        header[2..4].copy_from_slice(&to.port.to_be_bytes());
        header[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        header[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        let words = ((HEADER + options) / 4) as u16;
        header[12..14].copy_from_slice(&(words << 12 | self.flags).to_be_bytes());
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        into.clear();
        into.extend_from_slice(&header[..HEADER + options]);
        for piece in data {
            into.extend_from_slice(piece);
        }
        let sum = checksum::sum(pseudo_header(from, to, into.len()), into);
        into[CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
    }

    /// Reads a segment that came from `from` to `to`, and returns it with its data.
    pub(super) fn read(from: Address, to: Address, packet: &[u8]) -> Result<(Header, &[u8]), Fault> {
        let (fixed, _) = packet.split_first_chunk::<HEADER>().ok_or(Fault::Malformed)?;
        if checksum::sum(pseudo_header(from, to, packet.len()), packet) != u16::MAX {
            return Err(Fault::Checksum);
        }
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        let words = u16_at(12);
        let data = usize::from(words >> 12) * 4;
        let options = packet.get(HEADER..data).ok_or(Fault::Malformed)?;
        if [u16_at(0), u16_at(2)] != [from.port, to.port] {
            return Err(Fault::Stray);
        }
        let header = Header {
            sequence: u32_at(4),
            acknowledgement: u32_at(8),
            flags: words & 0x1FF,
            window: u16_at(14),
            options: Options::read(options),
        };
        Ok((header, &packet[data..]))
    }
}

fn pseudo_header(from: Address, to: Address, length: usize) -> u64 {
    let addresses = [from, to].map(|end| IpAddr::V4(Ipv4Addr::from(ipv4_of(end.host))));
    checksum::pseudo_header(IP_PROTOCOL, addresses, length)
}

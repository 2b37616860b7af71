//! TCP segments (RFC 793 section 3.1): the header with its checksum, and the one option that is used, the maximum segment
//! size.

use core::net::{IpAddr, Ipv4Addr};

use trunkline_core::Address;

use crate::addressing::ipv4_of;
use crate::checksum;

/// TCP's protocol number in IP.
pub(super) const IP_PROTOCOL: u8 = 6;
/// Bytes of the header without options, and of IPv4's below it.
pub(super) const HEADER: usize = 20;
pub(super) const IPV4_HEADER: usize = 20;

/// Bits of the control field.
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const PSH: u8 = 8;
pub(super) const ACK: u8 = 16;

/// Kinds of options: the end of the list, padding, and the maximum segment size.
const END: u8 = 0;
const PADDING: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const CHECKSUM: core::ops::Range<usize> = 16..18;

/// What is in a header. Ports are those of the addresses; urgent data is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// The maximum segment size option (RFC 793 section 3.1, RFC 1122 section 4.2.2.6).
    pub(super) mss: Option<u16>,
}

/// Why a packet is no segment for this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    Checksum,
    /// It is for another port, or not from the port of its sender.
    Stray,
}

impl Header {
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers that it takes with so many bytes of data (RFC 793 section 3.3).
    pub(super) const fn length(&self, data: usize) -> u32 {
        data as u32 + self.has(SYN) as u32 + self.has(FIN) as u32
    }

    /// Writes a segment with data in two pieces, as they stand in a ring.
    pub(super) fn write(&self, from: Address, to: Address, data: [&[u8]; 2], into: &mut Vec<u8>) {
        let words = (HEADER / 4 + usize::from(self.mss.is_some())) as u8;
        into.clear();
        into.extend_from_slice(&from.port.to_be_bytes());
        into.extend_from_slice(&to.port.to_be_bytes());
        into.extend_from_slice(&self.sequence.to_be_bytes());
        into.extend_from_slice(&self.acknowledgement.to_be_bytes());
        into.extend_from_slice(&[words << 4, self.flags]);
        into.extend_from_slice(&self.window.to_be_bytes());
        into.extend_from_slice(&[0; 4]);
        if let Some(mss) = self.mss {
            into.extend_from_slice(&[MAXIMUM_SEGMENT_SIZE, 4]);
            into.extend_from_slice(&mss.to_be_bytes());
        }
        for piece in data {
            into.extend_from_slice(piece);
        }
        let sum = checksum::sum(pseudo_header(from, to, into.len()), into);
        into[CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
    }

    /// Reads a segment and its data.
    pub(super) fn verify(from: Address, to: Address, packet: &[u8]) -> Result<(Header, &[u8]), Fault> {
        let (fixed, _) = packet.split_first_chunk::<HEADER>().ok_or(Fault::Malformed)?;
        if checksum::sum(pseudo_header(from, to, packet.len()), packet) != u16::MAX {
            return Err(Fault::Checksum);
        }
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        let data = usize::from(fixed[12] >> 4) * 4;
        let options = packet.get(HEADER..data).ok_or(Fault::Malformed)?;
        if [u16_at(0), u16_at(2)] != [from.port, to.port] {
            return Err(Fault::Stray);
        }
        let header = Header {
            sequence: u32_at(4),
            acknowledgement: u32_at(8),
            flags: fixed[13] & 0x3F,
            window: u16_at(14),
            mss: mss_in(options),
        };
        Ok((header, &packet[data..]))
    }
}

/// Options of other kinds are passed over, and what follows a damaged one is not read (RFC 1122 section 4.2.2.5).
fn mss_in(mut options: &[u8]) -> Option<u16> {
    loop {
        options = match *options {
            [] | [END, ..] => return None,
            [PADDING, ref rest @ ..] => rest,
            [MAXIMUM_SEGMENT_SIZE, 4, high, low, ..] => return Some(u16::from_be_bytes([high, low])),
            [_, length, ..] if length >= 2 => options.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}

fn pseudo_header(from: Address, to: Address, length: usize) -> u64 {
    let addresses = [from, to].map(|end| IpAddr::V4(Ipv4Addr::from(ipv4_of(end.host))));
    checksum::pseudo_header(IP_PROTOCOL, addresses, length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_testkit::cases::cases;

    use super::*;

    const FROM: Address = Address { host: 0, port: 40_001 };
    const TO: Address = Address { host: 1, port: 7_001 };

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn what_is_written_is_read_again(
            sequence: u32, acknowledgement: u32, flags in 0..64u8, window: u16, mss: Option<u16>, data: Vec<u8>, cut: prop::sample::Index,
        ) {
            let header = Header { sequence, acknowledgement, flags, window, mss };
            let mut packet = Vec::new();
            let (front, back) = data.split_at(cut.index(data.len() + 1));
            header.write(FROM, TO, [front, back], &mut packet);
            prop_assert_eq!(Header::verify(FROM, TO, &packet), Ok((header, &data[..])));
            packet[4] ^= 1;
            prop_assert_eq!(Header::verify(FROM, TO, &packet), Err(Fault::Checksum));
        }

        #[test]
        fn no_bytes_make_the_options_panic(options: Vec<u8>) {
            mss_in(&options);
        }
    }

    #[test]
    fn the_maximum_segment_size_is_found_among_other_options() {
        assert_eq!(mss_in(&[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0x05, 0xB4]), Some(1460));
        assert_eq!(mss_in(&[0, 2, 4, 5, 0xB4]), None, "behind the end of the list");
        assert_eq!(mss_in(&[3, 1, 2, 4, 5, 0xB4]), None, "behind an option that is shorter than it can be");
        assert_eq!(mss_in(&[2, 4, 5]), None);
    }
}

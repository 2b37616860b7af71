//! The UDP header in front of a QUIC packet.

use trunkline_core::Address;
use trunkline_transport::udp::{UDP_HEADER_LENGTH, sum};

/// Why a UDP datagram is dropped, as a kernel would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    Checksum,
    /// For another port, or from another than it says.
    Stray,
}

/// Puts a header in front of a packet (RFC 768).
pub(super) fn wrap(from: Address, to: Address, packet: &mut Vec<u8>) {
    // At most 16 KiB.
    let length = (packet.len() + UDP_HEADER_LENGTH) as u16;
    let header = [from.port, to.port, length, 0].map(u16::to_be_bytes);
    packet.splice(..0, header.into_iter().flatten());
    let checksum = match !sum(from, to, packet) {
        0 => u16::MAX,
        checksum => checksum,
    };
    packet[6..UDP_HEADER_LENGTH].copy_from_slice(&checksum.to_be_bytes());
}

/// The packet behind a datagram's header.
///
/// QUIC's encryption finds damage too, but not in the packets by which versions are negotiated and addresses are proved:
/// on those it relies on UDP's checksum.
pub(super) fn unwrap(from: Address, to: Address, datagram: &[u8]) -> Result<&[u8], Fault> {
    let (header, packet) = datagram.split_first_chunk::<UDP_HEADER_LENGTH>().ok_or(Fault::Malformed)?;
    let [source, destination, length, checksum] =
        [0, 2, 4, 6].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
    if usize::from(length) != datagram.len() {
        return Err(Fault::Malformed);
    }
    // Zero means "none was computed". Our peers always compute it, so here zero is damage.
    if checksum == 0 || sum(from, to, datagram) != u16::MAX {
        return Err(Fault::Checksum);
    }
    if source != from.port || destination != to.port { Err(Fault::Stray) } else { Ok(packet) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Address = Address { host: 1, port: 2 };
    const TO: Address = Address { host: 3, port: 4 };

    #[test]
    fn what_was_wrapped_is_unwrapped_and_any_flipped_bit_is_found() {
        for length in [0, 1, 7, 1200] {
            let packet: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut datagram = packet.clone();
            wrap(FROM, TO, &mut datagram);
            assert_eq!(unwrap(FROM, TO, &datagram), Ok(packet.as_slice()));
            assert_eq!(unwrap(TO, TO, &datagram), Err(Fault::Checksum));
            for bit in 0..datagram.len() * 8 {
                datagram[bit / 8] ^= 1 << (bit % 8);
                assert!(unwrap(FROM, TO, &datagram).is_err(), "bit {bit} of {length} bytes");
                datagram[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert_eq!(unwrap(FROM, TO, &[0; 7]), Err(Fault::Malformed));
    }
}

//! The UDP header in front of a QUIC packet.

use trunkline_core::Address;
use trunkline_transport::udp::{self, UDP_HEADER_LENGTH, Variant};

/// Why a UDP datagram is dropped, as a kernel would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    Checksum,
    /// For another port, or from another than it says.
    Stray,
}

/// Puts a header in front of a packet of at most 16 KiB.
pub(super) fn wrap(from: Address, to: Address, packet: &mut Vec<u8>) {
    packet.splice(..0, [0; UDP_HEADER_LENGTH]);
    Variant::Udp.write(from, to, packet);
}

/// The packet behind a datagram's header.
///
/// QUIC's encryption finds damage too, but not in the packets by which versions are negotiated and addresses are proved:
/// on those it relies on UDP's checksum.
pub(super) fn unwrap(from: Address, to: Address, datagram: &[u8]) -> Result<&[u8], Fault> {
    Variant::Udp.read(from, to, datagram).map_err(|fault| match fault {
        udp::Fault::Malformed | udp::Fault::Coverage => Fault::Malformed,
        udp::Fault::Checksum => Fault::Checksum,
        udp::Fault::Stray => Fault::Stray,
    })
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

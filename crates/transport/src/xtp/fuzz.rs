//! What must hold of the codec and of the state machines for any bytes: run by the fuzzer, by its corpus in the tests,
//! and by proptest.

use super::wire::{Body, Options, Packet, ParseError};

/// Checks the codec on arbitrary bytes and panics where it breaks its word: what is read is written again as the same
/// packet, and a packet that is refused for its checksum alone reads with the right one.
#[doc(hidden)]
pub fn fuzz_packet(data: &[u8]) {
    match Packet::parse(data) {
        Ok(packet) => {
            let mut written = Vec::new();
            packet.emit(&mut written);
            let again = Packet::parse(&written).expect("what was written can be read");
            assert_eq!(again, packet);
            assert_eq!(again.body.format(), packet.body.format());
            if let Body::Data { tag, .. } = packet.body {
                assert_eq!(tag.is_some(), packet.header.options.has(Options::BTAG));
            }
            assert_eq!(written.len(), data.len());
        }
        Err(ParseError::Checksum) => {
            // The fuzzer will not guess checksums: show it what lies behind them.
            let mended = mended(data);
            assert_ne!(Packet::parse(&mended), Err(ParseError::Checksum));
            fuzz_packet(&mended);
        }
        Err(_) => {}
    }
}

/// The same packet with the right checksum.
pub(super) fn mended(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let Some(command) = packet.get(8) else { return packet };
    let covered = if command & 0x40 != 0 { super::wire::HEADER_LENGTH } else { packet.len() };
    if packet.len() < super::wire::HEADER_LENGTH {
        return packet;
    }
    packet[16..18].fill(0);
    let check = !super::checksum::sum(&packet[..covered]);
    packet[16..18].copy_from_slice(&check.to_be_bytes());
    packet
}

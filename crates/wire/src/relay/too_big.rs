//! The answer to a packet that a link is too small for, as the router in front of it would give it: "fragmentation
//! needed" (RFC 792, RFC 1191) and "packet too big" (RFC 4443 section 3.2).

use core::net::IpAddr;

use super::header::{ETHERNET, Header, ICMP, ICMPV6};
use crate::checksum::checksum;

/// How much of the packet comes back with it: messages of ICMP have at most 576 bytes (RFC 1812 section 4.3.2.3), those of
/// ICMPv6 1280 (RFC 4443 section 2.4).
const MOST: [usize; 2] = [576, 1280];

/// Writes the answer into `into`, which is empty, from the one that the packet was for to the one that sent it; false if
/// there is to be none (RFC 1122 section 3.2.2, RFC 4443 section 2.4): to errors, to groups, to packets that may be cut.
pub(super) fn answer(frame: &[u8], header: &Header, mtu: u32, into: &mut Vec<u8>) -> bool {
    let Some(key) = header.key.filter(|_| header.indivisible) else { return false };
    let [source, destination] = key.addresses;
    let is_group = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_multicast() || address.is_unspecified(),
    };
    let kind = frame.get(header.transport).copied().unwrap_or_default();
    let is_error =
        (key.protocol == ICMP && !matches!(kind, 0 | 8 | 13..=18)) || (key.protocol == ICMPV6 && kind < 128);
    if is_error || is_group(source) || is_group(destination) {
        return false;
    }
    if header.network == ETHERNET {
        into.extend_from_slice(&frame[6..12]);
        into.extend_from_slice(&frame[..6]);
        into.extend_from_slice(&frame[12..ETHERNET]);
    }
    let packet = &frame[header.network..];
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let back = &packet[..packet.len().min(MOST[0] - 28)];
            let length = (28 + back.len()) as u16;
            // Precedence 6, internetwork control (RFC 1812 section 4.3.2.5); not to be cut; 64 hops.
            let mut ip = [0x45, 0xC0, 0, 0, 0, 0, 0x40, 0, 64, ICMP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            ip[2..4].copy_from_slice(&length.to_be_bytes());
            ip[12..16].copy_from_slice(&destination.octets());
            ip[16..].copy_from_slice(&source.octets());
            let sum = checksum(&[&ip]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut icmp = [3, 4, 0, 0, 0, 0, 0, 0];
            icmp[6..].copy_from_slice(&u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes());
            let sum = checksum(&[&icmp, back]);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            [&ip[..], &icmp, back].iter().for_each(|part| into.extend_from_slice(part));
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let back = &packet[..packet.len().min(MOST[1] - 48)];
            let length = (8 + back.len()) as u16;
            let mut ip = [0; 40];
            (ip[0], ip[6], ip[7]) = (0x60, ICMPV6, 64);
            ip[4..6].copy_from_slice(&length.to_be_bytes());
            ip[8..24].copy_from_slice(&destination.octets());
            ip[24..].copy_from_slice(&source.octets());
            let mut icmp = [2, 0, 0, 0, 0, 0, 0, 0];
            icmp[4..].copy_from_slice(&mtu.to_be_bytes());
            // The pseudo-header of RFC 8200 section 8.1: addresses, length, protocol.
            let sum = checksum(&[&ip[8..], &length.to_be_bytes(), &[0, ICMPV6], &icmp, back]);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            [&ip[..], &icmp, back].iter().for_each(|part| into.extend_from_slice(part));
        }
        _ => return false,
    }
    true
}

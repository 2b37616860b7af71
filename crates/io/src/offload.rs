//! Offloads: the kernel leaves checksums and the cutting of TCP's segments to the interface, and an interface may leave them to the
//! kernel. A header in front of a packet describes the work that is left (`struct virtio_net_hdr`, linux/virtio_net.h); packets in
//! [`tun`](crate::tun) and [`packet_ring`](crate::packet_ring) have it.

/// Work that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum that is missing, if one is.
    pub checksum: Option<Checksum>,
    /// Set if the packet consists of segments, which are to be cut.
    pub segments: Option<Segments>,
}

/// A missing Internet checksum. The packet has the sum of the pseudo-header in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The first byte that it covers; it covers all to the packet's end.
    pub start: u16,
    /// The offset of the checksum from `start`.
    pub place: u16,
}

/// Segments of TCP in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// True for IPv6, false for IPv4.
    pub is_ipv6: bool,
    /// The length of all headers in front of the payload.
    pub headers: u16,
    /// The payload of each segment but the last, which may be shorter.
    pub payload: u16,
    /// Only the first segment has the flag CWR (RFC 3168), which the packet has.
    pub is_first_reduced: bool,
}

impl Offload {
    /// The length of the header in front of a packet.
    pub const LENGTH: usize = 10;

    /// Reads the header; `None` for segments of other protocols, which our interfaces do not ask for.
    pub fn read(bytes: &[u8; Offload::LENGTH]) -> Option<Offload> {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let kind = bytes[1] & !ECN;
        let segments = Segments {
            is_ipv6: kind == TCP6,
            headers: word(2),
            payload: word(4),
            is_first_reduced: bytes[1] & ECN != 0,
        };
        let segments = match kind {
            NONE => None,
            TCP4 | TCP6 => Some(segments),
            _ => return None,
        };
        let checksum = Checksum { start: word(6), place: word(8) };
        Some(Offload { checksum: Some(checksum).filter(|_| bytes[0] & NEEDS_CHECKSUM != 0), segments })
    }

    /// Writes the header.
    pub fn write(&self) -> [u8; Offload::LENGTH] {
        let mut bytes = [0; Offload::LENGTH];
        let mut put = |at: usize, word: u16| bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        if let Some(Segments { headers, payload, .. }) = self.segments {
            put(2, headers);
            put(4, payload);
        }
        if let Some(Checksum { start, place }) = self.checksum {
            put(6, start);
            put(8, place);
            bytes[0] = NEEDS_CHECKSUM;
        }
        bytes[1] = self.segments.map_or(NONE, |segments| {
            let kind = if segments.is_ipv6 { TCP6 } else { TCP4 };
            if segments.is_first_reduced { kind | ECN } else { kind }
        });
        bytes
    }
}

// linux/virtio_net.h
const NEEDS_CHECKSUM: u8 = 1;
const NONE: u8 = 0;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const ECN: u8 = 0x80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_offload() -> impl Strategy<Value = Offload> {
        let checksum = (any::<u16>(), any::<u16>()).prop_map(|(start, place)| Checksum { start, place });
        let segments = (any::<bool>(), any::<u16>(), any::<u16>(), any::<bool>());
        let segments = segments.prop_map(|(is_ipv6, headers, payload, is_first_reduced)| Segments {
            is_ipv6,
            headers,
            payload,
            is_first_reduced,
        });
        let parts = (prop::option::of(checksum), prop::option::of(segments));
        parts.prop_map(|(checksum, segments)| Offload { checksum, segments })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(offload in any_offload()) {
            prop_assert_eq!(Offload::read(&offload.write()), Some(offload));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<[u8; Offload::LENGTH]>()) {
            if let Some(offload) = Offload::read(&bytes) {
                prop_assert_eq!(Offload::read(&offload.write()), Some(offload));
            }
        }
    }

    #[test]
    fn segments_of_udp_are_refused() {
        assert_eq!(Offload::read(&[1, 5, 42, 0, 0, 4, 0, 0, 0, 0]), None);
    }
}

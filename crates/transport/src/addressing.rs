//! How hosts of an experiment appear in checksums and in foreign protocol engines: as IPv4 addresses.

/// The IPv4 address of the host with this index: `10.h.l.1`, where `h` and `l` are the index's bytes. It never leaves
/// virtual time; it only fills pseudo-headers (RFC 768, RFC 9293) and the headers of engines that build whole packets.
pub const fn ipv4_of(host: u16) -> [u8; 4] {
    let [high, low] = host.to_be_bytes();
    [10, high, low, 1]
}

/// The host index of an address made by [`ipv4_of`], or `None` if it is another address.
pub const fn host_of(address: [u8; 4]) -> Option<u16> {
    match address {
        [10, high, low, 1] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_its_own_address() {
        for host in [0, 1, 255, 256, u16::MAX] {
            assert_eq!(host_of(ipv4_of(host)), Some(host));
        }
        assert_eq!(host_of([192, 168, 0, 1]), None);
    }
}

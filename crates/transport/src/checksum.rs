//! The Internet checksum (RFC 1071), with the pseudo-headers of IPv4 (RFC 768) and IPv6 (RFC 8200 section 8.1).

use core::net::IpAddr;

/// The sum of a pseudo-header, to begin [`sum`] with: of a packet of `length` bytes of this IP protocol between these
/// addresses, in either direction.
pub(crate) fn pseudo_header(protocol: u8, addresses: [IpAddr; 2], length: usize) -> u64 {
    let [one, other] = addresses.map(|address| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => words(&address.octets()),
    });
    one + other + u64::from(protocol) + length as u64
}

/// The ones' complement sum of `start` and all 16-bit words; an odd last byte counts as if a zero followed it. All ones
/// if the bytes hold their own right checksum.
pub(crate) fn sum(start: u64, bytes: &[u8]) -> u16 {
    let mut sum = start + words(bytes);
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// The ones' complement sum of all 16-bit words, folded to 34 bits: sums of 64-bit words fold into those of 16-bit words,
/// and 2^64 words overflow no u128.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum: u128 = words.iter().map(|&word| u128::from(u64::from_be_bytes(word))).sum();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        sum += u128::from(u64::from_be_bytes(last));
    }
    (0..4).map(|word| (sum >> (32 * word)) as u64 & 0xFFFF_FFFF).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the sum of these bytes is ddf2.
        assert_eq!(sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_half_of_a_word() {
        assert_eq!(sum(0, &[0x12]), 0x1200);
        assert_eq!(sum(0, &[0, 0, 0, 0, 0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }

    #[test]
    fn a_pseudo_header_holds_the_words_of_both_addresses() {
        let v4 = ["10.0.0.1", "10.0.1.1"].map(|text| text.parse().unwrap());
        assert_eq!(sum(pseudo_header(17, v4, 12), &[]), 0x0a00 + 0x0001 + 0x0a00 + 0x0101 + 17 + 12);
        let v6 = ["2001:db8::7", "::1"].map(|text| text.parse().unwrap());
        assert_eq!(sum(pseudo_header(33, v6, 20), &[]), 0x2001 + 0x0db8 + 7 + 1 + 33 + 20);
    }
}

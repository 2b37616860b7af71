//! The Internet checksum with a pseudo-header (RFC 1071, RFC 4340 section 9.1) and CRC-32c (RFC 4340 section 9.3).

use trunkline_core::Address;

use crate::addressing::ipv4_of;

/// The ones' complement sum of the IPv4 pseudo-header and the covered bytes; all ones if they hold their right checksum.
/// `length` is that of the whole packet, `covered` may be less of it.
pub(super) fn sum(protocol: u8, from: Address, to: Address, length: usize, covered: &[u8]) -> u16 {
    let [source, destination] =
        [from, to].map(|address| u64::from(u32::from_be_bytes(ipv4_of(address.host))));
    let mut sum = source + destination + u64::from(protocol) + length as u64;
    // Ones' complement sums of 32-bit words fold into those of 16-bit words, and 2^32 words overflow no u64.
    let mut words = covered.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(last));
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// CRC-32c as SCTP uses it; zero for no bytes.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc = TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    }
    !crc
}

/// Of the reflected Castagnoli polynomial.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_32c_has_its_published_values() {
        // RFC 3720 appendix B.4.
        assert_eq!(crc32c(&[]), 0);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }
}

//! The Internet checksum (RFC 1071) over one piece of memory.

/// The ones' complement sum of all 16-bit words; an odd last byte counts as if a zero followed it. All ones if the
/// bytes hold their own right checksum.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    // Ones' complement sums of 32-bit words fold into those of 16-bit words, and 2^32 words overflow no u64.
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|&word| u64::from(u32::from_be_bytes(word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_be_bytes(last));
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the sum of these bytes is ddf2.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_half_of_a_word() {
        assert_eq!(sum(&[0x12]), 0x1200);
        assert_eq!(sum(&[0, 0, 0, 0, 0x12, 0x34, 0x56]), 0x1234 + 0x5600);
    }
}

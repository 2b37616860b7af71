//! The Internet checksum (RFC 1071).

/// The checksum of these pieces. All but the last have an even length.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u16 {
    !fold(pieces.iter().map(|piece| sum(piece)).sum())
}

/// The sum of the 16-bit words, not folded. Sums of pieces with an even length add up.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // The order of bytes does not matter to the folded sum (RFC 1071 section 2, B), so that wider words do.
    let (words, rest) = bytes.as_chunks::<4>();
    let total: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    u64::from(u16::from_be(fold(total + u64::from(u32::from_ne_bytes(last)))))
}

/// The same in 16 bits, with the carries added.
#[inline]
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// A checksum after one word has changed (RFC 1624 section 3, equation 3).
pub(crate) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    !fold(u64::from(sum))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_that_of_16_bit_words(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let words = bytes.chunks(2).map(|word| u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
            prop_assert_eq!(checksum(&[&bytes]), !fold(words.map(u64::from).sum()));
        }
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }
}

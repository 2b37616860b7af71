//! Recognises damaged headers: not every transport's checksum covers them.
//!
//! A header is a number whose remainder of the division by a prime is known. Two is a primitive root of each prime, and a
//! header has far fewer bits than the half of it, so a change of one or two bits, or of neighbouring bits that are fewer than
//! the prime has, always changes the remainder. Of all other changes, one in about as many as the prime is not noticed.

use super::HEADER_LENGTH;

/// Words of the longest header.
const WORDS: usize = HEADER_LENGTH / 4;

/// A prime of 13 bits, for the header of 40 bytes.
pub(super) const LONG: u64 = 8_179;
/// A prime of 15 bits, for the header of 16 bytes of a datagram.
pub(super) const DATAGRAM: u64 = 32_749;
/// A prime of 16 bits, for the header of 16 bytes of a message in a stream.
pub(super) const STREAM: u64 = 65_371;

/// The remainder of the division of `bytes`, a number of at most ten whole words of 4 bytes, by a prime of at most 16 bits.
pub(super) fn remainder<const PRIME: u64>(bytes: &[u8]) -> u64 {
    let weights = const { weights(PRIME) };
    let (words, _) = bytes.as_chunks::<4>();
    // Each product has at most 48 bits.
    let weighted = |(word, weight): (&[u8; 4], u64)| u64::from(u32::from_be_bytes(*word)) * weight;
    words.iter().rev().zip(weights).map(weighted).sum::<u64>() % PRIME
}

/// The remainders that the lowest bits of words stand for, the last word first.
const fn weights(prime: u64) -> [u64; WORDS] {
    let (mut weights, mut place) = ([1; WORDS], 1);
    while place < WORDS {
        weights[place] = power_of_two(32 * place as u64, prime);
        place += 1;
    }
    weights
}

/// The number that makes one with this remainder divisible by a prime if it is added `bits` further left.
pub(super) const fn complement<const PRIME: u64, const BITS: u64>(remainder: u64) -> u64 {
    // The inverse of a power of two is another one: 2 to the power of PRIME - 1 has the remainder 1.
    (PRIME - remainder) * const { power_of_two(PRIME - 1 - BITS, PRIME) } % PRIME
}

/// The remainder of the division of a power of two by a prime.
const fn power_of_two(mut exponent: u64, prime: u64) -> u64 {
    let (mut power, mut square) = (1, 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * square % prime;
        }
        square = square * square % prime;
        exponent >>= 1;
    }
    power
}

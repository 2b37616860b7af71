//! The bytes of a segment: chunks one behind the other, each with its length and a checksum, so that whatever a process that
//! was killed had written is known from what it had only begun to write.
//!
//! ```text
//! segment = record*
//! record  = length of the data (u32) · CRC-32 of what follows and of the length (u32) · number of the chunk (u64)
//!           · how many observations it holds (u32) · data
//! ```
//! Numbers are big-endian. Within a segment the numbers of chunks follow each other.

use trunkline_core::Bytes;

/// Bytes in front of the data of a chunk.
pub(super) const HEAD: usize = 20;

/// The most data that one chunk may hold: far more than is ever gathered, little enough to be read at once.
pub(super) const MOST: usize = 32 << 20;

/// A chunk in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number.
    pub(super) number: u64,
    /// Where its data begins.
    pub(super) offset: u64,
    /// How much data there is.
    pub(super) length: u32,
    /// How many observations that is.
    pub(super) observations: u32,
}

impl Entry {
    /// The bytes that the chunk takes in its segment.
    pub(super) fn size(&self) -> Bytes {
        Bytes(HEAD as u64 + u64::from(self.length))
    }
}

/// What stands in front of the data of a chunk. `None` if there is too much of it.
pub(super) fn head(number: u64, observations: u32, data: &[u8]) -> Option<[u8; HEAD]> {
    let length = u32::try_from(data.len()).ok().filter(|&length| length as usize <= MOST)?;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_be_bytes());
    head[8..16].copy_from_slice(&number.to_be_bytes());
    head[16..].copy_from_slice(&observations.to_be_bytes());
    let sum = checksum(&head, data);
    head[4..8].copy_from_slice(&sum.to_be_bytes());
    Some(head)
}

/// The whole chunks at the beginning of a segment, and where they end: at the first that is cut off, damaged, or not the
/// next one.
pub(super) fn scan(bytes: &[u8]) -> (Vec<Entry>, usize) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut end = 0;
    while let Some((head, rest)) = bytes.get(end..).and_then(|rest| rest.split_first_chunk::<HEAD>()) {
        let field = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, sum, observations) = (field(0), field(4), field(16));
        let number = u64::from(field(8)) << 32 | u64::from(field(12));
        let is_next = entries.last().is_none_or(|last| last.number + 1 == number);
        let data = (length as usize <= MOST).then(|| rest.get(..length as usize)).flatten();
        let Some(data) = data.filter(|data| is_next && checksum(head, data) == sum) else { break };
        entries.push(Entry { number, offset: (end + HEAD) as u64, length, observations });
        end += HEAD + data.len();
    }
    (entries, end)
}

/// Whether the data is what this head was made for.
pub(super) fn is_whole(head: &[u8; HEAD], data: &[u8]) -> bool {
    checksum(head, data).to_be_bytes() == head[4..8]
}

fn checksum(head: &[u8; HEAD], data: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head[..4]);
    sum.update(&head[8..]);
    sum.update(data);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(first: u64, chunks: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (number, data) in (first..).zip(chunks) {
            bytes.extend(head(number, data.len() as u32 / 2, data).unwrap());
            bytes.extend(data);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..8)
    }

    proptest! {
        #[test]
        fn a_segment_cut_anywhere_keeps_its_whole_chunks(first in any::<u32>(), chunks in chunks()) {
            let (bytes, ends) = segment(u64::from(first), &chunks);
            for cut in 0..=bytes.len() {
                let whole = ends.iter().filter(|&&end| end <= cut).count();
                let (entries, end) = scan(&bytes[..cut]);
                prop_assert_eq!(entries.len(), whole);
                prop_assert_eq!(end, ends[..whole].last().copied().unwrap_or(0));
                for ((number, data), entry) in (u64::from(first)..).zip(&chunks).zip(&entries) {
                    prop_assert_eq!(entry.number, number);
                    prop_assert_eq!(entry.observations as usize, data.len() / 2);
                    let from = entry.offset as usize;
                    prop_assert_eq!(&bytes[from..from + entry.length as usize], &data[..]);
                }
            }
        }

        #[test]
        fn a_flipped_bit_ends_the_segment_at_its_chunk(chunks in chunks(), place in any::<proptest::sample::Index>()) {
            let (mut bytes, ends) = segment(7, &chunks);
            prop_assume!(!bytes.is_empty());
            let bit = place.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let before = ends.iter().filter(|&&end| end <= bit / 8).count();
            prop_assert_eq!(scan(&bytes).0.len(), before);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (entries, end) = scan(&bytes);
            prop_assert!(end <= bytes.len());
            prop_assert!(entries.iter().all(|entry| entry.offset + u64::from(entry.length) <= end as u64));
        }
    }
}

//! SCTP packets (RFC 9260 section 3): the common header with its checksum, and the chunks behind it.

use crate::crc32c::CRC32C;

/// Types of chunks (RFC 9260 section 3.2, RFC 3758 section 3.2).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const INIT: u8 = 1;
    pub(in super::super) const INIT_ACK: u8 = 2;
    pub(in super::super) const SACK: u8 = 3;
    pub(in super::super) const HEARTBEAT: u8 = 4;
    pub(in super::super) const HEARTBEAT_ACK: u8 = 5;
    pub(in super::super) const ABORT: u8 = 6;
    pub(in super::super) const SHUTDOWN: u8 = 7;
    pub(in super::super) const SHUTDOWN_ACK: u8 = 8;
    pub(in super::super) const ERROR: u8 = 9;
    pub(in super::super) const COOKIE_ECHO: u8 = 10;
    pub(in super::super) const COOKIE_ACK: u8 = 11;
    pub(in super::super) const SHUTDOWN_COMPLETE: u8 = 14;
    pub(in super::super) const FORWARD_TSN: u8 = 192;
}

/// Causes of errors (RFC 9260 section 3.3.10).
pub(super) mod cause {
    pub(in super::super) const INVALID_STREAM: u16 = 1;
    pub(in super::super) const STALE_COOKIE: u16 = 3;
    pub(in super::super) const UNRECOGNIZED_CHUNK: u16 = 6;
    pub(in super::super) const INVALID_PARAMETER: u16 = 7;
    pub(in super::super) const NO_USER_DATA: u16 = 9;
}

/// The flag of ABORT and SHUTDOWN COMPLETE that says that their tag is the one of the packet they answer.
pub(super) const TAG_REFLECTED: u8 = 1;

/// Bytes of the common header, of a chunk's, and of a DATA chunk before its user data.
pub(super) const COMMON_HEADER: usize = 12;
pub(super) const CHUNK_HEADER: usize = 4;
pub(super) const DATA_HEADER: usize = 16;

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: u16,
    pub(super) destination: u16,
    /// The verification tag.
    pub(super) tag: u32,
}

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    Checksum,
}

/// A chunk, without the padding behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'p> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// What follows its header.
    pub(super) value: &'p [u8],
}

impl Header {
    /// Reads a packet whose checksum is right, with at least one chunk, and only whole ones.
    pub(super) fn verify(packet: &[u8]) -> Result<(Header, Chunks<'_>), Fault> {
        let (common, rest) = packet.split_first_chunk::<COMMON_HEADER>().ok_or(Fault::Malformed)?;
        if packet[CHECKSUM] != checksum(packet) {
            return Err(Fault::Checksum);
        }
        let [a, b, c, d, tag @ ..] = *common;
        let tag = u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]]);
        let mut walked = Chunks(rest);
        walked.by_ref().for_each(drop);
        if rest.is_empty() || !walked.0.is_empty() {
            return Err(Fault::Malformed);
        }
        let header =
            Header { source: u16::from_be_bytes([a, b]), destination: u16::from_be_bytes([c, d]), tag };
        Ok((header, Chunks(rest)))
    }
}

/// The chunks of a packet; it ends early before what is not a whole one. The padding of the last may be missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks<'p>(&'p [u8]);

impl<'p> Iterator for Chunks<'p> {
    type Item = Chunk<'p>;

    fn next(&mut self) -> Option<Chunk<'p>> {
        let &[kind, flags, high, low] = self.0.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let value = self.0.get(CHUNK_HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Chunk { kind, flags, value })
    }
}

/// The parameters of an INIT or INIT ACK, or the causes of an error: their types, and each from its header on without
/// padding. It ends early before what is not a whole one.
pub(super) fn parameters(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let &[a, b, c, d] = bytes.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([c, d]));
        let whole = bytes.get(..length).filter(|_| length >= CHUNK_HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_be_bytes([a, b]), whole))
    })
}

/// Begins a packet; chunks follow, and [`seal`].
pub(super) fn begin(into: &mut Vec<u8>, source: u16, destination: u16, tag: u32) {
    into.clear();
    into.extend_from_slice(&source.to_be_bytes());
    into.extend_from_slice(&destination.to_be_bytes());
    into.extend_from_slice(&tag.to_be_bytes());
    into.extend_from_slice(&[0; 4]);
}

/// Appends a chunk whose value has two parts, and its padding.
pub(super) fn put(into: &mut Vec<u8>, kind: u8, flags: u8, first: &[u8], rest: &[u8]) {
    let length = CHUNK_HEADER + first.len() + rest.len();
    into.extend_from_slice(&[kind, flags]);
    into.extend_from_slice(&(length as u16).to_be_bytes());
    into.extend_from_slice(first);
    into.extend_from_slice(rest);
    pad(into);
}

/// Appends a parameter or a cause of an error to the value of a chunk, with padding before it: that behind the last one
/// does not count in the chunk's length (RFC 9260 section 3.2).
pub(super) fn put_parameter(into: &mut Vec<u8>, kind: u16, value: &[u8]) {
    pad(into);
    into.extend_from_slice(&kind.to_be_bytes());
    into.extend_from_slice(&((CHUNK_HEADER + value.len()) as u16).to_be_bytes());
    into.extend_from_slice(value);
}

fn pad(into: &mut Vec<u8>) {
    into.resize(into.len().next_multiple_of(4), 0);
}

/// Completes a packet with its checksum.
pub(super) fn seal(packet: &mut [u8]) {
    let checksum = checksum(packet);
    packet[CHECKSUM].copy_from_slice(&checksum);
}

/// A packet with one chunk.
pub(super) fn packet(source: u16, destination: u16, tag: u32, chunk: Chunk<'_>) -> Vec<u8> {
    let mut packet = Vec::with_capacity(COMMON_HEADER + CHUNK_HEADER + chunk.value.len());
    begin(&mut packet, source, destination, tag);
    put(&mut packet, chunk.kind, chunk.flags, chunk.value, &[]);
    seal(&mut packet);
    packet
}

/// Whether a TSN is later than another (serial number arithmetic, RFC 9260 section 1.6).
pub(super) fn is_later(tsn: u32, than: u32) -> bool {
    (tsn.wrapping_sub(than) as i32) > 0
}

/// The number that stands at a place of a chunk's value; `None` if the value is too short.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// As [`u32_at`].
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

const CHECKSUM: core::ops::Range<usize> = 8..12;

/// CRC-32c over the packet with zeros for the checksum itself, as it is sent (RFC 9260 appendix A). `packet` has a common
/// header.
pub(super) fn checksum(packet: &[u8]) -> [u8; 4] {
    let mut digest = CRC32C.digest();
    for part in [&packet[..CHECKSUM.start], &[0; 4], &packet[CHECKSUM.end..]] {
        digest.update(part);
    }
    digest.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_crc_32c_in_reverse_byte_order() {
        // RFC 3720 appendix B.4: 32 bytes of zeros. The field of the checksum counts as zeros whatever it holds.
        let mut packet = [0; 32];
        packet[CHECKSUM].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(checksum(&packet), [0xAA, 0x36, 0x91, 0x8A]);
    }

    #[test]
    fn what_was_written_is_read() {
        let mut packet = Vec::new();
        begin(&mut packet, 1, 2, 3);
        put(&mut packet, kind::COOKIE_ECHO, 5, &[1, 2], &[3]);
        put(&mut packet, kind::DATA, 0, &[], &[4; 8]);
        seal(&mut packet);
        let (header, chunks) = Header::verify(&packet).unwrap();
        assert_eq!(header, Header { source: 1, destination: 2, tag: 3 });
        let cookie = Chunk { kind: kind::COOKIE_ECHO, flags: 5, value: &[1, 2, 3] };
        assert_eq!(
            chunks.collect::<Vec<_>>(),
            [cookie, Chunk { kind: kind::DATA, flags: 0, value: &[4; 8] }]
        );
        for at in 0..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Header::verify(&damaged).unwrap_err(), Fault::Checksum, "byte {at}");
        }
    }

    #[test]
    fn packets_of_broken_chunks_are_malformed() {
        let chunk = [kind::DATA, 0, 0, 8, 1, 2, 3, 4];
        let verify = |chunks: &[u8]| {
            let mut packet = Vec::new();
            begin(&mut packet, 1, 2, 3);
            packet.extend_from_slice(chunks);
            seal(&mut packet);
            Header::verify(&packet).map(|(_, chunks)| chunks.count())
        };
        assert_eq!(verify(&[chunk, chunk].concat()), Ok(2));
        // The padding of the last may be missing.
        assert_eq!(verify(&[&chunk[..], &[kind::SACK, 0, 0, 5, 9]].concat()), Ok(2));
        for broken in [&chunk[..7], &chunk[..3], &[kind::DATA, 0, 0, 3], &[]] {
            assert_eq!(verify(broken), Err(Fault::Malformed), "{broken:?}");
        }
        assert_eq!(Header::verify(&[0; 11]).unwrap_err(), Fault::Malformed);
    }

    #[test]
    fn parameters_end_before_what_is_none() {
        let mut bytes = Vec::new();
        put_parameter(&mut bytes, 7, &[1, 2, 3]);
        put_parameter(&mut bytes, 8, &[]);
        bytes.extend_from_slice(&[0, 9, 0, 3]);
        let found: Vec<_> = parameters(&bytes).map(|(kind, whole)| (kind, whole.len())).collect();
        assert_eq!(found, [(7, 7), (8, 4)]);
    }
}

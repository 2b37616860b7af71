//! What the adapter itself reads and writes of SCTP packets (RFC 9260 section 3): the common header and its checksum, what
//! concerns the receive window, and the answer of an end without an association.

/// Types of chunks (RFC 9260 section 3.2, RFC 3758 section 3.2).
pub(super) mod chunk {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const INIT: u8 = 1;
    pub(in super::super) const INIT_ACK: u8 = 2;
    pub(in super::super) const SACK: u8 = 3;
    pub(in super::super) const ABORT: u8 = 6;
    pub(in super::super) const SHUTDOWN: u8 = 7;
    pub(in super::super) const SHUTDOWN_ACK: u8 = 8;
    pub(in super::super) const COOKIE_ECHO: u8 = 10;
    pub(in super::super) const SHUTDOWN_COMPLETE: u8 = 14;
}

/// The common header and the first chunk of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: u16,
    pub(super) destination: u16,
    /// The verification tag.
    pub(super) tag: u32,
    /// The type of the first chunk.
    pub(super) chunk: u8,
    /// Of INIT: the tag that its sender wants to be answered with.
    pub(super) initiate_tag: Option<u32>,
}

/// Why a packet is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    Checksum,
}

impl Header {
    /// Reads the header of a packet whose checksum is right.
    pub(super) fn verify(packet: &[u8]) -> Result<Header, Fault> {
        let header = Header::trusted(packet).ok_or(Fault::Malformed)?;
        if packet[CHECKSUM] != checksum(packet) { Err(Fault::Checksum) } else { Ok(header) }
    }

    /// Reads the header of a packet that was not damaged; `None` if it is too short for one.
    pub(super) fn trusted(packet: &[u8]) -> Option<Header> {
        let (common, chunks) = packet.split_first_chunk::<COMMON_HEADER>()?;
        let chunk = *chunks.first_chunk::<CHUNK_HEADER>()?;
        let initiate_tag = (chunk[0] == chunk::INIT).then(|| u32_at(chunks, CHUNK_HEADER)).flatten();
        Some(Header {
            source: u16::from_be_bytes([common[0], common[1]]),
            destination: u16::from_be_bytes([common[2], common[3]]),
            tag: u32_at(common, 4)?,
            chunk: chunk[0],
            initiate_tag,
        })
    }

    /// What an endpoint without an association answers to this packet: an ABORT, or nothing (RFC 9260 section 8.4).
    pub(super) fn out_of_the_blue(&self) -> Option<Vec<u8>> {
        const TAG_REFLECTED: u8 = 1;
        let (tag, flags) = match (self.chunk, self.initiate_tag) {
            (chunk::ABORT | chunk::SHUTDOWN_COMPLETE, _) | (chunk::INIT, None) => return None,
            (chunk::INIT, Some(tag)) => (tag, 0),
            _ => (self.tag, TAG_REFLECTED),
        };
        Some(packet(self.destination, self.source, tag, &[chunk::ABORT, flags, 0, 4]))
    }
}

/// Changes the receive window that a packet from here announces, in INIT, INIT ACK or SACK, and returns what it announces
/// then; `None` if it announces none.
pub(super) fn announce(packet: &mut [u8], window: impl FnOnce(u8, usize) -> usize) -> Option<usize> {
    let (kind, at) = announcement(packet)?;
    let announced = window(kind, u32_at(packet, at)? as usize);
    let bytes = u32::try_from(announced).unwrap_or(u32::MAX).to_be_bytes();
    packet.get_mut(at..at + 4)?.copy_from_slice(&bytes);
    let checksum = checksum(packet);
    packet[CHECKSUM].copy_from_slice(&checksum);
    Some(announced)
}

/// The type of the chunk of a packet that announces a receive window, and where; it stands before any data.
fn announcement(packet: &[u8]) -> Option<(u8, usize)> {
    let mut start = COMMON_HEADER;
    loop {
        let header: [u8; CHUNK_HEADER] = *packet.get(start..)?.first_chunk()?;
        let [kind, _, high, low] = header;
        match kind {
            // After a tag or a TSN.
            chunk::INIT | chunk::INIT_ACK | chunk::SACK => return Some((kind, start + 8)),
            chunk::DATA => return None,
            _ => start += usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4).max(CHUNK_HEADER),
        }
    }
}

/// The receive window that a packet of the peer announces; `None` if it announces none.
pub(super) fn announced(packet: &[u8]) -> Option<u32> {
    let at = announcement(packet)?.1;
    u32_at(packet, at)
}

/// A packet as this one, with the SACK that says what its SHUTDOWN acknowledges (RFC 9260 section 9.2); `None` if it does not
/// begin with one.
pub(super) fn sack_of_shutdown(shutdown: &[u8], window: u32) -> Option<Vec<u8>> {
    let header = Header::trusted(shutdown).filter(|header| header.chunk == chunk::SHUTDOWN)?;
    let mut sack = [chunk::SACK, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let tsn = u32_at(shutdown, COMMON_HEADER + CHUNK_HEADER)?;
    sack[4..8].copy_from_slice(&tsn.to_be_bytes());
    sack[8..12].copy_from_slice(&window.to_be_bytes());
    Some(packet(header.source, header.destination, header.tag, &sack))
}

/// The first and the last TSN of the user data in a packet, alone or behind an acknowledgement; `None` if there is none.
pub(super) fn tsns(packet: &[u8]) -> Option<(u32, u32)> {
    let mut found = None;
    let mut start = COMMON_HEADER;
    while let Some(&[kind, _, high, low]) = packet.get(start..).and_then(<[u8]>::first_chunk) {
        match kind {
            chunk::SACK => {}
            chunk::DATA => {
                let tsn = u32_at(packet, start + CHUNK_HEADER)?;
                found = Some((found.map_or(tsn, |(first, _)| first), tsn));
            }
            _ => break,
        }
        start += usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4).max(CHUNK_HEADER);
    }
    found
}

/// Whether whoever sent a packet waits for an answer to it.
pub(super) fn wants_answer(packet: &[u8]) -> bool {
    const REQUESTS: [u8; 4] = [chunk::INIT, chunk::COOKIE_ECHO, chunk::SHUTDOWN, chunk::SHUTDOWN_ACK];
    tsns(packet).is_some() || packet.get(COMMON_HEADER).is_some_and(|kind| REQUESTS.contains(kind))
}

/// Whether a TSN is later than another (serial number arithmetic, RFC 9260 section 1.6).
pub(super) fn is_later(tsn: u32, than: u32) -> bool {
    (tsn.wrapping_sub(than) as i32) > 0
}

/// A packet of these chunks.
pub(super) fn packet(source: u16, destination: u16, tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(COMMON_HEADER + chunks.len());
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(&destination.to_be_bytes());
    packet.extend_from_slice(&tag.to_be_bytes());
    packet.extend_from_slice(&[0; 4]);
    packet.extend_from_slice(chunks);
    let checksum = checksum(&packet);
    packet[CHECKSUM].copy_from_slice(&checksum);
    packet
}

const COMMON_HEADER: usize = 12;
const CHUNK_HEADER: usize = 4;
const CHECKSUM: core::ops::Range<usize> = 8..12;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// CRC-32c over the packet with zeros for the checksum itself, as it is sent (RFC 9260 appendix A). `packet` has a common
/// header.
pub(super) fn checksum(packet: &[u8]) -> [u8; 4] {
    let mut crc = u32::MAX;
    for part in [&packet[..CHECKSUM.start], &[0; 4], &packet[CHECKSUM.end..]] {
        // Eight bytes at a time, each with the table of its distance ("slicing by eight").
        let mut words = part.chunks_exact(8);
        for word in &mut words {
            let [a, b, c, d] = crc.to_le_bytes();
            crc = TABLES[7][usize::from(word[0] ^ a)]
                ^ TABLES[6][usize::from(word[1] ^ b)]
                ^ TABLES[5][usize::from(word[2] ^ c)]
                ^ TABLES[4][usize::from(word[3] ^ d)]
                ^ TABLES[3][usize::from(word[4])]
                ^ TABLES[2][usize::from(word[5])]
                ^ TABLES[1][usize::from(word[6])]
                ^ TABLES[0][usize::from(word[7])];
        }
        for &byte in words.remainder() {
            crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
        }
    }
    (!crc).to_le_bytes()
}

/// Of the reflected Castagnoli polynomial; the table `n` is for a byte that `n` others follow.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        let mut distance = 1;
        while distance < 8 {
            let before = tables[distance - 1][byte];
            tables[distance][byte] = tables[0][(before & 0xFF) as usize] ^ before >> 8;
            distance += 1;
        }
        byte += 1;
    }
    tables
};

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
    fn windows_are_announced_as_told_wherever_they_stand() {
        let sack = [chunk::SACK, 0, 0, 16, 0, 0, 0, 1, 0, 0, 3, 232, 0, 0, 0, 0];
        let behind = [&[chunk::COOKIE_ECHO, 0, 0, 5, 9, 0, 0, 0][..], &sack].concat();
        for chunks in [&sack[..], &behind] {
            let mut packet = packet(1, 2, 3, chunks);
            assert_eq!(announce(&mut packet, |kind, size| usize::from(kind) + size), Some(1003));
            assert_eq!(announce(&mut packet, |_, size| size), Some(1003));
            assert!(Header::verify(&packet).is_ok());
        }
        for chunks in [&[chunk::DATA, 0, 0, 4][..], &[chunk::COOKIE_ECHO, 0, 0, 0], &sack[..11], &[]] {
            assert_eq!(announce(&mut packet(1, 2, 3, chunks), |_, size| size), None);
        }
    }

    #[test]
    fn user_data_is_found_alone_and_behind_an_acknowledgement() {
        let sack = [chunk::SACK, 0, 0, 16, 0, 0, 0, 1, 0, 0, 3, 232, 0, 0, 0, 0];
        let data = |tsn: u8| [chunk::DATA, 3, 0, 17, 255, 255, 255, tsn, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        let both = [&data(3)[..], &data(5)].concat();
        let last = |tsn| u32::MAX - 255 + tsn;
        assert_eq!(tsns(&packet(1, 2, 3, &both)), Some((last(3), last(5))));
        assert_eq!(tsns(&packet(1, 2, 3, &[&sack[..], &both].concat())), Some((last(3), last(5))));
        assert_eq!(tsns(&packet(1, 2, 3, &sack)), None);
        assert_eq!(tsns(&packet(1, 2, 3, &data(3)[..7])), None);
        assert!(is_later(2, u32::MAX) && !is_later(2, 2) && !is_later(u32::MAX, 2));
    }

    #[test]
    fn packets_of_our_own_are_verified() {
        let packet = packet(1, 2, 3, &[chunk::COOKIE_ECHO, 0, 0, 8, 0, 1, 2, 3]);
        let header = Header::verify(&packet).unwrap();
        assert_eq!(
            header,
            Header { source: 1, destination: 2, tag: 3, chunk: chunk::COOKIE_ECHO, initiate_tag: None }
        );
        let answer = header.out_of_the_blue().unwrap();
        let answered = Header::verify(&answer).unwrap();
        assert_eq!((answered.source, answered.destination, answered.tag), (2, 1, 3));
        assert_eq!(answered.out_of_the_blue(), None);
        for at in 0..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Header::verify(&damaged), Err(Fault::Checksum), "byte {at}");
        }
        assert_eq!(Header::verify(&packet[..15]), Err(Fault::Malformed));
    }
}

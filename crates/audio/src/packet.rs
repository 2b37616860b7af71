//! Our own packet of audio: some channels of one block, with all that a receiver needs to find, check and place them.
//!
//! All numbers are big-endian:
//!
//! | bytes | field | |
//! | --- | --- | --- |
//! | 0 to 3 | key | `54 72 4B 01`: here a packet starts, of version 1 |
//! | 4 to 7 | sequence number | of the block; the parts of a block share it; wraps |
//! | 8 to 15 | time stamp | when the block's first frame was captured, in nanoseconds of the sender's clock |
//! | 16 to 17 | data size | bytes behind the header |
//! | 18 to 19 | first channel | counted from 0 |
//! | 20 to 21 | channels | how many are here |
//! | 22 to 23 | frames | of each channel |
//! | 24 | codec | 0: 16 bit, 1: 24 bit, 2: 32-bit float, 3: mu-law, 4: A-law, 5: Opus |
//! | 25 to 28 | check | CRC-32 (IEEE 802.3) of bytes 0 to 24 and of the data |
//! | from 29 | data | |
//!
//! These are the fields of Schiavoni, Queiroz and Wanderley (2013), Figure 7, and the channel layout and the check. Packets
//! stand alone, or one behind the other in a stream of bytes, out of which a [`Finder`] takes them: what TCP delivers,
//! or datagrams of constant size into which the stream was cut, some of which are lost. The check tells a packet from
//! one of which a piece is missing and to which the next packet was joined.

#[cfg(test)]
mod tests;

use trunkline_core::Time;

/// Starts every packet.
pub const KEY: [u8; 4] = *b"TrK\x01";

/// What stands before the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The block's number.
    pub sequence: u32,
    /// When its first frame was captured, by the sender's clock.
    pub captured: Time,
    /// The first channel that is here.
    pub first_channel: u16,
    /// How many channels are here.
    pub channels: u16,
    /// Frames of each channel.
    pub frames: u16,
    /// How the data is written.
    pub codec: u8,
}

impl Header {
    /// Its length.
    pub const BYTES: usize = 29;
    /// The longest data.
    pub const MOST_DATA: usize = u16::MAX as usize;

    /// Appends a packet to `bytes`: this header, and what `data` appends, [`Header::MOST_DATA`] at most.
    pub fn append(&self, bytes: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
        let start = bytes.len();
        bytes.extend(KEY);
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.captured.as_nanos().to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.first_channel.to_be_bytes());
        bytes.extend(self.channels.to_be_bytes());
        bytes.extend(self.frames.to_be_bytes());
        bytes.push(self.codec);
        bytes.extend([0; 4]);
        let data_start = bytes.len();
        data(bytes);
        let packet = &mut bytes[start..];
        let size = u16::try_from(packet.len() - (data_start - start)).unwrap_or(u16::MAX);
        packet[16..18].copy_from_slice(&size.to_be_bytes());
        let check = check(packet);
        packet[CHECK..Header::BYTES].copy_from_slice(&check.to_be_bytes());
    }

    /// The header at the start of `bytes`, and the size of the data behind it; `None` if there is no key, or not a
    /// header's bytes. Nothing is checked.
    pub fn read(bytes: &[u8]) -> Option<(Header, usize)> {
        let bytes = bytes.first_chunk::<{ Header::BYTES }>().filter(|bytes| bytes.starts_with(&KEY))?;
        let [.., codec, _, _, _, _] = *bytes;
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (sequence, rest) = bytes[4..].split_first_chunk()?;
        let (captured, _) = rest.split_first_chunk()?;
        let header = Header {
            sequence: u32::from_be_bytes(*sequence),
            captured: Time::from_nanos(u64::from_be_bytes(*captured)),
            first_channel: u16_at(18),
            channels: u16_at(20),
            frames: u16_at(22),
            codec,
        };
        Some((header, usize::from(u16_at(16))))
    }

    /// A packet that stands alone: its header and its data; `None` if it is damaged or none.
    pub fn read_packet(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let (header, size) = Header::read(bytes)?;
        let whole = bytes.len() == Header::BYTES + size && is_intact(bytes);
        whole.then(|| (header, &bytes[Header::BYTES..]))
    }
}

/// Finds packets in a stream of bytes of which parts may be missing or damaged.
///
/// Every packet whose bytes came undamaged, in order and with nothing between them is found, as soon as what stood before
/// it is known not to be one: at the latest when as many bytes have come behind it as the longest packet has. Memory is
/// bounded by the longest packet, and so is work: a byte is checked at most once for each header that fits
/// before it into that length.
#[derive(Clone, Debug)]
pub struct Finder {
    /// What may still become a packet.
    held: Vec<u8>,
    /// The longest packet.
    most: usize,
    skipped: u64,
    damaged: u64,
}

impl Finder {
    /// For packets with at most `most_data` bytes of data each.
    pub fn new(most_data: usize) -> Finder {
        let most = Header::BYTES + most_data.min(Header::MOST_DATA);
        Finder { held: Vec::with_capacity(2 * most), most, skipped: 0, damaged: 0 }
    }

    /// Takes the next bytes and hands the packets that they complete to `found`. A header that is not `plausible`,
    /// given the size of the data, starts no packet.
    pub fn push(
        &mut self,
        bytes: &[u8],
        plausible: impl Fn(&Header, usize) -> bool,
        mut found: impl FnMut(Header, &[u8]),
    ) {
        for bytes in bytes.chunks(self.most) {
            self.held.extend_from_slice(bytes);
            let done = self.search(&plausible, &mut found);
            self.held.drain(..done);
        }
    }

    /// Bytes that belonged to no packet.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Packets whose header was found, but which were not whole.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Hands out what is there, and says how many bytes are done with.
    fn search(
        &mut self,
        plausible: impl Fn(&Header, usize) -> bool,
        mut found: impl FnMut(Header, &[u8]),
    ) -> usize {
        let mut at = 0;
        while let Some(ahead) = key_within(&self.held[at..]) {
            self.skipped += ahead as u64;
            at += ahead;
            let rest = &self.held[at..];
            if rest.len() < Header::BYTES {
                break;
            }
            let read = Header::read(rest)
                .filter(|(header, size)| Header::BYTES + size <= self.most && plausible(header, *size));
            if let Some((header, size)) = read {
                let Some(packet) = rest.get(..Header::BYTES + size) else { break };
                if is_intact(packet) {
                    found(header, &packet[Header::BYTES..]);
                    at += packet.len();
                    continue;
                }
                self.damaged += 1;
            }
            // No key begins within a key.
            self.skipped += KEY.len() as u64;
            at += KEY.len();
        }
        at
    }
}

/// How far ahead the next key is, or what the end of `bytes` has of one; `None` at the end.
fn key_within(bytes: &[u8]) -> Option<usize> {
    let starts = |rest: &[u8]| rest.iter().zip(KEY).all(|(byte, key)| *byte == key);
    (!bytes.is_empty()).then(|| (0..bytes.len()).find(|&at| starts(&bytes[at..])).unwrap_or(bytes.len()))
}

/// Where the check is in the header.
const CHECK: usize = 25;

fn is_intact(packet: &[u8]) -> bool {
    packet.get(CHECK..Header::BYTES).is_some_and(|stored| *stored == check(packet).to_be_bytes())
}

/// The check of a packet that is at least a header long.
fn check(packet: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&packet[..CHECK]);
    crc.update(&packet[Header::BYTES..]);
    crc.finalize()
}

//! Block codes: after every n packets of data come m of parity.
//!
//! A packet, all numbers big-endian:
//!
//! | bytes | |
//! | --- | --- |
//! | 0 | kind: 0 data, 1 XOR parity, 2 Reed-Solomon parity |
//! | 1 | n, packets of data in the group |
//! | 2 | m, packets of parity in the group; 1 for XOR |
//! | 3 | index within the group: of data 0 to n - 1, of parity 0 to m - 1 |
//! | 4 to 7 | number of the group's first payload |
//! | from 8 | data: the payload; parity: the shard |
//!
//! The shards are all as long as the longest payload of the group and its length field, made even. A data shard is the
//! length of the payload (2 bytes), the payload, and zeros. The XOR parity shard is the sum without carry of the data
//! shards, the idea of RFC 5109. The Reed-Solomon parity shards are those of the Leopard code over GF(2^16) of the crate
//! `reed-solomon-simd` 3 for n original and m recovery shards. Recovering with it takes about half a millisecond
//! whatever the group's size, since the code transforms all 2^16 elements of its field: work for the thread of the
//! socket, not for that of the sound card.

mod group;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::{CodeError, Delivered, PacketError, TooLong, checked_payload, length_field, u32_at};
use crate::seen::{Seen, Sight};
use group::{Group, Part, add_without_carry};

const HEADER: usize = 8;
const LENGTH_FIELD: usize = 2;
const DATA: u8 = 0;

/// Groups that a decoder completes at the same time: what comes later than seven groups afterwards is not waited for.
const GROUPS: usize = 8;

/// A code over groups of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// One packet of parity, which replaces any one of the group.
    Xor {
        /// Packets of data in a group.
        data: usize,
    },
    /// Several packets of parity, which replace as many of the group.
    ReedSolomon {
        /// Packets of data in a group.
        data: usize,
        /// Packets of parity in a group.
        parity: usize,
    },
}

impl Code {
    /// The most packets of data, and of parity, in a group.
    pub const MOST_PACKETS: usize = 64;

    /// Packets of data in a group.
    pub fn data(self) -> usize {
        match self {
            Code::Xor { data } | Code::ReedSolomon { data, .. } => data,
        }
    }

    /// Packets of parity in a group: how many of its packets may be lost.
    pub fn parity(self) -> usize {
        match self {
            Code::Xor { .. } => 1,
            Code::ReedSolomon { parity, .. } => parity,
        }
    }

    fn parity_kind(self) -> u8 {
        match self {
            Code::Xor { .. } => 1,
            Code::ReedSolomon { .. } => 2,
        }
    }

    /// Bytes of a packet of parity beyond those of the longest payload, made even.
    pub(crate) const OVERHEAD: usize = HEADER + LENGTH_FIELD;

    pub(crate) fn check(self) -> Result<(), CodeError> {
        let (data, parity) = (self.data(), self.parity());
        let within = 1..=Code::MOST_PACKETS;
        if within.contains(&data) && within.contains(&parity) {
            Ok(())
        } else {
            Err(CodeError::Group { data, parity })
        }
    }

    fn header(self, kind: u8, index: usize, first: u32) -> [u8; HEADER] {
        let [a, b, c, d] = first.to_be_bytes();
        // All below 256: `check` bounds them.
        [kind, self.data() as u8, self.parity() as u8, index as u8, a, b, c, d]
    }
}

/// Makes packets of data and of parity.
pub struct BlockEncoder {
    code: Code,
    most: usize,
    /// The number of the group's first payload.
    first: u32,
    /// The data shards of the group that are there, each with room for the longest.
    shards: Vec<u8>,
    held: usize,
    /// The longest payload of the group.
    longest: usize,
    reed_solomon: Option<ReedSolomonEncoder>,
    packet: Vec<u8>,
}

impl BlockEncoder {
    /// For payloads of at most `most` bytes, of which the first has the number `first`.
    ///
    /// # Errors
    /// A group's counts are outside 1 to [`Code::MOST_PACKETS`], or `most` is above
    /// [`MOST_PAYLOAD`](super::MOST_PAYLOAD).
    pub fn new(code: Code, most: usize, first: u32) -> Result<BlockEncoder, CodeError> {
        code.check()?;
        let most = checked_payload(most)?;
        let room = shard_length(most);
        let (data, parity) = (code.data(), code.parity());
        let reed_solomon = match code {
            Code::Xor { .. } => None,
            Code::ReedSolomon { .. } => Some(
                ReedSolomonEncoder::new(data, parity, room).map_err(|_| CodeError::Group { data, parity })?,
            ),
        };
        Ok(BlockEncoder {
            code,
            most,
            first,
            shards: vec![0; data * room],
            held: 0,
            longest: 0,
            reed_solomon,
            packet: Vec::with_capacity(HEADER + room),
        })
    }

    /// Hands the packet of the next payload to `emit`, and after the last of a group those of parity. Returns the
    /// payload's number.
    ///
    /// # Errors
    /// [`TooLong`]: nothing was sent, and the payload has no number.
    pub fn encode(&mut self, payload: &[u8], mut emit: impl FnMut(&[u8])) -> Result<u32, TooLong> {
        if payload.len() > self.most {
            return Err(TooLong { length: payload.len(), most: self.most });
        }
        let room = shard_length(self.most);
        fill_shard(&mut self.shards[self.held * room..][..room], payload);
        self.longest = self.longest.max(payload.len());
        self.emit(DATA, self.held, payload, &mut emit);
        let sequence = self.first.wrapping_add(self.held as u32);
        self.held += 1;
        if self.held == self.code.data() {
            self.emit_parity(&mut emit);
            self.first = sequence.wrapping_add(1);
            (self.held, self.longest) = (0, 0);
        }
        Ok(sequence)
    }

    fn emit_parity(&mut self, emit: &mut impl FnMut(&[u8])) {
        let (room, length) = (shard_length(self.most), shard_length(self.longest));
        let kind = self.code.parity_kind();
        let Some(mut encoder) = self.reed_solomon.take() else {
            let (sum, others) = self.shards.split_at_mut(room);
            for shard in others.chunks_exact(room) {
                add_without_carry(&mut sum[..length], shard);
            }
            let header = self.code.header(kind, 0, self.first);
            write_packet(&mut self.packet, header, &self.shards[..length]);
            emit(&self.packet);
            return;
        };
        // Never an error: the counts are bounded and the shards are even and equally long.
        let shards = self.shards.chunks_exact(room).map(|shard| &shard[..length]);
        if encode_shards(&mut encoder, self.code, length, shards).is_ok()
            && let Ok(parity) = encoder.encode()
        {
            for (index, shard) in parity.recovery_iter().enumerate() {
                let header = self.code.header(kind, index, self.first);
                write_packet(&mut self.packet, header, shard);
                emit(&self.packet);
            }
        }
        self.reed_solomon = Some(encoder);
    }

    fn emit(&mut self, kind: u8, index: usize, body: &[u8], emit: &mut impl FnMut(&[u8])) {
        write_packet(&mut self.packet, self.code.header(kind, index, self.first), body);
        emit(&self.packet);
    }
}

/// Takes packets of a [`BlockEncoder`] and hands out every payload once.
pub struct BlockDecoder {
    code: Code,
    most: usize,
    groups: Vec<Group>,
    /// The group that gives way to the next new one.
    oldest: usize,
    reed_solomon: Option<ReedSolomonDecoder>,
    restored: Vec<u8>,
    seen: Seen,
}

impl BlockDecoder {
    /// For packets of an encoder of the same settings.
    ///
    /// # Errors
    /// As [`BlockEncoder::new`].
    pub fn new(code: Code, most: usize) -> Result<BlockDecoder, CodeError> {
        code.check()?;
        let most = checked_payload(most)?;
        let (data, parity, room) = (code.data(), code.parity(), shard_length(most));
        let reed_solomon = match code {
            Code::Xor { .. } => None,
            Code::ReedSolomon { .. } => {
                Some(ready_decoder(code, room).map_err(|_| CodeError::Group { data, parity })?)
            }
        };
        Ok(BlockDecoder {
            code,
            most,
            groups: (0..GROUPS).map(|_| Group::new(data, parity, room)).collect(),
            oldest: 0,
            reed_solomon,
            restored: vec![0; room],
            seen: Seen::default(),
        })
    }

    /// Hands the payload of a packet to `deliver` if it was not handed out before, and those that it completes.
    ///
    /// # Errors
    /// The packet is malformed, and nothing was handed out, or it contradicts others of its group.
    pub fn decode(
        &mut self,
        packet: &[u8],
        mut deliver: impl FnMut(Delivered<'_>),
    ) -> Result<(), PacketError> {
        let (first, part, body) = self.parse(packet)?;
        if let Part::Data(index) = part {
            let sequence = first.wrapping_add(index as u32);
            if self.seen.note(sequence) == Sight::New {
                deliver(Delivered { sequence, payload: body, recovered: false });
            }
        }
        let at = self.group_of(first);
        let group = &mut self.groups[at];
        if !group.put(part, body)? || !group.can_be_completed() {
            return Ok(());
        }
        group.complete();
        let missing = (0..self.code.data()).filter(|&index| !group.has(index));
        let seen = &mut self.seen;
        let mut restore = |index: usize, shard: &[u8]| {
            let payload = payload_of(shard).ok_or(PacketError::Contradiction)?;
            let sequence = first.wrapping_add(index as u32);
            if seen.note(sequence) == Sight::New {
                deliver(Delivered { sequence, payload, recovered: true });
            }
            Ok(())
        };
        let Some(decoder) = &mut self.reed_solomon else {
            for index in missing.take(1) {
                let shard = &mut self.restored[..group.parity_length()];
                group.sum(shard);
                restore(index, shard)?;
            }
            return Ok(());
        };
        decode_shards(decoder, self.code, group).map_err(|_| PacketError::Contradiction)?;
        let restored = decoder.decode().map_err(|_| PacketError::Contradiction)?;
        for (index, shard) in restored.restored_original_iter() {
            restore(index, shard)?;
        }
        Ok(())
    }

    /// The group's first number, what the packet is in it, and its body.
    fn parse<'a>(&self, packet: &'a [u8]) -> Result<(u32, Part, &'a [u8]), PacketError> {
        let (header, body) = packet.split_first_chunk::<HEADER>().ok_or(PacketError::Length)?;
        let [kind, data, parity, index, ..] = header.map(usize::from);
        let first = u32_at(header, 4).ok_or(PacketError::Length)?;
        if (data, parity) != (self.code.data(), self.code.parity()) {
            return Err(PacketError::Header);
        }
        if kind == usize::from(DATA) && index < data {
            let fits = body.len() <= self.most;
            return if fits { Ok((first, Part::Data(index), body)) } else { Err(PacketError::Length) };
        }
        if kind == usize::from(self.code.parity_kind()) && index < parity {
            let room = shard_length(self.most);
            let fits = (LENGTH_FIELD..=room).contains(&body.len()) && body.len().is_multiple_of(2);
            return if fits { Ok((first, Part::Parity(index), body)) } else { Err(PacketError::Length) };
        }
        Err(PacketError::Header)
    }

    /// The place of the group that begins with this number; a new one takes that of the oldest.
    fn group_of(&mut self, first: u32) -> usize {
        if let Some(at) = self.groups.iter().position(|group| group.first() == Some(first)) {
            return at;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % GROUPS;
        self.groups[at].begin(first);
        at
    }
}

/// The length of the shards for payloads of which the longest has this length: even.
fn shard_length(longest: usize) -> usize {
    (LENGTH_FIELD + longest).next_multiple_of(2)
}

/// Writes a payload as a shard: its length, its bytes, zeros.
fn fill_shard(shard: &mut [u8], payload: &[u8]) {
    let (length, rest) = shard.split_at_mut(LENGTH_FIELD);
    length.copy_from_slice(&length_field(payload.len()));
    let (bytes, zeros) = rest.split_at_mut(payload.len());
    bytes.copy_from_slice(payload);
    zeros.fill(0);
}

/// The payload of a data shard, unless its length or its zeros say that it is none.
fn payload_of(shard: &[u8]) -> Option<&[u8]> {
    let (length, rest) = shard.split_first_chunk()?;
    let (payload, zeros) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    zeros.iter().all(|&byte| byte == 0).then_some(payload)
}

fn write_packet(packet: &mut Vec<u8>, header: [u8; HEADER], body: &[u8]) {
    packet.clear();
    packet.extend_from_slice(&header);
    packet.extend_from_slice(body);
}

fn encode_shards<'a>(
    encoder: &mut ReedSolomonEncoder,
    code: Code,
    length: usize,
    shards: impl Iterator<Item = &'a [u8]>,
) -> Result<(), reed_solomon_simd::Error> {
    encoder.reset(code.data(), code.parity(), length)?;
    for shard in shards {
        encoder.add_original_shard(shard)?;
    }
    Ok(())
}

/// A decoder that has decoded once: the crate makes its tables, for milliseconds, at the first decoding, and that must
/// not be when a packet is missed.
fn ready_decoder(code: Code, room: usize) -> Result<ReedSolomonDecoder, reed_solomon_simd::Error> {
    let mut decoder = ReedSolomonDecoder::new(code.data(), code.parity(), room)?;
    let zeros = vec![0; room];
    decoder.add_recovery_shard(0, &zeros)?;
    for index in 1..code.data() {
        decoder.add_original_shard(index, &zeros)?;
    }
    decoder.decode()?;
    Ok(decoder)
}

fn decode_shards(
    decoder: &mut ReedSolomonDecoder,
    code: Code,
    group: &Group,
) -> Result<(), reed_solomon_simd::Error> {
    decoder.reset(code.data(), code.parity(), group.parity_length())?;
    for (index, shard) in group.data_shards() {
        decoder.add_original_shard(index, shard)?;
    }
    for (index, shard) in group.parity_shards() {
        decoder.add_recovery_shard(index, shard)?;
    }
    Ok(())
}

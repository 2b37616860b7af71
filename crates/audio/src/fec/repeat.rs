//! Each packet repeats the payloads before it, as RFC 2198 does within RTP.
//!
//! A packet, all numbers big-endian:
//!
//! | bytes | |
//! | --- | --- |
//! | 0 to 3 | number of the newest payload |
//! | 4 | payloads in the packet, p: 1 to 9 |
//! | 5 to 4 + 2p | the length of each in bytes, oldest first |
//! | from 5 + 2p | the payloads, oldest first, with nothing between or behind them |

use super::{CodeError, Delivered, PacketError, TooLong, checked_payload, length_field, u16_at, u32_at};
use crate::seen::{Seen, Sight};

/// Makes packets that repeat the last payloads.
#[derive(Clone, Debug)]
pub struct Repeater {
    repeats: usize,
    most: usize,
    /// The number of the next payload.
    sequence: u32,
    /// A ring of the last payloads: what comes next goes to `at`.
    last: Vec<Vec<u8>>,
    at: usize,
    /// How many of them there are.
    held: usize,
}

impl Repeater {
    /// Bytes before the lengths.
    pub(crate) const FIXED: usize = 5;

    /// The most payloads that a packet can repeat.
    pub const MOST_REPEATS: usize = 8;

    /// Each packet will repeat the `repeats` payloads before its own, of at most `most` bytes each. The first payload
    /// has the number `first`.
    ///
    /// # Errors
    /// More than [`Repeater::MOST_REPEATS`], or `most` above [`MOST_PAYLOAD`](super::MOST_PAYLOAD).
    pub fn new(repeats: usize, most: usize, first: u32) -> Result<Repeater, CodeError> {
        let most = checked_payload(most)?;
        if repeats > Repeater::MOST_REPEATS {
            return Err(CodeError::Repeats(repeats));
        }
        let last = (0..=repeats).map(|_| Vec::with_capacity(most)).collect();
        Ok(Repeater { repeats, most, sequence: first, last, at: 0, held: 0 })
    }

    /// Writes the packet for the next payload into `packet`, whose content it replaces. Returns the payload's number.
    ///
    /// # Errors
    /// [`TooLong`]: nothing was sent, and the payload has no number.
    pub fn encode(&mut self, payload: &[u8], packet: &mut Vec<u8>) -> Result<u32, TooLong> {
        if payload.len() > self.most {
            return Err(TooLong { length: payload.len(), most: self.most });
        }
        self.last[self.at].clear();
        self.last[self.at].extend_from_slice(payload);
        let places = self.repeats + 1;
        self.at = (self.at + 1) % places;
        self.held = (self.held + 1).min(places);

        packet.clear();
        packet.extend(self.sequence.to_be_bytes());
        packet.push(self.held as u8);
        // `at` is the oldest of a full ring.
        let oldest_first = (places - self.held..places).map(|n| &self.last[(self.at + n) % places]);
        for payload in oldest_first.clone() {
            packet.extend(length_field(payload.len()));
        }
        for payload in oldest_first {
            packet.extend_from_slice(payload);
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Ok(sequence)
    }
}

/// Takes packets of a [`Repeater`] and hands out every payload once.
#[derive(Clone, Debug, Default)]
pub struct RepeatDecoder {
    seen: Seen,
}

impl RepeatDecoder {
    /// A decoder that has met nothing. It needs to know nothing of the encoder's settings.
    pub fn new() -> RepeatDecoder {
        RepeatDecoder::default()
    }

    /// Hands the payloads of a packet that were not handed out before to `deliver`, oldest first.
    ///
    /// # Errors
    /// The packet is malformed; nothing was handed out.
    pub fn decode(
        &mut self,
        packet: &[u8],
        mut deliver: impl FnMut(Delivered<'_>),
    ) -> Result<(), PacketError> {
        let (sequence, count) = u32_at(packet, 0).zip(packet.get(4)).ok_or(PacketError::Length)?;
        let count = usize::from(*count);
        if !(1..=Repeater::MOST_REPEATS + 1).contains(&count) {
            return Err(PacketError::Header);
        }
        let (_, mut payloads) =
            packet.split_at_checked(Repeater::FIXED + 2 * count).ok_or(PacketError::Length)?;
        let lengths = (0..count).map_while(|n| u16_at(packet, Repeater::FIXED + 2 * n));
        if lengths.clone().sum::<usize>() != payloads.len() {
            return Err(PacketError::Length);
        }
        for (older, length) in (0..count as u32).rev().zip(lengths) {
            let (payload, rest) = payloads.split_at(length);
            payloads = rest;
            let sequence = sequence.wrapping_sub(older);
            if self.seen.note(sequence) == Sight::New {
                deliver(Delivered { sequence, payload, recovered: older > 0 });
            }
        }
        Ok(())
    }
}

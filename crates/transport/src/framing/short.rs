//! Headers of 16 bytes.
//!
//! Of a datagram; the second is that of an answer, the kind of which is that of a reflected message:
//! ```text
//!  0        2        4        5        8        9               16
//!  | mark   | flow   | kind,  | seq             | sent          | payload ...
//!  |        |        | chan   | seq    | sent (36), reflected (28 bits) | payload ...
//! ```
//! The mark is the first half of the key with all bits inverted, and with a check (`framing/check.rs`) added bit by bit; its last
//! bit says whether the header is a part of the message. The kind takes two bits, the channel six.
//!
//! In a byte stream; the second is that of an answer:
//! ```text
//!  0        3        4        6        8        11              16
//!  | key    | form,  | flow   | kind,  | seq    | sent          | payload ...
//!  |        | chan   | within,| seq    | sent (36), reflected (28 bits) | payload ...
//!  |        |        | length |        |                        |
//! ```
//! The first three bytes are the key's. The form takes two bits: 0 stands for the header of 40 bytes, 1 and 2 for a message
//! with the header in front of it and with the header as its first part, 3 for an answer. The kind takes two bits, the
//! length behind it 14; whether the header is a part of the answer takes one bit, the length behind it 15. An answer does
//! not name its flow: only streams of one member have such headers. To the flow of a message, a check is added bit by bit: a
//! header that was damaged names another flow. Answers have no room for one, so a transport that delivers damage has no such
//! answers.
//!
//! Sequence numbers and times are sent modulo the range of their fields, and what reads them knows which are meant. Times
//! are in nanoseconds; the reflector's is in units of 256, rounded, in answers. In a stream the numbers of a channel rise, so
//! the [`Deframer`](super::Deframer) counts them on. In datagrams the number of an answer is whole: a message whose number is
//! larger than [`MAX_ANSWERED`] has no short header. For times see [`Header::at`].

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, FlowId, Time};

use super::{Header, Key, MessageKind, Place, SHORT_LENGTH, check};

/// Which header of 16 bytes a message may have. Its member is one of the first 2^16, and its channel one of the first 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Short {
    /// None.
    #[default]
    No,
    /// The header of a datagram that nothing answers.
    Datagram,
    /// The header of a datagram that may be answered.
    AnsweredDatagram,
    /// The header of a message in a byte stream. If it may be answered, its member has the stream for itself.
    Stream,
}

/// The highest sequence number that the short header of a datagram's answer has room for.
pub const MAX_ANSWERED: u32 = (1 << 24) - 1;

/// The longest message behind a short header in a byte stream, in bytes.
pub const MAX_STREAM_MESSAGE: usize = (1 << 14) - 1;

/// The most channels that short headers can name.
pub const MAX_CHANNELS: u16 = 64;

/// Bits of a time of sending: in a message of a stream, and in an answer.
const STREAM_SENT: u32 = 40;
const ANSWER_SENT: u32 = 36;

/// An answer has the time at which it was reflected in units of 2^8 ns, modulo 2^28 of them.
const REFLECTED_UNIT: u32 = 8;
const REFLECTED: u32 = 28;

/// A time that has been sent is at most so much later than that of the receiver: their clocks differ.
const AHEAD: Duration = Duration::from_secs(8);

/// Bits of sequence numbers in a stream: of a message, and of an answer.
pub(super) const STREAM_SEQUENCE: u32 = 24;
pub(super) const ANSWER_SEQUENCE: u32 = 16;

impl Header {
    /// The header of a message that was read at `now`, with whole times: a short header has their lowest bits. Right for
    /// messages that were sent within the last 18 minutes, and for answers to those of the last minute, by clocks that differ
    /// by no more than some seconds.
    #[must_use]
    pub fn at(self, now: Time) -> Header {
        let is_answer = self.kind == MessageKind::Reflected;
        match self.place {
            Place::Before | Place::Within => self,
            Place::ShortBefore | Place::ShortWithin if !is_answer => self,
            Place::StreamBefore | Place::StreamWithin if !is_answer => {
                Header { sent: latest(self.sent, STREAM_SENT, now), ..self }
            }
            Place::ShortBefore | Place::ShortWithin | Place::StreamBefore | Place::StreamWithin => {
                let reflected = latest(self.reflected, REFLECTED + REFLECTED_UNIT, now);
                // Never the time that means that it was not reflected.
                let reflected = reflected.max(Time::from_nanos(1));
                Header { sent: latest(self.sent, ANSWER_SENT, now), reflected, ..self }
            }
        }
    }

    pub(super) fn encode_datagram(&self, message: &mut [u8]) {
        let into = message.first_chunk_mut::<SHORT_LENGTH>().expect("callers leave room for the header");
        let within = u16::from(self.place.is_within());
        into[0..2].copy_from_slice(&within.to_be_bytes());
        into[2..4].copy_from_slice(&(self.flow.0 as u16).to_be_bytes());
        into[4] = (self.kind as u8) << 6 | self.channel as u8 & 0x3f;
        if self.kind == MessageKind::Reflected {
            into[5..8].copy_from_slice(&self.sequence.to_be_bytes()[1..]);
            into[8..].copy_from_slice(&self.both_times());
        } else {
            into[5..9].copy_from_slice(&self.sequence.to_be_bytes());
            into[9..].copy_from_slice(&self.sent.as_nanos().to_be_bytes()[1..]);
        }
        let remainder = check::remainder::<{ check::DATAGRAM }>(into);
        let check = check::complement::<{ check::DATAGRAM }, MARK_PLACE>(remainder) as u16;
        into[0..2].copy_from_slice(&((check << 1 | within) ^ mark(self.key)).to_be_bytes());
    }

    /// Reads the short header of a datagram, if it has one.
    pub(super) fn decode_datagram(datagram: &[u8], key: Key) -> Option<Header> {
        let mut bytes = *datagram.first_chunk::<SHORT_LENGTH>()?;
        let unmarked = u16::from_be_bytes([bytes[0], bytes[1]]) ^ mark(key);
        bytes[0..2].copy_from_slice(&unmarked.to_be_bytes());
        if check::remainder::<{ check::DATAGRAM }>(&bytes) != 0 {
            return None;
        }
        let place = if unmarked & 1 == 0 { Place::ShortBefore } else { Place::ShortWithin };
        let kind = MessageKind::from_bits(u16::from(bytes[4] >> 6));
        let (sequence, sent, reflected) = if kind == MessageKind::Reflected {
            let (sent, reflected) = both_times(&bytes);
            (number(&bytes[5..8]) as u32, sent, reflected)
        } else {
            (number(&bytes[5..9]) as u32, Time::from_nanos(number(&bytes[9..])), Time::ZERO)
        };
        Some(Header {
            key,
            length: u32::try_from(datagram.len() - SHORT_LENGTH).ok()?,
            place,
            flow: FlowId(number(&bytes[2..4]) as u32),
            sequence,
            channel: u16::from(bytes[4] & 0x3f),
            kind,
            late: Duration::ZERO,
            sent,
            reflected,
        })
    }

    pub(super) fn encode_in_stream(&self, message: &mut [u8]) {
        let into = message.first_chunk_mut::<SHORT_LENGTH>().expect("callers leave room for the header");
        let is_within = self.place.is_within();
        into[0..3].copy_from_slice(&self.key.sent()[..3]);
        let channel = self.channel as u8 & 0x3f;
        if self.kind == MessageKind::Reflected {
            into[3] = ANSWER << 6 | channel;
            let length = self.length as u16 & 0x7fff | u16::from(is_within) << 15;
            into[4..6].copy_from_slice(&length.to_be_bytes());
            into[6..8].copy_from_slice(&(self.sequence as u16).to_be_bytes());
            into[8..].copy_from_slice(&self.both_times());
        } else {
            into[3] = (if is_within { WITHIN } else { BEFORE }) << 6 | channel;
            into[FLOW].fill(0);
            let length = self.length as u16 & 0x3fff | (self.kind as u16) << 14;
            into[6..8].copy_from_slice(&length.to_be_bytes());
            into[8..11].copy_from_slice(&self.sequence.to_be_bytes()[1..]);
            into[11..].copy_from_slice(&self.sent.as_nanos().to_be_bytes()[3..]);
            let check = check::remainder::<{ check::STREAM }>(into) as u16;
            into[FLOW].copy_from_slice(&(self.flow.0 as u16 ^ check).to_be_bytes());
        }
    }

    /// Reads a short header in a stream, if the bytes are one; of its sequence number, the lowest bits. An answer is that of
    /// `flow`, and without that none.
    pub(super) fn decode_in_stream(
        bytes: &[u8; SHORT_LENGTH],
        key: Key,
        flow: Option<FlowId>,
    ) -> Option<Header> {
        if bytes[..3] != key.sent()[..3] {
            return None;
        }
        let words = [number(&bytes[4..6]) as u32, number(&bytes[6..8]) as u32];
        let mut unchecked = *bytes;
        unchecked[FLOW].fill(0);
        let check = check::remainder::<{ check::STREAM }>(&unchecked) as u32;
        let header = Header {
            key,
            length: words[1] & 0x3fff,
            place: Place::StreamBefore,
            flow: FlowId(words[0] ^ check),
            sequence: number(&bytes[8..11]) as u32,
            channel: u16::from(bytes[3] & 0x3f),
            kind: MessageKind::from_bits((words[1] >> 14) as u16),
            late: Duration::ZERO,
            sent: Time::from_nanos(number(&bytes[11..])),
            reflected: Time::ZERO,
        };
        let is_possible = match header.kind {
            MessageKind::Forward | MessageKind::Ask => true,
            MessageKind::End => header.length == 0,
            MessageKind::Reflected => false,
        };
        match bytes[3] >> 6 {
            BEFORE => Some(header).filter(|_| is_possible),
            WITHIN => Some(Header { place: Place::StreamWithin, ..header }).filter(|_| is_possible),
            ANSWER => {
                let (sent, reflected) = both_times(bytes);
                let place = if words[0] >> 15 == 0 { Place::StreamBefore } else { Place::StreamWithin };
                let (length, flow, sequence) = (words[0] & 0x7fff, flow?, words[1]);
                let kind = MessageKind::Reflected;
                Some(Header { length, place, flow, sequence, kind, sent, reflected, ..header })
            }
            _ => None,
        }
    }

    /// The times of an answer.
    fn both_times(&self) -> [u8; 8] {
        let sent = self.sent.as_nanos() << REFLECTED;
        let half = 1 << (REFLECTED_UNIT - 1);
        let reflected = self.reflected.as_nanos().saturating_add(half) >> REFLECTED_UNIT;
        (sent | reflected & ((1 << REFLECTED) - 1)).to_be_bytes()
    }
}

/// Forms of headers in streams.
const BEFORE: u8 = 1;
const WITHIN: u8 = 2;
const ANSWER: u8 = 3;

/// The lowest bits of the times of an answer: when the message was sent, and when it was reflected.
fn both_times(bytes: &[u8; SHORT_LENGTH]) -> (Time, Time) {
    let both = number(&bytes[8..]);
    let reflected = (both & ((1 << REFLECTED) - 1)) << REFLECTED_UNIT;
    (Time::from_nanos(both >> REFLECTED), Time::from_nanos(reflected))
}

/// The latest time with these lowest `bits` that is not more than [`AHEAD`] later than `now`, or else the earliest of all.
fn latest(lowest: Time, bits: u32, now: Time) -> Time {
    let modulus = 1u64 << bits;
    let lowest = lowest.as_nanos() & (modulus - 1);
    let latest = now.as_nanos().saturating_add(AHEAD.as_nanos());
    let before = latest.wrapping_sub(lowest) & (modulus - 1);
    Time::from_nanos(latest.checked_sub(before).unwrap_or(lowest))
}

/// The flow of a message in a stream.
const FLOW: core::ops::Range<usize> = 4..6;

/// Bits of a datagram's header behind the check in its mark.
const MARK_PLACE: u64 = 8 * (SHORT_LENGTH - 2) as u64 + 1;

/// The first two bytes of short headers of datagrams, without the check; the last bit is the place's.
const fn mark(key: Key) -> u16 {
    !((key.0 >> 16) as u16) & !1
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

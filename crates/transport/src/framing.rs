//! The header of every measured message, and the reader that finds messages in a byte stream again.
//!
//! ```text
//!  0        4        8        12       16     18    20       24               32               40
//!  | key    | length | flow   | seq    | chan | kind| late   | sent           | reflected      | payload ...
//! ```
//! All fields are big-endian. The header is the same over every transport, in virtual and in real time, so that a
//! simulated flow spends the same bytes as a real one. Where nobody needs the content of a message, the header is its
//! first 40 bytes, and the message keeps its size; otherwise it stands in front of the message. The highest bit of the
//! kind says which.
//!
//! Datagrams that nothing answers may have a [short header](Place) of 16 bytes:
//! ```text
//!  0        2        4        5        9               16
//!  | mark   | flow   | chan   | seq    | sent          | payload ...
//! ```
//! The mark is the first half of the key with all bits inverted; its last bit says whether the header is a part of the
//! message. The highest two bits of the channel are the kind.
//!
//! A datagram is one message: [`decode_message`]. In a byte stream messages follow each other without gaps, and a
//! [`Deframer`] finds them.

mod deframer;
mod fuzz;
#[cfg(test)]
mod tests;

use core::ops::Range;

use trunkline_core::{Duration, FlowId, Time};

pub use deframer::{Deframer, Framed};
#[doc(hidden)]
pub use fuzz::fuzz_deframer;

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 40;

/// Length of the short header in bytes.
pub const SHORT_LENGTH: usize = 16;

/// The largest payload that a header can announce and a reader accepts, in bytes.
pub const MAX_PAYLOAD: usize = 16 << 20;

/// The key of a run: the first four bytes of every message, by which a reader finds the next message after a cut and
/// refuses strangers. Drawn per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u32);

/// What is known of a message beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run's key.
    pub key: Key,
    /// Bytes behind the header.
    pub length: u32,
    /// Where the header stands, and which it is.
    pub place: Place,
    /// The flow's member.
    pub flow: FlowId,
    /// Counts the messages of one channel of one member from 0, modulo 2^32.
    pub sequence: u32,
    /// The channel within the flow.
    pub channel: u16,
    /// Which way it goes.
    pub kind: MessageKind,
    /// How long after it was due it was sent, in nanoseconds; `u32::MAX` stands for 4.29 s or more.
    pub late: Duration,
    /// When it was handed to the transport, on the source's clock.
    pub sent: Time,
    /// When the reflector had it, on the reflector's clock; [`Time::ZERO`] on the way there.
    pub reflected: Time,
}

/// Where the header of a message stands, and which it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In front of the message.
    #[default]
    Before,
    /// It is the first part of the message.
    Within,
    /// The short one, in front of the message.
    ShortBefore,
    /// The short one is the first part of the message.
    ShortWithin,
}

/// What the header of a message may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Written over the first bytes of the message.
    pub message: bool,
    /// The short one, in datagrams: nothing answers the message, the member is one of the first 2^16, and its channels are
    /// at most 64.
    pub short: bool,
}

impl Cover {
    /// Where the header of a message of `length` bytes stands.
    pub const fn place(self, length: usize) -> Place {
        match self {
            Cover { message: true, .. } if length >= HEADER_LENGTH => Place::Within,
            Cover { message: true, short: true } if length >= SHORT_LENGTH => Place::ShortWithin,
            Cover { short: true, .. } => Place::ShortBefore,
            Cover { .. } => Place::Before,
        }
    }

    /// Bytes that are sent with a message of `length` bytes.
    pub const fn added(self, length: usize) -> usize {
        let place = self.place(length);
        if place.is_within() { 0 } else { place.length() }
    }

    /// How much of the room of [`HEADER_LENGTH`] bytes before a message is not sent, `length` being that of both.
    pub const fn unsent_room(self, length: usize) -> usize {
        HEADER_LENGTH - self.added(length - HEADER_LENGTH)
    }
}

impl Place {
    /// Bytes of the header.
    pub const fn length(self) -> usize {
        match self {
            Place::Before | Place::Within => HEADER_LENGTH,
            Place::ShortBefore | Place::ShortWithin => SHORT_LENGTH,
        }
    }

    /// Whether the header is a part of the message.
    pub const fn is_within(self) -> bool {
        matches!(self, Place::Within | Place::ShortWithin)
    }
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum MessageKind {
    /// From the source to the sink.
    Forward = 0,
    /// From the reflector back to the source, or the sink's answer.
    Reflected = 1,
    /// The last message of a flow's member: nothing follows. Has no payload and is not counted.
    End = 2,
    /// From the source to the sink, which is to answer it: see [`answer`].
    Ask = 3,
}

/// Why bytes are no message of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FramingError {
    /// There are fewer bytes than a header has.
    #[error("shorter than a message header of {HEADER_LENGTH} bytes")]
    TooShort,
    /// They begin with another key: another run's, or nobody's.
    #[error("the key is not the run's")]
    WrongKey,
    /// The kind is none that this version knows.
    #[error("the kind of message is unknown")]
    UnknownKind,
    /// The header announces more than [`MAX_PAYLOAD`].
    #[error("announces a payload of more than {MAX_PAYLOAD} bytes")]
    TooLong,
    /// The header announces another payload than the datagram has.
    #[error("announces another length than the datagram has")]
    LengthMismatch,
}

impl Header {
    /// Writes the header into the first bytes of `message`.
    ///
    /// # Panics
    /// If `message` is shorter than the header: room for it is the caller's to leave.
    pub fn encode(&self, message: &mut [u8]) {
        if self.place.length() == SHORT_LENGTH {
            return self.encode_short(message);
        }
        let into = message.first_chunk_mut::<HEADER_LENGTH>().expect("callers leave room for the header");
        let late = u32::try_from(self.late.as_nanos()).unwrap_or(u32::MAX);
        into[KEY].copy_from_slice(&self.key.0.to_be_bytes());
        into[LENGTH].copy_from_slice(&self.length.to_be_bytes());
        into[FLOW].copy_from_slice(&self.flow.0.to_be_bytes());
        into[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        into[CHANNEL].copy_from_slice(&self.channel.to_be_bytes());
        let within = if self.place.is_within() { WITHIN } else { 0 };
        into[KIND].copy_from_slice(&(self.kind as u16 | within).to_be_bytes());
        into[LATE].copy_from_slice(&late.to_be_bytes());
        into[SENT].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        into[REFLECTED].copy_from_slice(&self.reflected.as_nanos().to_be_bytes());
    }

    fn encode_short(&self, message: &mut [u8]) {
        let into = message.first_chunk_mut::<SHORT_LENGTH>().expect("callers leave room for the header");
        let mark = short_mark(self.key) ^ u16::from(self.place.is_within());
        into[0..2].copy_from_slice(&mark.to_be_bytes());
        into[2..4].copy_from_slice(&(self.flow.0 as u16).to_be_bytes());
        into[4] = (self.kind as u8) << 6 | self.channel as u8 & 0x3f;
        into[5..9].copy_from_slice(&self.sequence.to_be_bytes());
        into[9..].copy_from_slice(&self.sent.as_nanos().to_be_bytes()[1..]);
    }

    /// Writes the header of a message with [`HEADER_LENGTH`] bytes of room before it, and returns what is to be sent: the
    /// message, and the header where that is no part of it.
    ///
    /// # Panics
    /// If there is no such room.
    pub fn stamp(self, room_and_message: &mut [u8], cover: Cover) -> &mut [u8] {
        let place = cover.place(room_and_message.len() - HEADER_LENGTH);
        let unsent = cover.unsent_room(room_and_message.len());
        let sent = &mut room_and_message[unsent..];
        let length = (sent.len() - place.length()) as u32;
        Header { length, place, ..self }.encode(sent);
        sent
    }

    /// Bytes of the message and its header.
    pub fn sent_length(&self) -> usize {
        self.length as usize + self.place.length()
    }

    /// The message of which this is the header, in `bytes` that begin with the header.
    ///
    /// # Panics
    /// If `bytes` are fewer than a header has.
    pub fn message<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        if self.place.is_within() { bytes } else { &bytes[self.place.length()..] }
    }

    /// The header of the answer, as whole as the message, of a reflector that has had it since then.
    pub fn reflected(self, reflected: Time) -> Header {
        Header { kind: MessageKind::Reflected, reflected, ..self }
    }

    /// Reads the header at the start of `bytes`, whatever follows it.
    ///
    /// # Errors
    /// If there are too few bytes, if the key is not `key`, or if kind or length are impossible.
    pub fn decode(bytes: &[u8], key: Key) -> Result<Header, FramingError> {
        let bytes = bytes.first_chunk::<HEADER_LENGTH>().ok_or(FramingError::TooShort)?;
        let u16_at = |at: Range<usize>| u16::from_be_bytes(array(&bytes[at]));
        let u32_at = |at: Range<usize>| u32::from_be_bytes(array(&bytes[at]));
        let u64_at = |at: Range<usize>| u64::from_be_bytes(array(&bytes[at]));
        if u32_at(KEY) != key.0 {
            return Err(FramingError::WrongKey);
        }
        let length = u32_at(LENGTH);
        if length as usize > MAX_PAYLOAD {
            return Err(FramingError::TooLong);
        }
        Ok(Header {
            key,
            length,
            place: if u16_at(KIND) & WITHIN == 0 { Place::Before } else { Place::Within },
            flow: FlowId(u32_at(FLOW)),
            sequence: u32_at(SEQUENCE),
            channel: u16_at(CHANNEL),
            kind: MessageKind::from_number(u16_at(KIND)).ok_or(FramingError::UnknownKind)?,
            late: Duration::from_nanos(u64::from(u32_at(LATE))),
            sent: Time::from_nanos(u64_at(SENT)),
            reflected: Time::from_nanos(u64_at(REFLECTED)),
        })
    }

    /// Reads the short header of a datagram, if it has one.
    fn decode_short(datagram: &[u8], key: Key) -> Option<Header> {
        let bytes = datagram.first_chunk::<SHORT_LENGTH>()?;
        let place = match u16::from_be_bytes(array(&bytes[0..2])) ^ short_mark(key) {
            0 => Place::ShortBefore,
            1 => Place::ShortWithin,
            _ => return None,
        };
        let mut sent = u64::from_be_bytes(array(&bytes[8..16])).to_be_bytes();
        sent[0] = 0;
        Some(Header {
            key,
            length: u32::try_from(datagram.len() - SHORT_LENGTH).ok()?,
            place,
            flow: FlowId(u16::from_be_bytes(array(&bytes[2..4])).into()),
            sequence: u32::from_be_bytes(array(&bytes[5..9])),
            channel: u16::from(bytes[4] & 0x3f),
            kind: MessageKind::from_number(u16::from(bytes[4] >> 6))?,
            late: Duration::ZERO,
            sent: Time::from_nanos(u64::from_be_bytes(sent)),
            reflected: Time::ZERO,
        })
    }
}

/// What short headers begin with; the last bit is the place's.
fn short_mark(key: Key) -> u16 {
    !((key.0 >> 16) as u16) & !1
}

impl MessageKind {
    /// The kind that this field names, wherever the header stands.
    fn from_number(number: u16) -> Option<MessageKind> {
        let number = number & !WITHIN;
        [MessageKind::Forward, MessageKind::Reflected, MessageKind::End, MessageKind::Ask]
            .into_iter()
            .find(|&k| k as u16 == number)
    }
}

/// Reads a datagram that is one message: its header and the message.
///
/// # Errors
/// As [`Header::decode`], and if the announced length is not that of the datagram.
pub fn decode_message(datagram: &[u8], key: Key) -> Result<(Header, &[u8]), FramingError> {
    if let Some(header) = Header::decode_short(datagram, key) {
        return Ok((header, header.message(datagram)));
    }
    let header = Header::decode(datagram, key)?;
    if datagram.len() - HEADER_LENGTH != header.length as usize {
        return Err(FramingError::LengthMismatch);
    }
    Ok((header, header.message(datagram)))
}

/// Makes of a message its answer, without decoding it: says that it is reflected, and when. The end of a flow keeps
/// its kind. Returns false, having changed nothing, if there is no whole header.
pub fn reflect_in_place(message: &mut [u8], reflected: Time) -> bool {
    let Some(header) = message.first_chunk_mut::<HEADER_LENGTH>() else { return false };
    let kind = u16::from_be_bytes(array(&header[KIND]));
    if matches!(MessageKind::from_number(kind), Some(MessageKind::Forward | MessageKind::Ask)) {
        let reflected = MessageKind::Reflected as u16 | (kind & WITHIN);
        header[KIND].copy_from_slice(&reflected.to_be_bytes());
    }
    header[REFLECTED].copy_from_slice(&reflected.as_nanos().to_be_bytes());
    true
}

/// Appends to `into` the answer of `length` bytes (at most [`MAX_PAYLOAD`]) to the message with this header: a header that
/// names it, of the kind [`MessageKind::Reflected`], and zeros. The header is a part of the answer if it was one of the
/// message and the answer has room for it.
pub fn answer(asked: &Header, reflected: Time, length: usize, into: &mut Vec<u8>) {
    let length = length.min(MAX_PAYLOAD);
    let place = Cover { message: asked.place.is_within(), short: false }.place(length);
    let behind = if place.is_within() { length - HEADER_LENGTH } else { length };
    let start = into.len();
    into.resize(start + HEADER_LENGTH + behind, 0);
    let header = Header { kind: MessageKind::Reflected, length: behind as u32, place, reflected, ..*asked };
    header.encode(&mut into[start..]);
}

/// Set in the field of the kind where the header is a part of the message.
const WITHIN: u16 = 1 << 15;

const KEY: Range<usize> = 0..4;
const LENGTH: Range<usize> = 4..8;
const FLOW: Range<usize> = 8..12;
const SEQUENCE: Range<usize> = 12..16;
const CHANNEL: Range<usize> = 16..18;
const KIND: Range<usize> = 18..20;
const LATE: Range<usize> = 20..24;
const SENT: Range<usize> = 24..32;
const REFLECTED: Range<usize> = 32..40;

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("every field's range has its type's width")
}

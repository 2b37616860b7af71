//! The header of every measured message, and the reader that finds messages in a byte stream again.
//!
//! ```text
//!  0        4        8        12     14     16       20       24               32               40
//!  | key    | length | flow   | chan | kind | seq    | late   | sent           | reflected      | payload ...
//! ```
//! All fields are big-endian. The header is the same over every transport, in virtual and in real time, so that a
//! simulated flow spends the same bytes as a real one. Where nobody needs the content of a message, the header is its
//! first 40 bytes, and the message keeps its size; otherwise it stands in front of the message. The highest bit of the
//! kind says which; the lowest two are the kind, and those between them a check of the header. The highest two bits of the
//! key's last byte are 0.
//!
//! A transport may deliver damage: the checksum of UDP-Lite may cover less than the header. A header that was damaged is none,
//! so that its message is lost and never counts as another one, or as one of another time.
//!
//! Messages that are shorter, or whose content must arrive, have a header of 16 bytes if their [`Cover`] allows it: see
//! [`short`].
//!
//! A datagram is one message: [`decode_message`]. In a byte stream messages follow each other without gaps, and a
//! [`Deframer`] finds them.

mod check;
mod deframer;
mod fuzz;
pub mod short;
#[cfg(test)]
mod tests;

use core::ops::Range;

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, FlowId, Time};

pub use deframer::{Deframer, Framed};
#[doc(hidden)]
pub use fuzz::fuzz_deframer;
pub use short::Short;

/// Length of the header in bytes.
pub const HEADER_LENGTH: usize = 40;

/// Length of the short header in bytes.
pub const SHORT_LENGTH: usize = 16;

/// The largest payload that a header can announce and a reader accepts, in bytes.
pub const MAX_PAYLOAD: usize = 16 << 20;

/// The largest message of a stream in bytes, which may have its header in front.
pub const MOST_OF_STREAM: u64 = (HEADER_LENGTH + MAX_PAYLOAD) as u64;

/// The key of a run: the first four bytes of every message, by which a reader finds the next message after a cut and
/// refuses strangers. Drawn per run. Two of its bits are not sent, those of value 64 and 128.
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
    /// When it was handed to the transport, on the source's clock. See [`Header::at`] for one that has been decoded.
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
    /// The short one of datagrams, in front of the message.
    ShortBefore,
    /// The short one of datagrams is the first part of the message.
    ShortWithin,
    /// The short one of byte streams, in front of the message.
    StreamBefore,
    /// The short one of byte streams is the first part of the message.
    StreamWithin,
}

/// What the header of a message may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover {
    /// Written over the first bytes of the message.
    pub message: bool,
    /// A short one.
    pub short: Short,
}

impl Cover {
    /// The possible headers of the message with this number.
    #[must_use]
    pub const fn of(self, sequence: u32) -> Cover {
        let short = match self.short {
            Short::AnsweredDatagram if sequence > short::MAX_ANSWERED => Short::No,
            short => short,
        };
        Cover { short, ..self }
    }

    /// Where the header of a message of `length` bytes stands.
    pub const fn place(self, length: usize) -> Place {
        let is_within = self.message && length >= SHORT_LENGTH;
        match self.short {
            _ if self.message && length >= HEADER_LENGTH => Place::Within,
            Short::Datagram | Short::AnsweredDatagram if is_within => Place::ShortWithin,
            Short::Datagram | Short::AnsweredDatagram => Place::ShortBefore,
            Short::Stream if is_within => Place::StreamWithin,
            Short::Stream if length <= short::MAX_STREAM_MESSAGE => Place::StreamBefore,
            Short::Stream | Short::No => Place::Before,
        }
    }

    /// Bytes that are sent beside a message of `length` bytes.
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
            Place::ShortBefore | Place::ShortWithin | Place::StreamBefore | Place::StreamWithin => {
                SHORT_LENGTH
            }
        }
    }

    /// Whether the header is a part of the message.
    pub const fn is_within(self) -> bool {
        matches!(self, Place::Within | Place::ShortWithin | Place::StreamWithin)
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
    /// The header was damaged on its way.
    #[error("the header is damaged")]
    Damaged,
    /// The header announces more than [`MAX_PAYLOAD`].
    #[error("announces a payload of more than {MAX_PAYLOAD} bytes")]
    TooLong,
    /// The header announces another payload than the datagram has.
    #[error("announces a length other than that of the datagram")]
    LengthMismatch,
}

impl Header {
    /// Writes the header into the first bytes of `message`.
    ///
    /// # Panics
    /// If `message` is shorter than the header: room for it is the caller's to leave.
    pub fn encode(&self, message: &mut [u8]) {
        match self.place {
            Place::Before | Place::Within => {}
            Place::ShortBefore | Place::ShortWithin => return self.encode_datagram(message),
            Place::StreamBefore | Place::StreamWithin => return self.encode_in_stream(message),
        }
        let into = message.first_chunk_mut::<HEADER_LENGTH>().expect("callers leave room for the header");
        let late = u32::try_from(self.late.as_nanos()).unwrap_or(u32::MAX);
        into[KEY].copy_from_slice(&self.key.sent());
        into[LENGTH].copy_from_slice(&self.length.to_be_bytes());
        into[FLOW].copy_from_slice(&self.flow.0.to_be_bytes());
        into[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        into[CHANNEL].copy_from_slice(&self.channel.to_be_bytes());
        let within = if self.place.is_within() { WITHIN } else { 0 };
        into[KIND].copy_from_slice(&(self.kind as u16 | within).to_be_bytes());
        into[LATE].copy_from_slice(&late.to_be_bytes());
        into[SENT].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        into[REFLECTED].copy_from_slice(&self.reflected.as_nanos().to_be_bytes());
        let check =
            check::complement::<{ check::LONG }, CHECK_PLACE>(check::remainder::<{ check::LONG }>(into));
        into[KIND]
            .copy_from_slice(&(self.kind as u16 | within | (check as u16) << CHECK_SHIFT).to_be_bytes());
    }

    /// Writes the header of a message with [`HEADER_LENGTH`] bytes of room before it, and returns what is to be sent: the
    /// message, and the header where that is no part of it.
    ///
    /// # Panics
    /// If there is no such room.
    pub fn stamp(self, room_and_message: &mut [u8], cover: Cover) -> &mut [u8] {
        let cover = cover.of(self.sequence);
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
    /// If there are too few bytes, if the key is not `key`, if the length is impossible, or if the header was damaged.
    pub fn decode(bytes: &[u8], key: Key) -> Result<Header, FramingError> {
        let bytes = bytes.first_chunk::<HEADER_LENGTH>().ok_or(FramingError::TooShort)?;
        let u16_at = |at: Range<usize>| u16::from_be_bytes(array(&bytes[at]));
        let u32_at = |at: Range<usize>| u32::from_be_bytes(array(&bytes[at]));
        let u64_at = |at: Range<usize>| u64::from_be_bytes(array(&bytes[at]));
        if bytes[KEY] != key.sent() {
            return Err(FramingError::WrongKey);
        }
        let length = u32_at(LENGTH);
        if length as usize > MAX_PAYLOAD {
            return Err(FramingError::TooLong);
        }
        if check::remainder::<{ check::LONG }>(bytes) != 0 {
            return Err(FramingError::Damaged);
        }
        Ok(Header {
            key,
            length,
            place: if u16_at(KIND) & WITHIN == 0 { Place::Before } else { Place::Within },
            flow: FlowId(u32_at(FLOW)),
            sequence: u32_at(SEQUENCE),
            channel: u16_at(CHANNEL),
            kind: MessageKind::from_bits(u16_at(KIND)),
            late: Duration::from_nanos(u64::from(u32_at(LATE))),
            sent: Time::from_nanos(u64_at(SENT)),
            reflected: Time::from_nanos(u64_at(REFLECTED)),
        })
    }
}

impl Key {
    /// The first bytes of a header.
    const fn sent(self) -> [u8; 4] {
        let [a, b, c, d] = self.0.to_be_bytes();
        [a, b, c, d & 0x3f]
    }
}

impl MessageKind {
    /// The kind that the lowest two bits name.
    const fn from_bits(bits: u16) -> MessageKind {
        match bits & KINDS {
            0 => MessageKind::Forward,
            1 => MessageKind::Reflected,
            2 => MessageKind::End,
            _ => MessageKind::Ask,
        }
    }
}

/// Reads a datagram that is one message: its header and the message.
///
/// # Errors
/// As [`Header::decode`], and if the announced length is not that of the datagram.
pub fn decode_message(datagram: &[u8], key: Key) -> Result<(Header, &[u8]), FramingError> {
    // The long one first: the key says more than the mark, in which a check is hidden.
    let header = match Header::decode(datagram, key) {
        Ok(header) if datagram.len() - HEADER_LENGTH == header.length as usize => Ok(header),
        Ok(_) => Err(FramingError::LengthMismatch),
        Err(why) => Err(why),
    };
    let header = header.or_else(|why| Header::decode_datagram(datagram, key).ok_or(why))?;
    Ok((header, header.message(datagram)))
}

/// Makes of a message with this header its answer: says that it is reflected, and when. The end of a flow keeps its kind.
///
/// # Panics
/// If `message` is shorter than the header that it was decoded from.
pub fn reflect_in_place(header: &Header, reflected: Time, message: &mut [u8]) {
    match header.kind {
        MessageKind::Forward | MessageKind::Ask => header.reflected(reflected).encode(message),
        MessageKind::Reflected | MessageKind::End => Header { reflected, ..*header }.encode(message),
    }
}

/// Appends to `into` the answer of `length` bytes (at most [`MAX_PAYLOAD`]) to the message with this header: a header that
/// names it, of the kind [`MessageKind::Reflected`], and zeros.
pub fn answer(asked: &Header, reflected: Time, length: usize, cover: Cover, into: &mut Vec<u8>) {
    let length = length.min(MAX_PAYLOAD);
    let cover = cover.of(asked.sequence);
    let place = cover.place(length);
    let behind = if place.is_within() { length - place.length() } else { length };
    let start = into.len();
    into.resize(start + place.length() + behind, 0);
    let header = Header { kind: MessageKind::Reflected, length: behind as u32, place, reflected, ..*asked };
    header.encode(&mut into[start..]);
}

/// Set in the field of the kind where the header is a part of the message.
const WITHIN: u16 = 1 << 15;
/// The bits of the kind itself, in its field, and those of the check.
const KINDS: u16 = 3;
const CHECK_SHIFT: u64 = 2;
/// Bits of the header behind the check.
const CHECK_PLACE: u64 = 8 * (HEADER_LENGTH - KIND.end) as u64 + CHECK_SHIFT;

const KEY: Range<usize> = 0..4;
const LENGTH: Range<usize> = 4..8;
const FLOW: Range<usize> = 8..12;
const CHANNEL: Range<usize> = 12..14;
const KIND: Range<usize> = 14..16;
const SEQUENCE: Range<usize> = 16..20;
const LATE: Range<usize> = 20..24;
const SENT: Range<usize> = 24..32;
const REFLECTED: Range<usize> = 32..40;

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("every field's range has its type's width")
}

//! The header in front of every measured message, and the reader that finds messages in a byte stream again.
//!
//! ```text
//!  0        4        8        12       16     18    20       24               32               40
//!  | key    | length | flow   | seq    | chan | kind| late   | sent           | reflected      | payload ...
//! ```
//! All fields are big-endian. The header is the same over every transport, in virtual and in real time, so that a
//! simulated flow spends the same bytes as a real one.
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
    /// Payload bytes behind the header.
    pub length: u32,
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
    /// Writes the header into the first [`HEADER_LENGTH`] bytes of `message`.
    ///
    /// # Panics
    /// If `message` is shorter than a header: room for it is the caller's to leave.
    pub fn encode(&self, message: &mut [u8]) {
        let into = message.first_chunk_mut::<HEADER_LENGTH>().expect("callers leave room for the header");
        let late = u32::try_from(self.late.as_nanos()).unwrap_or(u32::MAX);
        into[KEY].copy_from_slice(&self.key.0.to_be_bytes());
        into[LENGTH].copy_from_slice(&self.length.to_be_bytes());
        into[FLOW].copy_from_slice(&self.flow.0.to_be_bytes());
        into[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        into[CHANNEL].copy_from_slice(&self.channel.to_be_bytes());
        into[KIND].copy_from_slice(&(self.kind as u16).to_be_bytes());
        into[LATE].copy_from_slice(&late.to_be_bytes());
        into[SENT].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        into[REFLECTED].copy_from_slice(&self.reflected.as_nanos().to_be_bytes());
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
            flow: FlowId(u32_at(FLOW)),
            sequence: u32_at(SEQUENCE),
            channel: u16_at(CHANNEL),
            kind: MessageKind::from_number(u16_at(KIND)).ok_or(FramingError::UnknownKind)?,
            late: Duration::from_nanos(u64::from(u32_at(LATE))),
            sent: Time::from_nanos(u64_at(SENT)),
            reflected: Time::from_nanos(u64_at(REFLECTED)),
        })
    }
}

impl MessageKind {
    fn from_number(number: u16) -> Option<MessageKind> {
        [MessageKind::Forward, MessageKind::Reflected, MessageKind::End, MessageKind::Ask]
            .into_iter()
            .find(|&k| k as u16 == number)
    }
}

/// Reads a datagram that is one message: its header and its payload.
///
/// # Errors
/// As [`Header::decode`], and if the announced length is not that of the datagram.
pub fn decode_message(datagram: &[u8], key: Key) -> Result<(Header, &[u8]), FramingError> {
    let header = Header::decode(datagram, key)?;
    let payload = &datagram[HEADER_LENGTH..];
    if payload.len() != header.length as usize {
        return Err(FramingError::LengthMismatch);
    }
    Ok((header, payload))
}

/// Makes of a message its answer, without decoding it: says that it is reflected, and when. The end of a flow keeps
/// its kind. Returns false, having changed nothing, if there is no whole header.
pub fn reflect_in_place(message: &mut [u8], reflected: Time) -> bool {
    let Some(header) = message.first_chunk_mut::<HEADER_LENGTH>() else { return false };
    let forward = [MessageKind::Forward, MessageKind::Ask].map(|kind| (kind as u16).to_be_bytes());
    if forward.iter().any(|kind| header[KIND] == *kind) {
        header[KIND].copy_from_slice(&(MessageKind::Reflected as u16).to_be_bytes());
    }
    header[REFLECTED].copy_from_slice(&reflected.as_nanos().to_be_bytes());
    true
}

/// Appends to `into` the answer to the message with this header: a header that names it, of the kind
/// [`MessageKind::Reflected`], and `length` zeros (at most [`MAX_PAYLOAD`]).
pub fn answer(asked: &Header, reflected: Time, length: usize, into: &mut Vec<u8>) {
    let length = length.min(MAX_PAYLOAD);
    let start = into.len();
    into.resize(start + HEADER_LENGTH + length, 0);
    let header = Header { kind: MessageKind::Reflected, length: length as u32, reflected, ..*asked };
    header.encode(&mut into[start..]);
}

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

//! Redundancy and forward error correction: packets that the network loses come back out of others.
//!
//! | | sent beside each payload | survives | a lost payload comes back after |
//! | --- | --- | --- | --- |
//! | [`Repeater`] | the k before it | k lost in a row | the next packet |
//! | [`Code::Xor`] | 1/n of its size | one lost of every group of n + 1 | its group |
//! | [`Code::ReedSolomon`] | m/n of its size | any m lost of every group of n + m | its group |
//!
//! The encoders number the payloads; the decoders hand each out once, as soon as they can, with its number: in order
//! only as far as the packets came in order, which [`crate::playout`] settles. Nothing here knows of time. Decoders take
//! any bytes: memory is bounded by their settings, and a packet that makes no sense is an error that changes nothing.
//! What is forged well is not detected: that is for authentication.

mod block;
mod repeat;
#[cfg(test)]
mod tests;

pub use block::{BlockDecoder, BlockEncoder, Code};
pub use repeat::{RepeatDecoder, Repeater};

/// A payload that a decoder hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered<'a> {
    /// Its number, counting payloads from the encoder's first; wraps.
    pub sequence: u32,
    /// Its bytes.
    pub payload: &'a [u8],
    /// Whether it was missing and made from redundancy.
    pub recovered: bool,
}

/// Why an encoder or a decoder cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// Too many repetitions.
    #[error("{0} repetitions of each payload; expected at most {most}", most = Repeater::MOST_REPEATS)]
    Repeats(usize),
    /// An empty group or too large a one.
    #[error(
        "groups of {data} packets of data and {parity} of parity; expected 1 to {most} of each",
        most = Code::MOST_PACKETS
    )]
    Group {
        /// Packets of data.
        data: usize,
        /// Packets of parity.
        parity: usize,
    },
    /// The longest payload cannot be written into the length field.
    #[error("payloads of {0} bytes; expected at most {most}", most = MOST_PAYLOAD)]
    Payload(usize),
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// It ends before its header does, or its length is not what the header says.
    #[error("the packet's length does not fit its header")]
    Length,
    /// A field of the header has a value that this code does not use.
    #[error("the packet's header does not match the agreed error correction")]
    Header,
    /// It contradicts packets of its group that came before, or what was recovered with it is not a payload.
    #[error("the packet contradicts others of its group")]
    Contradiction,
}

/// The payload to be sent is longer than was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload has {length} bytes; expected at most {most}")]
pub struct TooLong {
    /// Its length in bytes.
    pub length: usize,
    /// The longest payload, in bytes.
    pub most: usize,
}

/// The longest payload in bytes that can be agreed on: that of a jumbo frame.
pub const MOST_PAYLOAD: usize = 9_000;

fn checked_payload(most: usize) -> Result<usize, CodeError> {
    if most <= MOST_PAYLOAD { Ok(most) } else { Err(CodeError::Payload(most)) }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A length that [`MOST_PAYLOAD`] bounds, as it is written.
fn length_field(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

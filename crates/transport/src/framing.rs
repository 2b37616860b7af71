//! The header in front of every measured message, and the reader that finds messages in a byte stream again.
//!
//! ```text
//!  0        4        8        12       16     18    20       24               32               40
//!  | key    | length | flow   | seq    | chan | kind| late   | sent           | reflected      | payload ...
//! ```
//! All fields are big-endian. The header is the same over every transport, in virtual and in real time, so that a
//! simulated flow spends the same bytes as a real one.

use trunkline_core::{Duration, FlowId, Time};

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
    /// From the reflector back to the source.
    Reflected = 1,
    /// The last message of a flow's member: nothing follows. Has no payload and is not counted.
    End = 2,
}

//! What an SCTP association can be told.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;

/// Options of an SCTP association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpConfig {
    /// Streams that it sends on, in turn, as far as the peer accepts so many. Order holds within a stream only: a lost
    /// packet holds up the messages of its streams, not those of others (RFC 9260 section 1.3.2).
    pub streams: u16,
    /// Whether the messages of a stream are delivered in the order of sending; otherwise each when it is complete.
    pub ordered: bool,
    /// How long a lost message is repaired.
    pub reliability: Reliability,
    /// The receive window in bytes: how much may wait here unread, or for what is missing.
    pub window: usize,
    /// How many bytes of messages wait here until the peer has acknowledged them. One message is always taken.
    pub send_buffer: usize,
    /// The largest packet in bytes at the network layer; larger messages are sent in pieces.
    pub max_packet: usize,
    /// What carries the packets.
    pub encapsulation: Encapsulation,
    /// HB.interval: how long the path rests, beside a retransmission timeout, before a heartbeat asks whether the peer is there
    /// (RFC 9260 section 8.3). `None` for no heartbeats.
    pub heartbeat: Option<Duration>,
    /// Association.Max.Retrans: after more consecutive timeouts without an answer, to data, to a heartbeat or to the end, the
    /// association ends (RFC 9260 section 8.1); a request to begin is repeated 8 times. `None` for no limit.
    pub max_retransmissions: Option<u32>,
    /// After how long without any answer, to a request, to data or to a heartbeat, the peer counts as gone, whatever the number
    /// of timeouts. `None` for never. Below a second the first lost packet ends the association: the retransmission timer
    /// starts at one second.
    pub timeout: Option<Duration>,
}

impl Default for SctpConfig {
    /// One ordered, reliable stream over UDP on Ethernet, buffers of 256 KiB, and the values of RFC 9260 section 16, with which
    /// an end gives up after some six minutes without an answer.
    fn default() -> SctpConfig {
        SctpConfig {
            streams: 1,
            ordered: true,
            reliability: Reliability::Full,
            window: 256 << 10,
            send_buffer: 256 << 10,
            max_packet: 1500,
            encapsulation: Encapsulation::Udp,
            heartbeat: Some(Duration::from_secs(30)),
            max_retransmissions: Some(10),
            timeout: None,
        }
    }
}

/// How long a lost message is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reliability {
    /// Until it has arrived.
    #[default]
    Full,
    /// For so long after it was sent, at least a millisecond (timed reliability, RFC 3758 section 4.1).
    Lifetime(Duration),
    /// So many times (limited retransmissions, RFC 7496 section 3.1).
    Retransmissions(u16),
}

/// What carries SCTP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulation {
    /// UDP (RFC 6951).
    #[default]
    Udp,
    /// IP protocol 132.
    Ip,
}

impl Encapsulation {
    /// Bytes of headers in front of every SCTP packet.
    pub const fn headers(self) -> usize {
        match self {
            Encapsulation::Udp => IPV4_HEADER + UDP_HEADER,
            Encapsulation::Ip => IPV4_HEADER,
        }
    }
}

/// Why an association cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SctpConfigError {
    /// A value that is out of range.
    #[error("SCTP's {what} is {value} {unit}; expected {} to {}", range.start(), range.end())]
    Range {
        /// Which.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// Of what.
        unit: &'static str,
        /// What is possible.
        range: RangeInclusive<u64>,
    },
    /// A port of 0.
    #[error("SCTP cannot use port 0; expected 1 to 65535")]
    Port,
}

/// The largest message of any association, in bytes; where its [window](SctpConfig::window), or its peer's, is below twice
/// that, half that window.
pub const MAX_MESSAGE: usize = 128 << 10;

/// The least that [`max_packet`](SctpConfig::max_packet) can be: what IPv4 must carry anywhere (RFC 791).
pub const MIN_PACKET: usize = 576;

const IPV4_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A few packets at least.
const WINDOW: RangeInclusive<u64> = 8 << 10..=1 << 30;
const SEND_BUFFER: RangeInclusive<u64> = 1..=1 << 30;
const PACKET: RangeInclusive<u64> = MIN_PACKET as u64..=65_535;
const STREAMS: RangeInclusive<u64> = 1..=65_535;
/// A millisecond to an hour, in microseconds.
const LIFETIME: RangeInclusive<u64> = 1_000..=3_600_000_000;

impl SctpConfig {
    /// The largest message that an association so made takes, in bytes. Half its window, so that a peer with the same
    /// window can put it together while it holds others.
    pub const fn max_message(&self) -> usize {
        if self.window / 2 < MAX_MESSAGE { self.window / 2 } else { MAX_MESSAGE }
    }

    /// The largest packet without the headers in front, in whole words, since chunks are padded to them.
    pub(super) const fn packet(&self) -> usize {
        (self.max_packet - self.encapsulation.headers()) & !3
    }

    pub(super) fn check(&self, ports: &[u16]) -> Result<(), SctpConfigError> {
        let lifetime = match self.reliability {
            Reliability::Lifetime(lifetime) => lifetime.as_nanos() / 1_000,
            Reliability::Full | Reliability::Retransmissions(_) => *LIFETIME.start(),
        };
        for (what, value, unit, range) in [
            ("number of streams", u64::from(self.streams), "streams", STREAMS),
            ("receive window", self.window as u64, "bytes", WINDOW),
            ("send buffer", self.send_buffer as u64, "bytes", SEND_BUFFER),
            ("largest packet", self.max_packet as u64, "bytes", PACKET),
            ("lifetime", lifetime, "microseconds", LIFETIME),
        ] {
            if !range.contains(&value) {
                return Err(SctpConfigError::Range { what, value, unit, range });
            }
        }
        if ports.contains(&0) { Err(SctpConfigError::Port) } else { Ok(()) }
    }
}

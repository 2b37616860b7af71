//! One conversation over any transport on real sockets.

pub(crate) mod engine;
mod frames;
mod packets;
pub(crate) mod queued;
pub(crate) mod stream;
pub(crate) mod udp;

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};
use trunkline_core::Time;
use trunkline_io::Interest;
use trunkline_transport::Features;
use trunkline_transport::rtp::PeerReport;

pub use packets::Packets;

use crate::request::Key;

/// Bytes that a session sends with each packet over a transport with these features: its key, and in a stream of bytes the
/// packet's length.
pub const fn added(features: &Features) -> usize {
    Key::LENGTH + if features.message_oriented { 0 } else { frames::LENGTH }
}

/// One conversation over any transport on real sockets, message-oriented on both sides; turned by its owner's thread.
///
/// Times are those of the monotonic clock ([`now`](crate::now)) and never decrease.
pub trait Line: Send {
    /// What to wait for until the next [`turn`](Self::turn), beside [`next_timeout`](Self::next_timeout).
    fn descriptors<'l>(&'l self, add: &mut dyn FnMut(BorrowedFd<'l>, Interest));

    /// Hands a packet over. What cannot leave at once waits for as long as the send timeout says, and is then lost and
    /// counted.
    ///
    /// # Errors
    /// Why it was not taken.
    fn send(&mut self, now: Time, packet: &[u8]) -> Result<(), Refused>;

    /// Hands packets over together: as [`send`](Self::send) for each, with fewer system calls. What is refused is counted.
    ///
    /// # Errors
    /// That the conversation is over.
    fn send_all(&mut self, now: Time, packets: &Packets) -> Result<(), Ended>;

    /// Does what is due, sends what waits and hands on what has arrived, with the moment of its arrival.
    ///
    /// # Errors
    /// That the conversation is over, and why; it stays so.
    fn turn(&mut self, now: Time, arrived: &mut dyn FnMut(Time, &[u8])) -> Result<(), Ended>;

    /// When [`turn`](Self::turn) wants to be called, if nothing arrives before.
    fn next_timeout(&self) -> Option<Time>;

    /// How many packets wait to be handed to the transport.
    fn unsent(&self) -> usize;

    /// What was counted so far.
    fn counters(&self) -> LineCounters;

    /// The peer's last report on what was sent to it, over RTP.
    fn peer_report(&self) -> Option<PeerReport> {
        None
    }

    /// What the transport promises.
    fn features(&self) -> &'static Features;

    /// The largest packet in bytes.
    fn largest(&self) -> usize;

    /// Ends the conversation; what waits is sent if that takes no time.
    fn close(&mut self, now: Time);
}

/// Why a packet was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// More than the send buffer holds waits already: the packet is lost, and counted.
    #[error("the send queue is full")]
    Full,
    /// The transport carries no packet of this size.
    #[error("the packet is larger than the {limit} bytes that the transport carries")]
    TooLarge {
        /// The largest packet in bytes.
        limit: usize,
    },
    /// The conversation is over.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Why a conversation is over, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Ended(pub String);

/// What a line has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounters {
    /// Packets handed to the transport.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived, with the key where there is one.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that could not be handed over within the send timeout, and are lost.
    pub timed_out: u64,
    /// Packets that were refused because too much waited.
    pub refused: u64,
    /// Packets that arrived without the key or from a stranger, and pieces of a stream that are no packet.
    pub strays: u64,
}

impl LineCounters {
    /// What was counted since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &LineCounters) -> LineCounters {
        LineCounters {
            sent: self.sent.saturating_sub(earlier.sent),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            received: self.received.saturating_sub(earlier.received),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            timed_out: self.timed_out.saturating_sub(earlier.timed_out),
            refused: self.refused.saturating_sub(earlier.refused),
            strays: self.strays.saturating_sub(earlier.strays),
        }
    }
}

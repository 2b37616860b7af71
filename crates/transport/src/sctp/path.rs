//! Reachability of the peer: heartbeats while the path is idle, and the error counter (RFC 9260 sections 8.1 to 8.3).
//!
//! With one path, the counter of the association and that of the path count the same.

use trunkline_core::{Duration, Stream, Time};

use super::rto::Rto;
use super::wire::{self, CHUNK_HEADER};

/// Max.Init.Retransmits and Path.Max.Retrans (RFC 9260 section 16).
pub(super) const MAX_INIT_RETRANSMITS: u32 = 8;
const PATH_MAX_RETRANS: u32 = 5;

/// The parameter of a HEARTBEAT (RFC 9260 section 3.3.5).
const HEARTBEAT_INFO: u16 = 1;

/// The path to the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// HB.interval.
    interval: Option<Duration>,
    /// Idle time before a heartbeat: the interval plus the timeout with its jitter.
    period: Duration,
    /// Next check of the idle time.
    next: Option<Time>,
    /// The heartbeat without an answer: what it carries, when it was sent, and by when its answer is late.
    pending: Option<(u64, Time, Time)>,
    /// Consecutive timeouts without an answer, of data and of heartbeats.
    errors: u32,
    pub(super) heartbeats: u64,
    /// Number of times that the path became inactive.
    pub(super) failures: u64,
}

/// Result of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// A heartbeat with this nonce.
    Heartbeat(u64),
    /// One had no answer within the timeout.
    Error,
}

impl Path {
    pub(super) fn new(interval: Option<Duration>) -> Path {
        Path {
            interval,
            period: Duration::ZERO,
            next: None,
            pending: None,
            errors: 0,
            heartbeats: 0,
            failures: 0,
        }
    }

    /// The association is established, or a heartbeat has come to its end: the path rests from `now` on.
    pub(super) fn rest(&mut self, now: Time, rto: &Rto, draws: &mut Stream) {
        self.pending = None;
        let Some(interval) = self.interval else { return };
        // Section 8.3: HB.interval and the timeout, which varies by half of itself.
        self.period = interval + rto.current() / 2 + draws.duration_below(rto.current());
        self.next = Some(now + self.period);
    }

    pub(super) fn timer(&self) -> Option<Time> {
        self.pending.map(|(_, _, late)| late).or(self.next)
    }

    /// Does what is due; new data was sent last at `sent`.
    pub(super) fn handle_timeout(&mut self, now: Time, sent: Time, rto: &mut Rto, draws: &mut Stream) -> Due {
        if self.timer().is_none_or(|at| at > now) {
            return Due::Nothing;
        }
        if self.pending.is_some() {
            rto.back_off();
            self.rest(now, rto, draws);
            return Due::Error;
        }
        if sent + self.period > now {
            self.next = Some(sent + self.period);
            return Due::Nothing;
        }
        let nonce = draws.bits();
        self.pending = Some((nonce, now, now + rto.current()));
        self.heartbeats += 1;
        Due::Heartbeat(nonce)
    }

    /// Takes a HEARTBEAT ACK: the peer is there, and the round trip is measured. Others than that of the last heartbeat count for
    /// nothing.
    pub(super) fn acknowledge(&mut self, now: Time, value: &[u8], rto: &mut Rto, draws: &mut Stream) {
        let is_of = |nonce| parameter(nonce) == value;
        if let Some((_, sent, _)) = self.pending.filter(|(nonce, ..)| is_of(*nonce)) {
            self.answered();
            rto.measure(now.since(sent));
            self.rest(now, rto, draws);
        }
    }

    /// Data or a heartbeat was acknowledged.
    pub(super) fn answered(&mut self) {
        self.errors = 0;
    }

    /// Counts a timeout without an answer; whether there were more than `most` in a row.
    pub(super) fn count_error(&mut self, most: Option<u32>) -> bool {
        self.errors += 1;
        self.failures += u64::from(self.errors == PATH_MAX_RETRANS + 1);
        most.is_some_and(|most| self.errors > most)
    }
}

/// The value of a HEARTBEAT: its nonce, which nobody can answer who has not seen it.
pub(super) fn parameter(nonce: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(CHUNK_HEADER + 8);
    wire::put_parameter(&mut value, HEARTBEAT_INFO, &nonce.to_be_bytes());
    value
}

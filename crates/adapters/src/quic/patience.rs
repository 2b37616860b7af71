//! How long nothing is heard while something needs an answer.

use quinn_proto::{ConnectionStats, FrameStats};
use trunkline_core::{Duration, Time};

/// The longest that an end waits before it sends again what has no answer.
///
/// RFC 9002 doubles this time with every silence (section 6.2.1) and sets no bound. Where acknowledgements are lost as
/// well, the one that at last comes with a peer's own probe measures a round trip as long as that probe's waiting, and two
/// ends lengthen each other's waiting until a path that has recovered is not used for years. The bound is TCP's (RFC 6298
/// section 2.5).
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Notices that a peer is gone. QUIC's own idle timeout (RFC 9000 section 10.1) cannot tell a peer that is gone from one
/// that has nothing to say, and would end both.
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Option<Duration>,
    /// Since when something that needs an answer has had none.
    unanswered: Option<Time>,
    /// When the peer was heard last, or asked whether it is there.
    heard: Time,
    /// When something that needs an answer was sent last.
    last_sent: Option<Time>,
    /// The engine has been asked for a packet that needs an answer since.
    nudged: bool,
    sent: u64,
    received: u64,
}

impl Patience {
    pub(super) fn new(timeout: Option<Duration>) -> Patience {
        Patience {
            timeout,
            unanswered: None,
            heard: Time::ZERO,
            last_sent: None,
            nudged: false,
            sent: 0,
            received: 0,
        }
    }

    /// A packet was sent.
    pub(super) fn sent(&mut self, now: Time, stats: &ConnectionStats) {
        let sent = eliciting(&stats.frame_tx);
        if sent > self.sent {
            self.sent = sent;
            self.unanswered.get_or_insert(now);
            self.last_sent = Some(now);
            self.nudged = false;
        }
    }

    /// A packet came. Only what was decrypted counts: anyone can send packets.
    pub(super) fn received(&mut self, now: Time, stats: &ConnectionStats) {
        let received = eliciting(&stats.frame_rx) + stats.frame_rx.acks;
        if received > self.received {
            self.received = received;
            self.unanswered = None;
            self.heard = now;
        }
    }

    /// When to call an engine that asks to be called at this time.
    pub(super) fn shortened(&self, asked: Time) -> Time {
        self.last_sent.map_or(asked, |last| asked.min(last + LONGEST_WAIT))
    }

    /// Whether the engine may be asked for a packet that needs an answer: once until it sends one.
    pub(super) fn nudge(&mut self) -> bool {
        !core::mem::replace(&mut self.nudged, true)
    }

    /// When it is at its end.
    pub(super) fn deadline(&self) -> Option<Time> {
        Some(self.unanswered? + self.timeout?)
    }

    /// When the peer should be asked whether it is there, though nothing needs an answer: an end that waits for the peer
    /// to make room would not notice that it is gone.
    pub(super) fn question(&self) -> Option<Time> {
        let timeout = self.timeout.filter(|_| self.unanswered.is_none())?;
        Some(self.heard + timeout / 2)
    }

    /// It has been asked.
    pub(super) fn asked(&mut self, now: Time) {
        self.heard = now;
    }

    pub(super) fn heard(&self) -> Time {
        self.heard
    }
}

/// Frames that a peer acknowledges: all but ACK, PADDING and CONNECTION_CLOSE (RFC 9000 section 13.2).
fn eliciting(frames: &FrameStats) -> u64 {
    frames.ack_frequency
        + frames.crypto
        + frames.data_blocked
        + frames.datagram
        + u64::from(frames.handshake_done)
        + frames.immediate_ack
        + frames.max_data
        + frames.max_stream_data
        + frames.max_streams_bidi
        + frames.max_streams_uni
        + frames.new_connection_id
        + frames.new_token
        + frames.path_challenge
        + frames.path_response
        + frames.ping
        + frames.reset_stream
        + frames.retire_connection_id
        + frames.stream_data_blocked
        + frames.streams_blocked_bidi
        + frames.streams_blocked_uni
        + frames.stop_sending
        + frames.stream
}

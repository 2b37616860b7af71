//! How long nothing is heard while something needs an answer.

use quinn_proto::{ConnectionStats, FrameStats};
use trunkline_core::{Duration, Time};

/// Notices that a peer is gone. QUIC's own idle timeout (RFC 9000 section 10.1) cannot tell a peer that is gone from one
/// that has nothing to say, and would end both.
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Option<Duration>,
    /// Since when something that needs an answer has had none.
    unanswered: Option<Time>,
    /// When the peer was heard last, or asked whether it is there.
    heard: Time,
    sent: u64,
    received: u64,
}

impl Patience {
    pub(super) fn new(timeout: Option<Duration>) -> Patience {
        Patience { timeout, unanswered: None, heard: Time::ZERO, sent: 0, received: 0 }
    }

    /// A packet was sent.
    pub(super) fn sent(&mut self, now: Time, stats: &ConnectionStats) {
        let sent = eliciting(&stats.frame_tx);
        if sent > self.sent {
            self.sent = sent;
            self.unanswered.get_or_insert(now);
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

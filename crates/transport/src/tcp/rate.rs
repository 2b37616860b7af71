//! The rate of delivery (draft-cheng-iccrg-delivery-rate-estimation): how many segments were delivered, and how long that
//! took, between the sending of a segment and its acknowledgement.

use trunkline_core::{Duration, Time};

use super::flow::Flow;
use super::scoreboard::Sent;

/// What an acknowledgement says of the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateSample {
    /// Segments that had been delivered when the newest acknowledged one was sent, and when the last of them was; 0 without a
    /// sample.
    pub(super) prior_delivered: u64,
    pub(super) prior_delivered_ce: u64,
    pub(super) prior_at: Time,
    /// Where the newest acknowledged segment ends.
    pub(super) last_end: u64,
    /// Segments delivered since, and of them those with marks.
    pub(super) delivered: u64,
    pub(super) delivered_ce: u64,
    /// How long that took; zero without a sample.
    pub(super) interval: Duration,
    /// Whether the application had no more to send at the time.
    pub(super) is_app_limited: bool,
    /// The round trip of the last segment that had been sent once.
    pub(super) rtt: Option<Duration>,
    /// Whether the peer has probably waited with this acknowledgement.
    pub(super) is_ack_delayed: bool,
    /// Segments that this acknowledgement has newly acknowledged, out of order or not, and newly shown to be lost.
    pub(super) acked: u32,
    pub(super) losses: u32,
    /// Segments in flight before it.
    pub(super) prior_in_flight: u32,
    /// Segments in flight when the newest acknowledged one was sent, it included.
    pub(super) tx_in_flight: u32,
    /// Segments that had been lost when it was sent.
    pub(super) prior_lost: u64,
}

impl RateSample {
    /// A loss that no acknowledgement showed.
    pub(super) fn of_loss() -> RateSample {
        RateSample { losses: 1, ..RateSample::default() }
    }

    /// Whether it tells a rate.
    pub(super) fn is_valid(&self) -> bool {
        !self.interval.is_zero()
    }

    /// Segments per second times 2^24.
    pub(super) fn bandwidth(&self) -> u64 {
        let scaled = (u128::from(self.delivered) << 24) * 1_000_000_000;
        (scaled / u128::from(self.interval.as_nanos().max(1))) as u64
    }

    /// Takes a segment that has just been delivered. The sample is that of the one sent last.
    pub(super) fn take(&mut self, flow: &mut Flow, sent: &mut Sent, keeps_segment: bool) {
        let Some(tx) = sent.tx else { return };
        let is_newer = (sent.sent_at, sent.end()) > (flow.first_sent_at, self.last_end);
        if self.prior_delivered_is_missing() || is_newer {
            self.prior_delivered = tx.delivered;
            self.prior_delivered_ce = tx.delivered_ce;
            self.prior_at = tx.delivered_at;
            self.is_app_limited = tx.is_app_limited;
            self.tx_in_flight = tx.in_flight;
            self.prior_lost = tx.lost;
            self.last_end = sent.end();
            flow.first_sent_at = sent.sent_at;
            self.interval = sent.sent_at.since(tx.first_sent_at);
        }
        if keeps_segment {
            sent.tx = None;
        }
    }

    fn prior_delivered_is_missing(&self) -> bool {
        self.last_end == 0
    }

    /// Completes the sample when the whole acknowledgement has been taken.
    pub(super) fn finish(&mut self, flow: &mut Flow, delivered: u32, lost: u32, is_reneging: bool) {
        if flow.app_limited > 0 && flow.delivered > flow.app_limited {
            flow.app_limited = 0;
        }
        if delivered > 0 {
            flow.delivered_at = flow.now;
        }
        (self.acked, self.losses) = (delivered, lost);
        if self.prior_delivered_is_missing() || is_reneging {
            self.interval = Duration::ZERO;
            return;
        }
        self.delivered = flow.delivered - self.prior_delivered;
        self.delivered_ce = flow.delivered_ce - self.prior_delivered_ce;
        // Acknowledgements may be compressed on their way: the longer of sending and of acknowledging counts.
        self.interval = self.interval.max(flow.now.since(self.prior_at));
        // Nothing can be delivered in less than a round trip.
        if self.interval < flow.rtt.smallest() {
            self.interval = Duration::ZERO;
        }
    }
}

/// What was known when a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxState {
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    pub(super) lost: u64,
    pub(super) delivered_ce: u64,
    pub(super) in_flight: u32,
    pub(super) is_app_limited: bool,
}

impl TxState {
    /// Of a segment that is sent now.
    pub(super) fn now(flow: &mut Flow, sent_at: Time, segments: u32) -> TxState {
        if flow.packets_out == 0 {
            (flow.first_sent_at, flow.delivered_at) = (sent_at, sent_at);
        }
        TxState {
            delivered: flow.delivered,
            delivered_at: flow.delivered_at,
            first_sent_at: flow.first_sent_at,
            lost: flow.lost,
            delivered_ce: flow.delivered_ce,
            in_flight: flow.in_flight() + segments,
            is_app_limited: flow.app_limited > 0,
        }
    }
}

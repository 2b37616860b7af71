//! The arithmetic of a path that the versions of BBR share. Bandwidths are in segments per second times 2^24, gains in 256ths.

use trunkline_core::{Duration, Time};

use crate::tcp::flow::Flow;
use crate::tcp::rate::RateSample;

/// A gain of one.
pub(super) const UNIT: u64 = 256;
/// The smallest window, in segments.
pub(super) const MIN_CWND: u32 = 4;
/// Paces a percent below the rate of delivery.
const MARGIN_PERCENT: u64 = 99;
/// Below this rate in bytes per second a burst is one segment.
const SLOW: u64 = 1_200_000 / 8;
/// The largest burst that counts against the window.
const MAX_BURST: u64 = (64 << 10) - 1 - 320;

/// Bytes per second for a bandwidth and a gain.
pub(super) fn pacing_rate(flow: &Flow, bandwidth: u64, gain: u64) -> u64 {
    let bytes = u128::from(bandwidth) * u128::from(flow.mss) * u128::from(gain) / u128::from(UNIT);
    ((bytes * u128::from(MARGIN_PERCENT) / 100) >> 24) as u64
}

/// A bandwidth before the path is known: the window in a round trip.
pub(super) fn initial_bandwidth(flow: &Flow) -> u64 {
    let rtt = flow.rtt.smoothed().unwrap_or(Duration::from_millis(1));
    ((u128::from(flow.cwnd) << 24) * 1_000_000_000 / u128::from(rtt.as_nanos().max(1000))) as u64
}

/// Segments of a bandwidth-delay product with a gain.
pub(super) fn product(bandwidth: u64, round_trip: Duration, gain: u64) -> u32 {
    let segments = u128::from(bandwidth) * u128::from(round_trip.as_nanos()) * u128::from(gain);
    segments.div_ceil((1u128 << 24) * 1_000_000_000 * u128::from(UNIT)) as u32
}

/// Segments that a bandwidth delivers in a time.
pub(super) fn delivered_in(bandwidth: u64, time: Duration) -> u64 {
    ((u128::from(bandwidth) * u128::from(time.as_nanos()) / 1_000_000_000) >> 24) as u64
}

/// The smallest burst that is worth waiting for, in segments.
pub(super) fn min_burst(flow: &Flow) -> u32 {
    if flow.pacing_rate < SLOW { 1 } else { 2 }
}

/// Segments of a burst: what leaves in a millisecond.
pub(super) fn burst(flow: &Flow) -> u32 {
    let bytes = (flow.pacing_rate >> 10).min(MAX_BURST);
    ((bytes / u64::from(flow.mss)) as u32).max(min_burst(flow)).min(127)
}

/// Round trips, counted in deliveries: one is over when a segment is delivered that was sent after it had begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The last acknowledgement has ended a round trip.
    pub(super) is_start: bool,
    end: u64,
}

impl Rounds {
    /// Takes an acknowledgement with a sample.
    pub(super) fn take(&mut self, flow: &Flow, sample: &RateSample) {
        self.is_start = sample.prior_delivered >= self.end;
        if self.is_start {
            self.restart(flow);
            self.count += 1;
        }
    }

    /// Begins one now.
    pub(super) fn restart(&mut self, flow: &Flow) {
        self.end = flow.delivered;
    }
}

/// Segments that were acknowledged beyond what the bandwidth explains: acknowledgements are joined on their way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Excess {
    since: Time,
    acked: u64,
}

impl Excess {
    /// Begins again from now.
    pub(super) fn restart(&mut self, now: Time) {
        *self = Excess { since: now, acked: 0 };
    }

    /// Takes acknowledged segments, and returns the excess since the acknowledgements were slower than the bandwidth.
    pub(super) fn take(&mut self, flow: &Flow, bandwidth: u64, acked: u32) -> u64 {
        let mut expected = delivered_in(bandwidth, flow.delivered_at.since(self.since));
        if self.acked <= expected || self.acked + u64::from(acked) >= 1 << 20 {
            self.restart(flow.delivered_at);
            expected = 0;
        }
        self.acked += u64::from(acked);
        (self.acked - expected).min(flow.cwnd.into())
    }
}

//! What a connection tells of itself over time.

use trunkline_core::Duration;

use super::congestion::UNLIMITED;
use super::flow::NO_THRESHOLD;
use super::send::Sender;

/// The state of a sender, as the kernel's `TCP_INFO` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// The congestion window in bytes; 0 without congestion control.
    pub congestion_window: u64,
    /// The slow-start threshold in bytes; `None` before there is one.
    pub slow_start_threshold: Option<u64>,
    /// Bytes that are believed to be in the network.
    pub bytes_in_flight: u64,
    /// The smoothed round trip; `None` before there was a sample.
    pub smoothed_round_trip: Option<Duration>,
    /// Bytes per second at which departures are paced, or bursts are sized; 0 before there was a round trip.
    pub pacing_rate: u64,
    /// Segments sent again so far, and by cause: after three later ones had arrived, after time had passed (RFC 8985), as a
    /// probe of the tail, after a timeout.
    pub retransmissions: u64,
    /// See `retransmissions`.
    pub fast: u64,
    /// See `retransmissions`.
    pub rack: u64,
    /// See `retransmissions`.
    pub tail_probes: u64,
    /// See `retransmissions`.
    pub timeouts: u64,
    /// Of all of them, those that the peer had already.
    pub spurious: u64,
}

impl TcpFigures {
    pub(super) fn of(sender: &Sender) -> TcpFigures {
        let (flow, counters) = (&sender.flow, &sender.counters);
        let bytes = |segments: u32| u64::from(segments) * u64::from(flow.mss);
        let unacknowledged = flow.next.saturating_sub(flow.una);
        TcpFigures {
            congestion_window: if flow.cwnd < UNLIMITED { bytes(flow.cwnd) } else { 0 },
            slow_start_threshold: (flow.ssthresh != NO_THRESHOLD).then(|| bytes(flow.ssthresh)),
            // Segments may be smaller than the largest.
            bytes_in_flight: bytes(flow.in_flight()).min(unacknowledged),
            smoothed_round_trip: flow.rtt.smoothed(),
            pacing_rate: flow.pacing_rate,
            retransmissions: counters.repeated(),
            fast: counters.fast,
            rack: counters.rack,
            tail_probes: counters.tlp,
            timeouts: counters.timeout,
            spurious: counters.spurious,
        }
    }
}

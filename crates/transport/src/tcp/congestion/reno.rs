//! Reno (RFC 5681): a segment per round trip, half of the window after a loss.

use super::{AlgorithmKind, CongestionControl};
use crate::tcp::flow::Flow;

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "reno",
    doc: "Reno (RFC 5681): grows by a segment per round trip and halves its window after a loss",
    needs_pacing: false,
    needs_ecn: false,
    is_l4s: false,
    make: |_| Box::new(Reno),
};

#[derive(Debug)]
pub(super) struct Reno;

/// Growth of RFC 5681 section 3.1, for Reno and those that differ only in how they shrink.
pub(super) fn grow(flow: &mut Flow, acked: u32) {
    if !flow.is_limited_by_cwnd() {
        return;
    }
    let rest = if flow.is_in_slow_start() { flow.slow_start(acked) } else { acked };
    if rest > 0 {
        flow.additive_increase(flow.cwnd, rest);
    }
}

impl CongestionControl for Reno {
    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        flow.half_cwnd()
    }

    fn grow(&mut self, flow: &mut Flow, acked: u32) {
        grow(flow, acked);
    }
}

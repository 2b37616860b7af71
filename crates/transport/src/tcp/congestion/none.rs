//! No congestion control: only the peer's window limits the sender, as before 1988.

use super::{AlgorithmKind, CongestionControl};
use crate::tcp::flow::Flow;

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "none",
    doc: "none: only the peer's window limits the sender, as before 1988; in `sim` only",
    needs_pacing: false,
    needs_ecn: false,
    is_l4s: false,
    make: |_| Box::new(Unlimited),
};

/// More segments than any window has.
pub(crate) const ANY: u32 = 1 << 24;

#[derive(Debug)]
struct Unlimited;

impl CongestionControl for Unlimited {
    fn start(&mut self, flow: &mut Flow) {
        flow.cwnd = ANY;
    }

    fn ssthresh(&mut self, _: &Flow) -> u32 {
        ANY
    }

    fn governs(&self) -> bool {
        true
    }

    fn govern(&mut self, flow: &mut Flow, _: &crate::tcp::rate::RateSample) {
        flow.cwnd = ANY;
    }

    fn grow(&mut self, _: &mut Flow, _: u32) {}
}

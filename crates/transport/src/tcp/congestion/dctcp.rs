//! DCTCP (RFC 8257): the window shrinks in proportion to the share of marked segments.

use super::{AlgorithmKind, CongestionControl, FlowEvent, reno};
use crate::tcp::flow::{Flow, Phase};

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "dctcp",
    doc: "DCTCP (RFC 8257): like Reno, but marks shrink the window by half of their share; for dedicated networks \
          with a queue that marks early",
    needs_pacing: false,
    needs_ecn: true,
    is_l4s: false,
    make: |_| Box::new(Dctcp { alpha: WHOLE, ..Dctcp::default() }),
};

/// All segments are marked.
const WHOLE: u32 = 1024;
/// The weight of the last round trip is one part in 2^this (RFC 8257 section 4.2: g = 1/16).
const GAIN_SHIFT: u32 = 4;

/// DCTCP's state.
#[derive(Debug, Default)]
struct Dctcp {
    /// The share of marked segments in [`WHOLE`]ths, smoothed. All, until it is known better (RFC 8257 section 4.2).
    alpha: u32,
    round_end: u64,
    delivered: u64,
    delivered_ce: u64,
    /// The window at the last loss.
    loss_cwnd: u32,
}

impl Dctcp {
    fn begin_round(&mut self, flow: &Flow) {
        self.round_end = flow.next;
        (self.delivered, self.delivered_ce) = (flow.delivered, flow.delivered_ce);
    }

    /// Loss halves the window as Reno does (RFC 8257 section 3.5).
    fn react_to_loss(&mut self, flow: &mut Flow) {
        self.loss_cwnd = flow.cwnd;
        flow.ssthresh = flow.half_cwnd();
    }
}

impl CongestionControl for Dctcp {
    fn start(&mut self, flow: &mut Flow) {
        self.begin_round(flow);
    }

    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        self.loss_cwnd = flow.cwnd;
        let cut = u64::from(flow.cwnd) * u64::from(self.alpha) / u64::from(2 * WHOLE);
        (flow.cwnd - cut as u32).max(2)
    }

    fn grow(&mut self, flow: &mut Flow, acked: u32) {
        reno::grow(flow, acked);
    }

    fn undone_cwnd(&mut self, flow: &Flow) -> u32 {
        flow.cwnd.max(self.loss_cwnd)
    }

    /// RFC 8257 section 3.3: once per round trip.
    fn arrived(&mut self, flow: &mut Flow, _: bool) {
        if flow.una < self.round_end {
            return;
        }
        let delivered = (flow.delivered - self.delivered).max(1);
        let marked = flow.delivered_ce - self.delivered_ce;
        // What is less than a part is forgotten.
        self.alpha -= if self.alpha >> GAIN_SHIFT == 0 { self.alpha } else { self.alpha >> GAIN_SHIFT };
        if marked > 0 {
            let share = marked * u64::from(WHOLE >> GAIN_SHIFT) / delivered;
            self.alpha = (self.alpha + share as u32).min(WHOLE);
        }
        self.begin_round(flow);
    }

    fn phase_changes(&mut self, flow: &mut Flow, phase: Phase) {
        if phase == Phase::Recovery && phase != flow.phase {
            self.react_to_loss(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow, event: FlowEvent) {
        if event == FlowEvent::Timeout {
            self.react_to_loss(flow);
        }
    }
}

//! BBR's answer to policers: where a fifth of what is sent is lost at a steady rate of delivery, that rate is believed.

use trunkline_core::{Duration, Time};

use super::path::{self, UNIT};
use super::{Bbr, Mode};
use crate::tcp::flow::Flow;
use crate::tcp::rate::RateSample;

/// An interval has four round trips at least, and sixteen at most.
const ROUNDS: [u32; 2] = [4, 16];
/// The share of losses that makes a policer likely, in 256ths.
const LOSS: u64 = 50;
/// The rates of two intervals are the same if they differ by an eighth or by 4 kbit/s at most.
const DIFFERENCE: u64 = 8;
const BYTES: u64 = 4000 / 8;
/// For so many round trips the rate is believed.
const USE_ROUNDS: u32 = 48;

/// The state of the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// Whether the bandwidth is used, and the bandwidth.
    is_used: bool,
    bandwidth: u64,
    is_sampling: bool,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    pub(super) fn in_use(&self) -> Option<u64> {
        self.is_used.then_some(self.bandwidth)
    }

    pub(super) fn reset(&mut self, flow: &Flow) {
        *self = LongTerm::default();
        self.begin(flow);
    }

    fn begin(&mut self, flow: &Flow) {
        (self.since, self.delivered, self.lost) = (flow.delivered_at, flow.delivered, flow.lost);
        self.rounds = 0;
    }
}

impl Bbr {
    /// Looks for a policer.
    pub(super) fn sample_long_term(&mut self, flow: &Flow, sample: &RateSample) {
        if self.long_term.is_used {
            if self.mode == Mode::ProbeBandwidth && self.rounds.is_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= USE_ROUNDS {
                    self.long_term.reset(flow);
                    self.begin_probing(flow);
                }
            }
            return;
        }
        let it = &mut self.long_term;
        if !it.is_sampling {
            if sample.losses == 0 {
                return;
            }
            it.begin(flow);
            it.is_sampling = true;
        }
        if sample.is_app_limited {
            return it.reset(flow);
        }
        it.rounds += u32::from(self.rounds.is_start);
        if it.rounds < ROUNDS[0] {
            return;
        }
        if it.rounds > ROUNDS[1] {
            return it.reset(flow);
        }
        if sample.losses == 0 {
            return;
        }
        let (lost, delivered) = (flow.lost - it.lost, flow.delivered - it.delivered);
        let time = flow.delivered_at.since(it.since);
        if delivered == 0 || lost * UNIT < LOSS * delivered || time < Duration::from_millis(1) {
            return;
        }
        let bandwidth = ((u128::from(delivered) << 24) * 1_000_000_000 / u128::from(time.as_nanos())) as u64;
        self.end_interval(flow, bandwidth);
    }

    /// An interval is over: the same rate as in the one before is a policer's.
    fn end_interval(&mut self, flow: &Flow, bandwidth: u64) {
        let difference = bandwidth.abs_diff(self.long_term.bandwidth);
        let is_same = difference * DIFFERENCE <= self.long_term.bandwidth
            || path::pacing_rate(flow, difference, UNIT) <= BYTES;
        let it = &mut self.long_term;
        if it.bandwidth > 0 && is_same {
            it.bandwidth = it.bandwidth.midpoint(bandwidth);
            (it.is_used, it.rounds) = (true, 0);
            self.pacing_gain = UNIT;
            return;
        }
        it.bandwidth = bandwidth;
        it.begin(flow);
    }
}

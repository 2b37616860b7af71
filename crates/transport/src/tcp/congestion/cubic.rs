//! CUBIC (RFC 9438), with the constants of Linux and its HyStart.

use trunkline_core::{Duration, Time};

use super::hystart::Detector;
use super::{AckSample, AlgorithmKind, CongestionControl, FlowEvent};
use crate::tcp::config::Hystart;
use crate::tcp::flow::{Flow, Phase};

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "cubic",
    doc: "CUBIC (RFC 9438): grows with the cube of the time since the last loss, keeps 70 % of its window after one",
    needs_pacing: false,
    needs_ecn: false,
    is_l4s: false,
    make: |making| Box::new(Cubic::new(making.hystart)),
};

/// The share of the window that is kept after a loss, in 1024ths (RFC 9438 section 4.6: 0.7).
const BETA: u32 = 717;
const WHOLE: u32 = 1024;
/// The constant C (RFC 9438 section 4.2: 0.4), in 1024ths of a segment per second cubed.
const C: u64 = 410;
/// Times are in 1024ths of a second.
const SECOND: u64 = 1024;
/// The Reno-friendly window grows by a segment for so many eighths of a window of acknowledged segments (RFC 9438 section
/// 4.3: 1 / alpha, with alpha = 3 (1 - beta) / (1 + beta)).
const FRIENDLY_EIGHTHS: u32 = 15;
/// Before there was a loss, the window grows by a segment for at most so many acknowledged ones: 5 % per round trip.
const FIRST_PACE: u32 = 20;
/// The window grows by half of what is acknowledged at most.
const FASTEST_PACE: u32 = 2;
/// The pace is computed anew after this time even if the window has not changed, and never more often than this.
const RECOMPUTE: [Duration; 2] = [Duration::from_millis(31), Duration::from_millis(1)];
/// Round trips just after a loss tell of the recovery, not of the path.
const QUIET: Duration = Duration::from_secs(1);

/// CUBIC's state.
#[derive(Debug)]
struct Cubic {
    detector: Detector,
    hystart: Hystart,
    /// The window before the last reduction, less where it was still smaller than the one before (RFC 9438 section 4.7).
    last_max: u32,
    /// When this growth began, [`Time::ZERO`] if it has not.
    epoch: Time,
    /// The plateau, and how long it takes to get there in [`SECOND`]ths.
    origin: u32,
    k: u64,
    /// The window that Reno would have, and acknowledged segments that have not grown it.
    friendly: u32,
    friendly_count: u32,
    /// So many acknowledged segments grow the window by one; computed at `computed_at` for `computed_for`.
    pace: u32,
    computed_at: Time,
    computed_for: u32,
    /// The shortest round trip since the last timeout.
    smallest: Duration,
}

impl Cubic {
    fn new(hystart: Hystart) -> Cubic {
        Cubic {
            detector: Detector::new(hystart),
            hystart,
            last_max: 0,
            epoch: Time::ZERO,
            origin: 0,
            k: 0,
            friendly: 0,
            friendly_count: 0,
            pace: 0,
            computed_at: Time::ZERO,
            computed_for: 0,
            smallest: Duration::MAX,
        }
    }

    /// How many acknowledged segments grow the window by one now.
    fn pace(&mut self, flow: &Flow, acked: u32) -> u32 {
        self.friendly_count += acked;
        let since = flow.now.since(self.computed_at);
        let (is_same, has_epoch) = (self.computed_for == flow.cwnd, self.epoch != Time::ZERO);
        if is_same && since <= RECOMPUTE[0] {
            return self.pace.max(FASTEST_PACE);
        }
        if !has_epoch || since >= RECOMPUTE[1] {
            (self.computed_for, self.computed_at) = (flow.cwnd, flow.now);
            if !has_epoch {
                self.begin(flow, acked);
            }
            self.pace = self.cubic_pace(flow);
        }
        let friendly = self.friendly_pace(flow.cwnd);
        self.pace = self.pace.min(friendly).max(FASTEST_PACE);
        self.pace
    }

    /// Begins to grow after a reduction (RFC 9438 section 4.2).
    fn begin(&mut self, flow: &Flow, acked: u32) {
        self.epoch = flow.now.max(Time::from_nanos(1));
        (self.friendly, self.friendly_count) = (flow.cwnd, acked);
        self.origin = self.last_max.max(flow.cwnd);
        let missing = u64::from(self.origin - flow.cwnd);
        // K = cbrt(missing / C) seconds.
        self.k =
            libm::cbrt((missing * WHOLE as u64) as f64 / C as f64 * (SECOND * SECOND * SECOND) as f64) as u64;
    }

    /// RFC 9438 sections 4.4 and 4.5.
    fn cubic_pace(&self, flow: &Flow) -> u32 {
        // The window that a round trip from now should have.
        let ahead = flow.now.since(self.epoch)
            + if self.smallest == Duration::MAX { Duration::ZERO } else { self.smallest };
        let t = scaled(ahead);
        let offset = t.abs_diff(self.k).min(1 << 20);
        let delta = (u128::from(C) * u128::from(offset).pow(3)
            / u128::from(WHOLE)
            / u128::from(SECOND).pow(3)) as u64;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target =
            if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        let pace = if target > flow.cwnd { flow.cwnd / (target - flow.cwnd) } else { 100 * flow.cwnd };
        if self.last_max == 0 { pace.min(FIRST_PACE) } else { pace }
    }

    /// RFC 9438 section 4.3: no slower than Reno with the same loss would be.
    fn friendly_pace(&mut self, cwnd: u32) -> u32 {
        let per_segment = (cwnd * FRIENDLY_EIGHTHS / 8).max(1);
        let steps = self.friendly_count.saturating_sub(1) / per_segment;
        self.friendly += steps;
        self.friendly_count -= steps * per_segment;
        match self.friendly.checked_sub(cwnd) {
            Some(ahead) if ahead > 0 => cwnd / ahead,
            _ => u32::MAX,
        }
    }

    /// Forgets everything: what a timeout does.
    fn reset(&mut self, flow: &Flow) {
        *self = Cubic::new(self.hystart);
        self.detector.start(flow);
    }
}

impl CongestionControl for Cubic {
    fn start(&mut self, flow: &mut Flow) {
        self.reset(flow);
    }

    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        self.epoch = Time::ZERO;
        // Fast convergence: who had less than before leaves more to newcomers.
        self.last_max = if flow.cwnd < self.last_max {
            (u64::from(flow.cwnd) * u64::from(WHOLE + BETA) / u64::from(2 * WHOLE)) as u32
        } else {
            flow.cwnd
        };
        ((u64::from(flow.cwnd) * u64::from(BETA) / u64::from(WHOLE)) as u32).max(2)
    }

    fn grow(&mut self, flow: &mut Flow, acked: u32) {
        if !flow.is_limited_by_cwnd() {
            return;
        }
        let mut rest = acked;
        if flow.is_in_slow_start() {
            rest = flow.slow_start(self.detector.growth(flow, acked));
            if rest == 0 {
                return;
            }
        }
        let pace = self.pace(flow, rest);
        flow.additive_increase(pace, rest);
    }

    fn acked(&mut self, flow: &mut Flow, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        if self.epoch != Time::ZERO && flow.now.since(self.epoch) < QUIET {
            return;
        }
        self.smallest = self.smallest.min(rtt.max(Duration::from_micros(1)));
        if flow.is_in_slow_start() {
            self.detector.take(flow, rtt, self.smallest);
        }
    }

    fn phase_changes(&mut self, flow: &mut Flow, phase: Phase) {
        if phase == Phase::Loss {
            self.reset(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow, event: FlowEvent) {
        // Time without data does not count (RFC 9438 section 5.8).
        if event == FlowEvent::Restart && self.epoch != Time::ZERO {
            self.epoch = (self.epoch + flow.now.since(flow.data_sent_at)).min(flow.now);
        }
    }
}

/// A duration in 1024ths of a second.
fn scaled(duration: Duration) -> u64 {
    (u128::from(duration.as_nanos()) * u128::from(SECOND) / 1_000_000_000) as u64
}

//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control, the requirements of RFC 9331): DCTCP made fit for the Internet.
//!
//! Without the detection of classic queues that mark ECT(1) packets (RFC 9331 section 4.3 item 5), which Linux's Prague has
//! switched off.

use trunkline_core::{Duration, Time};

use super::{AlgorithmKind, CongestionControl, FlowEvent, reno};
use crate::tcp::flow::{Flow, Phase};
use crate::tcp::rate::RateSample;

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "prague",
    doc: "TCP Prague (draft-briscoe-iccrg-prague-congestion-control): for L4S queues (RFC 9331); marks shrink the window by half \
          of their share. Reno where the peer does not count marks (RFC 9768)",
    needs_pacing: true,
    needs_ecn: true,
    is_l4s: true,
    make: |_| Box::new(Prague::default()),
};

/// One segment, or all segments: the unit of windows and shares.
const WHOLE: u64 = 1 << 20;
/// The weight of the last round trip is one part in 2^this (g = 1/16).
const GAIN_SHIFT: u32 = 4;
/// Flows with shorter round trips grow, and respond to marks, as one with this round trip.
const REFERENCE: Duration = Duration::from_millis(25);
/// A burst has as much as leaves in one part in 2^this of a second: about a quarter of a millisecond.
const BURST_SHIFT: u32 = 12;
/// The smallest window, in segments.
const MIN_CWND: u64 = 2;

/// Prague's state.
#[derive(Debug, Default)]
struct Prague {
    /// Marks are counted exactly. Otherwise it is Reno.
    is_scalable: bool,
    /// The window in [`WHOLE`]ths of a segment, and the same before the last loss.
    window: u64,
    prior_window: u64,
    /// The smoothed share of marked segments in [`WHOLE`]ths, times 2^[`GAIN_SHIFT`] so that remainders are kept. All, until the
    /// first mark shows that the network marks.
    alpha: u64,
    has_marks: bool,
    round: Round,
    /// Marks that were taken.
    marks: u64,
    /// A reduction is under way until this place is acknowledged and a virtual round trip has passed.
    reduced_to: u64,
    reduced_at: Option<Time>,
    /// Losses are being repaired: the window does not grow.
    is_repairing: bool,
}

/// The interval over which the share is measured.
#[derive(Debug, Default)]
struct Round {
    end: u64,
    since: Time,
    delivered: u64,
    marks: u64,
}

/// The round trip that a flow behaves as if it had.
fn virtual_round_trip(flow: &Flow) -> Duration {
    flow.rtt.smoothed().map_or(REFERENCE, |smoothed| smoothed.max(REFERENCE))
}

impl Prague {
    fn begin_round(&mut self, flow: &Flow) {
        self.round =
            Round { end: flow.next, since: flow.now, delivered: flow.delivered, marks: flow.delivered_ce };
    }

    /// Updates the share of marks once per virtual round trip.
    fn update_alpha(&mut self, flow: &Flow) {
        let round = &self.round;
        if flow.una < round.end || flow.now.since(round.since) < virtual_round_trip(flow) {
            return;
        }
        if self.has_marks {
            let delivered = (flow.delivered - round.delivered).max(1);
            let marks = (flow.delivered_ce - round.marks).min(delivered);
            self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + marks * WHOLE / delivered;
        }
        self.begin_round(flow);
    }

    /// A reduction by half of the share of marks, once per virtual round trip.
    fn react_to_marks(&mut self, flow: &mut Flow) {
        self.has_marks = true;
        let is_over = flow.una >= self.reduced_to
            && self.reduced_at.is_none_or(|at| flow.now.since(at) >= virtual_round_trip(flow));
        if self.is_repairing || !is_over {
            return;
        }
        let share = self.alpha >> GAIN_SHIFT;
        self.reduce(self.window * share / (2 * WHOLE), flow);
        (self.reduced_to, self.reduced_at) = (flow.next, Some(flow.now));
    }

    /// A loss halves the window, as in Reno.
    fn react_to_loss(&mut self, flow: &mut Flow) {
        self.prior_window = self.window;
        self.is_repairing = true;
        self.reduce(self.window / 2, flow);
    }

    fn reduce(&mut self, cut: u64, flow: &mut Flow) {
        self.window = (self.window - cut).max(MIN_CWND * WHOLE);
        flow.ssthresh = self.segments();
    }

    /// Whole segments of the window.
    fn segments(&self) -> u32 {
        self.window.div_ceil(WHOLE) as u32
    }

    /// Grows by what was acknowledged without a mark: in slow start by as much, later by a segment per virtual round trip, at a
    /// rate that grows no faster than that of a flow with the reference round trip.
    fn grow_unmarked(&mut self, flow: &Flow, segments: u32) {
        if self.is_repairing || segments == 0 || !flow.is_limited_by_cwnd() {
            return;
        }
        if self.segments() < flow.ssthresh {
            self.window += u64::from(segments) * WHOLE;
            return;
        }
        let (real, virtual_one) = (
            flow.rtt.smoothed().unwrap_or(REFERENCE).as_nanos() / 1000,
            virtual_round_trip(flow).as_nanos() / 1000,
        );
        let scaled = u128::from(segments) * u128::from(WHOLE) * u128::from(WHOLE);
        let scaled = scaled * u128::from(real).pow(2) / u128::from(virtual_one.max(1)).pow(2);
        self.window += (scaled / u128::from(self.window)) as u64;
    }

    /// Moves the window of the flow: down by a segment per acknowledgement, so that the sender does not fall silent.
    fn move_cwnd(&self, flow: &mut Flow, acked: u32) {
        let wanted = self.segments();
        let cwnd = if wanted < flow.cwnd { flow.cwnd - 1 } else { wanted.min(flow.cwnd + acked) };
        flow.set_cwnd(cwnd);
    }

    /// Paces at the rate of the window, and at twice of it in slow start.
    fn set_rate(&self, flow: &mut Flow) {
        let Some(smoothed) = flow.rtt.smoothed() else { return };
        let factor = if flow.cwnd < flow.ssthresh / 2 { 2 } else { 1 };
        let bytes = u128::from(self.window) * u128::from(flow.mss) * factor / u128::from(WHOLE);
        let rate = bytes * 1_000_000_000 / u128::from(smoothed.as_nanos().max(1000));
        flow.set_pacing_rate(u64::try_from(rate).unwrap_or(u64::MAX));
    }
}

impl CongestionControl for Prague {
    fn start(&mut self, flow: &mut Flow) {
        self.is_scalable = flow.has_accurate_ecn;
        self.window = u64::from(flow.cwnd) * WHOLE;
        self.alpha = WHOLE << GAIN_SHIFT;
        self.marks = flow.delivered_ce;
        self.begin_round(flow);
        if self.is_scalable {
            self.set_rate(flow);
        }
    }

    /// The window is reduced step by step by [`govern`](CongestionControl::govern), by marks and losses alike.
    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        if self.is_scalable { flow.ssthresh } else { flow.half_cwnd() }
    }

    fn grow(&mut self, flow: &mut Flow, acked: u32) {
        reno::grow(flow, acked);
    }

    fn undone_cwnd(&mut self, flow: &Flow) -> u32 {
        if !self.is_scalable {
            return flow.cwnd.max(flow.prior_cwnd);
        }
        self.window = self.window.max(self.prior_window);
        self.is_repairing = false;
        flow.cwnd.max(self.segments())
    }

    fn governs(&self) -> bool {
        self.is_scalable
    }

    fn govern(&mut self, flow: &mut Flow, sample: &RateSample) {
        let marks = flow.delivered_ce - self.marks;
        self.marks = flow.delivered_ce;
        self.update_alpha(flow);
        if marks > 0 {
            self.react_to_marks(flow);
        }
        let marks = marks.min(sample.acked.into()) as u32;
        self.grow_unmarked(flow, sample.acked - marks);
        self.move_cwnd(flow, sample.acked);
        self.set_rate(flow);
    }

    fn phase_changes(&mut self, flow: &mut Flow, phase: Phase) {
        match phase {
            Phase::Recovery if self.is_scalable && flow.phase != phase => self.react_to_loss(flow),
            Phase::Open => self.is_repairing = false,
            _ => {}
        }
    }

    fn event(&mut self, flow: &mut Flow, event: FlowEvent) {
        if event == FlowEvent::Timeout && self.is_scalable {
            self.react_to_loss(flow);
        }
    }

    fn min_burst(&self, _: &Flow) -> u32 {
        if self.is_scalable { 1 } else { 2 }
    }

    fn max_burst(&self, flow: &Flow) -> Option<u32> {
        let segments = (flow.pacing_rate >> BURST_SHIFT) / u64::from(flow.mss);
        self.is_scalable.then(|| segments.clamp(1, u32::MAX.into()) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::{TcpConfig, TimeoutConfig};
    use crate::tcp::flow::NO_THRESHOLD;

    /// A flow with a window in segments, a round trip in ms, and Prague after slow start.
    fn steady(segments: u32, round_trip: u64) -> (Flow, Prague) {
        let mut flow = Flow::new(&TcpConfig::default());
        flow.has_accurate_ecn = true;
        flow.cwnd = segments;
        flow.is_cwnd_limited = true;
        flow.take_rtt(Duration::from_millis(round_trip), &TimeoutConfig::default());
        let mut prague = Prague::default();
        prague.start(&mut flow);
        flow.ssthresh = segments;
        (flow, prague)
    }

    /// A round trip in which the first `marked` segments of the window come back marked, each by an acknowledgement.
    fn round_trip(flow: &mut Flow, prague: &mut Prague, millis: u64, marked: u32) {
        let window = flow.cwnd;
        (flow.una, flow.next) = (flow.next, flow.next + u64::from(window));
        let step = Duration::from_micros(millis * 1000 / u64::from(window));
        for segment in 0..window {
            flow.now += step;
            flow.delivered += 1;
            flow.delivered_ce += u64::from(segment < marked);
            prague.govern(flow, &RateSample { acked: 1, ..RateSample::default() });
        }
    }

    #[test]
    fn the_share_of_marks_is_smoothed_by_a_sixteenth_per_virtual_round_trip() {
        let (mut flow, mut prague) = steady(100, 50);
        prague.has_marks = true;
        for expected in [1.0, 15.0 / 16.0, (15.0_f64 / 16.0).powi(2)] {
            let alpha = prague.alpha as f64 / (WHOLE << GAIN_SHIFT) as f64;
            assert!((alpha - expected).abs() < 0.001, "{alpha} instead of {expected}");
            round_trip(&mut flow, &mut prague, 51, 0);
        }
    }

    #[test]
    fn marks_cut_the_window_by_half_of_their_share_and_only_once_per_virtual_round_trip() {
        let (mut flow, mut prague) = steady(100, 50);
        prague.alpha = (WHOLE << GAIN_SHIFT) / 5;
        round_trip(&mut flow, &mut prague, 51, 10);
        // 100 less a tenth, and a segment of growth per round trip less the share of marked ones.
        assert!((90..=92).contains(&flow.cwnd), "{}", flow.cwnd);
        assert!((90..=91).contains(&flow.ssthresh), "{}", flow.ssthresh);

        // With a round trip of 5 ms, the next cut has to wait for 25 ms.
        let (mut flow, mut prague) = steady(100, 5);
        prague.alpha = (WHOLE << GAIN_SHIFT) / 5;
        for _ in 0..5 {
            round_trip(&mut flow, &mut prague, 5, 10);
        }
        assert!((90..=91).contains(&flow.cwnd), "{}", flow.cwnd);
        round_trip(&mut flow, &mut prague, 6, 10);
        assert!(flow.cwnd < 90, "{}", flow.cwnd);
    }

    /// A rate grows by one segment per 25 ms in 25 ms: the window of a flow with a round trip of 5 ms by 1/25 in each.
    #[test]
    fn a_short_round_trip_grows_at_the_rate_of_the_reference() {
        for (millis, rounds, grown) in [(50, 10, 10.0), (25, 10, 10.0), (5, 100, 4.0)] {
            let (mut flow, mut prague) = steady(100, millis);
            for _ in 0..rounds {
                round_trip(&mut flow, &mut prague, millis, 0);
            }
            let window = prague.window as f64 / WHOLE as f64 - 100.0;
            assert!((window / grown - 1.0).abs() < 0.06, "{millis} ms: {window} instead of {grown}");
        }
    }

    #[test]
    fn a_loss_halves_the_window_and_a_mistake_is_undone() {
        let (mut flow, mut prague) = steady(100, 50);
        prague.phase_changes(&mut flow, Phase::Recovery);
        flow.phase = Phase::Recovery;
        assert_eq!((prague.segments(), flow.ssthresh), (50, 50));
        round_trip(&mut flow, &mut prague, 51, 0);
        assert_eq!(flow.cwnd, 50, "it does not grow while it repairs");
        assert_eq!(prague.undone_cwnd(&flow), 100);
    }

    #[test]
    fn slow_start_doubles_and_ends_with_the_first_mark() {
        let (mut flow, mut prague) = steady(10, 50);
        flow.ssthresh = NO_THRESHOLD;
        round_trip(&mut flow, &mut prague, 51, 0);
        assert_eq!(flow.cwnd, 20);
        round_trip(&mut flow, &mut prague, 51, 1);
        // All are believed to be marked at first: half of the window.
        assert!((10..=11).contains(&flow.ssthresh), "{}", flow.ssthresh);
        assert!((10..=12).contains(&flow.cwnd), "{}", flow.cwnd);
    }

    #[test]
    fn without_counted_marks_it_is_reno() {
        let mut flow = Flow::new(&TcpConfig::default());
        flow.cwnd = 100;
        let mut prague = Prague::default();
        prague.start(&mut flow);
        assert!(!prague.governs());
        assert_eq!((prague.ssthresh(&flow), prague.max_burst(&flow)), (50, None));
    }
}

//! BBR version 3 (draft-ietf-ccwg-bbr): a model of the path's bandwidth and round trip, as in version 1, with bounds that losses
//! draw. The draft's `_longterm` and `_shortterm` bounds are those that Linux's version 3 calls `_hi` and `_lo`.
//!
//! Marks are not looked at: the draft leaves them out (section "ECN").

mod probe;
#[cfg(test)]
mod tests;

use trunkline_core::{Duration, Stream, Time};

use super::path::{self, Excess, MIN_CWND, Rounds, UNIT};
use super::{AlgorithmKind, CongestionControl, FlowEvent};
use crate::tcp::filter::Windowed;
use crate::tcp::flow::{Flow, Phase};
use crate::tcp::rate::RateSample;
use crate::tcp::scoreboard::Sent;
use probe::Probe;

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "bbr3",
    doc: "BBR version 3 (draft-ietf-ccwg-bbr): like BBR, but sends less if more than 2 % are lost; no released \
          kernel has it, and patched kernels call it `bbr`",
    needs_pacing: true,
    needs_ecn: false,
    is_l4s: false,
    make: |making| Box::new(Bbr3::new((making.stream)(), making.initial_window)),
};

/// 4 ln 2: doubles the rate in every round trip of startup.
const STARTUP_GAIN: u64 = UNIT * 277 / 100 + 1;
const DRAIN_GAIN: u64 = UNIT / 2;
const DOWN_GAIN: u64 = UNIT * 90 / 100;
const UP_GAIN: u64 = UNIT * 5 / 4;
/// Windows in bandwidth-delay products.
const CWND_GAIN: u64 = 2 * UNIT;
const UP_CWND_GAIN: u64 = UNIT * 9 / 4;
const PROBE_RTT_CWND_GAIN: u64 = UNIT / 2;
/// More losses than one in this many are too many.
const LOSS_THRESHOLD: u64 = 50;
/// A round trip with losses takes the bounds to seven tenths at most.
const BETA: [u64; 2] = [7, 10];
/// The number of holes in a round trip that end startup, if too much is lost.
const STARTUP_HOLES: u8 = 6;
/// Round trips without a quarter more of the rate that end startup.
const FULL_ROUNDS: u8 = 3;
/// The longest drain, in round trips.
const DRAIN_ROUNDS: u64 = 3;
/// The smallest round trip: the window of the filter, the interval of its measurement, and the time that a measurement takes.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Bandwidths are remembered for this cycle and the one before it.
const BANDWIDTH_CYCLES: u64 = 1;
/// The window of the filter of joined acknowledgements, in round trips.
const EXCESS_ROUNDS: u64 = 10;

/// No bound.
const UNBOUND: u32 = u32::MAX;

/// The state of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// The four of ProbeBW: slower than the path, as fast, a round trip without the bounds of losses, and faster.
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    fn is_probe_bandwidth(self) -> bool {
        matches!(self, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    /// Returns true if it probes for bandwidth or volume.
    fn is_accelerating(self) -> bool {
        matches!(self, Mode::Startup | Mode::Refill | Mode::Up)
    }

    fn pacing_gain(self) -> u64 {
        match self {
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::Down => DOWN_GAIN,
            Mode::Up => UP_GAIN,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt => UNIT,
        }
    }

    fn cwnd_gain(self) -> u64 {
        match self {
            Mode::Up => UP_CWND_GAIN,
            Mode::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }
}

/// Bounds that losses draw, or [`UNBOUND`] and `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    /// Since the last probe: the bandwidth, and segments in flight.
    short_bandwidth: u64,
    short_inflight: u32,
    /// Segments in flight at which more than [`LOSS_THRESHOLD`] were lost.
    long_inflight: u32,
}

impl Bounds {
    const NONE: Bounds =
        Bounds { short_bandwidth: u64::MAX, short_inflight: UNBOUND, long_inflight: UNBOUND };

    fn reset_short(&mut self) {
        (self.short_bandwidth, self.short_inflight) = (u64::MAX, UNBOUND);
    }
}

/// The estimator of a full path: the rate of delivery no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct Plateau {
    bandwidth: u64,
    rounds: u8,
    is_reached: bool,
}

/// Deliveries and losses of this round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    bandwidth: u64,
    inflight: u32,
    /// The round trip ends when a segment is delivered that was sent after this number of deliveries.
    end: u64,
    is_start: bool,
    has_losses: bool,
    /// Holes, and where the last of them ends.
    holes: u8,
    hole_end: u64,
}

/// The smallest round trip, and when it is looked for.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    value: Duration,
    at: Time,
    /// The smallest since it was looked for last.
    recent: Duration,
    recent_at: Time,
    is_due: bool,
    done: Option<Time>,
    has_probed_round: bool,
}

/// BBR's state.
#[derive(Debug)]
struct Bbr3 {
    stream: Stream,
    initial_window: u32,
    mode: Mode,
    rounds: Rounds,
    /// Bandwidths by cycles of probing.
    max_bandwidth: Windowed,
    cycles: u64,
    bounds: Bounds,
    /// The bounds before the losses that are being repaired, and the mode that they ended.
    undo: Bounds,
    undo_mode: Option<Mode>,
    /// Something was lost, and not all of it was repaired.
    is_repairing: bool,
    plateau: Plateau,
    /// The path was full at least once.
    is_full: bool,
    latest: Latest,
    probe: Probe,
    min_rtt: MinRtt,
    excess: Excess,
    most_excess: Windowed,
    drain_round: u64,
    prior_cwnd: u32,
    has_seen_rtt: bool,
    restarts_from_idle: bool,
}

impl Bbr3 {
    fn new(stream: Stream, initial_window: u32) -> Bbr3 {
        Bbr3 {
            stream,
            initial_window,
            mode: Mode::Startup,
            rounds: Rounds::default(),
            max_bandwidth: Windowed::new(0, 0),
            cycles: 0,
            bounds: Bounds::NONE,
            undo: Bounds::NONE,
            undo_mode: None,
            is_repairing: false,
            plateau: Plateau::default(),
            is_full: false,
            latest: Latest::default(),
            probe: Probe::default(),
            min_rtt: MinRtt {
                value: Duration::MAX,
                at: Time::ZERO,
                recent: Duration::MAX,
                recent_at: Time::ZERO,
                is_due: false,
                done: None,
                has_probed_round: false,
            },
            excess: Excess::default(),
            most_excess: Windowed::new(0, 0),
            drain_round: 0,
            prior_cwnd: 0,
            has_seen_rtt: false,
            restarts_from_idle: false,
        }
    }

    /// The bandwidth that is believed (BoundBWForModel).
    fn bandwidth(&self) -> u64 {
        self.max_bandwidth.best().min(self.bounds.short_bandwidth)
    }

    // Volumes.

    fn product(&self, bandwidth: u64, gain: u64) -> u32 {
        match self.min_rtt.value {
            Duration::MAX => self.initial_window,
            round_trip => path::product(bandwidth, round_trip, gain),
        }
    }

    /// Room for bursts at both ends (QuantizationBudget).
    fn with_bursts(&self, flow: &Flow, segments: u32) -> u32 {
        let least = segments.max(3 * path::burst(flow)).max(MIN_CWND);
        if self.mode == Mode::Up { least + 2 } else { least }
    }

    fn inflight(&self, flow: &Flow, bandwidth: u64, gain: u64) -> u32 {
        self.with_bursts(flow, self.product(bandwidth, gain))
    }

    /// The long-term bound less 15 %, for others.
    fn inflight_with_headroom(&self) -> u32 {
        match self.bounds.long_inflight {
            UNBOUND => UNBOUND,
            bound => bound.saturating_sub((u64::from(bound) * 15 / 100).max(1) as u32).max(MIN_CWND),
        }
    }

    fn target_inflight(&self, flow: &Flow) -> u32 {
        self.product(self.bandwidth(), UNIT).min(flow.cwnd)
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        self.product(self.bandwidth(), PROBE_RTT_CWND_GAIN).max(MIN_CWND)
    }

    fn save_cwnd(&mut self, flow: &Flow) {
        let is_good = flow.phase < Phase::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_good { flow.cwnd } else { self.prior_cwnd.max(flow.cwnd) };
    }

    fn restore_cwnd(&self, flow: &mut Flow) {
        flow.cwnd = flow.cwnd.max(self.prior_cwnd);
    }

    // The model.

    fn update_model(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.rounds.is_start = false;
        self.latest.is_start = false;
        if sample.is_valid() {
            self.update_latest(flow, sample);
            self.rounds.take(flow, sample);
            self.probe.rounds_since += u64::from(self.rounds.is_start);
            let bandwidth = sample.bandwidth();
            if !sample.is_app_limited || bandwidth >= self.max_bandwidth.best() {
                self.max_bandwidth.max(BANDWIDTH_CYCLES, self.cycles, bandwidth);
            }
            self.adapt_short_bounds(flow);
            self.update_excess(flow, sample);
            self.check_full(sample);
        }
        self.check_startup(flow, sample);
        self.check_drain(flow);
        self.update_cycle(flow, sample);
        self.update_min_rtt(flow, sample);
        self.check_probe_rtt(flow, sample);
        if self.latest.is_start {
            (self.latest.bandwidth, self.latest.inflight) = (sample.bandwidth(), sample.delivered as u32);
        }
    }

    fn update_latest(&mut self, flow: &Flow, sample: &RateSample) {
        let latest = &mut self.latest;
        latest.bandwidth = latest.bandwidth.max(sample.bandwidth());
        latest.inflight = latest.inflight.max(sample.delivered as u32);
        if sample.prior_delivered >= latest.end {
            (latest.end, latest.is_start) = (flow.delivered, true);
        }
    }

    /// Once per round trip with losses, the short-term bounds move to what was delivered (AdaptLowerBoundsFromCongestion).
    fn adapt_short_bounds(&mut self, flow: &Flow) {
        if !self.latest.is_start {
            return;
        }
        let has_losses = core::mem::take(&mut self.latest.has_losses);
        if self.mode.is_accelerating() || !has_losses {
            return;
        }
        let (bounds, latest) = (&mut self.bounds, &self.latest);
        if bounds.short_bandwidth == u64::MAX {
            bounds.short_bandwidth = self.max_bandwidth.best();
        }
        if bounds.short_inflight == UNBOUND {
            bounds.short_inflight = flow.cwnd;
        }
        bounds.short_bandwidth = latest.bandwidth.max(bounds.short_bandwidth / BETA[1] * BETA[0]);
        bounds.short_inflight = latest.inflight.max(beta(bounds.short_inflight));
    }

    fn update_excess(&mut self, flow: &Flow, sample: &RateSample) {
        let excess = self.excess.take(flow, self.bandwidth(), sample.acked);
        let rounds = if self.is_full { EXCESS_ROUNDS } else { 1 };
        self.most_excess.max(rounds, self.rounds.count, excess);
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.plateau.is_reached || !self.rounds.is_start || sample.is_app_limited {
            return;
        }
        if sample.bandwidth() >= self.plateau.bandwidth / 4 * 5 {
            self.plateau = Plateau { bandwidth: sample.bandwidth(), ..Plateau::default() };
            return;
        }
        self.plateau.rounds += 1;
        self.plateau.is_reached = self.plateau.rounds >= FULL_ROUNDS;
        self.is_full |= self.plateau.is_reached;
    }

    /// Startup ends with a plateau, or with many losses in a round trip of recovery (CheckStartupHighLoss).
    fn check_startup(&mut self, flow: &Flow, sample: &RateSample) {
        if self.mode == Mode::Startup && self.latest.is_start {
            let holes = core::mem::take(&mut self.latest.holes);
            let is_lossy = flow.phase == Phase::Recovery && holes >= STARTUP_HOLES;
            if is_lossy && is_too_high(flow.lost - sample.prior_lost, sample.tx_in_flight) {
                self.undo_mode = Some(Mode::Startup);
                self.is_full = true;
                self.bounds.long_inflight = self.product(self.bandwidth(), UNIT).max(self.latest.inflight);
            }
        }
        if self.mode == Mode::Startup && self.is_full {
            (self.mode, self.drain_round) = (Mode::Drain, self.rounds.count);
        }
    }

    fn check_drain(&mut self, flow: &Flow) {
        if self.mode != Mode::Drain {
            return;
        }
        let is_long = self.rounds.count > self.drain_round + DRAIN_ROUNDS;
        if is_long || flow.in_flight() <= self.inflight(flow, self.bandwidth(), UNIT) {
            self.begin_down(flow);
        }
    }

    // The smallest round trip.

    fn update_min_rtt(&mut self, flow: &Flow, sample: &RateSample) {
        let it = &mut self.min_rtt;
        it.is_due = flow.now > it.recent_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < it.recent || it.is_due && !sample.is_ack_delayed)
        {
            (it.recent, it.recent_at) = (rtt.max(Duration::from_micros(1)), flow.now);
        }
        if it.recent < it.value || flow.now > it.at + MIN_RTT_WINDOW {
            (it.value, it.at) = (it.recent, it.recent_at);
        }
    }

    fn check_probe_rtt(&mut self, flow: &mut Flow, sample: &RateSample) {
        if self.mode != Mode::ProbeRtt && self.min_rtt.is_due && !self.restarts_from_idle {
            self.save_cwnd(flow);
            self.mode = Mode::ProbeRtt;
            self.min_rtt.done = None;
            self.probe.stop();
            self.rounds.restart(flow);
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(flow);
        }
        if sample.delivered > 0 {
            self.restarts_from_idle = false;
        }
    }

    /// Keeps half of the bandwidth-delay product in flight for 200 ms and a round trip.
    fn probe_rtt(&mut self, flow: &mut Flow) {
        flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
        if self.min_rtt.done.is_some() {
            self.min_rtt.has_probed_round |= self.rounds.is_start;
            if self.min_rtt.has_probed_round {
                self.check_probe_rtt_done(flow);
            }
        } else if flow.in_flight() <= self.probe_rtt_cwnd() {
            self.min_rtt.done = Some(flow.now + PROBE_RTT_TIME);
            self.min_rtt.has_probed_round = false;
            self.rounds.restart(flow);
        }
    }

    fn check_probe_rtt_done(&mut self, flow: &mut Flow) {
        if self.min_rtt.done.is_none_or(|at| flow.now <= at) {
            return;
        }
        self.min_rtt.recent_at = flow.now;
        self.restore_cwnd(flow);
        self.bounds.reset_short();
        if self.is_full {
            // Nothing has to be drained.
            self.begin_down(flow);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    // The window and the rate.

    fn init_rate(&mut self, flow: &mut Flow) {
        self.has_seen_rtt = flow.rtt.smoothed().is_some();
        flow.set_pacing_rate(path::pacing_rate(flow, path::initial_bandwidth(flow), STARTUP_GAIN));
    }

    fn set_rate(&mut self, flow: &mut Flow, gain: u64) {
        let rate = path::pacing_rate(flow, self.bandwidth(), gain);
        if !self.has_seen_rtt && flow.rtt.smoothed().is_some() {
            self.init_rate(flow);
        }
        if self.is_full || rate > flow.pacing_rate {
            flow.set_pacing_rate(rate);
        }
    }

    fn set_cwnd(&self, flow: &mut Flow, acked: u32) {
        let most = self.product(self.bandwidth(), self.mode.cwnd_gain()) + self.most_excess.best() as u32;
        let most = self.with_bursts(flow, most);
        let mut cwnd = flow.cwnd;
        if self.is_full {
            cwnd = (cwnd + acked).min(most);
        } else if cwnd < most || flow.delivered < u64::from(self.initial_window) {
            cwnd += acked;
        }
        cwnd = cwnd.max(MIN_CWND);
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        flow.set_cwnd(cwnd.min(self.cwnd_bound()));
    }

    /// The bound of losses (BoundCwndForModel).
    fn cwnd_bound(&self) -> u32 {
        let long = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.long_inflight,
            Mode::Cruise | Mode::ProbeRtt => self.inflight_with_headroom(),
            Mode::Startup | Mode::Drain => UNBOUND,
        };
        long.min(self.bounds.short_inflight).max(MIN_CWND)
    }
}

/// Returns true if more than 2 % of the segments in flight were lost.
fn is_too_high(lost: u64, in_flight: u32) -> bool {
    lost * LOSS_THRESHOLD > u64::from(in_flight)
}

/// Seven tenths of some segments.
fn beta(segments: u32) -> u32 {
    (u64::from(segments) * BETA[0] / BETA[1]) as u32
}

impl CongestionControl for Bbr3 {
    fn start(&mut self, flow: &mut Flow) {
        let it = &mut self.min_rtt;
        (it.value, it.at) = (flow.rtt.smallest(), flow.now);
        (it.recent, it.recent_at) = (it.value, it.at);
        self.rounds.restart(flow);
        self.excess.restart(flow.now);
        self.init_rate(flow);
    }

    /// There is none.
    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        flow.ssthresh
    }

    fn grow(&mut self, _: &mut Flow, _: u32) {}

    /// HandleSpuriousLossDetection.
    fn undone_cwnd(&mut self, flow: &Flow) -> u32 {
        self.latest.has_losses = false;
        self.plateau = Plateau::default();
        let (bounds, undo) = (&mut self.bounds, &self.undo);
        bounds.short_bandwidth = bounds.short_bandwidth.max(undo.short_bandwidth);
        bounds.short_inflight = bounds.short_inflight.max(undo.short_inflight);
        bounds.long_inflight = bounds.long_inflight.max(undo.long_inflight);
        match self.undo_mode.take() {
            Some(Mode::Startup) => {
                self.is_full = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => self.begin_refill(flow),
            _ => {}
        }
        flow.cwnd.max(self.prior_cwnd)
    }

    fn governs(&self) -> bool {
        true
    }

    fn govern(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.update_model(flow, sample);
        self.set_rate(flow, self.mode.pacing_gain());
        self.set_cwnd(flow, sample.acked);
    }

    fn lost(&mut self, flow: &Flow, sent: &Sent) {
        self.take_loss(flow, sent);
    }

    fn phase_changes(&mut self, flow: &mut Flow, phase: Phase) {
        if flow.phase >= Phase::Recovery && phase < Phase::Recovery {
            self.restore_cwnd(flow);
            self.is_repairing = false;
        }
    }

    fn event(&mut self, flow: &mut Flow, event: FlowEvent) {
        if event != FlowEvent::Restart || flow.app_limited == 0 {
            return;
        }
        self.restarts_from_idle = true;
        self.excess.restart(flow.now);
        if self.mode.is_probe_bandwidth() {
            self.set_rate(flow, UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(flow);
        }
    }

    fn min_burst(&self, flow: &Flow) -> u32 {
        path::min_burst(flow)
    }

    fn send_buffer_windows(&self) -> u32 {
        3
    }
}

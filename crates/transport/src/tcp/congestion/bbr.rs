//! BBR version 1, as Linux has it (Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00): paces at the largest rate of delivery seen, and keeps two bandwidth-delay
//! products in flight at most.

mod long_term;

use trunkline_core::{Duration, Stream, Time};

use super::path::{self, Excess, MIN_CWND, Rounds, UNIT};
use super::{AlgorithmKind, CongestionControl, FlowEvent};
use crate::tcp::filter::Windowed;
use crate::tcp::flow::{Flow, NO_THRESHOLD, Phase};
use crate::tcp::rate::RateSample;
use long_term::LongTerm;

/// The entry in the list.
pub(super) const KIND: AlgorithmKind = AlgorithmKind {
    name: "bbr",
    doc: "BBR version 1: paces at the delivery rate of the path, and does not treat losses as congestion",
    needs_pacing: true,
    needs_ecn: false,
    is_l4s: false,
    make: |making| Box::new(Bbr::new((making.stream)(), making.initial_window)),
};

/// 2 / ln 2: doubles the rate in every round trip of startup.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse: drains in one round trip what startup has queued.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Twice the bandwidth-delay product: acknowledgements may be delayed and joined.
const CWND_GAIN: u64 = 2 * UNIT;
/// A cycle of probing for bandwidth: more, less, and then as much as there is.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// So many round trips a rate is remembered.
const BANDWIDTH_ROUNDS: u64 = CYCLE.len() as u64 + 2;
/// For how long the smallest round trip is remembered, and how long it is looked for.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Startup is over after so many round trips in which the rate has not grown by a quarter.
const FULL_ROUNDS: u8 = 3;
/// Segments that may be acknowledged together are remembered so many round trips; they add to the window what the rate
/// delivers in this time at most.
const AGGREGATION_ROUNDS: u8 = 5;
const MAX_AGGREGATION: Duration = Duration::from_millis(100);

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR's state.
#[derive(Debug)]
pub(super) struct Bbr {
    stream: Stream,
    initial_window: u32,
    mode: Mode,
    bandwidth: Windowed,
    rounds: Rounds,
    min_rtt: Duration,
    min_rtt_at: Time,
    probe_rtt_done: Option<Time>,
    has_probed_round: bool,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// The place in the cycle, and when it was reached.
    cycle: usize,
    cycle_at: Time,
    has_seen_rtt: bool,
    is_full: bool,
    full_bandwidth: u64,
    full_rounds: u8,
    /// The window before a repair or before the search for the smallest round trip.
    prior_cwnd: u32,
    prior_phase: Phase,
    conserves_packets: bool,
    restarts_from_idle: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
}

/// Segments that were acknowledged beyond what the rate explains.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    excess: Excess,
    most: [u64; 2],
    rounds: u8,
    slot: usize,
}

impl Bbr {
    fn new(stream: Stream, initial_window: u32) -> Bbr {
        Bbr {
            stream,
            initial_window,
            mode: Mode::Startup,
            bandwidth: Windowed::new(0, 0),
            rounds: Rounds::default(),
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
            probe_rtt_done: None,
            has_probed_round: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cycle: 0,
            cycle_at: Time::ZERO,
            has_seen_rtt: false,
            is_full: false,
            full_bandwidth: 0,
            full_rounds: 0,
            prior_cwnd: 0,
            prior_phase: Phase::Open,
            conserves_packets: false,
            restarts_from_idle: false,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
        }
    }

    /// The bandwidth that is believed.
    fn bandwidth(&self) -> u64 {
        self.long_term.in_use().unwrap_or(self.bandwidth.best())
    }

    /// A rate before the path is known: the window in a round trip.
    fn init_rate(&mut self, flow: &mut Flow) {
        self.has_seen_rtt = flow.rtt.smoothed().is_some();
        flow.set_pacing_rate(path::pacing_rate(flow, path::initial_bandwidth(flow), HIGH_GAIN));
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

    /// Segments of a bandwidth-delay product with a gain.
    fn product(&self, bandwidth: u64, gain: u64) -> u32 {
        if self.min_rtt == Duration::MAX {
            return self.initial_window;
        }
        path::product(bandwidth, self.min_rtt, gain)
    }

    /// Room for bursts at both ends, and for a delayed acknowledgement.
    fn with_bursts(&self, flow: &Flow, cwnd: u32) -> u32 {
        let even = (cwnd + 3 * path::burst(flow)).next_multiple_of(2);
        even + if self.mode == Mode::ProbeBandwidth && self.cycle == 0 { 2 } else { 0 }
    }

    fn inflight(&self, flow: &Flow, bandwidth: u64, gain: u64) -> u32 {
        self.with_bursts(flow, self.product(bandwidth, gain))
    }

    /// Segments in the network when the next paced one departs.
    fn in_flight_at_departure(&self, flow: &Flow, in_flight: u32) -> u32 {
        let wait = flow.departure.since(flow.now);
        let delivered = path::delivered_in(self.bandwidth(), wait);
        let more = if self.pacing_gain > UNIT { path::burst(flow) } else { 0 };
        (in_flight + more).saturating_sub(delivered as u32)
    }

    fn save_cwnd(&mut self, flow: &Flow) {
        let is_good = self.prior_phase < Phase::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_good { flow.cwnd } else { self.prior_cwnd.max(flow.cwnd) };
    }

    fn update_bandwidth(&mut self, flow: &Flow, sample: &RateSample) {
        self.rounds.is_start = false;
        if !sample.is_valid() {
            return;
        }
        self.rounds.take(flow, sample);
        self.conserves_packets &= !self.rounds.is_start;
        self.sample_long_term(flow, sample);
        let bandwidth = sample.bandwidth();
        if !sample.is_app_limited || bandwidth >= self.bandwidth.best() {
            self.bandwidth.max(BANDWIDTH_ROUNDS, self.rounds.count, bandwidth);
        }
    }

    fn update_aggregation(&mut self, flow: &Flow, sample: &RateSample) {
        if sample.acked == 0 || !sample.is_valid() {
            return;
        }
        let bandwidth = self.bandwidth();
        let aggregation = &mut self.aggregation;
        if self.rounds.is_start {
            aggregation.rounds += 1;
            if aggregation.rounds >= AGGREGATION_ROUNDS {
                aggregation.rounds = 0;
                aggregation.slot ^= 1;
                aggregation.most[aggregation.slot] = 0;
            }
        }
        let extra = aggregation.excess.take(flow, bandwidth, sample.acked);
        let most = &mut aggregation.most[aggregation.slot];
        *most = (*most).max(extra);
    }

    fn aggregation_cwnd(&self) -> u32 {
        if !self.is_full {
            return 0;
        }
        let most = path::delivered_in(self.bandwidth(), MAX_AGGREGATION);
        self.aggregation.most[0].max(self.aggregation.most[1]).min(most) as u32
    }

    fn update_cycle(&mut self, flow: &Flow, sample: &RateSample) {
        if self.mode == Mode::ProbeBandwidth && self.is_phase_over(flow, sample) {
            self.advance_cycle(flow);
        }
    }

    fn is_phase_over(&self, flow: &Flow, sample: &RateSample) -> bool {
        let is_long = flow.delivered_at.since(self.cycle_at) > self.min_rtt;
        if self.pacing_gain == UNIT {
            return is_long;
        }
        let bandwidth = self.bandwidth.best();
        let in_flight = self.in_flight_at_departure(flow, sample.prior_in_flight);
        if self.pacing_gain > UNIT {
            // Until the network is as full as the gain says, or something is lost.
            return is_long
                && (sample.losses > 0 || in_flight >= self.inflight(flow, bandwidth, self.pacing_gain));
        }
        is_long || in_flight <= self.inflight(flow, bandwidth, UNIT)
    }

    fn advance_cycle(&mut self, flow: &Flow) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_at = flow.delivered_at;
    }

    fn begin_probing(&mut self, flow: &Flow) {
        self.mode = Mode::ProbeBandwidth;
        // Anywhere but at the draining phase, so that connections do not probe together.
        self.cycle = CYCLE.len() - 1 - self.stream.below(7) as usize;
        self.advance_cycle(flow);
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.rounds.is_start || sample.is_app_limited {
            return;
        }
        let best = self.bandwidth.best();
        if best >= self.full_bandwidth * 5 / 4 {
            (self.full_bandwidth, self.full_rounds) = (best, 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, flow: &mut Flow) {
        let target = |bbr: &Bbr, flow: &Flow| bbr.inflight(flow, bbr.bandwidth.best(), UNIT);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            flow.ssthresh = target(self, flow);
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(flow, flow.in_flight()) <= target(self, flow)
        {
            self.begin_probing(flow);
        }
    }

    fn update_min_rtt(&mut self, flow: &mut Flow, sample: &RateSample) {
        let has_expired = flow.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (rtt < self.min_rtt || has_expired && !sample.is_ack_delayed)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt.max(Duration::from_micros(1)), flow.now);
        }
        if has_expired && !self.restarts_from_idle && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(flow);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(flow);
        }
        if sample.delivered > 0 {
            self.restarts_from_idle = false;
        }
    }

    /// Keeps four segments in flight for 200 ms and a round trip.
    fn probe_rtt(&mut self, flow: &mut Flow) {
        flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
        match self.probe_rtt_done {
            None if flow.in_flight() <= MIN_CWND => {
                self.probe_rtt_done = Some(flow.now + PROBE_RTT_TIME);
                self.has_probed_round = false;
                self.rounds.restart(flow);
            }
            None => {}
            Some(_) => {
                self.has_probed_round |= self.rounds.is_start;
                if self.has_probed_round {
                    self.check_probe_rtt_done(flow);
                }
            }
        }
    }

    fn check_probe_rtt_done(&mut self, flow: &mut Flow) {
        if self.probe_rtt_done.is_none_or(|at| flow.now <= at) {
            return;
        }
        self.min_rtt_at = flow.now;
        flow.cwnd = flow.cwnd.max(self.prior_cwnd);
        if self.is_full {
            self.begin_probing(flow);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.long_term.in_use().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// The window in a repair: at first what was delivered is replaced, after it the window from before returns.
    fn repair_cwnd(&mut self, flow: &Flow, sample: &RateSample) -> (u32, bool) {
        let (prior, phase) = (core::mem::replace(&mut self.prior_phase, flow.phase), flow.phase);
        let mut cwnd = flow.cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if phase == Phase::Recovery && prior != Phase::Recovery {
            self.conserves_packets = true;
            self.rounds.restart(flow);
            cwnd = flow.in_flight() + sample.acked;
        } else if prior >= Phase::Recovery && phase < Phase::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserves_packets = false;
        }
        if self.conserves_packets {
            return (cwnd.max(flow.in_flight() + sample.acked), true);
        }
        (cwnd, false)
    }

    fn set_cwnd(&mut self, flow: &mut Flow, sample: &RateSample) {
        if sample.acked > 0 {
            let (mut cwnd, conserves) = self.repair_cwnd(flow, sample);
            if !conserves {
                let target = self.product(self.bandwidth(), self.cwnd_gain) + self.aggregation_cwnd();
                let target = self.with_bursts(flow, target);
                if self.is_full {
                    cwnd = (cwnd + sample.acked).min(target);
                } else if cwnd < target || flow.delivered < u64::from(self.initial_window) {
                    cwnd += sample.acked;
                }
                cwnd = cwnd.max(MIN_CWND);
            }
            flow.set_cwnd(cwnd);
        }
        if self.mode == Mode::ProbeRtt {
            flow.set_cwnd(flow.cwnd.min(MIN_CWND));
        }
    }
}

impl CongestionControl for Bbr {
    fn start(&mut self, flow: &mut Flow) {
        flow.ssthresh = NO_THRESHOLD;
        self.min_rtt = flow.rtt.smallest();
        self.min_rtt_at = flow.now;
        self.rounds.restart(flow);
        self.aggregation.excess.restart(flow.now);
        self.long_term.reset(flow);
        self.init_rate(flow);
    }

    fn ssthresh(&mut self, flow: &Flow) -> u32 {
        self.save_cwnd(flow);
        flow.ssthresh
    }

    fn grow(&mut self, _: &mut Flow, _: u32) {}

    fn undone_cwnd(&mut self, flow: &Flow) -> u32 {
        (self.full_bandwidth, self.full_rounds) = (0, 0);
        self.long_term.reset(flow);
        flow.cwnd
    }

    fn governs(&self) -> bool {
        true
    }

    fn govern(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.update_bandwidth(flow, sample);
        self.update_aggregation(flow, sample);
        self.update_cycle(flow, sample);
        self.check_full(sample);
        self.check_drain(flow);
        self.update_min_rtt(flow, sample);
        self.update_gains();
        self.set_rate(flow, self.pacing_gain);
        self.set_cwnd(flow, sample);
    }

    fn phase_changes(&mut self, flow: &mut Flow, phase: Phase) {
        if phase == Phase::Loss {
            self.prior_phase = Phase::Loss;
            self.full_bandwidth = 0;
            // As a new round trip, in which something was lost.
            self.rounds.is_start = true;
            self.sample_long_term(flow, &RateSample::of_loss());
        }
    }

    fn event(&mut self, flow: &mut Flow, event: FlowEvent) {
        if event != FlowEvent::Restart || flow.app_limited == 0 {
            return;
        }
        self.restarts_from_idle = true;
        self.aggregation.excess.restart(flow.now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_rate(flow, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(flow),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn min_burst(&self, flow: &Flow) -> u32 {
        path::min_burst(flow)
    }

    fn send_buffer_windows(&self) -> u32 {
        3
    }
}

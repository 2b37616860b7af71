//! ProbeBW: the interval of the probes for bandwidth, their end, and the bounds that losses draw.

use trunkline_core::{Duration, Time};

use super::{Bbr3, Latest, Mode, Plateau, UNBOUND, UNIT, beta, is_too_high};
use crate::tcp::flow::Flow;
use crate::tcp::rate::RateSample;
use crate::tcp::scoreboard::Sent;

/// The most round trips between two probes, as Reno would have them: 62 at 25 Mbit/s and 30 ms.
const RENO_ROUNDS: u32 = 63;
/// And at least so often, and as much later at random.
const WAIT: Duration = Duration::from_secs(2);
const RANDOM_WAIT: Duration = Duration::from_secs(1);
/// Doublings of the growth of the long-term bound.
const MAX_SLOPE: u32 = 30;

/// The phase of the probe that acknowledged segments were sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Acks {
    /// No probe.
    #[default]
    Other,
    Refilling,
    /// The probe has begun, but they are of segments sent before it.
    Starting,
    Feedback,
    /// The probe is over, but they are of segments sent in it.
    Stopping,
}

/// The state of probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub(super) acks: Acks,
    /// Lost segments were sent by a probe, and it has not reacted to losses yet.
    pub(super) is_sampled: bool,
    /// The last probe lost too much, or was ended at the bound before it could.
    pub(super) was_too_high: bool,
    pub(super) was_precautionary: bool,
    /// Round trips and the moment since which the next is waited for, and for how long at most.
    pub(super) rounds_since: u64,
    pub(super) since: Time,
    pub(super) wait: Duration,
    /// Growth of the long-term bound: acknowledged segments per step, those acknowledged since the last, and doublings.
    acked_per_step: u32,
    acked: u32,
    slope: u32,
}

impl Probe {
    /// Ends the probe: segments sent from now on do not belong to it.
    pub(super) fn stop(&mut self) {
        self.acks = Acks::Stopping;
    }

    fn steepen(&mut self, cwnd: u32) {
        let growth = 1 << self.slope;
        self.slope = (self.slope + 1).min(MAX_SLOPE);
        self.acked_per_step = (cwnd / growth).max(1);
    }
}

impl Bbr3 {
    pub(super) fn begin_down(&mut self, flow: &Flow) {
        self.latest = Latest { end: self.latest.end, is_start: self.latest.is_start, ..Latest::default() };
        self.probe.acked_per_step = UNBOUND;
        self.probe.rounds_since = self.stream.below(2);
        self.probe.wait = WAIT + self.stream.duration_below(RANDOM_WAIT);
        self.probe.since = flow.now;
        self.probe.stop();
        self.rounds.restart(flow);
        self.mode = Mode::Down;
    }

    pub(super) fn begin_refill(&mut self, flow: &Flow) {
        self.bounds.reset_short();
        (self.probe.slope, self.probe.acked) = (0, 0);
        self.probe.was_precautionary = false;
        self.probe.acks = Acks::Refilling;
        self.rounds.restart(flow);
        self.mode = Mode::Refill;
    }

    fn begin_up(&mut self, flow: &Flow, sample: &RateSample) {
        self.probe.acks = Acks::Starting;
        self.rounds.restart(flow);
        self.plateau = Plateau { bandwidth: sample.bandwidth(), ..Plateau::default() };
        self.mode = Mode::Up;
        self.probe.steepen(flow.cwnd);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, flow: &Flow, sample: &RateSample) {
        if !self.is_full || self.adapt_long_bound(flow, sample) {
            return;
        }
        let mode = self.mode;
        match mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(flow) => self.begin_refill(flow),
            Mode::Down if self.is_time_to_cruise(flow) => self.mode = Mode::Cruise,
            Mode::Refill if self.rounds.is_start => {
                self.probe.is_sampled = true;
                self.begin_up(flow, sample);
            }
            Mode::Up if self.is_time_to_go_down(flow, sample) => {
                self.probe.was_too_high = false;
                self.begin_down(flow);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, flow: &Flow) -> bool {
        let rounds = self.target_inflight(flow).min(RENO_ROUNDS);
        flow.now > self.probe.since + self.probe.wait || self.probe.rounds_since >= rounds.into()
    }

    fn is_time_to_cruise(&self, flow: &Flow) -> bool {
        let drained = self.inflight(flow, self.max_bandwidth.best(), UNIT);
        flow.in_flight() <= self.inflight_with_headroom().min(drained)
    }

    fn is_time_to_go_down(&mut self, flow: &Flow, sample: &RateSample) -> bool {
        let bound = self.bounds.long_inflight;
        if self.probe.was_too_high && flow.in_flight() >= bound {
            self.probe.was_precautionary = true;
            return true;
        }
        if flow.is_cwnd_limited && flow.cwnd >= bound {
            // The bound, and not the path, limits the bandwidth.
            self.plateau = Plateau { bandwidth: sample.bandwidth(), ..Plateau::default() };
            return false;
        }
        self.plateau.is_reached
    }

    /// Follows what acknowledgements are of, and raises the long-term bound. Returns whether a state was entered.
    fn adapt_long_bound(&mut self, flow: &Flow, sample: &RateSample) -> bool {
        let is_start = self.rounds.is_start;
        match self.probe.acks {
            Acks::Starting if is_start => self.probe.acks = Acks::Feedback,
            Acks::Stopping if is_start => {
                self.probe.is_sampled = false;
                self.probe.acks = Acks::Other;
                let is_probing = self.mode.is_probe_bandwidth();
                if is_probing && !sample.is_app_limited {
                    self.cycles += 1;
                }
                if is_probing && self.probe.was_precautionary && !self.probe.was_too_high {
                    // The bound was reached without loss: now beyond it.
                    self.begin_refill(flow);
                    return true;
                }
            }
            _ => {}
        }
        let lost = flow.lost.saturating_sub(sample.prior_lost);
        if !sample.is_valid()
            || self.bounds.long_inflight == UNBOUND
            || is_too_high(lost, sample.tx_in_flight)
        {
            return false;
        }
        self.bounds.long_inflight = self.bounds.long_inflight.max(sample.tx_in_flight);
        if self.mode == Mode::Up {
            self.raise_long_bound(flow, sample.acked);
        }
        false
    }

    /// By 1, 2, 4, ... segments in a round trip (ProbeInflightLongtermUpward).
    fn raise_long_bound(&mut self, flow: &Flow, acked: u32) {
        if !flow.is_cwnd_limited || flow.cwnd < self.bounds.long_inflight {
            return;
        }
        let probe = &mut self.probe;
        probe.acked += acked;
        self.bounds.long_inflight += probe.acked / probe.acked_per_step;
        probe.acked %= probe.acked_per_step;
        if self.rounds.is_start {
            probe.steepen(flow.cwnd);
        }
    }

    /// A segment counts as lost (HandleLostPacket).
    pub(super) fn take_loss(&mut self, flow: &Flow, sent: &Sent) {
        if !self.latest.has_losses {
            self.latest.end = flow.delivered;
        }
        if !self.is_repairing {
            self.save_cwnd(flow);
            (self.undo, self.undo_mode, self.is_repairing) = (self.bounds, None, true);
        }
        self.latest.has_losses = true;
        if sent.place != self.latest.hole_end {
            self.latest.holes = self.latest.holes.saturating_add(1);
        }
        self.latest.hole_end = sent.end();
        let Some(tx) = sent.tx.filter(|_| self.probe.is_sampled) else { return };
        let lost = flow.lost - tx.lost;
        if is_too_high(lost, tx.in_flight) {
            self.react_to_probe(flow, inflight_at_loss(lost, tx.in_flight), tx.is_app_limited);
        }
    }

    /// A probe has lost too much (HandleInflightTooHigh).
    fn react_to_probe(&mut self, flow: &Flow, in_flight: u32, is_app_limited: bool) {
        self.probe.was_too_high = true;
        self.probe.is_sampled = false;
        if !is_app_limited {
            self.bounds.long_inflight = in_flight.max(beta(self.target_inflight(flow)));
        }
        if self.mode == Mode::Up {
            self.begin_down(flow);
            self.undo_mode = Some(Mode::Up);
        }
    }
}

/// Segments in flight at which the losses crossed 2 %, of which the last was one segment (InflightAtLoss).
fn inflight_at_loss(lost: u64, in_flight: u32) -> u32 {
    let (before, lost_before) = (u64::from(in_flight.saturating_sub(1)), lost.saturating_sub(1));
    // (threshold * before - lost_before) / (1 - threshold), with a threshold of 1/50.
    let prefix = before.saturating_sub(super::LOSS_THRESHOLD * lost_before) / (super::LOSS_THRESHOLD - 1);
    (before + prefix) as u32
}

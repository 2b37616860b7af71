//! The transitions of draft-ietf-ccwg-bbr, one by one.

use trunkline_core::Seed;

use super::probe::Acks;
use super::*;
use crate::tcp::config::{TcpConfig, TimeoutConfig};
use crate::tcp::flow::NO_THRESHOLD;
use crate::tcp::rate::TxState;

const RTT: Duration = Duration::from_millis(40);
/// Segments per second; with [`RTT`] 100 segments in flight.
const RATE: u64 = 2500;
const PRODUCT: u32 = 100;

/// A connection over a path of [`RATE`] and [`RTT`].
struct Rig {
    flow: Flow,
    bbr: Bbr3,
}

impl Rig {
    fn new() -> Rig {
        let mut flow = Flow::new(&TcpConfig::default());
        flow.now = Time::from_nanos(1_000_000_000);
        flow.take_rtt(RTT, &TimeoutConfig::default());
        flow.rtt.take_smallest(flow.now, RTT);
        let mut bbr = Bbr3::new(Seed::new(1, 0).stream("test"), 10);
        bbr.start(&mut flow);
        Rig { flow, bbr }
    }

    /// One that knows its path and is in a mode.
    fn in_mode(mode: Mode) -> Rig {
        let mut rig = Rig::new();
        rig.bbr.max_bandwidth = Windowed::new(0, RATE << 24);
        rig.bbr.is_full = mode != Mode::Startup;
        rig.flow.cwnd = 2 * PRODUCT;
        rig.bbr.begin_down(&rig.flow);
        rig.bbr.probe.rounds_since = 0;
        // The acknowledgements of the last probe are over.
        rig.bbr.probe.acks = Acks::Other;
        rig.bbr.mode = mode;
        rig
    }

    fn in_flight(mut self, segments: u32) -> Rig {
        self.flow.packets_out = segments;
        self
    }

    /// A round trip's last acknowledgement: at a rate of segments per second.
    fn round(&mut self, rate: u64) {
        self.flow.now += RTT;
        self.acknowledge(rate, true);
    }

    fn acknowledge(&mut self, rate: u64, ends_round: bool) {
        let prior = if ends_round { self.flow.delivered } else { 0 };
        let delivered = rate * RTT.as_nanos() / 1_000_000_000;
        self.flow.delivered += if ends_round { delivered } else { 1 };
        self.flow.delivered_at = self.flow.now;
        let sample = RateSample {
            prior_delivered: prior,
            delivered,
            interval: RTT,
            rtt: Some(RTT),
            acked: 1,
            tx_in_flight: self.flow.in_flight(),
            prior_lost: self.flow.lost,
            ..RateSample::default()
        };
        self.bbr.govern(&mut self.flow, &sample);
    }

    /// Marks segments as lost, one by one with a gap behind each; `in_flight` is the volume in flight when they were sent.
    fn lose(&mut self, count: u32, in_flight: u32) {
        let before = self.flow.lost;
        for n in 0..count {
            self.flow.lost += 1;
            let tx = TxState {
                delivered: 0,
                delivered_at: Time::ZERO,
                first_sent_at: Time::ZERO,
                lost: before,
                delivered_ce: 0,
                in_flight,
                is_app_limited: false,
            };
            let sent = Sent::new(1 + u64::from(n) * 3000, 1000, 0, Time::ZERO, tx);
            self.bbr.lost(&self.flow, &sent);
        }
    }

    fn set_phase(&mut self, phase: Phase) {
        self.bbr.phase_changes(&mut self.flow, phase);
        self.flow.phase = phase;
    }
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_and_drains_at_half_of_the_rate() {
    let mut rig = Rig::new().in_flight(2 * PRODUCT);
    for rate in [500, 1000, 2000, RATE, RATE, RATE] {
        rig.round(rate);
        assert_eq!(rig.bbr.mode, Mode::Startup, "{rate}");
    }
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Drain);
    // Less a percent.
    let half = RATE * u64::from(rig.flow.mss) / 2;
    assert!(rig.flow.pacing_rate.abs_diff(half * 99 / 100) <= 2, "{} {half}", rig.flow.pacing_rate);
    assert_eq!(rig.flow.ssthresh, NO_THRESHOLD, "BBR 3 does not use a threshold");
}

#[test]
fn samples_limited_by_the_application_do_not_end_startup() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        rig.flow.now += RTT;
        let sample = RateSample {
            prior_delivered: rig.flow.delivered,
            delivered: 100,
            interval: RTT,
            is_app_limited: true,
            acked: 1,
            ..RateSample::default()
        };
        rig.flow.delivered += 100;
        rig.bbr.govern(&mut rig.flow, &sample);
    }
    assert_eq!(rig.bbr.mode, Mode::Startup);
}

#[test]
fn startup_ends_after_a_round_of_recovery_with_six_holes_and_more_than_two_percent_lost() {
    for (lost, expected) in [(6, Mode::Drain), (5, Mode::Startup)] {
        let mut rig = Rig::in_mode(Mode::Startup).in_flight(2 * PRODUCT);
        rig.bbr.latest.end = 0;
        rig.lose(lost, 2 * PRODUCT);
        rig.set_phase(Phase::Recovery);
        // The sample is of a segment that was sent before the losses were found.
        rig.flow.now += RTT;
        let sample = RateSample {
            prior_delivered: rig.flow.delivered,
            delivered: 150,
            interval: RTT,
            acked: 1,
            tx_in_flight: 2 * PRODUCT,
            prior_lost: 0,
            ..RateSample::default()
        };
        rig.flow.delivered += 150;
        rig.bbr.govern(&mut rig.flow, &sample);
        assert_eq!(rig.bbr.mode, expected, "{lost}");
        let bound = if expected == Mode::Drain { 150 } else { UNBOUND };
        assert_eq!(rig.bbr.bounds.long_inflight, bound, "what was delivered in the round trip");
    }
}

#[test]
fn drain_ends_at_one_product_in_flight_or_after_three_rounds() {
    let mut rig = Rig::in_mode(Mode::Drain).in_flight(PRODUCT + 10);
    rig.bbr.drain_round = rig.bbr.rounds.count;
    for _ in 0..3 {
        rig.round(RATE);
        assert_eq!(rig.bbr.mode, Mode::Drain);
    }
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Down);
    let mut rig = Rig::in_mode(Mode::Drain).in_flight(PRODUCT);
    rig.bbr.drain_round = rig.bbr.rounds.count;
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Cruise, "by way of Down, which has nothing left to drain");
}

#[test]
fn down_ends_when_the_queue_is_drained_and_there_is_headroom() {
    let mut rig = Rig::in_mode(Mode::Down).in_flight(PRODUCT + 5);
    rig.acknowledge(RATE, false);
    assert_eq!((rig.bbr.mode, rig.bbr.mode.pacing_gain()), (Mode::Down, 230));
    rig = rig.in_flight(PRODUCT);
    rig.bbr.bounds.long_inflight = 110;
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Down, "94 of 110 leave 15 % free");
    rig = rig.in_flight(94);
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Cruise);
    assert!(rig.flow.cwnd <= 94, "{}", rig.flow.cwnd);
}

#[test]
fn a_probe_begins_after_two_to_three_seconds_or_as_many_rounds_as_reno_would_wait() {
    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    rig.bbr.min_rtt.recent_at = rig.flow.now;
    let wait = rig.bbr.probe.wait;
    assert!((WAIT_RANGE[0]..WAIT_RANGE[1]).contains(&wait), "{wait:?}");
    rig.flow.now += wait;
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Cruise);
    rig.flow.now += Duration::from_millis(1);
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Refill);

    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    rig.bbr.probe.wait = Duration::from_secs(100);
    rig.bbr.min_rtt.recent_at = rig.flow.now;
    for _ in 0..62 {
        rig.round(RATE);
        assert_eq!(rig.bbr.mode, Mode::Cruise);
    }
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Refill, "63 rounds, as the product is larger");
}

const WAIT_RANGE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(3)];

#[test]
fn refill_forgets_the_short_term_bounds_and_lasts_a_round() {
    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    (rig.bbr.bounds.short_bandwidth, rig.bbr.bounds.short_inflight) = (1000 << 24, 40);
    rig.bbr.probe.wait = Duration::ZERO;
    rig.flow.now += Duration::from_millis(1);
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Refill);
    assert_eq!(rig.bbr.bounds, Bounds::NONE);
    assert_eq!((rig.bbr.mode.pacing_gain(), rig.bbr.bandwidth()), (UNIT, RATE << 24));
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Up);
    assert_eq!((rig.bbr.mode.pacing_gain(), rig.bbr.mode.cwnd_gain()), (320, 576));
}

#[test]
fn up_ends_with_a_plateau() {
    let mut rig = Rig::in_mode(Mode::Up).in_flight(PRODUCT);
    rig.bbr.plateau = Plateau { bandwidth: RATE << 24, ..Plateau::default() };
    for _ in 0..2 {
        rig.round(RATE);
        assert_eq!(rig.bbr.mode, Mode::Up);
    }
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Down);
    assert_eq!(rig.bbr.bounds.long_inflight, UNBOUND, "nothing was lost");
}

#[test]
fn up_ends_with_more_than_two_percent_lost_and_leaves_a_long_term_bound() {
    let mut rig = Rig::in_mode(Mode::Up).in_flight(150);
    rig.bbr.probe.is_sampled = true;
    rig.lose(3, 150);
    assert_eq!((rig.bbr.mode, rig.bbr.bounds.long_inflight), (Mode::Up, UNBOUND), "2 % are allowed");
    rig.lose(4, 150);
    assert_eq!(rig.bbr.mode, Mode::Down);
    // (0.02 * 149 - 3) / 0.98 is below 1: what was in flight before the segment.
    assert_eq!(rig.bbr.bounds.long_inflight, 149);
    assert!(rig.bbr.probe.was_too_high);
    // Once per probe, and never below seven tenths of the target.
    rig.lose(50, 60);
    assert_eq!(rig.bbr.bounds.long_inflight, 149);
    let mut rig = Rig::in_mode(Mode::Up).in_flight(150);
    rig.bbr.probe.is_sampled = true;
    rig.lose(10, 20);
    assert_eq!(rig.bbr.bounds.long_inflight, 70);
}

/// A lost segment that was alone in flight leaves a bound of none.
#[test]
fn no_bound_takes_the_window_below_four_segments() {
    let mut rig = Rig::in_mode(Mode::Refill).in_flight(1);
    rig.bbr.probe.is_sampled = true;
    rig.flow.cwnd = 1;
    rig.lose(1, 1);
    assert_eq!(rig.bbr.bounds.long_inflight, 0);
    rig.bbr.mode = Mode::Cruise;
    rig.flow.cwnd = 50;
    rig.acknowledge(RATE, false);
    assert_eq!(rig.flow.cwnd, 4);
}

#[test]
fn after_a_probe_that_lost_too_much_the_next_stops_at_the_bound_and_the_one_after_goes_beyond() {
    let mut rig = Rig::in_mode(Mode::Up).in_flight(149);
    rig.bbr.bounds.long_inflight = 150;
    rig.bbr.probe.was_too_high = true;
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Up);
    rig = rig.in_flight(150);
    rig.acknowledge(RATE, false);
    assert_eq!((rig.bbr.mode, rig.bbr.probe.was_precautionary), (Mode::Down, true));
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Refill, "nothing was lost at the bound");
}

#[test]
fn the_long_term_bound_grows_by_one_two_four_segments_in_a_round() {
    let mut rig = Rig::in_mode(Mode::Refill).in_flight(PRODUCT);
    rig.bbr.bounds.long_inflight = PRODUCT;
    rig.flow.cwnd = PRODUCT;
    rig.round(RATE);
    assert_eq!(rig.bbr.mode, Mode::Up);
    let mut bounds = Vec::new();
    for _ in 0..3 {
        rig.flow.now += RTT;
        for _ in 0..rig.flow.cwnd - 1 {
            rig.flow.is_cwnd_limited = true;
            rig.acknowledge(RATE, false);
        }
        rig.acknowledge(RATE, true);
        bounds.push(rig.bbr.bounds.long_inflight - PRODUCT);
    }
    assert!((1..=2).contains(&bounds[0]), "{bounds:?}");
    assert!((2..=4).contains(&(bounds[1] - bounds[0])), "{bounds:?}");
    assert!((4..=7).contains(&(bounds[2] - bounds[1])), "{bounds:?}");
}

#[test]
fn losses_beside_a_probe_draw_short_term_bounds_once_per_round() {
    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    rig.bbr.min_rtt.recent_at = rig.flow.now;
    rig.lose(1, PRODUCT);
    rig.round(RATE / 2);
    // The larger of what was delivered and seven tenths.
    let bounds = rig.bbr.bounds;
    assert!(bounds.short_bandwidth.abs_diff((RATE << 24) / 10 * 7) < 16, "{bounds:?}");
    assert_eq!(bounds.short_inflight, 140, "of a window of 200");
    rig.round(RATE / 2);
    assert_eq!(rig.bbr.bounds, bounds, "nothing was lost in this round trip");
    rig.lose(1, PRODUCT);
    rig.round(RATE * 6 / 10);
    assert_eq!(rig.bbr.bounds.short_bandwidth, (RATE * 6 / 10) << 24);
}

#[test]
fn the_round_trip_is_looked_for_every_five_seconds_with_half_a_product_for_200_ms_and_a_round() {
    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    rig.bbr.probe.wait = Duration::from_secs(100);
    rig.bbr.min_rtt.recent_at = rig.flow.now;
    rig.flow.now += Duration::from_secs(5);
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::Cruise);
    rig.flow.now += Duration::from_millis(1);
    rig.acknowledge(RATE, false);
    assert_eq!((rig.bbr.mode, rig.flow.cwnd), (Mode::ProbeRtt, PRODUCT / 2));
    // The time counts from when that little is in flight.
    rig.flow.now += Duration::from_millis(500);
    rig.acknowledge(RATE, false);
    rig = rig.in_flight(PRODUCT / 2);
    rig.acknowledge(RATE, false);
    rig.flow.now += Duration::from_millis(201);
    rig.acknowledge(RATE, false);
    assert_eq!(rig.bbr.mode, Mode::ProbeRtt, "no round trip has passed");
    rig.acknowledge(RATE, true);
    assert_eq!(rig.bbr.mode, Mode::Cruise);
    assert!(rig.flow.cwnd > PRODUCT, "{}", rig.flow.cwnd);
    // The next one is due 5 s from now.
    assert_eq!(rig.bbr.min_rtt.recent_at, rig.flow.now);
}

#[test]
fn a_connection_that_was_idle_does_not_look_for_its_round_trip() {
    let mut rig = Rig::in_mode(Mode::Cruise);
    rig.flow.app_limited = 1;
    rig.flow.now += Duration::from_secs(6);
    rig.bbr.event(&mut rig.flow, FlowEvent::Restart);
    rig.acknowledge(RATE, false);
    assert_ne!(rig.bbr.mode, Mode::ProbeRtt);
}

#[test]
fn what_was_no_loss_restores_bounds_window_and_mode() {
    let mut rig = Rig::in_mode(Mode::Up).in_flight(150);
    rig.bbr.probe.is_sampled = true;
    rig.lose(10, 150);
    assert_eq!(rig.bbr.mode, Mode::Down);
    rig.set_phase(Phase::Recovery);
    rig.flow.cwnd = 50;
    assert_eq!(rig.bbr.undone_cwnd(&rig.flow), 2 * PRODUCT);
    assert_eq!((rig.bbr.mode, rig.bbr.bounds), (Mode::Refill, Bounds::NONE));

    let mut rig = Rig::in_mode(Mode::Startup).in_flight(150);
    rig.lose(1, 150);
    (rig.bbr.undo_mode, rig.bbr.mode, rig.bbr.is_full) = (Some(Mode::Startup), Mode::Drain, true);
    rig.bbr.undone_cwnd(&rig.flow);
    assert_eq!((rig.bbr.mode, rig.bbr.is_full), (Mode::Startup, false));
}

#[test]
fn the_window_from_before_a_repair_returns() {
    let mut rig = Rig::in_mode(Mode::Cruise).in_flight(PRODUCT);
    rig.lose(1, PRODUCT);
    rig.set_phase(Phase::Loss);
    rig.flow.cwnd = 1;
    rig.set_phase(Phase::Open);
    assert_eq!(rig.flow.cwnd, 2 * PRODUCT);
}

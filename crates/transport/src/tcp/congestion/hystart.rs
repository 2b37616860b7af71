//! The end of slow start before the first loss: HyStart as in Linux (Ha and Rhee, "Taming the elephants: new TCP slow start",
//! 2011), and HyStart++ (RFC 9406).

use trunkline_core::{Duration, Time};

use crate::tcp::config::Hystart;
use crate::tcp::flow::Flow;

/// Below this window slow start goes on whatever the round trip does.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements that are further apart belong to different trains.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// So many samples of a round trip make it comparable.
const SAMPLES: u32 = 8;
/// Bounds of the increase of the round trip that counts (RFC 9406 section 4.3).
const THRESHOLD: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];
/// Conservative slow start grows by this much less, and lasts for so many round trips (RFC 9406 section 4.3).
const CSS_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// Without pacing, one acknowledgement grows the window by so many segments at most (RFC 9406 section 4.3).
const MAX_PER_ACK: u32 = 8;

/// What is known of the round trip under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detector {
    kind: Hystart,
    has_found: bool,
    round_start: Time,
    last_ack: Time,
    /// When everything before this place is acknowledged, a new round trip begins.
    round_end: u64,
    samples: u32,
    current: Duration,
    /// HyStart++: the smallest sample of the round trip before, the one at the beginning of conservative slow start, how many
    /// round trips that has lasted, and acknowledged segments that have not grown the window.
    previous: Duration,
    baseline: Option<Duration>,
    conservative_rounds: u32,
    credit: u32,
}

impl Detector {
    pub(super) fn new(kind: Hystart) -> Detector {
        Detector {
            kind,
            has_found: false,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: 0,
            samples: 0,
            current: Duration::MAX,
            previous: Duration::MAX,
            baseline: None,
            conservative_rounds: 0,
            credit: 0,
        }
    }

    /// Begins with the first round trip.
    pub(super) fn start(&mut self, flow: &Flow) {
        *self = Detector::new(self.kind);
        self.begin_round(flow);
    }

    /// Takes a sample of the round trip in slow start, and sets the threshold if slow start is to end. `smallest` is the
    /// shortest round trip so far.
    pub(super) fn take(&mut self, flow: &mut Flow, sample: Duration, smallest: Duration) {
        if flow.una > self.round_end {
            self.end_round(flow);
            self.begin_round(flow);
        }
        if self.has_found || self.kind == Hystart::Off || flow.cwnd < LOW_WINDOW {
            return;
        }
        let is_over = match self.kind {
            Hystart::Off => false,
            Hystart::Linux => self.is_train_long(flow, smallest) | self.is_delayed(sample, smallest),
            Hystart::PlusPlus => self.is_conservative_over(sample),
        };
        if is_over {
            self.has_found = true;
            flow.ssthresh = flow.cwnd;
        }
    }

    /// How many segments the window grows by in slow start for so many acknowledged ones.
    pub(super) fn growth(&mut self, flow: &Flow, acked: u32) -> u32 {
        if self.kind != Hystart::PlusPlus {
            return acked;
        }
        let most = if flow.is_paced { acked } else { acked.min(MAX_PER_ACK) };
        if self.baseline.is_none() {
            return most;
        }
        self.credit += most;
        let growth = self.credit / CSS_DIVISOR;
        self.credit %= CSS_DIVISOR;
        growth
    }

    fn begin_round(&mut self, flow: &Flow) {
        (self.round_start, self.last_ack) = (flow.now, flow.now);
        self.round_end = flow.next;
        (self.samples, self.current) = (0, Duration::MAX);
    }

    fn end_round(&mut self, flow: &mut Flow) {
        self.previous = self.current;
        if self.baseline.is_some() {
            self.conservative_rounds += 1;
            if self.conservative_rounds >= CSS_ROUNDS && !self.has_found {
                self.has_found = true;
                flow.ssthresh = flow.cwnd;
            }
        }
    }

    /// Whether acknowledgements have come without a gap for longer than the path needs to take half of the window: then the
    /// rate is that of the bottleneck.
    fn is_train_long(&mut self, flow: &Flow, smallest: Duration) -> bool {
        if flow.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = flow.now;
        // Four of the largest bursts may have been under way together.
        let bursts = (4 * u64::from(flow.burst) * 1_000_000_000).checked_div(flow.pacing_rate);
        let bursts = Duration::from_nanos(bursts.unwrap_or(0));
        let whole = smallest + bursts.min(Duration::from_millis(1));
        // Pacing alone spreads a window over half of the round trip.
        let threshold = if flow.is_paced { whole } else { whole / 2 };
        flow.now.since(self.round_start) > threshold
    }

    /// Whether the shortest of the first samples of this round trip shows a queue.
    fn is_delayed(&mut self, sample: Duration, smallest: Duration) -> bool {
        self.current = self.current.min(sample);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.current > smallest + threshold(smallest)
    }

    /// HyStart++: enters conservative slow start when the round trip has grown, leaves it when that was a mistake. The end of
    /// its last round trip ends slow start.
    fn is_conservative_over(&mut self, sample: Duration) -> bool {
        self.current = self.current.min(sample);
        self.samples += 1;
        if self.samples < SAMPLES {
            return false;
        }
        match self.baseline {
            Some(baseline) if self.current < baseline => self.baseline = None,
            Some(_) => {}
            None if self.previous != Duration::MAX
                && self.current >= self.previous + threshold(self.previous) =>
            {
                (self.baseline, self.conservative_rounds) = (Some(self.current), 0);
            }
            None => {}
        }
        false
    }
}

/// The increase of a round trip that counts (RFC 9406 section 4.2).
fn threshold(round_trip: Duration) -> Duration {
    (round_trip / 8).clamp(THRESHOLD[0], THRESHOLD[1])
}

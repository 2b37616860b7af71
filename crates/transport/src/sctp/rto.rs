//! How long to wait for an acknowledgement (RFC 9260 section 6.3), and how much may be on its way (section 7.2).

use trunkline_core::Duration;

/// RTO.Initial, RTO.Min and RTO.Max (RFC 9260 section 16).
pub(super) const RTO_INITIAL: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(60);
/// The granularity of clocks in RFC 9260 section 6.3.1, rule G1.
const GRANULARITY: Duration = Duration::from_millis(1);

/// The retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rto {
    current: Duration,
    /// The smoothed round trip and its variation, once one has been measured.
    measured: Option<(Duration, Duration)>,
}

impl Default for Rto {
    fn default() -> Rto {
        Rto { current: RTO_INITIAL, measured: None }
    }
}

impl Rto {
    pub(super) fn current(&self) -> Duration {
        self.current
    }

    /// The smoothed round trip, or the timeout before one was measured.
    pub(super) fn round_trip(&self) -> Duration {
        self.measured.map_or(self.current, |(smoothed, _)| smoothed)
    }

    /// Takes a measurement in (RFC 9260 section 6.3.1).
    pub(super) fn measure(&mut self, round_trip: Duration) {
        let (smoothed, variation) = match self.measured {
            None => (round_trip, round_trip / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.saturating_sub(round_trip).max(round_trip.saturating_sub(smoothed));
                (smoothed * 7 / 8 + round_trip / 8, variation * 3 / 4 + difference / 4)
            }
        };
        let variation = variation.max(GRANULARITY);
        self.measured = Some((smoothed, variation));
        self.current = (smoothed + variation * 4).clamp(RTO_MIN, RTO_MAX);
    }

    /// Nothing was heard for this long (RFC 9260 section 6.3.3, rule E2).
    pub(super) fn back_off(&mut self) {
        self.current = doubled(self.current);
    }
}

/// The next timeout after this one.
pub(super) fn doubled(timeout: Duration) -> Duration {
    (timeout * 2).min(RTO_MAX)
}

/// The congestion window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// The largest packet.
    packet: usize,
    window: usize,
    threshold: usize,
    /// Acknowledged since the window grew, above the threshold.
    partial: usize,
    /// The last TSN that was on its way when a loss was noticed: losses up to it are the same event.
    recovery: Option<u32>,
}

impl Congestion {
    /// The initial window of RFC 9260 section 7.2.1.
    pub(super) fn new(packet: usize) -> Congestion {
        let window = (4 * packet).min((2 * packet).max(4404));
        Congestion { packet, window, threshold: usize::MAX, partial: 0, recovery: None }
    }

    pub(super) fn window(&self) -> usize {
        self.window
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// Bytes up to `cumulative` were acknowledged when `flight` bytes had been on their way (RFC 9260 sections 7.2.1 and
    /// 7.2.2).
    pub(super) fn acknowledged(&mut self, cumulative: u32, bytes: usize, flight: usize) {
        if let Some(last) = self.recovery {
            if super::wire::is_later(last, cumulative) {
                return;
            }
            self.recovery = None;
        }
        let is_used = flight >= self.window;
        if self.window <= self.threshold {
            if is_used {
                self.window += bytes.min(self.packet);
            }
            return;
        }
        self.partial += bytes;
        if !is_used {
            self.partial = self.partial.min(self.window);
        } else if self.partial >= self.window {
            self.partial -= self.window;
            self.window += self.packet;
        }
    }

    /// Nothing is on its way any more (RFC 9260 section 7.2.2).
    pub(super) fn all_acknowledged(&mut self) {
        self.partial = 0;
    }

    /// Nothing was sent for so many timeouts (RFC 9260 section 7.2.1).
    pub(super) fn rested(&mut self, timeouts: u64) {
        for _ in 0..timeouts.min(32) {
            self.window = (self.window / 2).max(4 * self.packet).min(self.window);
        }
    }

    /// A loss was noticed while TSNs up to `last` were on their way (RFC 9260 section 7.2.3): fast recovery begins, and lasts
    /// until `last` is acknowledged. Losses in the meantime leave the window as it is (section 7.2.4, step 6).
    pub(super) fn lost(&mut self, last: u32) {
        if self.recovery.is_none() {
            self.threshold = (self.window / 2).max(4 * self.packet);
            (self.window, self.partial, self.recovery) = (self.threshold, 0, Some(last));
        }
    }

    /// Nothing was heard for a whole timeout (RFC 9260 section 7.2.3).
    pub(super) fn timed_out(&mut self) {
        self.threshold = (self.window / 2).max(4 * self.packet);
        (self.window, self.partial, self.recovery) = (self.packet, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trip_within_its_bounds() {
        let mut rto = Rto::default();
        assert_eq!(rto.current(), Duration::from_secs(1));
        rto.measure(Duration::from_millis(10));
        assert_eq!(rto.current(), Duration::from_secs(1));
        for _ in 0..100 {
            rto.measure(Duration::from_secs(3));
        }
        assert!((3000..3100).contains(&(rto.current().as_millis_f64() as u64)), "{}", rto.current());
        for _ in 0..10 {
            rto.back_off();
        }
        assert_eq!(rto.current(), Duration::from_secs(60));
    }

    #[test]
    fn the_window_doubles_then_grows_by_a_packet_each_round_trip() {
        let mut congestion = Congestion::new(1000);
        assert_eq!(congestion.window(), 4000);
        congestion.acknowledged(0, 4000, 3999);
        assert_eq!(congestion.window(), 4000, "what is not used does not grow");
        congestion.acknowledged(0, 4000, 4000);
        assert_eq!(congestion.window(), 5000);
        congestion.lost(9);
        congestion.lost(10);
        congestion.acknowledged(8, 4000, 4000);
        assert_eq!(congestion.window(), 4000, "not while it recovers");
        congestion.acknowledged(9, 1000, 4000);
        assert_eq!(congestion.window(), 5000);
        for _ in 0..5 {
            congestion.acknowledged(10, 1000, 5000);
        }
        assert_eq!(congestion.window(), 6000);
        for _ in 0..100 {
            congestion.acknowledged(10, 1000, 5999);
        }
        congestion.acknowledged(10, 1000, 6000);
        congestion.acknowledged(10, 1000, 7000);
        assert_eq!(congestion.window(), 7000, "what was not used counts for no more than one packet");
        congestion.rested(1);
        assert_eq!(congestion.window(), 4000);
        congestion.timed_out();
        congestion.rested(1);
        assert_eq!(congestion.window(), 1000);
    }
}

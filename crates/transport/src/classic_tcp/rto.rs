//! How long to wait for an acknowledgement: the estimator of Jacobson (1988) and the rules of Karn and Partridge (1987), as
//! in RFC 6298.

use trunkline_core::Duration;

use super::config::TimerConfig;

/// The retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rto {
    config: TimerConfig,
    /// The smoothed round trip and its variation, once one has been measured.
    measured: Option<(Duration, Duration)>,
    /// How often the timeout was doubled.
    backoff: u32,
}

impl Rto {
    pub(super) fn new(config: TimerConfig) -> Rto {
        Rto { config, measured: None, backoff: 0 }
    }

    /// What the estimator says, doubled as often as the timer has run out (RFC 6298 sections 2 and 5.5).
    pub(super) fn current(&self) -> Duration {
        self.backed_off(self.backoff)
    }

    /// The same after another number of doublings, for probes of a closed window (RFC 1122 section 4.2.2.17).
    pub(super) fn backed_off(&self, backoff: u32) -> Duration {
        let TimerConfig { initial, min, max, .. } = self.config;
        let base = match self.measured {
            None => initial,
            Some((smoothed, variation)) => smoothed + variation * 4,
        };
        // More doublings change nothing: a range of 2^32 lies between any bounds.
        (base.max(min) * (1 << backoff.min(32))).min(max)
    }

    /// Takes the round trip of a segment that was sent once (RFC 6298 sections 2.2 and 2.3).
    pub(super) fn measure(&mut self, round_trip: Duration) {
        self.measured = Some(match self.measured {
            None => (round_trip, round_trip / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.saturating_sub(round_trip).max(round_trip.saturating_sub(smoothed));
                (smoothed * 7 / 8 + round_trip / 8, variation * 3 / 4 + difference / 4)
            }
        });
        self.backoff = 0;
    }

    /// The timer has run out (RFC 6298 section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// New data was acknowledged: who does not keep a timer that was backed off forgets it here, even if what was
    /// acknowledged had been sent twice.
    pub(super) fn progressed(&mut self) {
        if !self.config.keep_backoff {
            self.backoff = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rto(keep_backoff: bool) -> Rto {
        Rto::new(TimerConfig { keep_backoff, ..TimerConfig::default() })
    }

    #[test]
    fn the_timeout_follows_the_round_trip_within_its_bounds() {
        let mut rto = rto(true);
        assert_eq!(rto.current(), SECOND * 3);
        rto.measure(SECOND);
        assert_eq!(rto.current(), SECOND * 3, "1 s + 4 x 0.5 s");
        rto.measure(SECOND * 2);
        // 1.125 s + 4 x (0.375 s + 0.25 s)
        assert_eq!(rto.current(), Duration::from_millis(3625));
        rto.measure(SECOND * 500);
        assert_eq!(rto.current(), SECOND * 60);
        for _ in 0..200 {
            rto.measure(Duration::from_millis(1));
        }
        assert_eq!(rto.current(), SECOND);
    }

    #[test]
    fn doubling_lasts_until_a_measurement_where_it_is_kept() {
        for keeps in [true, false] {
            let mut rto = rto(keeps);
            rto.measure(Duration::from_millis(10));
            let doubled: Vec<Duration> = (0..8)
                .map(|_| {
                    rto.back_off();
                    rto.current()
                })
                .collect();
            assert_eq!(doubled, [2, 4, 8, 16, 32, 60, 60, 60].map(Duration::from_secs));
            rto.progressed();
            assert_eq!(rto.current(), if keeps { SECOND * 60 } else { SECOND });
            rto.measure(Duration::from_millis(10));
            assert_eq!(rto.current(), SECOND);
        }
    }
}

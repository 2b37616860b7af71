//! The round trip and the retransmission timeout: RFC 6298, and the estimator of Linux, which takes the largest variation of
//! a round trip and never lets it fall below the shortest timeout.

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Time};

use super::config::TimeoutConfig;
use super::filter::Windowed;

/// How the timeout follows the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Estimator {
    /// The smoothed round trip and the variation of the last one, which is at least the shortest timeout, so that the timeout
    /// is always longer than the round trip by that much.
    #[default]
    Linux,
    /// The smoothed round trip and four times the variation, at least the shortest timeout (RFC 6298 section 2).
    Rfc6298,
}

/// For how long the smallest round trip is remembered: Linux's `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The estimates of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// Smoothed; zero before there was a sample.
    smoothed: Duration,
    /// Four times the mean deviation.
    deviation: Duration,
    /// The largest deviation since the beginning of this round trip.
    largest_deviation: Duration,
    /// What is added to the smoothed round trip.
    variation: Duration,
    /// When everything before this place is acknowledged, the round trip of the variation is over.
    round_end: u64,
    smallest: Windowed,
    timeout: Duration,
}

impl Rtt {
    pub(super) fn new(config: &TimeoutConfig) -> Rtt {
        Rtt {
            smoothed: Duration::ZERO,
            deviation: Duration::ZERO,
            largest_deviation: Duration::ZERO,
            variation: Duration::ZERO,
            round_end: 0,
            smallest: Windowed::new(0, u64::MAX),
            timeout: config.initial,
        }
    }

    /// The smoothed round trip, once there was a sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        (!self.smoothed.is_zero()).then_some(self.smoothed)
    }

    /// The smallest round trip of the last five minutes, [`Duration::MAX`] before there was a sample.
    pub(super) fn smallest(&self) -> Duration {
        Duration::from_nanos(self.smallest.best())
    }

    /// The retransmission timeout, as often doubled as the timer has run out in vain.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Doubles the timeout (RFC 6298 section 5.5).
    pub(super) fn back_off(&mut self, config: &TimeoutConfig) {
        self.timeout = (self.timeout * 2).min(config.max);
    }

    /// Sets the timeout to what the estimates say, as if it had never been doubled.
    pub(super) fn forget_backoff(&mut self, config: &TimeoutConfig) {
        if self.smoothed().is_some() {
            self.timeout = self.estimated_timeout(config);
        }
    }

    /// Takes the round trip of the last segment that was delivered as a candidate for the smallest.
    pub(super) fn take_smallest(&mut self, now: Time, sample: Duration) {
        let sample = sample.max(Duration::from_micros(1));
        self.smallest.min(MIN_RTT_WINDOW.as_nanos(), now.as_nanos(), sample.as_nanos());
    }

    /// Takes a sample. `una` and `next` are the first unacknowledged place and the next to be sent.
    pub(super) fn take(&mut self, sample: Duration, config: &TimeoutConfig, una: u64, next: u64) {
        let sample = sample.max(Duration::from_nanos(1));
        match (config.estimator, self.smoothed.is_zero()) {
            (Estimator::Linux, true) => {
                self.smoothed = sample;
                self.deviation = sample * 2;
                self.variation = self.deviation.max(config.min);
                self.largest_deviation = self.variation;
                self.round_end = next;
            }
            (Estimator::Linux, false) => self.take_as_linux(sample, config, una, next),
            (Estimator::Rfc6298, true) => {
                self.smoothed = sample;
                self.deviation = sample * 2;
            }
            (Estimator::Rfc6298, false) => {
                let error = distance(self.smoothed, sample);
                self.deviation = self.deviation * 3 / 4 + error;
                self.smoothed = self.smoothed * 7 / 8 + sample / 8;
            }
        }
        self.timeout = self.estimated_timeout(config);
    }

    /// The deviation grows with the error, but only an eighth as fast where the round trip has become shorter: otherwise the
    /// timeout would grow because the path has become better.
    fn take_as_linux(&mut self, sample: Duration, config: &TimeoutConfig, una: u64, next: u64) {
        let error = distance(self.smoothed, sample);
        let expected = self.deviation / 4;
        if error > expected {
            let growth = error - expected;
            self.deviation += if sample < self.smoothed { growth / 8 } else { growth };
        } else {
            self.deviation = self.deviation - (expected - error);
        }
        self.smoothed = (self.smoothed * 7 + sample) / 8;
        if self.deviation > self.largest_deviation {
            self.largest_deviation = self.deviation;
            self.variation = self.variation.max(self.largest_deviation);
        }
        if una > self.round_end {
            if self.largest_deviation < self.variation {
                self.variation = self.variation - (self.variation - self.largest_deviation) / 4;
            }
            self.round_end = next;
            self.largest_deviation = config.min;
        }
    }

    fn estimated_timeout(&self, config: &TimeoutConfig) -> Duration {
        let estimate = match config.estimator {
            Estimator::Linux => self.smoothed + self.variation,
            Estimator::Rfc6298 => (self.smoothed + self.deviation).max(config.min),
        };
        estimate.min(config.max)
    }
}

fn distance(one: Duration, other: Duration) -> Duration {
    one.saturating_sub(other).max(other.saturating_sub(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn config(estimator: Estimator) -> TimeoutConfig {
        TimeoutConfig { estimator, ..TimeoutConfig::default() }
    }

    #[test]
    fn rfc_6298_section_2() {
        let config = TimeoutConfig { min: MS * 1000, ..config(Estimator::Rfc6298) };
        let mut rtt = Rtt::new(&config);
        assert_eq!(rtt.timeout(), MS * 1000, "before a sample");
        rtt.take(MS * 1000, &config, 0, 1);
        assert_eq!(rtt.timeout(), MS * 3000, "1 s + 4 x 0.5 s");
        rtt.take(MS * 2000, &config, 0, 1);
        // 1.125 s + 4 x (0.375 s + 0.25 s)
        assert_eq!(rtt.timeout(), MS * 3625);
        (0..200).for_each(|_| rtt.take(MS, &config, 0, 1));
        assert_eq!(rtt.timeout(), MS * 1000);
    }

    #[test]
    fn linux_stays_above_the_round_trip_by_the_shortest_timeout() {
        let config = config(Estimator::Linux);
        let mut rtt = Rtt::new(&config);
        for n in 1..1000 {
            rtt.take(MS * 50, &config, n * 10, n * 10 + 5);
        }
        assert_eq!(rtt.timeout(), MS * 250);
        assert_eq!(rtt.smoothed(), Some(MS * 50));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_limit_and_is_forgotten() {
        let config = config(Estimator::Linux);
        let mut rtt = Rtt::new(&config);
        rtt.take(MS * 100, &config, 0, 1);
        assert_eq!(rtt.timeout(), MS * 300);
        rtt.back_off(&config);
        assert_eq!(rtt.timeout(), MS * 600);
        (0..20).for_each(|_| rtt.back_off(&config));
        assert_eq!(rtt.timeout(), config.max);
        rtt.forget_backoff(&config);
        assert_eq!(rtt.timeout(), MS * 300);
    }

    #[test]
    fn a_shorter_round_trip_does_not_lengthen_the_timeout_much() {
        let config = config(Estimator::Linux);
        let mut rtt = Rtt::new(&config);
        for n in 1..100 {
            rtt.take(MS * 400, &config, n * 10, n * 10 + 5);
        }
        let before = rtt.timeout();
        rtt.take(MS * 100, &config, 1000, 1005);
        assert!(rtt.timeout() < before + MS * 50, "{before} {}", rtt.timeout());
    }
}

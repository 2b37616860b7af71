//! How long to wait for the answer to a request for status: the round trip as sync and echo measure it, and WTIMER.

use trunkline_core::{Duration, Time};

use super::config::XtpConfig;

/// Estimates the round trip and backs off. Every request has a number of its own (sync), so an answer (echo) is never
/// mistaken for that to a repetition.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    smoothed: Option<Duration>,
    variation: Duration,
    repetitions: u32,
    initial: Duration,
    least: Duration,
    most: Duration,
    /// The request whose answer is being timed.
    timed: Option<(u32, Time)>,
}

impl Waiting {
    pub(super) fn new(config: &XtpConfig) -> Waiting {
        Waiting {
            smoothed: None,
            variation: Duration::ZERO,
            repetitions: 0,
            initial: config.initial_wait,
            least: config.min_wait,
            most: config.max_wait,
            timed: None,
        }
    }

    /// A request leaves.
    pub(super) fn asked(&mut self, now: Time, sync: u32) {
        if self.timed.is_none() {
            self.timed = Some((sync, now));
        }
    }

    /// An answer came that echoes `echo`.
    pub(super) fn answered(&mut self, now: Time, echo: u32) {
        self.repetitions = 0;
        let Some((sync, asked)) = self.timed else { return };
        if !reaches(echo, sync) {
            return;
        }
        self.timed = None;
        let sample = now.since(asked);
        // Jacobson's mean and deviation, with the gains of RFC 6298 section 2.3.
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
            }
            Some(smoothed) => {
                let error = if sample > smoothed { sample - smoothed } else { smoothed - sample };
                self.variation = (self.variation * 3 + error) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }

    /// No answer came in time.
    pub(super) fn unanswered(&mut self) {
        self.repetitions = self.repetitions.saturating_add(1);
        // Its answer, if it still comes, would measure the outage.
        self.timed = None;
    }

    /// How long the next request may wait (WTIMER).
    pub(super) fn period(&self) -> Duration {
        let beyond = (self.variation * 4).max(self.least);
        let base = self.smoothed.map_or(self.initial, |smoothed| smoothed + beyond);
        let backed_off = base * (1 << self.repetitions.min(20));
        backed_off.min(self.most).max(Duration::from_nanos(1))
    }

    /// The smoothed round trip, if one was measured.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.smoothed
    }
}

/// Whether an echo shows that the request with this number, or a later one, was seen. Numbers wrap around.
pub(super) fn reaches(echo: u32, sync: u32) -> bool {
    echo.wrapping_sub(sync) as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = |ms| Time::from_nanos(ms * 1_000_000);

    #[test]
    fn the_round_trip_is_learned_and_repetitions_double_the_wait() {
        let config = XtpConfig { max_wait: Duration::from_secs(2), ..XtpConfig::default() };
        let mut waiting = Waiting::new(&config);
        assert_eq!(waiting.period(), Duration::from_secs(1));
        waiting.asked(MS(0), 7);
        waiting.asked(MS(50), 8);
        waiting.answered(MS(100), 6);
        assert_eq!(waiting.period(), Duration::from_secs(1), "an older echo measures nothing");
        waiting.answered(MS(100), 8);
        assert_eq!(waiting.period(), Duration::from_millis(300));
        for expected in [600, 1200, 2000, 2000] {
            waiting.unanswered();
            assert_eq!(waiting.period(), Duration::from_millis(expected));
        }
        waiting.asked(MS(9000), 20);
        waiting.answered(MS(9100), 20);
        assert_eq!(waiting.period(), Duration::from_millis(100) + Duration::from_micros(37_500) * 4);
    }

    #[test]
    fn numbers_wrap_around() {
        assert!(reaches(5, 5) && reaches(6, 5) && !reaches(4, 5));
        assert!(reaches(1, u32::MAX) && !reaches(u32::MAX, 1));
    }
}

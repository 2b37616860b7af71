//! The round-trip time as TCP estimates it (RFC 6298).

use trunkline_core::Duration;

/// Without any sample (RFC 4340 section 3.4).
const DEFAULT: Duration = Duration::from_millis(200);
/// The longest time for which a receiver delays an acknowledgement: no timeout may be shorter than a round trip and that.
const MIN_SLACK: Duration = Duration::from_millis(200);

/// A smoothed round-trip time and its mean deviation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    estimate: Option<(Duration, Duration)>,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, sample: Duration) {
        self.estimate = Some(match self.estimate {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.saturating_sub(sample).max(sample.saturating_sub(smoothed));
                ((smoothed * 7 + sample) / 8, (variation * 3 + difference) / 4)
            }
        });
    }

    pub(super) fn smoothed(&self) -> Duration {
        self.estimate.map_or(DEFAULT, |(smoothed, _)| smoothed)
    }

    pub(super) fn known(&self) -> Option<Duration> {
        Some(self.estimate?.0)
    }

    /// How long to wait for an answer.
    pub(super) fn timeout(&self) -> Duration {
        match self.estimate {
            // RFC 6298 section 2.1.
            None => Duration::from_secs(1),
            Some((smoothed, variation)) => smoothed + (variation * 4).max(MIN_SLACK),
        }
    }
}

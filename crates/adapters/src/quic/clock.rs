//! The engine's times, which are the standard library's, and ours.

#![expect(clippy::disallowed_types, reason = "the engine's interface names the standard library's clock")]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use trunkline_core::Time;

/// Where virtual time begins among the moments that the engine knows. An `Instant` can be had from the real clock only.
/// Which one it is does not matter: the engine compares moments, and never asks how late it is.
static EPOCH: LazyLock<Instant> = LazyLock::new(|| {
    #[expect(clippy::disallowed_methods, reason = "read once, as an origin; only differences are used")]
    Instant::now()
});

/// The engine's name of a moment.
pub(super) fn instant(time: Time) -> Instant {
    *EPOCH + Duration::from_nanos(time.as_nanos())
}

/// Our name of one of the engine's moments.
pub(super) fn time(instant: Instant) -> Time {
    let since = instant.saturating_duration_since(*EPOCH).as_nanos();
    Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_comes_back() {
        for nanos in [0, 1, 999, 1_000_000_001, u64::MAX / 4] {
            assert_eq!(time(instant(Time::from_nanos(nanos))), Time::from_nanos(nanos));
        }
    }
}

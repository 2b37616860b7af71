//! Shaping by token buckets.

use trunkline_core::{Bytes, Time};

use super::TokenBucket;

/// Delays packets until they conform: to a rate with a burst, and perhaps to a higher peak rate with a smaller burst of its
/// own, which limits how fast the burst is sent (the `peakrate` of Linux's `tc-tbf`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaper {
    sustained: TokenBucket,
    peak: Option<TokenBucket>,
}

impl Shaper {
    /// A shaper that has seen nothing for long.
    pub fn new(sustained: TokenBucket, peak: Option<TokenBucket>) -> Shaper {
        Shaper { sustained, peak }
    }

    /// Takes the terms of another; tokens that are there stay, as far as there is room for them.
    pub(crate) fn change(&mut self, at: Time, to: Shaper) {
        self.sustained.change(at, &to.sustained);
        match (&mut self.peak, to.peak) {
            (Some(own), Some(new)) => own.change(at, &new),
            (own, new) => *own = new,
        }
    }

    /// When a packet that could leave at `now` may, and takes its tokens then.
    #[inline]
    pub fn shape(&mut self, now: Time, size: Bytes) -> Time {
        let mut start = self.sustained.earliest(now, size);
        if let Some(peak) = &mut self.peak {
            start = peak.earliest(start, size);
            peak.take(start, size);
        }
        self.sustained.take(start, size);
        start
    }
}

impl From<TokenBucket> for Shaper {
    fn from(sustained: TokenBucket) -> Shaper {
        Shaper::new(sustained, None)
    }
}

//! The token bucket.

use trunkline_core::{Bytes, Duration, Rate, Time};

/// Tokens in a byte, as many as come in a nanosecond at 1 bit/s times the bits of a byte: all amounts are whole numbers.
const BYTE: i128 = 8 * 1_000_000_000;

/// A bucket into which tokens flow at a rate until it is full, and from which every packet takes as many as it has bytes.
///
/// Packets that it lets through take at most `rate * t + burst` bytes in any time t (RFC 2698 section 3, RFC 3290
/// section 5.1.3, strict mode). A packet that is larger than the bucket and is taken nevertheless leaves a debt, which comes in
/// before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Per nanosecond.
    rate: u128,
    depth: i128,
    /// Below zero after a packet that was larger than the bucket.
    tokens: i128,
    /// As of when.
    at: Time,
}

impl TokenBucket {
    /// A full bucket of `burst` bytes. A rate of zero is taken as 1 bit/s.
    pub fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        let depth = of(burst);
        let rate = u128::from(rate.bits_per_second().max(1));
        TokenBucket { rate, depth, tokens: depth, at: Time::ZERO }
    }

    /// Takes the rate and the size of another; tokens that are there stay, as far as there is room for them.
    pub(crate) fn change(&mut self, at: Time, to: &TokenBucket) {
        self.tokens = self.tokens_at(at).min(to.depth);
        self.at = self.at.max(at);
        (self.rate, self.depth) = (to.rate, to.depth);
    }

    /// Whether there are tokens for `size` bytes.
    #[inline]
    pub fn has(&self, at: Time, size: Bytes) -> bool {
        self.tokens_at(at) >= of(size)
    }

    /// When there are tokens for `size` bytes, at `now` at the earliest. For a packet that is larger than the bucket, when
    /// it is full.
    #[inline]
    pub fn earliest(&self, now: Time, size: Bytes) -> Time {
        let missing = of(size).min(self.depth) - self.tokens_at(now);
        let missing = u128::try_from(missing).unwrap_or(0);
        now + Duration::from_nanos(u64::try_from(missing.div_ceil(self.rate)).unwrap_or(u64::MAX))
    }

    /// Takes the tokens of `size` bytes, on credit if there are fewer.
    #[inline]
    pub fn take(&mut self, at: Time, size: Bytes) {
        self.tokens = self.tokens_at(at).saturating_sub(of(size));
        self.at = self.at.max(at);
    }

    fn tokens_at(&self, at: Time) -> i128 {
        let come = u128::from(at.since(self.at).as_nanos()) * self.rate;
        self.tokens.saturating_add(i128::try_from(come).unwrap_or(i128::MAX)).min(self.depth)
    }
}

/// The tokens of `size` bytes.
fn of(size: Bytes) -> i128 {
    i128::from(size.count()) * BYTE
}

//! When bits are through.

use trunkline_core::schema::Values;
use trunkline_core::{Bytes, Duration, Rate, Time};

use crate::point_to_point::Line;

/// Puts packets on a line one after another, at a rate.
///
/// Transmissions rarely last a whole number of nanoseconds: a bit on a T1 takes 647.67 ns. The serialiser carries the
/// fraction from one packet to the next as long as they follow back to back, so that `n` of them end at exactly
/// `n * bits / rate`, rounded up once and not `n` times.
#[derive(Clone, Debug)]
pub struct Serialiser {
    /// Bits per second, at least 1.
    rate: u64,
    /// The first whole nanosecond at which the line is free.
    free: Time,
    /// How long before `free` it really was, in 1/rate nanoseconds; below `rate`.
    early: u64,
}

impl Line for Serialiser {
    #[inline]
    fn free(&self) -> Time {
        Serialiser::free(self)
    }

    #[inline]
    fn ready(&mut self, at: Time) -> Time {
        self.free.max(at)
    }

    #[inline]
    fn transmit(&mut self, now: Time, size: Bytes) -> (Time, Duration) {
        Serialiser::transmit(self, now, size)
    }

    fn change(&mut self, _at: Time, values: &Values) {
        let rate = values.rate("rate").bits_per_second().max(1);
        if rate != self.rate {
            // What is left of a nanosecond is another fraction of it now.
            (self.rate, self.early) = (rate, 0);
        }
    }
}

impl Serialiser {
    /// A line that is free from the start. A rate of zero is taken as 1 bit/s: a line that never ends a packet.
    pub(crate) fn new(rate: Rate) -> Serialiser {
        Serialiser { rate: rate.bits_per_second().max(1), free: Time::ZERO, early: 0 }
    }

    /// When the line is free for the next packet.
    #[inline]
    pub(crate) fn free(&self) -> Time {
        self.free
    }

    /// Transmits `size` bytes from `now` on, which is not before [`Self::free`], and returns when the last bit is
    /// through and how long the line was busy.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, size: Bytes) -> (Time, Duration) {
        // At `free` exactly, the packet follows its predecessor without a gap and begins in the middle of a
        // nanosecond. Whoever comes later has seen the line idle.
        let early = if now == self.free { self.early } else { 0 };
        let (length, early) = match size.count().checked_mul(8 * 1_000_000_000) {
            // Through within the nanosecond that has begun.
            Some(scaled) if scaled <= early => (0, early - scaled),
            Some(scaled) => {
                let length = (scaled - early).div_ceil(self.rate);
                // Below `rate`, although the product may not fit in 64 bits.
                (length, length.wrapping_mul(self.rate).wrapping_sub(scaled - early))
            }
            // 2 GB and more; a 128-bit division costs several times as much, so packets of this world do without.
            None => {
                let (scaled, rate) = (u128::from(size.count()) * 8_000_000_000, u128::from(self.rate));
                let length = (scaled - u128::from(early)).div_ceil(rate);
                let early = length * rate - (scaled - u128::from(early));
                (u64::try_from(length).unwrap_or(u64::MAX), u64::try_from(early).unwrap_or(0))
            }
        };
        let busy = Duration::from_nanos(length);
        self.free = now + busy;
        self.early = early;
        (self.free, busy)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_t1_does_not_drift() {
        // A byte takes 5181.35 ns; rounded up each time, a second would end 126 us late.
        let mut line = Serialiser::new(Rate::from_bits_per_second(1_544_000));
        for _ in 0..193_000 {
            line.transmit(line.free(), Bytes(1));
        }
        assert_eq!(line.free(), Time::from_nanos(1_000_000_000));
    }

    #[test]
    fn after_a_pause_no_fraction_is_carried() {
        let mut line = Serialiser::new(Rate::from_bits_per_second(3_000_000_000));
        // 8 bits take 2.67 ns.
        assert_eq!(line.transmit(Time::ZERO, Bytes(1)).0, Time::from_nanos(3));
        assert_eq!(line.transmit(Time::from_nanos(3), Bytes(1)).0, Time::from_nanos(6));
        assert_eq!(line.transmit(Time::from_nanos(7), Bytes(1)).0, Time::from_nanos(10));
        assert_eq!(line.transmit(Time::from_nanos(10), Bytes(2)).0, Time::from_nanos(15));
    }

    #[test]
    fn absurd_sizes_and_rates_end_in_numbers() {
        let mut line = Serialiser::new(Rate::ZERO);
        assert_eq!(line.transmit(Time::ZERO, Bytes(u64::MAX)).0, Time::MAX);
        let mut line = Serialiser::new(Rate::from_bits_per_second(u64::MAX));
        line.transmit(Time::ZERO, Bytes(1));
        assert_eq!(line.transmit(line.free(), Bytes(u64::MAX)).0, Time::from_nanos(8_000_000_001));
    }

    proptest! {
        #[test]
        fn packets_back_to_back_end_exactly(
            rate in prop_oneof![1u64..1_000_000_000_000, 56_000u64..2_000_000, Just(u64::MAX)],
            start in 0u64..1_000_000_000_000,
            sizes in prop::collection::vec(prop_oneof![0u64..3, 28u64..65_536, Just(3_000_000_000)], 1..50),
        ) {
            let mut line = Serialiser::new(Rate::from_bits_per_second(rate));
            let mut now = Time::from_nanos(start);
            let (mut bits, mut total_busy) = (0u128, 0u64);
            for &size in &sizes {
                let (end, busy) = line.transmit(now, Bytes(size));
                bits += u128::from(size) * 8;
                total_busy += busy.as_nanos();
                let exact = (bits * 1_000_000_000).div_ceil(u128::from(rate));
                prop_assert_eq!(u128::from(end.as_nanos()), u128::from(start) + exact);
                prop_assert_eq!(u128::from(total_busy), exact);
                now = line.free();
            }
        }
    }
}

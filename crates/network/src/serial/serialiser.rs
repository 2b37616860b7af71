//! When bits are through.

use trunkline_core::schema::Values;
use trunkline_core::series::Cursor;
use trunkline_core::{Bytes, Duration, OverTime, Rate, Time};

use crate::point_to_point::Line;

/// Puts packets on a line one after another, at a rate.
///
/// Transmissions rarely last a whole number of nanoseconds: a bit on a T1 takes 647.67 ns. The serialiser carries the
/// fraction from one packet to the next as long as they follow back to back, so that `n` of them end at exactly
/// `n * bits / rate`, rounded up once and not `n` times.
///
/// If the rate changes during a transmission, the bits that are left go on at the new one.
#[derive(Clone, Debug)]
pub struct Serialiser {
    /// Bits per second, at least 1.
    rate: u64,
    /// The first whole nanosecond at which the line is free.
    free: Time,
    /// How long before `free` it really was, in 1/rate nanoseconds; below `rate`.
    early: u64,
    /// The rate, if it changes over time; then `rate` is of no account.
    over_time: Option<Box<Cursor>>,
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
        let new = Serialiser::over_time(&values.over_time("rate"));
        let series = |line: &Serialiser| line.over_time.as_ref().map(|cursor| cursor.series().clone());
        if (new.rate, series(&new)) != (self.rate, series(self)) {
            // What is left of a nanosecond is another fraction of it now.
            *self = Serialiser { free: self.free, ..new };
        }
    }
}

impl Serialiser {
    /// A line that is free from the start. A rate of zero is taken as 1 bit/s: a line that never ends a packet.
    pub(crate) fn new(rate: Rate) -> Serialiser {
        Serialiser { rate: rate.bits_per_second().max(1), free: Time::ZERO, early: 0, over_time: None }
    }

    /// A line whose rate may change over time.
    pub(crate) fn over_time(rate: &OverTime) -> Serialiser {
        match rate {
            OverTime::Always(rate) => Serialiser::new(Rate::from_bits_per_second(*rate)),
            OverTime::Series(series) => {
                Serialiser { over_time: Some(Box::new(series.cursor())), ..Serialiser::new(Rate::ZERO) }
            }
        }
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
        if let Some(cursor) = &mut self.over_time {
            let bits = u128::from(size.count()) * 8_000_000_000;
            let (end, early) = match bits.checked_sub(u128::from(early)) {
                Some(left) => cursor.reach(now, left),
                None => (now, early - bits as u64),
            };
            (self.free, self.early) = (end, early);
            return (end, end.since(now));
        }
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
    use trunkline_core::Series;
    use trunkline_core::series::Step;

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

    #[test]
    fn bits_that_are_left_go_on_at_the_new_rate() {
        // 8,000 bits: 4 ms at 1 Mbit/s leave 4,000 bits for 4 Mbit/s, and so on every 10 ms.
        let steps = [(0, 1_000_000), (4, 4_000_000)]
            .map(|(ms, value)| Step { from: Duration::from_millis(ms), value });
        let series = Series::new(steps, Some(Duration::from_millis(10))).unwrap();
        let mut line = Serialiser::over_time(&OverTime::Series(series));
        let ms = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        assert_eq!(line.transmit(ms(0), Bytes(1_000)).0, ms(5));
        assert_eq!(line.transmit(ms(5), Bytes(2_500)).0, ms(10));
        // 28,000 bits a round: ten rounds, and 4 ms of the next.
        assert_eq!(line.transmit(ms(10), Bytes(35_500)), (ms(114), Duration::from_millis(104)));
        assert_eq!(line.transmit(ms(118), Bytes(1_250)).0, ms(122), "8,000 bits until 120 ms, 2,000 behind");
    }

    proptest! {
        #[test]
        fn a_rate_in_equal_steps_is_a_rate(
            rate in prop_oneof![1u64..1_000_000_000_000, 56_000u64..2_000_000],
            (step, every) in (1u64..3_000_000, 1u64..3_000_000),
            packets in prop::collection::vec((0u64..1_000_000, 0u64..65_536), 1..50),
        ) {
            let steps = [0, step].map(|from| Step { from: Duration::from_nanos(from), value: rate });
            let series = Series::new(steps, Some(Duration::from_nanos(step + every))).unwrap();
            let mut constant = Serialiser::new(Rate::from_bits_per_second(rate));
            let mut stepped = Serialiser::over_time(&OverTime::Series(series));
            for (pause, size) in packets {
                let pause = if pause % 3 == 0 { 0 } else { pause };
                let now = constant.free() + Duration::from_nanos(pause);
                prop_assert_eq!(stepped.transmit(now, Bytes(size)), constant.transmit(now, Bytes(size)));
            }
        }

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

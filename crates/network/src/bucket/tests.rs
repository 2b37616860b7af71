use proptest::prelude::*;
use trunkline_core::{Bytes, Duration, Rate, Time};

use super::*;
use crate::gcra::{CELL, Gcra, TheoreticalArrival};

fn rate(bits_per_second: u64) -> Rate {
    Rate::from_bits_per_second(bits_per_second)
}

fn bucket(bits_per_second: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(rate(bits_per_second), Bytes(burst))
}

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_micros(n)
}

#[test]
fn tokens_come_at_the_rate_until_the_bucket_is_full() {
    // A byte in a microsecond.
    let mut bucket = bucket(8_000_000, 1000);
    assert!(bucket.has(us(0), Bytes(1000)) && !bucket.has(us(5000), Bytes(1001)));
    bucket.take(us(5000), Bytes(1000));
    assert_eq!(bucket.earliest(us(5000), Bytes(300)), us(5300));
    assert!(bucket.has(us(5300), Bytes(300)) && !bucket.has(us(5299), Bytes(300)));
    assert_eq!(bucket.earliest(us(5400), Bytes(300)), us(5400));
    // More than fits: when it is full; what it took on credit comes in before the next.
    assert_eq!(bucket.earliest(us(5400), Bytes(9000)), us(6000));
    bucket.take(us(6000), Bytes(9000));
    assert_eq!(bucket.earliest(us(6000), Bytes(100)), us(14_100));
}

#[test]
fn two_rates_give_three_colors() {
    // RFC 2698 section 3: too much for the peak is red and takes nothing; enough for the peak alone is yellow and takes
    // from it alone; the rest is green and takes from both.
    let mut policer = Policer::new(bucket(8_000, 1000), Some(bucket(16_000, 1500)), Excess::Tag);
    let at = |ms: u64, size| (us(1000 * ms), Bytes(size));
    let packets = [at(0, 800), at(0, 400), at(0, 400), at(0, 200), at(100, 100), at(700, 1500)];
    let colors = packets.map(|(at, size)| policer.meter(at, size));
    assert_eq!(colors, [Color::Green, Color::Yellow, Color::Red, Color::Green, Color::Green, Color::Red]);
    let actions = [Color::Green, Color::Yellow, Color::Red].map(|color| policer.action(color));
    assert_eq!(actions, [None, Some(Excess::Tag), Some(Excess::Discard)]);
}

#[test]
fn a_burst_is_sent_at_the_peak_rate_and_then_at_the_sustained_one() {
    // 1 B in 1 us with a bucket of 10,000 B; 4 B in 1 us with one of 1,000 B.
    let mut shaper = Shaper::new(bucket(8_000_000, 10_000), Some(bucket(32_000_000, 1_000)));
    let mut now = us(0);
    let mut next = || {
        now = shaper.shape(now, Bytes(1_000));
        now
    };
    let starts: Vec<Time> = (0..20).map(|_| next()).collect();
    // The first at once, then one every 250 us until, at 3 ms, 13,000 B have come into the large bucket; then one every ms.
    let expected = |n: u64| if n <= 12 { us(250 * n) } else { us(1_000 * (n - 9)) };
    assert_eq!(starts, (0..20).map(expected).collect::<Vec<_>>());
}

#[test]
fn absurd_buckets_end_in_numbers() {
    let mut bucket = TokenBucket::new(Rate::ZERO, Bytes(u64::MAX));
    bucket.take(us(0), Bytes(u64::MAX));
    assert_eq!(bucket.earliest(us(1), Bytes(u64::MAX)), Time::MAX);
    assert!(TokenBucket::new(rate(u64::MAX), Bytes(1)).has(Time::MAX, Bytes(1)));
}

proptest! {
    /// Both forms of the algorithm: a bucket of `n` cells more than one is a tolerance of `n` increments.
    #[test]
    fn cells_conform_to_a_bucket_as_to_a_tolerance(
        // Increments of whole nanoseconds.
        increment in prop::sample::select(&[1, 53, 424, 2_650, 424_000, 8_480_000][..]),
        cells in 0u64..20,
        gaps in prop::collection::vec(0u64..300, 1..80),
    ) {
        let bits = 424_000_000_000 / increment;
        let gcra = Gcra::new(rate(bits), Duration::from_nanos(increment * cells));
        let mut bucket = bucket(bits, CELL.count() * (cells + 1));
        let (mut tat, mut now) = (TheoreticalArrival::default(), Time::ZERO);
        for gap in gaps {
            now += Duration::from_nanos(gap * increment / 100);
            let has = bucket.has(now, CELL);
            if has {
                bucket.take(now, CELL);
            }
            prop_assert_eq!(has, gcra.admit(&mut tat, now));
        }
    }

    #[test]
    fn a_source_shaped_to_two_rates_is_green_to_a_policer_of_both(
        bits in 1_000u64..1_000_000_000,
        (peak, burst, peak_burst) in (1u64..10, 1500u64..20_000, 1500u64..5_000),
        offers in prop::collection::vec((0u64..20_000_000, 1u64..=1500), 1..80),
    ) {
        let (sustained, peak) = (bucket(bits, burst), bucket(bits * peak, peak_burst));
        let mut shaper = Shaper::new(sustained.clone(), Some(peak.clone()));
        let mut policer = Policer::new(sustained, Some(peak), Excess::Discard);
        let mut now = Time::ZERO;
        for (gap, size) in offers {
            now = shaper.shape(now + Duration::from_nanos(gap), Bytes(size));
            prop_assert_eq!(policer.meter(now, Bytes(size)), Color::Green);
        }
    }

    #[test]
    fn a_source_shaped_by_its_contract_is_never_policed(
        bits in 1_000u64..1_000_000_000,
        burst in 1500u64..20_000,
        offers in prop::collection::vec((0u64..20_000_000, 1u64..=1500), 1..80),
    ) {
        let (mut shaper, mut policer) = (bucket(bits, burst), Policer::new(bucket(bits, burst), None, Excess::Discard));
        let mut now = Time::ZERO;
        for (gap, size) in offers {
            now += Duration::from_nanos(gap);
            now = shaper.earliest(now, Bytes(size));
            shaper.take(now, Bytes(size));
            prop_assert_eq!(policer.meter(now, Bytes(size)), Color::Green);
        }
    }

    /// However small the bucket is beside the packets.
    #[test]
    fn a_shaped_source_keeps_its_rate(
        bits in 1_000u64..1_000_000_000,
        burst in 1u64..3_000,
        sizes in prop::collection::vec(1u64..=1500, 2..80),
    ) {
        let mut shaper = bucket(bits, burst);
        let mut now = Time::ZERO;
        for &size in &sizes {
            now = shaper.earliest(now, Bytes(size));
            shaper.take(now, Bytes(size));
        }
        let sent: u64 = sizes[..sizes.len() - 1].iter().sum();
        let allowed = u128::from(now.as_nanos()) * u128::from(bits) / 8_000_000_000 + u128::from(burst.max(1500));
        prop_assert!(u128::from(sent) <= allowed + 1, "{sent} B, {allowed} B allowed");
    }

    #[test]
    fn in_any_time_no_more_than_rate_and_burst_conform(
        bits in 1_000u64..1_000_000_000,
        burst in 1u64..20_000,
        offers in prop::collection::vec((0u64..20_000_000, 1u64..=1500), 1..60),
    ) {
        let mut policer = Policer::new(bucket(bits, burst), None, Excess::Discard);
        let (mut now, mut conforming) = (Time::ZERO, Vec::new());
        for (gap, size) in offers {
            now += Duration::from_nanos(gap);
            if policer.meter(now, Bytes(size)) == Color::Green {
                conforming.push((now, size));
            }
        }
        for first in 0..conforming.len() {
            let mut bytes = 0u128;
            for &(at, size) in &conforming[first..] {
                bytes += u128::from(size);
                let time = u128::from(at.since(conforming[first].0).as_nanos());
                prop_assert!(bytes * 8_000_000_000 <= time * u128::from(bits) + u128::from(burst) * 8_000_000_000);
            }
        }
    }
}

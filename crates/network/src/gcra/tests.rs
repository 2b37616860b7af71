use core::num::NonZeroU32;

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use proptest::prelude::*;

use super::*;

fn rate(bits_per_second: u64) -> Rate {
    Rate::from_bits_per_second(bits_per_second)
}

fn ns(n: u64) -> Duration {
    Duration::from_nanos(n)
}

fn at(n: u64) -> Time {
    Time::from_nanos(n)
}

/// Which of these arrivals conform.
fn admitted(gcra: Gcra, arrivals: &[Time]) -> Vec<bool> {
    let mut tat = TheoreticalArrival::default();
    arrivals.iter().map(|&at| gcra.admit(&mut tat, at)).collect()
}

/// The definition: every pair of conforming cells is as far apart as it must be, and a cell is refused only if it would
/// break that. An increment has its exact length, and a difference in time its whole nanoseconds.
fn by_definition(rate: u64, limit: u64, arrivals: &[Time]) -> Vec<bool> {
    let mut conforming: Vec<u64> = Vec::new();
    let mut decide = |at: u64| {
        let count = conforming.len() as u128;
        let conforms = (0..count).zip(&conforming).all(|(i, &earlier)| {
            let increments = (count - i) * u128::from(SCALE) / u128::from(rate);
            u128::from(at - earlier) + u128::from(limit) >= increments
        });
        if conforms {
            conforming.push(at);
        }
        conforms
    };
    arrivals.iter().map(|at| decide(at.as_nanos())).collect()
}

/// The continuous-state leaky bucket of I.371, exactly: contents in 1/rate nanoseconds.
fn by_leaky_bucket(rate: u64, limit: u64, arrivals: &[Time]) -> Vec<bool> {
    let (mut contents, mut last) = (0u128, 0u64);
    let mut decide = |at: u64| {
        let left = contents.saturating_sub(u128::from(at - last) * u128::from(rate));
        let conforms = left / u128::from(rate) <= u128::from(limit);
        if conforms {
            (contents, last) = (left + u128::from(SCALE), at);
        }
        conforms
    };
    arrivals.iter().map(|at| decide(at.as_nanos())).collect()
}

/// Gaps around the increment of a rate, with bursts and pauses.
fn arrivals(rate: u64, gaps: &[(u8, u64)]) -> Vec<Time> {
    let increment = SCALE / rate;
    let gap = |&(kind, random): &(u8, u64)| match kind {
        0 => 0,
        1 => increment + random % 3,
        2 => increment.saturating_sub(random % 3),
        3 => random % (20 * increment + 1),
        _ => random % (2 * increment + 1),
    };
    let mut now = Time::ZERO;
    gaps.iter()
        .map(gap)
        .map(|gap| {
            now += ns(gap);
            now
        })
        .collect()
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_594_000u64), Just(149_760_000), Just(424_000_000), 64_000u64..10_000_000_000]
}

fn gaps() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..6, any::<u64>()), 1..80)
}

#[test]
fn the_increment_is_exact_for_ever() {
    // 1594 kbit/s: the millionth cell behind the first is due 424e15 / 1,594,000 ns later.
    let gcra = Gcra::new(rate(1_594_000), Duration::ZERO);
    let mut tat = TheoreticalArrival::default();
    for _ in 0..1_000_000 {
        let earliest = gcra.earliest(&tat);
        assert!(gcra.admit(&mut tat, earliest));
    }
    assert_eq!(gcra.earliest(&tat), at(265_997_490_589));
}

#[test]
fn a_burst_of_mbs_cells_at_pcr_conforms_and_not_one_more() {
    let (pcr, scr) = (rate(6_000_000), rate(2_000_000));
    for mbs in [1, 2, 32, 1000] {
        let contract = Contract::peak(pcr, Duration::ZERO).and_sustained(scr, mbs, pcr, Duration::ZERO);
        let (mut usage, peak) = (Usage::default(), Gcra::new(pcr, Duration::ZERO));
        let mut tat = TheoreticalArrival::default();
        for cell in 0..=mbs {
            let now = peak.earliest(&tat);
            peak.count(&mut tat, now);
            assert_eq!(contract.admit(&mut usage, now), cell < mbs, "cell {cell} of a burst of {mbs}");
        }
    }
}

#[test]
fn absurd_rates_and_bursts_end_in_numbers() {
    let contract = Contract::peak(Rate::ZERO, Duration::MAX).and_sustained(
        Rate::ZERO,
        u64::from(u32::MAX),
        rate(1 << 50),
        Duration::MAX,
    );
    let mut usage = Usage::default();
    assert!(contract.admit(&mut usage, Time::MAX));
    assert!(contract.admit(&mut usage, Time::MAX));
    assert_eq!(burst_tolerance(rate(2), 100, rate(1)), Duration::ZERO);
}

proptest! {
    #[test]
    fn cells_conform_by_the_definition(rate in rates(), limit in 0u64..3_000_000, gaps in gaps()) {
        let arrivals = arrivals(rate, &gaps);
        let found = admitted(Gcra::new(super::tests::rate(rate), ns(limit)), &arrivals);
        prop_assert_eq!(found, by_definition(rate, limit, &arrivals));
    }

    #[test]
    fn both_forms_are_one_algorithm(rate in rates(), limit in 0u64..3_000_000, gaps in gaps()) {
        let arrivals = arrivals(rate, &gaps);
        let found = admitted(Gcra::new(super::tests::rate(rate), ns(limit)), &arrivals);
        prop_assert_eq!(found, by_leaky_bucket(rate, limit, &arrivals));
    }

    #[test]
    fn two_promises_are_kept_together(
        scr in rates(), ratio in 1u64..8, mbs in 1u64..40, cdvt in 0u64..1_000_000, gaps in gaps(),
    ) {
        let (scr, pcr, cdvt) = (rate(scr), rate(scr * ratio), ns(cdvt));
        let contract = Contract::peak(pcr, cdvt).and_sustained(scr, mbs, pcr, cdvt);
        let peak = Gcra::new(pcr, cdvt);
        let sustained = Gcra::new(scr, burst_tolerance(scr, mbs, pcr) + cdvt);
        let (mut usage, mut of_peak, mut of_sustained) = Default::default();
        for now in arrivals(pcr.bits_per_second(), &gaps) {
            let earliest = peak.earliest(&of_peak).max(sustained.earliest(&of_sustained));
            prop_assert_eq!(contract.earliest(&usage), earliest);
            let conforms = now >= earliest;
            if conforms {
                peak.count(&mut of_peak, now);
                sustained.count(&mut of_sustained, now);
            }
            prop_assert_eq!(contract.admit(&mut usage, now), conforms);
        }
    }

    /// `governor` knows increments of whole nanoseconds and limits of whole increments.
    #[test]
    fn governor_decides_alike(
        // Divisors of `SCALE`.
        increment in prop::sample::select(&[1, 53, 424, 2_650, 265_000, 424_000, 1_000_000, 8_480_000][..]),
        burst in 1u32..20,
        gaps in gaps(),
    ) {
        let bits = SCALE / increment;
        let quota = Quota::with_period(core::time::Duration::from_nanos(increment))
            .expect("not zero")
            .allow_burst(NonZeroU32::new(burst).expect("not zero"));
        let clock = FakeRelativeClock::default();
        let governor = RateLimiter::direct_with_clock(quota, clock.clone());
        let gcra = Gcra::new(rate(bits), ns(increment * u64::from(burst - 1)));
        let (mut tat, mut last) = (TheoreticalArrival::default(), Time::ZERO);
        for now in arrivals(bits, &gaps) {
            clock.advance(now.since(last).to_std());
            last = now;
            prop_assert_eq!(governor.check().is_ok(), gcra.admit(&mut tat, now), "at {}", now);
        }
    }
}

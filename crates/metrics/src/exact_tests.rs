use proptest::prelude::*;

use super::*;

/// Runs all passes; says how many there were.
fn select(values: &[u64], ranks: &[u64]) -> (Vec<u64>, u32) {
    let mut selector = PercentileSelector::new(values.len() as u64, ranks);
    let mut passes = 0;
    while selector.wants_pass() {
        values.iter().for_each(|&value| selector.push(Duration::from_nanos(value)));
        selector.end_pass().unwrap();
        passes += 1;
    }
    (selector.values().into_iter().map(Duration::as_nanos).collect(), passes)
}

#[test]
fn coarse_buckets_follow_one_another_without_gap() {
    for bucket in 0..coarse(u64::MAX) {
        let (low, width) = coarse_range(bucket);
        assert_eq!(coarse(low), bucket);
        assert_eq!(coarse(low + (1 << width) - 1), bucket);
        assert_eq!(coarse_range(bucket + 1).0, low + (1 << width));
    }
}

#[test]
fn two_passes_for_a_spread_of_latencies() {
    let values: Vec<u64> = (0..200_000u64).map(|i| 20_000_000 + i * 7_919 % 30_000_000).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let (found, passes) = select(&values, &[100_000, 199_800, 1, 200_000]);
    assert_eq!(found, [sorted[99_999], sorted[199_799], sorted[0], sorted[199_999]]);
    assert_eq!(passes, 2);
}

#[test]
fn many_equal_and_nearly_equal_values_do_not_need_memory() {
    // Far more in one bucket than are kept: two values one nanosecond apart at a height where buckets are 2^49 wide.
    let values: Vec<u64> = (0..300_000u64).map(|i| u64::MAX - u64::from(i % 3 == 0)).collect();
    let (found, passes) = select(&values, &[1, 100_000, 100_001, 300_000]);
    assert_eq!(found, [u64::MAX - 1, u64::MAX - 1, u64::MAX, u64::MAX]);
    assert!(passes <= 5, "{passes}");
}

#[test]
fn memory_is_bounded() {
    let mut selector = PercentileSelector::new(1 << 40, &(1..5_000).map(|i| i << 27).collect::<Vec<_>>());
    let Phase::Coarse(counts) = &selector.phase else { panic!("the first pass is coarse") };
    assert!(counts.len() * 8 < 8 << 20);
    selector.pushed = 1 << 40;
    if let Phase::Coarse(counts) = &mut selector.phase {
        counts[300_000..300_000 + (1 << 12)].fill(1 << 28);
    }
    selector.end_pass().unwrap();
    let Phase::Fine(intervals) = &selector.phase else { panic!("the second pass is fine") };
    let held = |interval: &Interval| match &interval.inside {
        Inside::Known => 0,
        Inside::Kept { values, .. } => values.capacity(),
        Inside::Counted { counts, .. } => counts.len(),
    };
    assert!(intervals.iter().map(held).sum::<usize>() * 8 <= 32 << 20);
}

#[test]
fn nothing_to_select_needs_no_pass() {
    assert_eq!(select(&[], &[1, 2]), (vec![], 0));
    assert_eq!(select(&[5], &[]), (vec![], 0));
}

#[test]
fn a_stream_that_changes_is_noticed() {
    let mut short = PercentileSelector::new(3, &[2]);
    short.push(Duration::ZERO);
    assert_eq!(short.end_pass(), Err(SelectError::Count { expected: 3, found: 1 }));

    let mut other = PercentileSelector::new(2, &[1]);
    for value in [1 << 40, 1 << 41] {
        other.push(Duration::from_nanos(value));
    }
    other.end_pass().unwrap();
    assert!(other.values().is_empty(), "not before the last pass");
    for value in [5, 6] {
        other.push(Duration::from_nanos(value));
    }
    assert_eq!(other.end_pass(), Err(SelectError::Changed));
}

#[test]
fn a_summary_becomes_exact() {
    let values: Vec<u64> = (1..=100_000u64).map(|i| i * 1_000).collect();
    let mut delays = crate::Delays::default();
    values.iter().for_each(|&value| delays.record(Duration::from_nanos(value)));
    let mut flow = FlowSummary {
        latency: delays.summary(),
        jitter: Some(crate::JitterSummary::default()),
        ..FlowSummary::default()
    };
    let latency = flow.latency.unwrap();
    assert!(!latency.exact);
    let mut selector = latency.selector();
    assert_eq!(flow.set_exact_latency(&selector), Err(SelectError::Unfinished));
    while selector.wants_pass() {
        values.iter().for_each(|&value| selector.push(Duration::from_nanos(value)));
        selector.end_pass().unwrap();
    }
    flow.set_exact_latency(&selector).unwrap();
    let us = Duration::from_micros;
    let exact = flow.latency.unwrap();
    assert_eq!(
        (exact.p50, exact.p90, exact.p99, exact.p999),
        (us(50_000), us(90_000), us(99_000), us(99_900))
    );
    assert!(exact.exact);
    assert_eq!(flow.jitter.unwrap().pdv_p999, us(99_899));
    // A selector for other ranks is refused.
    assert_eq!(
        flow.set_exact_latency(&PercentileSelector::new(4, &[1, 2, 3, 4])),
        Err(SelectError::Unfinished)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn selection_is_sorting(
        values in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..100, 20_000_000u64..20_100_000], 1..2_000),
        ranks in prop::collection::vec(1u64..2_500, 1..8),
    ) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let expected: Vec<u64> = ranks.iter().map(|&r| sorted[(r as usize).min(values.len()) - 1]).collect();
        prop_assert_eq!(select(&values, &ranks).0, expected);
    }

    #[test]
    fn selection_by_counting_is_sorting(
        values in prop::collection::vec(0u64..1 << 50, 1..600),
        rank in 1u64..600,
    ) {
        // As if no value could be kept: every pass counts.
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let rank = rank.min(values.len() as u64);
        let mut intervals = Vec::new();
        let mut counts = vec![0; coarse(u64::MAX) + 1];
        values.iter().for_each(|&value| counts[coarse(value)] += 1);
        split(&[rank], 0, &counts, coarse_range, &mut intervals).unwrap();
        while intervals[0].width > 0 {
            let mut interval = intervals.remove(0);
            interval.prepare(0, ROOM);
            let low = interval.low;
            values.iter().filter(|&&value| value >= low).for_each(|&value| interval.push(value));
            interval.refine(&mut intervals).unwrap();
        }
        prop_assert_eq!(intervals[0].value(rank), Some(sorted[rank as usize - 1]));
    }
}

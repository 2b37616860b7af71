//! Edges are found where they are, in about as many trials as their distance has bits, and nothing else is claimed.

use proptest::prelude::*;

use super::*;

/// Searches with these verdicts; the edge, and how many values were tried.
fn searched(mut search: Search, mut verdict: impl FnMut(u64) -> Verdict) -> (Search, usize) {
    let mut trials = 0;
    while let Some(value) = search.next_value() {
        assert_eq!(search.next_value(), Some(value), "asking twice changes nothing");
        assert!(search.range.contains(&value) && !search.told.contains_key(&value), "{value} of {search:?}");
        search.tell(value, verdict(value));
        trials += 1;
        assert!(trials < 1000, "{search:?}");
    }
    (search, trials)
}

/// Values keep the limits up to the threshold, or from it on.
fn monotone(goal: Goal, threshold: u64) -> impl Fn(u64) -> Verdict {
    move |value| {
        let kept = match goal {
            Goal::Maximise => value <= threshold,
            Goal::Minimise => value >= threshold,
        };
        if kept { Verdict::Kept } else { Verdict::Broken }
    }
}

fn goal() -> impl Strategy<Value = Goal> {
    prop_oneof![Just(Goal::Maximise), Just(Goal::Minimise)]
}

fn bits(number: u64) -> usize {
    number.max(1).ilog2() as usize + 1
}

proptest! {
    #[test]
    fn every_whole_threshold_is_found_exactly(
        goal in goal(), low in 0u64..1000, length in 0u64..1_000_000, share in 0.0..=1.0f64, begin in 0.0..=1.0f64,
        at_ends in any::<bool>(),
    ) {
        let range = low..=low + length;
        let within = |share: f64| low + (length as f64 * share) as u64;
        let (threshold, at) = (within(share), within(begin));
        let begin = if at_ends { Begin::Ends } else { Begin::At(at) };
        let search = Search::new(goal, range.clone(), begin, Precision::Step(1));
        let (search, trials) = searched(search, monotone(goal, threshold));
        let edge = search.edge();
        let next = match goal {
            Goal::Maximise => threshold + 1,
            Goal::Minimise => threshold.wrapping_sub(1),
        };
        prop_assert_eq!(edge.kept, Some(threshold));
        prop_assert_eq!(edge.broken, Some(next).filter(|next| range.contains(next)));
        prop_assert_eq!((edge.undecided, edge.kept_behind), (None, vec![]));
        // Ends or doublings, halvings, and two controls.
        let brackets = if at_ends { 2 } else { 1 + bits(threshold.max(at)) };
        prop_assert!(trials <= brackets + bits(length) + 2, "{trials} trials");
    }

    #[test]
    fn a_threshold_is_found_wherever_it_is_expected(
        goal in goal(), threshold in 0u64..100_000, off in 0u64..100_000, wide in 0u64..1000, near in any::<bool>(),
    ) {
        let range = 0..=100_000;
        let expected = if near { threshold + off % 8 } else { off };
        let (low, high) = (expected.saturating_sub(wide), (expected + wide).min(100_000));
        let (kept, broken) = if goal == Goal::Maximise { (low, high) } else { (high, low) };
        let search = Search::new(goal, range.clone(), Begin::At(1), Precision::Step(1));
        let (search, trials) = searched(search.expecting(Some(kept), Some(broken)), monotone(goal, threshold));
        let next = if goal == Goal::Maximise { threshold + 1 } else { threshold.wrapping_sub(1) };
        let edge = search.edge();
        prop_assert_eq!((edge.kept, edge.broken), (Some(threshold), Some(next).filter(|next| range.contains(next))));
        // As many as the distance has bits, there and back, and two controls.
        let distance = bits(threshold.abs_diff(kept).max(threshold.abs_diff(broken)));
        prop_assert!(trials <= 2 + 2 * distance + bits(wide) + 3, "{trials} trials for {distance} bits");
    }

    #[test]
    fn every_threshold_is_found_within_the_share(
        goal in goal(), threshold in 1_000u64..1_000_000_000_000, begin in 0u64..1_000_000_000_000,
        share in 0.001..0.5f64, unit in prop_oneof![Just(1u64), Just(1000), Just(1024), Just(1_000_000)],
    ) {
        let precision = Precision::Share { share, unit };
        let search = Search::new(goal, 0..=u64::MAX, Begin::At(begin), precision);
        let (search, trials) = searched(search, monotone(goal, threshold));
        let edge = search.edge();
        let (kept, broken) = (edge.kept.unwrap(), edge.broken.unwrap());
        prop_assert!(monotone(goal, threshold)(kept) == Verdict::Kept);
        prop_assert!(monotone(goal, threshold)(broken) == Verdict::Broken);
        let apart = kept.abs_diff(broken) as f64;
        prop_assert!(apart <= (kept.min(broken).max(unit / 1000) as f64 * share).max(1.0), "{kept} {broken}");
        prop_assert!(trials <= 1 + 40 + bits((1.0 / share) as u64 + 1) + 25, "{trials} trials");
    }

    #[test]
    fn whatever_is_told_it_ends_and_claims_no_more(
        goal in goal(), length in 0u64..100_000, begin in 0u64..100_000, at_ends in any::<bool>(), seed in any::<u64>(),
        share in prop::option::of(0.01..0.2f64), blur in 0u64..30_000, threshold in 0u64..100_000,
    ) {
        let precision = share.map_or(Precision::Step(1), |share| Precision::Share { share, unit: 10 });
        let begin = if at_ends { Begin::Ends } else { Begin::At(begin) };
        let mut told = BTreeMap::new();
        let noisy = |value: u64| {
            // Near the threshold anything may come out.
            let noise = value.wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
            let verdict = match value.abs_diff(threshold) < blur {
                true => [Verdict::Kept, Verdict::Broken, Verdict::Undecided][noise as usize % 3],
                false => monotone(goal, threshold)(value),
            };
            told.insert(value, verdict);
            verdict
        };
        let (search, trials) = searched(Search::new(goal, 0..=length, begin, precision), noisy);
        let edge = search.edge();
        let is = |value: u64, verdict: Verdict| told.get(&value) == Some(&verdict);
        let before = |a: u64, b: u64| if goal == Goal::Maximise { a < b } else { a > b };
        prop_assert!(edge.kept.is_none_or(|kept| is(kept, Verdict::Kept)));
        prop_assert!(edge.broken.is_none_or(|broken| is(broken, Verdict::Broken)));
        if let (Some(kept), Some(broken)) = (edge.kept, edge.broken) {
            prop_assert!(before(kept, broken));
        }
        for value in edge.undecided.into_iter().flat_map(|(first, last)| [first, last]) {
            prop_assert!(is(value, Verdict::Undecided));
            prop_assert!(edge.kept.is_none_or(|kept| before(kept, value)));
            prop_assert!(edge.broken.is_none_or(|broken| before(value, broken)));
        }
        for value in edge.kept_behind {
            prop_assert!(is(value, Verdict::Kept) && edge.broken.is_some_and(|broken| before(broken, value)));
        }
        // Two edges to narrow, and again after a control that spoke against them.
        prop_assert!(trials <= 6 * bits(length) + 8, "{trials} trials");
    }
}

#[test]
fn nothing_kept_and_nothing_broken_are_said_so() {
    let search = || Search::new(Goal::Maximise, 1..=64, Begin::At(4), Precision::Step(1));
    let (broken, trials) = searched(search(), |_| Verdict::Broken);
    assert_eq!((broken.edge().kept, broken.edge().broken), (None, Some(1)));
    assert!(trials <= 4, "4, 2, 1 and a control");
    let (kept, _) = searched(search(), |_| Verdict::Kept);
    assert_eq!((kept.edge().kept, kept.edge().broken), (Some(64), None));
}

#[test]
fn a_kept_value_behind_a_broken_one_is_seen() {
    // A resonance: 10 to 12 break, 20 keeps again.
    let hole = |value: u64| if (10..=12).contains(&value) { Verdict::Broken } else { Verdict::Kept };
    let search = Search::new(Goal::Maximise, 1..=24, Begin::At(3), Precision::Step(1));
    let (search, _) = searched(search, hole);
    let edge = search.edge();
    assert_eq!((edge.kept, edge.broken), (Some(9), Some(10)));
    assert!(!edge.kept_behind.is_empty());
}

#[test]
fn what_is_not_decided_lies_between_two_edges() {
    let blurred = |value: u64| match value {
        0..=39 => Verdict::Kept,
        40..=44 => Verdict::Undecided,
        _ => Verdict::Broken,
    };
    let (search, _) =
        searched(Search::new(Goal::Maximise, 1..=1000, Begin::At(1), Precision::Step(1)), blurred);
    assert_eq!(
        search.edge(),
        Edge { kept: Some(39), broken: Some(45), undecided: Some((40, 44)), kept_behind: vec![] }
    );
}

#[test]
fn values_are_round() {
    let precision = Precision::Share { share: 0.01, unit: 1000 };
    let search = Search::new(Goal::Minimise, 1..=1_000_000_000, Begin::At(2_000_000), precision);
    let (search, _) = searched(search, monotone(Goal::Minimise, 1_234_567));
    assert!(search.told.keys().all(|value| value.is_multiple_of(100)), "{:?}", search.told);
    let binary = Precision::Share { share: 0.01, unit: 1024 };
    let search = Search::new(Goal::Maximise, 1..=1 << 40, Begin::At(1 << 16), binary);
    let (search, _) = searched(search, monotone(Goal::Maximise, 100_000));
    assert!(search.told.keys().all(|value| value.is_multiple_of(256)), "{:?}", search.told);
}

#[test]
fn an_edge_that_was_expected_takes_two_values_and_the_controls() {
    let search = || Search::new(Goal::Maximise, 1..=1_000_000, Begin::At(1), Precision::Step(1));
    let count = |search: Search| searched(search, monotone(Goal::Maximise, 700)).1;
    assert_eq!(count(search().expecting(Some(700), Some(701))), 4);
    assert_eq!(count(search().expecting(Some(700), Some(701)).without_controls()), 2);
    assert!(count(search()) > 20);
    // Nothing that was expected stays as it was.
    assert_eq!(count(search().expecting(None, None)), count(search()));
}

//! Whether repetitions show that the limits are kept.
//!
//! A limit speaks of the mean of its figure over repetitions, as the report does. It counts as kept if the one-sided
//! confidence bound of that mean (Student's t) still keeps it, and as broken if the bound on the other side breaks it; in
//! between more repetitions are asked for, up to a stated number. Looking again and again would find a lucky moment sooner
//! or later, so the allowed error is shared evenly among the looks (Bonferroni). All limits must be kept, which needs
//! no further correction; that *some* limit is broken has as many chances to seem so as there are limits, which does.

use trunkline_experiment::{Figure, Limit};
use trunkline_metrics::{Estimate, estimate, student_t};

use crate::search::Verdict;

/// How sure a verdict must be, and what that may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The probability, above a half and below 1, with which each verdict must be right.
    pub confidence: f64,
    /// How often a value is measured before it is judged, at least 2.
    pub repetitions: u32,
    /// How often it is measured at most, at least `repetitions`.
    pub most: u32,
}

impl Terms {
    /// After how many repetitions a value is judged: each time twice as many, the last time `most`.
    pub fn looks(&self) -> Vec<u32> {
        let doublings = std::iter::successors(Some(self.repetitions), |n| n.checked_mul(2));
        doublings.take_while(|n| *n < self.most).chain([self.most]).collect()
    }
}

/// One limit at one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What was shown of it.
    pub verdict: Verdict,
    /// Its figure over repetitions; `None` if it was not measured or does not apply.
    pub estimate: Option<Estimate>,
    /// How far the mean may be off on either side: the bound that the verdict was made with.
    pub half_width: Option<f64>,
}

/// What these repetitions show, with the error that is allowed at this look.
pub(crate) fn judge(limits: &[Limit], repetitions: &[&[Figure]], error: f64) -> (Verdict, Vec<Judged>) {
    let of_limit = |(place, limit): (usize, &Limit)| {
        let figures = repetitions.iter().filter_map(|figures| figures.get(place).copied());
        judge_one(limit, &figures.collect::<Vec<_>>(), error, limits.len())
    };
    let judged: Vec<Judged> = limits.iter().enumerate().map(of_limit).collect();
    let any = |verdict| judged.iter().any(|one| one.verdict == verdict);
    let verdict = match (any(Verdict::Broken), any(Verdict::Undecided)) {
        (true, _) => Verdict::Broken,
        (false, true) => Verdict::Undecided,
        (false, false) => Verdict::Kept,
    };
    (verdict, judged)
}

fn judge_one(limit: &Limit, figures: &[Figure], error: f64, limits: usize) -> Judged {
    if !figures.is_empty() && figures.iter().all(|figure| *figure == Figure::NotApplicable) {
        return Judged { verdict: Verdict::Kept, estimate: None, half_width: None };
    }
    let measured = |figure: &Figure| if let Figure::Value(value) = figure { Some(*value) } else { None };
    let values: Vec<f64> = figures.iter().filter_map(measured).filter(|value| value.is_finite()).collect();
    let estimate = (!values.is_empty()).then(|| estimate(&values));
    let reach = |error: f64| {
        let (estimate, n) = (estimate.as_ref()?, values.len() as f64);
        Some(student_t(1.0 - error, n - 1.0)? * estimate.standard_deviation / n.sqrt())
    };
    let holds = |value: f64| limit.operator.holds(value, limit.bound);
    let (kept_reach, broken_reach) = (reach(error), reach(error / limits.max(1) as f64));
    let mean = estimate.map_or(f64::NAN, |estimate| estimate.mean);
    // Which side is the wrong one follows from the operator: the bound keeps the limit if both ends do.
    let throughout = |half: Option<f64>, kept: bool| {
        half.is_some_and(|half| holds(mean - half) == kept && holds(mean + half) == kept)
    };
    let verdict = match values.len() == figures.len() {
        true if throughout(kept_reach, true) => Verdict::Kept,
        true if throughout(broken_reach, false) => Verdict::Broken,
        _ => Verdict::Undecided,
    };
    let half_width = if verdict == Verdict::Kept { kept_reach } else { broken_reach };
    Judged { verdict, estimate, half_width }
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::{LimitMetric, Operator, Subject};

    use super::*;

    fn limit(operator: Operator, bound: f64) -> Limit {
        let (key, condition) = ("flow.voice.loss".to_owned(), String::new());
        let subject = Subject::Flow { flow: 0, sink: None, metric: LimitMetric::Loss };
        Limit { key, condition, subject, operator, bound }
    }

    fn verdict(limits: &[Limit], repetitions: &[&[f64]], error: f64) -> Verdict {
        let figures = |values: &&[f64]| values.iter().map(|value| Figure::Value(*value)).collect();
        let figures: Vec<Vec<Figure>> = repetitions.iter().map(figures).collect();
        judge(limits, &figures.iter().map(Vec::as_slice).collect::<Vec<_>>(), error).0
    }

    #[test]
    fn bounds_are_those_of_the_printed_tables() {
        // Mean 12, standard deviation 1.5811, t(0.95, 4) = 2.1318: the upper bound is 12 + 1.5074.
        let repetitions: &[&[f64]] = &[&[10.0], &[11.0], &[12.0], &[13.0], &[14.0]];
        for (bound, expected) in [
            (13.508, Verdict::Kept),
            (13.507, Verdict::Undecided),
            (10.493, Verdict::Undecided),
            (10.492, Verdict::Broken),
        ] {
            assert_eq!(verdict(&[limit(Operator::Less, bound)], repetitions, 0.05), expected, "< {bound}");
        }
        assert_eq!(verdict(&[limit(Operator::AtLeast, 10.49)], repetitions, 0.05), Verdict::Kept);
        assert_eq!(verdict(&[limit(Operator::AtLeast, 13.51)], repetitions, 0.05), Verdict::Broken);
    }

    #[test]
    fn equal_repetitions_need_no_margin_and_one_shows_nothing() {
        assert_eq!(verdict(&[limit(Operator::AtMost, 1.0)], &[&[1.0], &[1.0]], 0.01), Verdict::Kept);
        assert_eq!(verdict(&[limit(Operator::Less, 1.0)], &[&[1.0], &[1.0]], 0.01), Verdict::Broken);
        assert_eq!(verdict(&[limit(Operator::Less, 1.0)], &[&[0.5]], 0.01), Verdict::Undecided);
    }

    #[test]
    fn all_limits_must_be_kept_and_one_broken_is_enough() {
        let limits = [limit(Operator::Less, 1.0), limit(Operator::Less, 2.0)];
        assert_eq!(verdict(&limits, &[&[0.5, 1.5], &[0.5, 1.5]], 0.05), Verdict::Kept);
        assert_eq!(verdict(&limits, &[&[0.5, 2.5], &[0.5, 2.5]], 0.05), Verdict::Broken);
        // 1.5 +- 0.6: not shown; the other one alone would be kept.
        assert_eq!(verdict(&limits, &[&[0.5, 1.4], &[0.5, 1.6]], 0.005), Verdict::Undecided);
    }

    #[test]
    fn what_was_not_measured_shows_nothing_and_what_does_not_apply_breaks_nothing() {
        let limits = [limit(Operator::Less, 1.0)];
        let half: [&[Figure]; 2] = [&[Figure::Value(0.0)], &[Figure::NotMeasured]];
        assert_eq!(judge(&limits, &half, 0.05).0, Verdict::Undecided);
        let none: [&[Figure]; 2] = [&[Figure::NotApplicable]; 2];
        assert_eq!(judge(&limits, &none, 0.05).0, Verdict::Kept);
    }

    #[test]
    fn looks_double_up_to_the_most() {
        let looks = |repetitions, most| Terms { confidence: 0.95, repetitions, most }.looks();
        assert_eq!(looks(5, 40), [5, 10, 20, 40]);
        assert_eq!(looks(5, 30), [5, 10, 20, 30]);
        assert_eq!(looks(3, 3), [3]);
    }
}

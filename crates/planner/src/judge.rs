//! Whether repetitions show that the limits are kept.
//!
//! A limit speaks of the mean of its figure over repetitions, as the report does. It counts as kept if the one-sided
//! confidence bound of that mean still keeps it, and as broken if the bound on the other side breaks it; in between more
//! repetitions are asked for, up to a stated number. Repeated looks inflate false positives, so the allowed error is shared
//! evenly among them (Bonferroni). All limits must be kept, which needs no further correction; that *some* limit is broken
//! has as many chances to seem so as there are limits, which does.
//!
//! The bound is Student's, from the spread of the repetitions. A figure that counts messages may agree in all of them by chance:
//! five runs of 250 messages that lose 2 each have no spread, and say little of a loss of 1 %. So
//! its spread counts as at least that of rounding to one message (a step over the square root of 12), and a share of messages
//! must also hold by the bound of Clopper and Pearson on all messages together. If each of several flows must keep it, it must hold
//! by that bound of every one of them, and if the worst connection of a bundle must, by that of its messages alone. Neither applies
//! where every repetition lost the very same messages, since then chance has no part in it; nor where the bound is 0, which no count
//! could show.
//!
//! Student's bound is too low for values that are never below zero and have a long tail above, because a few repetitions miss
//! the tail: for means that are log-normal over repetitions with a deviation of 0.6, 15 % of the verdicts "kept" near a limit
//! were wrong where 5 % are allowed. So the bound above is also that of a log-normal mean (Krishnamoorthy and Mathew 2003),
//! whichever is larger. Where all values are alike, the two agree.
//!
//! A value that the probe found behind the edge is looked at once more, early, after [`EARLY`] repetitions, and that look is
//! one more to share the error of "broken" among. Two repetitions have no spread worth the name, so the early look does not
//! ask for it: if the mean of a figure that is never negative were at most its bound, the product of n repetitions, each
//! over the bound, would reach 1/e with a probability of e at most (Markov). A value that reaches it is broken by far.

use trunkline_experiment::{Figure, Grain, Limit, Operator};
use trunkline_metrics::{Estimate, binomial_bounds, estimate, lognormal_mean_bound, student_t};

use crate::search::Verdict;

#[cfg(test)]
mod tests;

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

/// A bound of a long tail above this many means has no information: few repetitions allow almost any mean.
const SAYS_NOTHING: f64 = 1000.0;

/// Repetitions after which a value that is expected to break a limit is looked at first.
pub(crate) const EARLY: u32 = 2;

/// What a verdict needs of one repetition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// By limit.
    pub(crate) figures: Vec<Figure>,
    /// By limit; `None` for a figure that does not count messages.
    pub(crate) grains: Vec<Option<Grain>>,
    /// By limit: of a share that each of several flows or connections must keep, what was counted of each, of how many messages.
    pub(crate) counted_each: Vec<Vec<(u64, u64)>>,
    /// By limit, whether its figure is extrapolated beyond the E-model's range.
    pub(crate) outside_model: Vec<bool>,
    /// Stands for what became of each message; `None` if none was lost or late, which may happen by chance.
    pub(crate) fates: Option<u64>,
}

/// The error that is allowed at each look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Errors {
    /// To call a value kept that is not.
    pub(crate) kept: f64,
    /// To call a value broken that is not.
    pub(crate) broken: f64,
    /// Repetitions below which a look is an early one.
    pub(crate) usual: u32,
}

impl Terms {
    /// The allowed error, shared among all looks that may make it.
    pub(crate) fn errors(&self) -> Errors {
        let looks = self.looks().len();
        let early = usize::from(EARLY < self.repetitions);
        let shared = |looks: usize| (1.0 - self.confidence) / looks as f64;
        Errors { kept: shared(looks), broken: shared(looks + early), usual: self.repetitions }
    }

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
    /// From the mean to the confidence bound on the side of the limit, with which the verdict was made; `None` where it was
    /// made without one, or where the bound is so far away that it says nothing.
    pub half_width: Option<f64>,
    /// True if the figure of any repetition is extrapolated beyond the range in which the E-model holds.
    pub outside_model: bool,
}

impl Judged {
    /// True if the limit applies: a flow without members keeps every limit.
    pub(crate) fn applies(&self) -> bool {
        self.verdict != Verdict::Kept || self.estimate.is_some()
    }
}

/// What these repetitions show, with the errors that are allowed at this look.
pub(crate) fn judge(limits: &[Limit], repetitions: &[&Measured], errors: Errors) -> (Verdict, Vec<Judged>) {
    let errors = Errors { broken: errors.broken / limits.len().max(1) as f64, ..errors };
    let of_limit = |(place, limit): (usize, &Limit)| {
        let is_outside = |one: &&Measured| one.outside_model.get(place).is_some_and(|outside| *outside);
        let outside_model = repetitions.iter().any(is_outside);
        Judged { outside_model, ..judge_one(limit, &sample(place, repetitions), errors) }
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

/// Whether one repetition keeps all limits, which shows nothing for certain. A figure that was not measured keeps none.
pub(crate) fn once(limits: &[Limit], figures: &[Figure]) -> bool {
    limits.iter().zip(figures).all(|(limit, figure)| match figure {
        Figure::Value(value) => limit.operator.holds(*value, limit.bound),
        Figure::NotApplicable => true,
        Figure::NotMeasured => false,
    })
}

/// One limit's figure over repetitions.
struct Sample {
    /// Repetitions in which it applies or not, measured or not.
    repetitions: usize,
    applies: bool,
    values: Vec<f64>,
    /// The step of its grain, the largest of all repetitions; 0 for a figure without a grain.
    step: f64,
    /// Of a share: what was counted, of how many messages; of each flow, if several must keep the limit.
    counted: Vec<(u64, u64)>,
    /// Whether chance has no part in it.
    is_certain: bool,
}

fn sample(place: usize, repetitions: &[&Measured]) -> Sample {
    let figures = || repetitions.iter().filter_map(|one| one.figures.get(place).copied());
    let measured = |figure: Figure| if let Figure::Value(value) = figure { Some(value) } else { None };
    let mut sample = Sample {
        repetitions: figures().count(),
        applies: figures().any(|figure| figure != Figure::NotApplicable) || figures().count() == 0,
        values: figures().filter_map(measured).filter(|value| value.is_finite()).collect(),
        step: 0.0,
        counted: Vec::new(),
        is_certain: is_certain(repetitions),
    };
    for one in repetitions {
        let (Some(Figure::Value(value)), Some(Some(grain))) = (one.figures.get(place), one.grains.get(place))
        else {
            continue;
        };
        sample.step = sample.step.max(grain.step());
        if let Grain::Share { messages } = grain {
            let here = (value * *messages as f64).round().clamp(0.0, *messages as f64);
            sample.count(&[(here as u64, *messages)]);
        }
        sample.count(one.counted_each.get(place).map_or(&[], Vec::as_slice));
    }
    sample
}

/// Whether the same became of the same messages in each of several repetitions, and some of it is loss.
fn is_certain(repetitions: &[&Measured]) -> bool {
    let first = repetitions.first().and_then(|one| one.fates);
    repetitions.len() > 1 && first.is_some() && repetitions.iter().all(|one| one.fates == first)
}

impl Sample {
    /// Adds what was counted in one repetition.
    fn count(&mut self, here: &[(u64, u64)]) {
        self.counted.resize(self.counted.len().max(here.len()), (0, 0));
        for ((events, of), (more_events, more)) in self.counted.iter_mut().zip(here) {
            (*events, *of) = (*events + more_events, *of + more);
        }
    }

    /// The bounds of Clopper and Pearson on the share of the flow that keeps the limit least; `None` if nothing was counted.
    /// On the side of the limit, none of them can be exceeded more often than the flow's own. On the other, chance has chosen
    /// the flow, so the allowed error is shared among all.
    fn counted_bounds(&self, limit: &Limit, error: f64) -> Option<(f64, f64)> {
        let is_upper = matches!(limit.operator, Operator::Less | Operator::AtMost);
        let mut counted: Vec<_> = self.counted.iter().filter(|(_, of)| *of > 0).copied().collect();
        let shared = error / counted.len() as f64;
        counted.sort_unstable();
        counted.dedup();
        let bounds = counted.into_iter().map(|(events, of)| {
            let (own, chosen) = (binomial_bounds(events, of, error), binomial_bounds(events, of, shared));
            if is_upper { (chosen.0, own.1) } else { (own.0, chosen.1) }
        });
        let worse: fn(f64, f64) -> f64 = if is_upper { f64::max } else { f64::min };
        bounds.reduce(|worst, one| (worse(worst.0, one.0), worse(worst.1, one.1)))
    }

    /// The confidence bounds of the mean, below and above, each wrong with this probability; `None` without a spread.
    fn bounds(&self, limit: &Limit, error: f64) -> Option<(f64, f64)> {
        let n = self.values.len() as f64;
        let estimate = estimate(&self.values);
        let counts = !self.is_certain && limit.bound > 0.0;
        let rounding = if counts { self.step * self.step / 12.0 } else { 0.0 };
        let spread = (estimate.standard_deviation?.powi(2) + rounding).sqrt();
        let reach = student_t(1.0 - error, n - 1.0)? * spread / n.sqrt();
        let student = (estimate.mean - reach, estimate.mean + reach);
        Some(match self.counted_bounds(limit, error).filter(|_| counts) {
            Some((below, above)) => (student.0.min(below), student.1.max(above)),
            None => student,
        })
    }

    /// The upper bound of the mean if the tail above is long; `None` for values below zero. Where nothing was counted, half a
    /// step stands for zero, and without steps half of the smallest value.
    fn tail(&self, error: f64) -> Option<f64> {
        let least = self.values.iter().copied().filter(|value| *value > 0.0).min_by(f64::total_cmp)?;
        let least = if self.step > 0.0 { self.step.min(least) } else { least } / 2.0;
        let above_zero = |value: &f64| (*value >= 0.0).then(|| value.max(least));
        let values: Option<Vec<f64>> = self.values.iter().map(above_zero).collect();
        lognormal_mean_bound(&values?, error)
    }

    /// Whether the figure exceeds its bound by so much that this shows it broken, whatever its distribution.
    fn is_far(&self, limit: &Limit, error: f64) -> bool {
        let is_upper = matches!(limit.operator, Operator::Less | Operator::AtMost);
        let is_possible = is_upper && limit.bound > 0.0 && self.values.iter().all(|value| *value >= 0.0);
        is_possible && self.values.iter().map(|value| value / limit.bound).product::<f64>() >= 1.0 / error
    }
}

fn judge_one(limit: &Limit, sample: &Sample, errors: Errors) -> Judged {
    if !sample.applies {
        return Judged { verdict: Verdict::Kept, estimate: None, half_width: None, outside_model: false };
    }
    let estimate = (!sample.values.is_empty()).then(|| estimate(&sample.values));
    let Some(mean) = estimate.map(|estimate| estimate.mean) else {
        return Judged { verdict: Verdict::Undecided, estimate, half_width: None, outside_model: false };
    };
    let holds = |value: f64| limit.operator.holds(value, limit.bound);
    let is_early = sample.repetitions < errors.usual as usize;
    let is_whole = sample.values.len() == sample.repetitions;
    if is_early && is_whole && sample.is_far(limit, errors.broken) {
        return Judged { verdict: Verdict::Broken, estimate, half_width: None, outside_model: false };
    }
    // The bound on the side of the limit: if that keeps it, or breaks it, so does the mean.
    let keeps = holds(mean);
    let error = if keeps { errors.kept } else { errors.broken };
    let is_upper = matches!(limit.operator, Operator::Less | Operator::AtMost);
    let is_above = keeps == is_upper;
    let is_share = !sample.counted.is_empty();
    let mut bound = sample.bounds(limit, error).map(|(below, above)| if is_above { above } else { below });
    // What is not shown without a tail is not shown with one.
    let mut says_something = true;
    if let Some(above) =
        bound.as_mut().filter(|bound| is_above && !sample.is_certain && holds(**bound) == keeps)
        && let Some(tail) = sample.tail(error)
    {
        says_something = tail <= SAYS_NOTHING * mean;
        *above = tail.max(*above);
    }
    // Of all messages no more can be lost than there are.
    let bound = if is_share { bound.map(|bound| bound.clamp(0.0, 1.0)) } else { bound };
    let verdict = match bound {
        Some(bound) if is_whole && holds(bound) == keeps => match (keeps, is_early) {
            (true, false) => Verdict::Kept,
            (false, false) => Verdict::Broken,
            (false, true) if sample.is_certain => Verdict::Broken,
            (_, true) => Verdict::Undecided,
        },
        _ => Verdict::Undecided,
    };
    let half_width = bound.filter(|_| says_something).map(|bound| (bound - mean).abs());
    Judged { verdict, estimate, half_width, outside_model: false }
}

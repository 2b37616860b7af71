use trunkline_core::Seed;
use trunkline_experiment::{Operator, Subject};
use trunkline_metrics::figures;

use super::*;
use crate::search::{Begin, Edge, Goal, Precision, Search};

fn limit(operator: Operator, bound: f64) -> Limit {
    let (key, condition) = ("flow.voice.loss".to_owned(), String::new());
    let subject = Subject::Flow { flow: 0, sink: None, metric: figures::flow("loss") };
    Limit { key, condition, subject, operator, bound }
}

fn measured(figures: &[Figure]) -> Measured {
    Measured { figures: figures.to_vec(), grains: vec![None; figures.len()], ..Measured::default() }
}

fn judged(limits: &[Limit], repetitions: &[Measured], errors: Errors) -> Verdict {
    judge(limits, &repetitions.iter().collect::<Vec<_>>(), errors).0
}

fn verdict(limits: &[Limit], repetitions: &[&[f64]], error: f64) -> Verdict {
    let figures = |values: &&[f64]| values.iter().map(|value| Figure::Value(*value)).collect::<Vec<_>>();
    let repetitions: Vec<Measured> = repetitions.iter().map(|values| measured(&figures(values))).collect();
    judged(limits, &repetitions, both(error))
}

fn both(error: f64) -> Errors {
    Errors { kept: error, broken: error, usual: 2 }
}

/// One flow that lost so many of its messages.
fn lost(events: u64, messages: u64) -> Measured {
    let figures = vec![Figure::Value(events as f64 / messages as f64)];
    Measured { figures, grains: vec![Some(Grain::Share { messages })], ..Measured::default() }
}

#[test]
fn bounds_are_those_of_the_printed_tables() {
    // Mean 12, standard deviation 1.5811, t(0.95, 4) = 2.1318: the lower bound is 12 - 1.5074.
    let repetitions: &[&[f64]] = &[&[10.0], &[11.0], &[12.0], &[13.0], &[14.0]];
    for (bound, expected) in [(10.493, Verdict::Undecided), (10.492, Verdict::Broken)] {
        assert_eq!(verdict(&[limit(Operator::Less, bound)], repetitions, 0.05), expected, "< {bound}");
    }
    // Values that may be below zero have no tail above: the upper bound is -12 + 1.5074.
    let below: &[&[f64]] = &[&[-10.0], &[-11.0], &[-12.0], &[-13.0], &[-14.0]];
    for (bound, expected) in [(-10.492, Verdict::Kept), (-10.493, Verdict::Undecided)] {
        assert_eq!(verdict(&[limit(Operator::Less, bound)], below, 0.05), expected, "< {bound}");
    }
    // Others have: the upper bound is that of a log-normal mean, here 13.9065 (by random numbers: 13.91).
    let tail = lognormal_mean_bound(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.05).unwrap();
    assert!((tail - 13.9065).abs() < 1e-3, "{tail}");
    for (bound, expected) in [(tail + 1e-6, Verdict::Kept), (tail - 1e-6, Verdict::Undecided)] {
        assert_eq!(verdict(&[limit(Operator::Less, bound)], repetitions, 0.05), expected, "< {bound}");
    }
    assert_eq!(verdict(&[limit(Operator::AtLeast, 10.49)], repetitions, 0.05), Verdict::Kept);
    assert_eq!(verdict(&[limit(Operator::AtLeast, 13.91)], repetitions, 0.05), Verdict::Broken);
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
    let half = [measured(&[Figure::Value(0.0)]), measured(&[Figure::NotMeasured])];
    assert_eq!(judged(&limits, &half, both(0.05)), Verdict::Undecided);
    let none = [measured(&[Figure::NotApplicable]), measured(&[Figure::NotApplicable])];
    assert_eq!(judged(&limits, &none, both(0.05)), Verdict::Kept);
}

#[test]
fn counts_that_agree_by_chance_show_no_more_than_their_number() {
    let limits = [limit(Operator::Less, 0.01)];
    let errors = Errors { kept: 0.0125, broken: 0.01, usual: 2 };
    let of = |events, messages| judged(&limits, &vec![lost(events, messages); 5], errors);
    // 2 of 250 each, 10 of 1250: at most 1.6 % with 98.75 % confidence, at least 0.3 %.
    assert_eq!((of(2, 250), of(3, 250)), (Verdict::Undecided, Verdict::Undecided));
    assert_eq!((of(20, 25_000), of(400, 25_000)), (Verdict::Kept, Verdict::Broken));
    // None of 1250 is less than 0.36 %, but not less than 0.1 %.
    assert_eq!(of(0, 250), Verdict::Kept);
    assert_eq!(judged(&[limit(Operator::Less, 0.001)], &vec![lost(0, 250); 5], errors), Verdict::Undecided);
    // That nothing is ever lost cannot be shown by counting.
    assert_eq!(judged(&[limit(Operator::AtMost, 0.0)], &vec![lost(0, 250); 5], errors), Verdict::Kept);
    // The same messages each time: no chance has a part in it.
    let same = Measured { fates: Some(7), ..lost(2, 250) };
    assert_eq!(judged(&limits, &vec![same; 5], errors), Verdict::Kept);
}

#[test]
fn the_worst_of_several_flows_is_no_surer_than_each_of_them() {
    let limits = [limit(Operator::Less, 0.0004)];
    let errors = both(0.0125);
    let each = |flows: &[(u64, u64)]| {
        let worst = flows.iter().map(|&(events, of)| events as f64 / of as f64).fold(0.0, f64::max);
        let step = flows.iter().map(|&(_, of)| 1.0 / of as f64).fold(0.0, f64::max);
        Measured {
            grains: vec![Some(Grain::Step(step))],
            counted_each: vec![flows.to_vec()],
            ..measured(&[Figure::Value(worst)])
        }
    };
    let half_width = |one: &Measured| judge(&limits, &[one; 6], errors).1[0].half_width.unwrap();
    for counted in [(0, 1000), (1, 1000)] {
        let (alone, worst) = (lost(counted.0, counted.1), each(&[counted]));
        assert_eq!(half_width(&worst), half_width(&alone));
        assert!(half_width(&each(&[(0, 1000), counted])) >= half_width(&alone));
    }
    // None of 6000 is less than 0.073 %, not less than 0.04 %.
    let nothing = half_width(&each(&[(0, 1000), (0, 1000)]));
    assert!((nothing - 0.00073).abs() < 1e-5, "{nothing}");
    assert_eq!(judged(&limits, &vec![each(&[(0, 1000), (0, 1000)]); 6], errors), Verdict::Undecided);
}

#[test]
fn a_figure_in_steps_has_at_least_the_spread_of_rounding_to_them() {
    let limits = [limit(Operator::Greater, 4.0)];
    let of = |mos, step| {
        let one = Measured { grains: vec![Some(Grain::Step(step))], ..measured(&[Figure::Value(mos)]) };
        judged(&limits, &vec![one; 5], both(0.0125))
    };
    // t(0.9875, 4) is 3.495: 0.1 / sqrt(12) x 3.495 / sqrt(5) is 0.0451.
    assert_eq!(
        (of(4.046, 0.1), of(4.044, 0.1), of(4.044, 0.0)),
        (Verdict::Kept, Verdict::Undecided, Verdict::Kept)
    );
}

#[test]
fn an_early_look_shows_only_what_is_broken_by_far() {
    let limits = [limit(Operator::Less, 0.01)];
    let errors = Errors { kept: 0.0125, broken: 0.01, usual: 5 };
    let of = |first, second| judged(&limits, &[lost(first, 250), lost(second, 250)], errors);
    // 10 % is ten times the limit; twice that shows it with an error of 1 %.
    assert_eq!((of(25, 25), of(24, 25), of(3, 3)), (Verdict::Broken, Verdict::Undecided, Verdict::Undecided));
    assert_eq!(of(0, 0), Verdict::Undecided, "an early look shows nothing kept");
    let same = Measured { fates: Some(7), ..lost(3, 250) };
    assert_eq!(judged(&limits, &[same.clone(), same], errors), Verdict::Broken);
    // Of a figure that should be large there is no such bound.
    let large = [measured(&[Figure::Value(1e-9)]), measured(&[Figure::Value(1e-9)])];
    assert_eq!(judged(&[limit(Operator::Greater, 1.0)], &large, errors), Verdict::Undecided);
}

/// A value is judged as a plan does it, again and again, with a true loss just on one side of the limit.
fn false_verdicts(loss: f64, wrong: Verdict) -> usize {
    let terms = Terms { confidence: 0.95, repetitions: 5, most: 40 };
    let limits = [limit(Operator::Less, 0.01)];
    let looks: Vec<u32> = core::iter::once(EARLY).chain(terms.looks()).collect();
    let plan = |repetition| {
        let mut random = Seed::new(17, repetition).stream("judge");
        let mut repetitions = Vec::new();
        let verdicts = looks.iter().map(|look| {
            while repetitions.len() < *look as usize {
                let events = (0..250).filter(|_| random.chance(loss)).count();
                repetitions.push(lost(events as u64, 250));
            }
            judged(&limits, &repetitions, terms.errors())
        });
        verdicts.into_iter().find(|verdict| *verdict != Verdict::Undecided) == Some(wrong)
    };
    (0..PLANS).filter(|repetition| plan(*repetition)).count()
}

/// A distribution of a figure over repetitions; the true mean is 1.
#[derive(Clone, Copy, Debug)]
enum Spread {
    Normal(f64),
    LogNormal(f64),
    Exponential,
    Uniform,
    /// Lost messages of this number, whose probability is log-normal around 1 %.
    Losses(u64, f64),
}

impl Spread {
    fn draw(self, random: &mut trunkline_core::Stream) -> Measured {
        let mut normal = || {
            let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
            radius * (core::f64::consts::TAU * random.unit()).cos()
        };
        let value = match self {
            Spread::Normal(deviation) => 1.0 + deviation * normal(),
            Spread::LogNormal(deviation) | Spread::Losses(_, deviation) => {
                (deviation * normal() - deviation * deviation / 2.0).exp()
            }
            Spread::Exponential => -(1.0 - random.unit()).ln(),
            Spread::Uniform => 0.5 + random.unit(),
        };
        match self {
            Spread::Losses(messages, _) => {
                let share = (value * 0.01).min(1.0);
                lost((0..messages).filter(|_| random.chance(share)).count() as u64, messages)
            }
            _ => measured(&[Figure::Value(value)]),
        }
    }

    /// The numbers of 2,000 plans that call a value kept and broken, if its true mean is the bound itself: then
    /// every "kept" (of "less than") and every "broken" (of "at most") is false. Repeated until there is a verdict.
    fn false_verdicts(self, operators: [Operator; 2], repetitions: u32) -> [usize; 2] {
        let terms = Terms { confidence: 0.95, repetitions, most: 8 * repetitions };
        let bound = if matches!(self, Spread::Losses(..)) { 0.01 } else { 1.0 };
        let early = (EARLY < repetitions).then_some(EARLY);
        let looks: Vec<u32> = early.into_iter().chain(terms.looks()).collect();
        let of = |operator, wrong| {
            let is_wrong = |plan: &u32| {
                let mut random = Seed::new(29, *plan).stream("judge");
                let mut repetitions = Vec::new();
                let verdicts = looks.iter().map(|look| {
                    while repetitions.len() < *look as usize {
                        repetitions.push(self.draw(&mut random));
                    }
                    judged(&[limit(operator, bound)], &repetitions, terms.errors())
                });
                verdicts.into_iter().find(|verdict| *verdict != Verdict::Undecided) == Some(wrong)
            };
            (0..2000).filter(is_wrong).count()
        };
        [of(operators[0], Verdict::Kept), of(operators[1], Verdict::Broken)]
    }
}

#[test]
fn no_more_verdicts_are_false_however_few_repetitions_begin_and_whatever_their_tail() {
    let upper = [Operator::Less, Operator::AtMost];
    let lower = [Operator::Greater, Operator::AtLeast];
    let spreads = [
        Spread::Normal(0.2),
        Spread::LogNormal(0.3),
        Spread::LogNormal(0.6),
        Spread::LogNormal(1.0),
        Spread::Exponential,
        Spread::Uniform,
        Spread::Losses(250, 0.6),
    ];
    // 5 % of 2000, and two standard deviations of that.
    let most = 100 + 2 * 10;
    let mut wrong = Vec::new();
    for spread in spreads {
        // Of one all numbers of repetitions to begin with, of the others the fewest and the usual one.
        let all = matches!(spread, Spread::LogNormal(0.6));
        for repetitions in (2..=5).filter(|repetitions| all || [2, 5].contains(repetitions)) {
            for operators in [upper, lower] {
                let found = spread.false_verdicts(operators, repetitions);
                if found.iter().any(|found| *found > most) {
                    wrong.push(format!(
                        "{spread:?}, {operators:?}, {repetitions} repetitions: {found:?} of 2000"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "kept and broken: {wrong:#?}");
}

const PLANS: u32 = 400;

#[test]
fn no_more_verdicts_are_false_than_the_confidence_allows() {
    // 5 % of 400, and two standard deviations of that.
    let most = 20 + 2 * 4;
    let broken = false_verdicts(0.0099, Verdict::Broken);
    let kept = false_verdicts(0.0101, Verdict::Kept);
    assert!(broken <= most && kept <= most, "{broken} broken, {kept} kept of {PLANS}");
    // Repetitions that are mostly alike in what they count.
    let rarely = false_verdicts(0.005, Verdict::Broken);
    assert!(rarely <= most, "{rarely} of {PLANS}");
}

#[test]
fn one_repetition_keeps_the_limits_that_its_figures_keep() {
    let limits = [limit(Operator::Less, 1.0), limit(Operator::Less, 2.0)];
    assert!(once(&limits, &[Figure::Value(0.9), Figure::NotApplicable]));
    assert!(!once(&limits, &[Figure::Value(0.9), Figure::Value(2.0)]));
    assert!(!once(&limits, &[Figure::Value(0.9), Figure::NotMeasured]));
}

#[test]
fn an_early_look_takes_its_share_of_the_error_of_broken_values_only() {
    let errors = |repetitions| Terms { confidence: 0.95, repetitions, most: 40 }.errors();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
    near(errors(5).kept, 0.0125);
    near(errors(5).broken, 0.01);
    // 2, 4, 8, 16, 32 and 40 repetitions: nothing is earlier.
    near(errors(2).kept, 0.05 / 6.0);
    near(errors(2).broken, 0.05 / 6.0);
}

#[test]
fn looks_double_up_to_the_most() {
    let looks = |repetitions, most| Terms { confidence: 0.95, repetitions, most }.looks();
    assert_eq!(looks(5, 40), [5, 10, 20, 40]);
    assert_eq!(looks(5, 30), [5, 10, 20, 30]);
    assert_eq!(looks(3, 3), [3]);
}

/// The losses of 40 repetitions of 250 messages at any probability: by the same random numbers for each, as in a plan. Those of
/// a repetition are sorted.
struct Luck(Vec<Vec<f64>>);

impl Luck {
    fn new(plan: u32) -> Luck {
        let mut random = Seed::new(23, plan).stream("judge");
        let mut drawn = || {
            let mut drawn: Vec<f64> = (0..250).map(|_| random.unit()).collect();
            drawn.sort_by(f64::total_cmp);
            drawn
        };
        Luck((0..40).map(|_| drawn()).collect())
    }

    fn measured(&self, repetition: u32, loss: f64) -> Measured {
        let drawn = &self.0[repetition as usize];
        lost(drawn.partition_point(|drawn| *drawn < loss) as u64, 250)
    }
}

/// The edge of the loss, in thousandths of a per cent, that a plan finds for a limit of 1 %.
fn planned(plan: u32) -> Edge {
    let (terms, limits) =
        (Terms { confidence: 0.95, repetitions: 5, most: 40 }, [limit(Operator::Less, 0.01)]);
    let luck = Luck::new(plan);
    let loss = |value: u64| value as f64 * 1e-5;
    let new = || {
        Search::new(Goal::Maximise, 1..=100_000, Begin::At(500), Precision::Share { share: 0.01, unit: 1000 })
    };
    let mut probe = new().without_controls();
    while let Some(value) = probe.next_value() {
        let keeps = once(&limits, &luck.measured(0, loss(value)).figures);
        probe.tell(value, if keeps { Verdict::Kept } else { Verdict::Broken });
    }
    let probed = probe.edge();
    let mut search = new().expecting(probed.kept, probed.broken);
    while let Some(value) = search.next_value() {
        let is_behind = probed.broken.is_some_and(|broken| value >= broken);
        let early = is_behind.then_some(EARLY);
        let verdicts = early.into_iter().chain(terms.looks()).map(|look| {
            let repetitions: Vec<Measured> = (0..look).map(|n| luck.measured(n, loss(value))).collect();
            judged(&limits, &repetitions, terms.errors())
        });
        let verdict = verdicts.into_iter().find(|verdict| *verdict != Verdict::Undecided);
        search.tell(value, verdict.unwrap_or(Verdict::Undecided));
    }
    search.edge()
}

#[test]
fn no_more_answers_are_false_than_the_confidence_allows() {
    let edges: Vec<Edge> = (0..PLANS).map(planned).collect();
    let kept = edges.iter().filter(|edge| edge.kept.is_some_and(|kept| kept >= 1000)).count();
    let broken = edges.iter().filter(|edge| edge.broken.is_some_and(|broken| broken < 1000)).count();
    // 5 % of 400 plans, both kinds together, and two standard deviations of that.
    println!("{kept} kept, {broken} broken of {PLANS}");
    assert!(kept + broken <= 28, "{kept} kept, {broken} broken of {PLANS}");
    assert!(edges.iter().all(|edge| edge.kept.is_some() && edge.broken.is_some()), "each has an answer");
}

#[test]
fn a_bound_that_says_nothing_is_none() {
    let limits = [limit(Operator::Less, 0.15)];
    let repetitions = [measured(&[Figure::Value(0.0004)]), measured(&[Figure::Value(0.0036)])];
    let (verdict, judged) = judge(&limits, &repetitions.iter().collect::<Vec<_>>(), both(0.05));
    assert_eq!(
        (verdict, judged[0].half_width),
        (Verdict::Undecided, None),
        "two repetitions that differ by far"
    );
}

#[test]
fn a_bound_of_a_share_is_a_share() {
    let limits = [limit(Operator::Less, 0.5)];
    let repetitions = [lost(1, 20), lost(0, 20), lost(3, 20)];
    let judged = judge(&limits, &repetitions.iter().collect::<Vec<_>>(), both(0.001)).1;
    let mean = judged[0].estimate.unwrap().mean;
    assert!(judged[0].half_width.is_some_and(|half| mean + half <= 1.0), "{judged:?}");
}

#[test]
fn a_mean_near_zero_keeps_the_bound_of_its_spread() {
    let limits = [limit(Operator::Less, 0.15)];
    let repetitions: Vec<Measured> = [-0.01, 0.010_001].map(|value| measured(&[Figure::Value(value)])).into();
    let judged = judge(&limits, &repetitions.iter().collect::<Vec<_>>(), both(0.05)).1;
    assert!(judged[0].half_width.is_some_and(|half| half > 0.05), "{judged:?}");
}

#[test]
fn a_figure_outside_the_model_is_marked_in_all_that_shows_it() {
    let (below, above) = (limit(Operator::AtLeast, 3.0), limit(Operator::AtLeast, 1.0));
    let within = measured(&[Figure::Value(2.0), Figure::Value(2.0)]);
    let outside = Measured { outside_model: vec![true, false], ..within.clone() };
    let (_, judged) = judge(&[below.clone(), above], &[&within, &outside], both(0.05));
    assert_eq!(judged.iter().map(|one| one.outside_model).collect::<Vec<_>>(), [true, false]);
    assert!(crate::text::figure(&below, &judged[0]).ends_with(", outside the E-model's range"));
    assert!(!crate::text::figure(&below, &judged[1]).contains("E-model"));
}

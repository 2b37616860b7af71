//! What was found, in sentences.

use trunkline_core::count;
use trunkline_experiment::{Axis, Figure, Limit, Operator};
use trunkline_metrics::Estimate;

use crate::judge::{EARLY, Judged};
use crate::overload::{Overloaded, Unfinished};
use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::{Edge, Goal, Verdict};

/// A key, or several with commas between them, without the part that says nothing: `bulk.count` for `flow.bulk.count`.
pub(crate) fn short(key: &str) -> String {
    fn one(key: &str) -> &str {
        ["flow.", "link.", "bundle."].iter().find_map(|section| key.strip_prefix(section)).unwrap_or(key)
    }
    key.split(',').map(|key| one(key.trim())).collect::<Vec<_>>().join(", ")
}

/// What the values of an axis are in: the unit, or what a plain number of this key counts.
pub(crate) fn unit<'u>(key: &str, unit: &'u str) -> &'u str {
    match key.rsplit('.').next() {
        Some("mbs" | "shape-mbs" | "buffer" | "clp-threshold" | "epd") if unit.is_empty() => "cells",
        _ => unit,
    }
}

/// What an axis is called beside the others: the last part of its key, `mbs` for `link.trunk.mbs`, unless another one ends
/// alike.
pub(crate) fn heading(axes: &[Axis], axis: &Axis) -> String {
    fn last(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or(key)
    }
    match axes.iter().filter(|other| last(&other.key) == last(&axis.key)).count() {
        0 | 1 => last(&axis.key).to_owned(),
        _ => short(&axis.key),
    }
}

/// The chosen value of an axis, as people read it: `xtp every 16`.
pub(crate) fn chosen(axis: &Axis, chosen: usize) -> String {
    axis.shown(chosen).unwrap_or_else(|| "?".to_owned())
}

/// `mbs = 32, transport = udp`; empty if nothing else is swept. Of the axes of a plan those that `named` selects.
pub(crate) fn combination(axes: &[Axis], choice: &[usize], named: impl Fn(usize) -> bool) -> String {
    let part = |(_, (axis, value)): (usize, (&Axis, &usize))| {
        format!("{} = {}", heading(axes, axis), chosen(axis, *value))
    };
    let on_axes = axes.iter().zip(choice).enumerate().filter(|(place, _)| named(*place));
    on_axes.map(part).collect::<Vec<_>>().join(", ")
}

/// `voice.loss < 1 %`
pub(crate) fn limit(limit: &Limit) -> String {
    format!("{} {}", short(&limit.key), limit.condition)
}

/// `1.2 %`
fn shown(limit: &Limit, mean: f64) -> String {
    trunkline_report::limit_figure(limit, &Estimate { mean, ..Estimate::default() })
}

/// `1.2 %, at most 1.3 %`: the mean, and the bound with which the verdict was made.
pub(crate) fn figure(limit: &Limit, judged: &Judged) -> String {
    match judged.estimate {
        Some(estimate) => {
            // Equal repetitions differ by rounding only.
            let half = judged.half_width.filter(|half| *half > estimate.mean.abs() * 1e-9);
            let show = |mean| shown(limit, mean);
            let is_upper = matches!(limit.operator, Operator::Less | Operator::AtMost);
            // The bound is on the side of the limit.
            let bound = match (half, limit.operator.holds(estimate.mean, limit.bound) == is_upper) {
                (Some(half), true) => format!(", at most {}", show(estimate.mean + half)),
                (Some(half), false) => format!(", at least {}", show(estimate.mean - half)),
                (None, _) => String::new(),
            };
            let shown = show(estimate.mean) + &bound;
            let has_no_bound = judged.verdict == Verdict::Undecided && judged.half_width.is_none();
            let bound = if has_no_bound { ", too few repetitions for a bound" } else { "" };
            let model = if judged.outside_model { ", outside the E-model's range" } else { "" };
            format!("{shown}{bound}{model}")
        }
        None if judged.verdict == Verdict::Kept => "does not apply".to_owned(),
        None => "not measured".to_owned(),
    }
}

/// `keeps the limits`, `breaks voice.loss < 1 % (1.2 %)`.
fn outcome(limits: &[Limit], trial: &Trial) -> String {
    let named = |verdict| with_verdict(limits, trial, verdict);
    if let Some(why) = &trial.refused {
        return format!("is refused: {why}");
    }
    match trial.verdict {
        _ if trial.is_empty() => "has no members: no limit applies".to_owned(),
        Some(Verdict::Kept) => "keeps the limits".to_owned(),
        Some(Verdict::Broken) => format!("breaks {}", named(Verdict::Broken)),
        Some(Verdict::Undecided) => format!("is not decided: {}", named(Verdict::Undecided)),
        None => "was not measured completely".to_owned(),
    }
}

/// Returns true if all limits are kept in the mean, however sure that is. A limit whose figure was not measured is not.
fn keeps_them_on_average(limits: &[Limit], trial: &Trial) -> bool {
    let keeps = |(limit, judged): (&Limit, &Judged)| match judged.estimate {
        Some(estimate) => limit.operator.holds(estimate.mean, limit.bound),
        None => judged.verdict == Verdict::Kept,
    };
    trial.refused.is_none() && !trial.is_empty() && limits.iter().zip(&trial.limits).all(keeps)
}

/// The limits whose figures no trial has, though they apply: `voice.loss < 1 %`.
fn not_measured(limits: &[Limit], trials: &[Trial]) -> String {
    let is_missing = |place: &usize| {
        let mut judged = trials.iter().filter_map(|trial| trial.limits.get(*place)).peekable();
        judged.peek().is_some() && judged.all(|one| one.estimate.is_none() && one.verdict != Verdict::Kept)
    };
    let missing = (0..limits.len()).filter(is_missing).map(|place| limit(&limits[place]));
    missing.collect::<Vec<_>>().join(" and ")
}

fn times(repetitions: u32) -> String {
    match repetitions {
        1 => "when it was tried once".to_owned(),
        _ => format!("in {repetitions} repetitions"),
    }
}

/// The option that asks the other way round.
fn other_option(goal: Goal) -> &'static str {
    match goal {
        Goal::Maximise => "`--minimise`",
        Goal::Minimise => "`--maximise`",
    }
}

/// The limits with this verdict and their figures: `voice.loss < 1 % (1.2 %)`.
fn with_verdict(limits: &[Limit], trial: &Trial, verdict: Verdict) -> String {
    let those = limits.iter().zip(&trial.limits).filter(|(_, judged)| judged.verdict == verdict);
    let named = those.map(|(one, judged)| format!("{} ({})", limit(one), figure(one, judged)));
    named.collect::<Vec<_>>().join(", ")
}

/// `flow.voice.count = 12 (trunk.mbs = 32) keeps the limits (5 repetitions)`
pub(crate) fn trial(plan: &Plan, limits: &[Limit], combination: &str, trial: &Trial) -> String {
    let at = if combination.is_empty() { String::new() } else { format!(" ({combination})") };
    let (key, value) = (plan.key.key(), plan.key.written(trial.value));
    let times = match trial.refused {
        Some(_) => String::new(),
        None => format!(" ({})", count(trial.repetitions.into(), "repetition")),
    };
    format!("{key} = {value}{at} {}{times}", outcome(limits, trial))
}

/// `flow.voice.count = 12 (trunk.mbs = 32), tried once: voice.loss < 1 % holds (0.2 %)`
pub(crate) fn tried(plan: &Plan, choice: &[usize], value: u64, figures: &[Figure]) -> String {
    let combination = combination(&plan.axes, choice, |_| true);
    let at = if combination.is_empty() { String::new() } else { format!(" ({combination})") };
    let of_limit = |(one, figure): (&Limit, &Figure)| match figure {
        Figure::Value(mean) => {
            let holds = if one.operator.holds(*mean, one.bound) { "holds" } else { "is broken" };
            Some(format!("{} {holds} ({})", limit(one), shown(one, *mean)))
        }
        Figure::NotApplicable => None,
        Figure::NotMeasured => Some(format!("{} not measured", limit(one))),
    };
    let limits: Vec<String> = plan.first.limits.iter().zip(figures).filter_map(of_limit).collect();
    format!("{} = {}{at}, tried once: {}", plan.key.key(), plan.key.written(value), limits.join(", "))
}

/// The answer for one combination, in a sentence.
pub(crate) fn answer(plan: &Plan, found: &Found, answer: &Answer) -> String {
    let Edge { kept, broken, undecided, kept_behind } = &answer.edge;
    let written = |value: u64| plan.key.written(value);
    let (best, worst) = match plan.goal {
        Goal::Maximise => ("largest", "smallest"),
        Goal::Minimise => ("smallest", "largest"),
    };
    let tried = |value: u64| answer.trials.iter().find(|trial| trial.value == value);
    let is_refused = |value: u64| tried(value).is_some_and(|trial| trial.refused.is_some());
    let breaks = |value: u64| {
        tried(value).map_or_else(|| "breaks one".to_owned(), |trial| outcome(&found.limits, trial))
    };
    let mut text = match (*kept, *broken) {
        (Some(kept), Some(broken)) if is_refused(broken) => {
            format!(
                "{} is the {best} value shown to keep the limits; {} {}",
                written(kept),
                written(broken),
                breaks(broken)
            )
        }
        (Some(kept), Some(broken)) => format!(
            "{} is the {best} value shown to keep the limits; {}, the {worst} shown to break one, {}",
            written(kept),
            written(broken),
            breaks(broken)
        ),
        (Some(kept), None) if answer.finished && undecided.is_none() => {
            format!(
                "{} keeps the limits, and it is the bound of the search: no {} value was tried",
                written(kept),
                larger(plan.goal)
            )
        }
        (Some(kept), None) => format!("{} keeps the limits; none was shown to break one", written(kept)),
        (None, Some(broken)) if answer.finished && undecided.is_none() => {
            let (least, most) = (written(*plan.range.start()), written(*plan.range.end()));
            let even = format!("{} {}", written(broken), breaks(broken));
            let seems_kept = |trial: &&Trial| keeps_them_on_average(&found.limits, trial);
            match answer.trials.iter().find(seems_kept) {
                None => format!("no value from {least} to {most} keeps the limits: even {even}"),
                Some(other) => format!(
                    "{even}, so no {} value was searched; yet {} kept the limits {}: {} finds the {worst} value that keeps them",
                    larger(plan.goal),
                    written(other.value),
                    times(other.repetitions),
                    other_option(plan.goal)
                ),
            }
        }
        (None, Some(broken)) => {
            format!("none was shown to keep the limits; {} {}", written(broken), breaks(broken))
        }
        (None, None) => {
            match answer.trials.iter().find(|trial| keeps_them_on_average(&found.limits, trial)) {
                None => match not_measured(&found.limits, &answer.trials) {
                    missing if missing.is_empty() => "nothing could be shown".to_owned(),
                    missing => format!("nothing could be shown, because {missing} was never measured"),
                },
                Some(trial) => format!(
                    "{} kept the limits {}, but no value was shown to break one",
                    written(trial.value),
                    times(trial.repetitions)
                ),
            }
        }
    };
    if let Some(kept) = *kept {
        let doubtful = undecided_before(plan.goal, kept, &answer.trials);
        if !doubtful.is_empty() {
            let values: Vec<String> = doubtful.into_iter().map(written).collect();
            text += &format!(
                ". But {} {} not decided: the edge may lie there",
                values.join(", "),
                if values.len() == 1 { "was" } else { "were" }
            );
        }
    }
    if undecided.is_some() {
        let range = self::undecided(plan, &answer.edge);
        text += &format!(". Not decided after {} repetitions: {range}", plan.terms.most);
    }
    if !kept_behind.is_empty() {
        let behind: Vec<String> = kept_behind.iter().map(|value| written(*value)).collect();
        text += &format!(". The response is not monotone: {} keeps the limits too", behind.join(", "));
    }
    if answer.is_doubtful() {
        text += &format!(". Warning: {}", doubts(plan, answer));
    }
    if !answer.finished {
        text += ". The search was not completed";
    }
    text + "."
}

/// What makes an answer less sure than it looks, a sentence for each combination: an overload that the duration hides.
pub fn cautions(plan: &Plan, found: &Found) -> Vec<String> {
    let doubtful = found.answers.iter().filter(|answer| answer.is_doubtful());
    let sentence = |answer: &Answer| {
        let combination = combination(&plan.axes, &answer.choice, |_| true);
        let of = if combination.is_empty() { combination } else { format!("{combination}: ") };
        format!("{of}{}", doubts(plan, answer))
    };
    doubtful.map(sentence).collect()
}

/// Reasons to doubt an answer.
fn doubts(plan: &Plan, answer: &Answer) -> String {
    let overloaded = match (answer.rising.is_empty(), answer.overloaded.is_empty()) {
        (false, _) => Some(rising(plan, answer)),
        (true, false) => Some(overloaded(plan, answer)),
        (true, true) => None,
    };
    let unfinished = (!answer.unfinished.is_empty()).then(|| unfinished(plan, answer));
    let mut sentences = overloaded.into_iter().chain(unfinished);
    let first = sentences.next().unwrap_or_default();
    sentences.fold(first, |text, next| format!("{text}. {}", capitalised(&next)))
}

/// A sentence about flows whose messages were refused or had not arrived when the run ended.
fn unfinished(plan: &Plan, answer: &Answer) -> String {
    let kept = answer.edge.kept.map_or_else(String::new, |kept| plan.key.written(kept));
    let flow = |one: &Unfinished| format!("{:.0} % of the messages of `{}`", one.share * 100.0, one.flow);
    let flows: Vec<String> = answer.unfinished.iter().map(flow).collect();
    format!(
        "at {kept}, {} had not arrived when the run ended or were refused, and limits judge only those that arrived. Repeat the plan with a \
         longer `duration` or `drain`, or with a limit on `refused` or `unfinished`",
        flows.join(" and ")
    )
}

/// A sentence about links that are offered more than they carry.
fn overloaded(plan: &Plan, answer: &Answer) -> String {
    let kept = answer.edge.kept.map_or_else(String::new, |kept| plan.key.written(kept));
    let links = loads(answer);
    let duration = plan.first.points.first().scenario.duration.to_string();
    format!(
        "at {kept} the flows send {links}, and a run of {duration} is too short to show the effect: the queue holds the surplus, or has \
         held it until it was full. Repeat the plan with a longer `duration`"
    )
}

/// `348 % of what `trunk` carries`, of each link that is offered more than it carries.
fn loads(answer: &Answer) -> String {
    let link = |one: &Overloaded| format!("{:.2} % of what `{}` carries", one.load * 100.0, one.link);
    answer.overloaded.iter().map(link).collect::<Vec<_>>().join(" and ")
}

/// What the answer rests on if latencies still rise when the run ends.
fn rising(plan: &Plan, answer: &Answer) -> String {
    let kept = answer.edge.kept.map_or_else(String::new, |kept| plan.key.written(kept));
    let flows: Vec<String> = answer
        .rising
        .iter()
        .map(|rising| format!("of `{}` by {}", rising.flow, growth(rising.per_second)))
        .collect();
    let duration = plan.first.points.first().scenario.duration.to_string();
    let sent = match answer.overloaded.is_empty() {
        true => "more is sent than the link carries".to_owned(),
        false => format!("the flows send {}", loads(answer)),
    };
    format!(
        "at {kept} the latency still rises at the end of the run, that {}: {sent}, and a run of \
         {duration} is too short to show the effect. Repeat the plan with a longer `duration`",
        flows.join(", that ")
    )
}

/// A text that begins a sentence.
pub(crate) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Values that were not decided although the search went past them to this one, in increasing order.
fn undecided_before(goal: Goal, kept: u64, trials: &[Trial]) -> Vec<u64> {
    let is_before = |value: u64| match goal {
        Goal::Maximise => value < kept,
        Goal::Minimise => value > kept,
    };
    let those =
        trials.iter().filter(|trial| trial.verdict == Some(Verdict::Undecided) && is_before(trial.value));
    let mut values: Vec<u64> = those.map(|trial| trial.value).collect();
    values.sort_unstable();
    values
}

/// Growth of a latency in each second of sending, to about three digits.
fn growth(per_second: f64) -> String {
    if per_second < 1.0 {
        let decimals = if per_second < 0.01 { 3 } else { 1 };
        return format!("{:.decimals$} ms in each second", per_second * 1000.0);
    }
    format!("{per_second:.1} s in each second")
}

/// `11 to 13`, or a dash.
pub(crate) fn undecided(plan: &Plan, edge: &Edge) -> String {
    match edge.undecided {
        Some((first, last)) if first == last => plan.key.written(first),
        Some((first, last)) => plan.key.written_range(first.min(last), first.max(last)),
        None => "–".to_owned(),
    }
}

/// Which limits the first broken value breaks, `voice.loss < 1 % (5.2 %)`, or why it is refused; a dash if there is none.
pub(crate) fn reason(found: &Found, answer: &Answer) -> String {
    let trial = answer.trials.iter().find(|trial| Some(trial.value) == answer.edge.broken);
    let broken = |trial: &Trial| with_verdict(&found.limits, trial, Verdict::Broken);
    trial.map_or("–".to_owned(), |trial| trial.refused.clone().unwrap_or_else(|| broken(trial)))
}

fn larger(goal: Goal) -> &'static str {
    match goal {
        Goal::Maximise => "larger",
        Goal::Minimise => "smaller",
    }
}

/// A verdict as a word.
pub(crate) fn word(trial: &Trial) -> &'static str {
    match trial.verdict {
        Some(Verdict::Kept) if trial.is_empty() => "– no members",
        Some(Verdict::Kept) => "✓ kept",
        Some(Verdict::Broken) if trial.refused.is_some() => "✗ refused",
        Some(Verdict::Broken) => "✗ broken",
        Some(Verdict::Undecided) => "– not decided",
        None if trial.repetitions == 1 => "– tried once",
        None => "– interrupted",
    }
}

/// How the verdicts were made, for those who will rest on them.
pub(crate) fn method(plan: &Plan) -> String {
    let terms = &plan.terms;
    format!(
        "Each verdict is right with {} % confidence. It uses Student's one-sided bound of the mean over {} to {} \
         repetitions (the upper bound is also that of a log-normal mean) and, for shares of messages, Clopper and \
         Pearson's bound over all repetitions together. The error budget is shared among {} looks{}. The search started \
         with one repetition of each value. It assumes that all values {} keep the limits and all others break one; one \
         value far on either side tests this.",
        trimmed(terms.confidence * 100.0),
        terms.repetitions,
        terms.most,
        terms.looks().len(),
        if EARLY < terms.repetitions {
            format!(
                ", and one more after {EARLY} repetitions, which can only show that a limit is clearly broken"
            )
        } else {
            String::new()
        },
        match plan.goal {
            Goal::Maximise => "up to the edge",
            Goal::Minimise => "from the edge on",
        }
    )
}

/// A number without the noise of its last bits.
fn trimmed(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// `largest flow.voice.count`
pub(crate) fn question(plan: &Plan) -> String {
    let what = match plan.goal {
        Goal::Maximise => "largest",
        Goal::Minimise => "smallest",
    };
    format!("the {what} {} that keeps the limits", plan.key.key())
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::Subject;

    use super::*;

    #[test]
    fn values_that_were_not_decided_before_the_answer_are_named() {
        let verdicts = [
            (121, Verdict::Kept),
            (123, Verdict::Undecided),
            (122, Verdict::Undecided),
            (124, Verdict::Kept),
        ];
        let trials: Vec<Trial> = verdicts
            .into_iter()
            .map(|(value, verdict)| Trial {
                value,
                verdict: Some(verdict),
                repetitions: 5,
                limits: Vec::new(),
                refused: None,
            })
            .collect();
        assert_eq!(undecided_before(Goal::Maximise, 124, &trials), [122, 123]);
        assert_eq!(undecided_before(Goal::Maximise, 121, &trials), [0u64; 0]);
        assert_eq!(undecided_before(Goal::Minimise, 121, &trials), [122, 123]);
        assert_eq!(undecided_before(Goal::Minimise, 122, &trials), [123]);
    }

    #[test]
    fn a_value_whose_limit_was_never_measured_has_kept_nothing() {
        let limits = [Limit {
            key: "flow.v.loss".to_owned(),
            condition: "< 1 %".to_owned(),
            subject: Subject::Flow { flow: 0, sink: None, metric: trunkline_metrics::figures::flow("loss") },
            operator: Operator::Less,
            bound: 0.01,
        }];
        let trial = |verdict| Trial {
            value: 1,
            verdict: Some(verdict),
            repetitions: 5,
            limits: vec![Judged { verdict, estimate: None, half_width: None, outside_model: false }],
            refused: None,
        };
        assert!(!keeps_them_on_average(&limits, &trial(Verdict::Undecided)));
        assert_eq!(not_measured(&limits, &[trial(Verdict::Undecided)]), limit(&limits[0]));
        assert_eq!(not_measured(&limits, &[trial(Verdict::Undecided), trial(Verdict::Kept)]), "");
    }

    #[test]
    fn the_growth_of_a_latency_has_about_three_digits() {
        assert_eq!(growth(0.000_4), "0.400 ms in each second");
        assert_eq!(growth(0.036_8), "36.8 ms in each second");
        assert_eq!(growth(2.04), "2.0 s in each second");
    }
}

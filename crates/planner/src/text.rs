//! What was found, in sentences.

use trunkline_experiment::{Axis, Limit};

use crate::judge::Judged;
use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::{Edge, Goal, Verdict};

/// A swept key without the part that says nothing: `bulk.count` for `flow.bulk.count`.
pub(crate) fn short(key: &str) -> &str {
    key.strip_prefix("flow.").or_else(|| key.strip_prefix("link.")).unwrap_or(key)
}

/// `trunk.mbs = 32, voice.transport = udp`; empty if nothing else is swept.
pub(crate) fn combination(axes: &[Axis], choice: &[usize]) -> String {
    let part = |(axis, chosen): (&Axis, &usize)| {
        format!("{} = {}", short(&axis.key), axis.values.get(*chosen).map_or("?", String::as_str))
    };
    axes.iter().zip(choice).map(part).collect::<Vec<_>>().join(", ")
}

/// `voice.loss < 1 %`
pub(crate) fn limit(limit: &Limit) -> String {
    format!("{} {}", short(&limit.key), limit.condition)
}

/// `1.2 % ± 0.1 %`
pub(crate) fn figure(limit: &Limit, judged: &Judged) -> String {
    let show = |value: f64| trunkline_report::limit_figure(limit, value);
    match (judged.estimate, judged.half_width) {
        // Equal repetitions differ by rounding only.
        (Some(estimate), Some(half)) if half > estimate.mean.abs() * 1e-9 => {
            format!("{} ± {}", show(estimate.mean), show(half))
        }
        (Some(estimate), _) => show(estimate.mean),
        (None, _) if judged.verdict == Verdict::Kept => "does not apply".to_owned(),
        (None, _) => "not measured".to_owned(),
    }
}

/// `keeps the limits`, `breaks voice.loss < 1 % (1.2 %)`.
fn outcome(limits: &[Limit], trial: &Trial) -> String {
    let named = |verdict: Verdict| {
        let those = limits.iter().zip(&trial.limits).filter(|(_, judged)| judged.verdict == verdict);
        those
            .map(|(one, judged)| format!("{} ({})", limit(one), figure(one, judged)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match trial.verdict {
        Some(Verdict::Kept) => "keeps the limits".to_owned(),
        Some(Verdict::Broken) => format!("breaks {}", named(Verdict::Broken)),
        Some(Verdict::Undecided) => format!("is not decided: {}", named(Verdict::Undecided)),
        None => "was not measured to the end".to_owned(),
    }
}

/// `flow.voice.count = 12 (trunk.mbs = 32) keeps the limits; 5 repetitions`
pub(crate) fn trial(plan: &Plan, limits: &[Limit], combination: &str, trial: &Trial) -> String {
    let at = if combination.is_empty() { String::new() } else { format!(" ({combination})") };
    let (key, value) = (plan.key.key(), plan.key.written(trial.value));
    format!("{key} = {value}{at} {}; {} repetitions", outcome(limits, trial), trial.repetitions)
}

/// What is certain of one combination, in a sentence.
pub(crate) fn answer(plan: &Plan, found: &Found, answer: &Answer) -> String {
    let Edge { kept, broken, undecided, kept_behind } = &answer.edge;
    let written = |value: u64| plan.key.written(value);
    let (best, worst) = match plan.goal {
        Goal::Maximise => ("largest", "smallest"),
        Goal::Minimise => ("smallest", "largest"),
    };
    let breaks = |value: u64| {
        let trial = answer.trials.iter().find(|trial| trial.value == value);
        trial.map_or_else(|| "breaks them".to_owned(), |trial| outcome(&found.limits, trial))
    };
    let mut text = match (*kept, *broken) {
        (Some(kept), Some(broken)) => format!(
            "{} is the {best} value shown to keep the limits; {}, the {worst} shown to break one, {}",
            written(kept),
            written(broken),
            breaks(broken)
        ),
        (Some(kept), None) if answer.finished && undecided.is_none() => {
            format!("{} keeps the limits, and no {} value may be tried", written(kept), larger(plan.goal))
        }
        (Some(kept), None) => format!("{} keeps the limits; none was shown to break one", written(kept)),
        (None, Some(broken)) if answer.finished && undecided.is_none() => {
            format!("no value keeps the limits: even {} {}", written(broken), breaks(broken))
        }
        (None, Some(broken)) => {
            format!("none was shown to keep the limits; {} {}", written(broken), breaks(broken))
        }
        (None, None) => "nothing was shown either way".to_owned(),
    };
    if let Some((first, last)) = undecided {
        let range = match first == last {
            true => written(*first),
            false => format!("{} to {}", written(*first), written(*last)),
        };
        text += &format!(". Not decided after {} repetitions: {range}", plan.terms.most);
    }
    if !kept_behind.is_empty() {
        let behind: Vec<String> = kept_behind.iter().map(|value| written(*value)).collect();
        text +=
            &format!(". The response is not monotone: {} keeps the limits all the same", behind.join(", "));
    }
    if !answer.finished {
        text += ". The search did not come to its end";
    }
    text + "."
}

fn larger(goal: Goal) -> &'static str {
    match goal {
        Goal::Maximise => "larger",
        Goal::Minimise => "smaller",
    }
}

/// How the verdicts were made, for those who will rest on them.
pub(crate) fn method(plan: &Plan) -> String {
    let terms = &plan.terms;
    format!(
        "Each verdict is right with {} % confidence: Student's one-sided bound of the mean over {} to {} repetitions, the \
         allowed error shared among {} looks.",
        trimmed(terms.confidence * 100.0),
        terms.repetitions,
        terms.most,
        terms.looks().len()
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

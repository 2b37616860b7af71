//! What was found, for programs.

use serde_json::{Map, Value, json};

use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::{Goal, Verdict};
use crate::text;

/// The version of what [`json`] returns: it grows when a key changes its meaning or goes away, not when one is added.
const FORMAT: u32 = 1;

/// What was found as JSON. Values of the searched key stand as written (`value`) and as a number in `unit` (`number`);
/// figures of limits in base units.
///
/// - `format`: 1.
/// - `run`: the run that keeps every repetition.
/// - `goal` (`maximise`, `minimise`), `key`, `unit`, `from`, `to`; `confidence`, `repetitions`, `most_repetitions`.
/// - `limits`: `key`, `condition`.
/// - `stopped`: whether it was interrupted.
/// - `answers`: for every combination of what else is swept its `values` by key, `kept`, `broken`, `undecided` (first and
///   last, or null), `kept_behind`, `finished`, `sentence`, and `trials`: `verdict`, `repetitions`, why it was `refused` (or null) and each limit's
///   `verdict`, `mean`, `sd`, `half_width`.
pub fn json(plan: &Plan, found: &Found) -> Value {
    let goal = match plan.goal {
        Goal::Maximise => "maximise",
        Goal::Minimise => "minimise",
    };
    json!({
        "format": FORMAT,
        "run": found.run,
        "goal": goal,
        "key": plan.key.key(),
        "unit": plan.key.unit(),
        "from": value(plan, *plan.range.start()),
        "to": value(plan, *plan.range.end()),
        "confidence": plan.terms.confidence,
        "repetitions": plan.terms.repetitions,
        "most_repetitions": plan.terms.most,
        "limits": found.limits.iter().map(|limit| json!({ "key": limit.key, "condition": limit.condition })).collect::<Vec<_>>(),
        "stopped": found.stopped,
        "answers": found.answers.iter().map(|answer| of_answer(plan, found, answer)).collect::<Vec<_>>(),
    })
}

fn value(plan: &Plan, value: u64) -> Value {
    json!({ "value": plan.key.written(value), "number": plan.key.number(value) })
}

fn of_answer(plan: &Plan, found: &Found, answer: &Answer) -> Value {
    let edge = &answer.edge;
    let on_axis = plan.axes.iter().zip(&answer.choice);
    let values: Map<String, Value> =
        on_axis.map(|(axis, chosen)| (axis.key.clone(), axis.values.get(*chosen).cloned().into())).collect();
    json!({
        "values": values,
        "kept": edge.kept.map(|kept| value(plan, kept)),
        "broken": edge.broken.map(|broken| value(plan, broken)),
        "undecided": edge.undecided.map(|(first, last)| [value(plan, first), value(plan, last)]),
        "kept_behind": edge.kept_behind.iter().map(|behind| value(plan, *behind)).collect::<Vec<_>>(),
        "finished": answer.finished,
        "sentence": text::answer(plan, found, answer),
        "trials": answer.trials.iter().map(|trial| of_trial(plan, found, trial)).collect::<Vec<_>>(),
    })
}

fn of_trial(plan: &Plan, found: &Found, trial: &Trial) -> Value {
    let limits = found.limits.iter().zip(&trial.limits).map(|(limit, judged)| {
        json!({
            "key": limit.key,
            "verdict": word(judged.verdict),
            "mean": judged.estimate.map(|estimate| estimate.mean),
            "sd": judged.estimate.map(|estimate| estimate.standard_deviation),
            "half_width": judged.half_width,
        })
    });
    let mut of_trial = value(plan, trial.value);
    of_trial["verdict"] = trial.verdict.map(word).into();
    of_trial["repetitions"] = trial.repetitions.into();
    of_trial["refused"] = trial.refused.clone().into();
    of_trial["limits"] = limits.collect();
    of_trial
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Broken => "broken",
        Verdict::Undecided => "undecided",
    }
}

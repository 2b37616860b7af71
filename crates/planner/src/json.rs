//! The answer of a plan, for programs.

use serde_json::Value;

use crate::draws::{OverDraws, over_draws};
use crate::output::{
    PlanAnswer, PlanDraws, PlanDrawsKept, PlanEstimate, PlanFound, PlanGoal, PlanLimit, PlanLimitVerdict,
    PlanOutput, PlanOverloaded, PlanRising, PlanTrial, PlanUnfinished, PlanValue, PlanVerdict,
};
use crate::plan::Plan;
use crate::run::{Answer, Found, Trial};
use crate::search::{Goal, Verdict};
use crate::text;

/// The name of the layout of [`json`].
pub const KIND: &str = "plan";
/// The version of the layout of [`json`]: it grows when a key changes its meaning or goes away, not when one is added.
pub const FORMAT: u32 = 3;

/// What was found as JSON: [`PlanOutput`] says what is in it.
pub fn json(plan: &Plan, found: &Found) -> Value {
    let output = PlanOutput { run: (&found.run).into(), plan: of_plan(plan, found), html: None };
    // Keys are strings, and numbers that are not finite become null.
    serde_json::to_value(output).unwrap_or_default()
}

/// What was found, without its run.
pub fn of_plan(plan: &Plan, found: &Found) -> PlanFound {
    let limits = found.limits.iter();
    PlanFound {
        kind: KIND.to_owned(),
        format: FORMAT,
        goal: match plan.goal {
            Goal::Maximise => PlanGoal::Maximise,
            Goal::Minimise => PlanGoal::Minimise,
        },
        key: plan.key.key().to_owned(),
        unit: plan.key.unit().to_owned(),
        from: value(plan, *plan.range.start()),
        to: value(plan, *plan.range.end()),
        confidence: plan.terms.confidence,
        repetitions: plan.terms.repetitions,
        most_repetitions: plan.terms.most,
        limits: limits
            .map(|limit| PlanLimit { key: limit.key.clone(), condition: limit.condition.clone() })
            .collect(),
        stopped: found.stopped,
        estimate: found.estimate.map(|forecast| PlanEstimate {
            values: forecast.values,
            repetitions: forecast.repetitions,
            time_s: forecast.left.as_secs_f64(),
        }),
        draws: over_draws(plan, &found.answers)
            .iter()
            .filter(|_| plan.has_draws())
            .map(|group| of_draws(plan, group))
            .collect(),
        answers: found.answers.iter().map(|answer| of_answer(plan, found, answer)).collect(),
    }
}

fn value(plan: &Plan, value: u64) -> PlanValue {
    PlanValue { value: plan.key.written(value), number: plan.key.number(value) }
}

fn of_draws(plan: &Plan, group: &OverDraws) -> PlanDraws {
    let on_axis = plan.axes.iter().zip(&group.answers[0].choice).filter(|(axis, _)| !axis.is_draws());
    let kept =
        group.kept.iter().map(|(kept, draws)| PlanDrawsKept { value: value(plan, *kept), draws: *draws });
    PlanDraws {
        values: on_axis.map(|(axis, chosen)| (axis.key.clone(), axis.values.get(*chosen).cloned())).collect(),
        of: group.answers.len(),
        kept: kept.collect(),
        sentence: group.sentence(plan),
    }
}

fn of_answer(plan: &Plan, found: &Found, answer: &Answer) -> PlanAnswer {
    let edge = &answer.edge;
    let on_axis = plan.axes.iter().zip(&answer.choice);
    let rising = |one: &crate::Rising| PlanRising { flow: one.flow.clone(), per_second: one.per_second };
    let overloaded = |one: &crate::Overloaded| PlanOverloaded { link: one.link.clone(), load: one.load };
    let unfinished = |one: &crate::Unfinished| PlanUnfinished { flow: one.flow.clone(), share: one.share };
    PlanAnswer {
        values: on_axis.map(|(axis, chosen)| (axis.key.clone(), axis.values.get(*chosen).cloned())).collect(),
        kept: edge.kept.map(|kept| value(plan, kept)),
        broken: edge.broken.map(|broken| value(plan, broken)),
        undecided: edge.undecided.map(|(first, last)| (value(plan, first), value(plan, last))),
        kept_behind: edge.kept_behind.iter().map(|behind| value(plan, *behind)).collect(),
        finished: answer.finished,
        rising: answer.rising.iter().map(rising).collect(),
        overloaded: answer.overloaded.iter().map(overloaded).collect(),
        unfinished: answer.unfinished.iter().map(unfinished).collect(),
        sentence: text::answer(plan, found, answer),
        trials: answer.trials.iter().map(|trial| of_trial(plan, found, trial)).collect(),
    }
}

fn of_trial(plan: &Plan, found: &Found, trial: &Trial) -> PlanTrial {
    let limits = found.limits.iter().zip(&trial.limits).map(|(limit, judged)| PlanLimitVerdict {
        key: limit.key.clone(),
        verdict: if judged.applies() { judged.verdict.into() } else { PlanVerdict::NotApplicable },
        mean: judged.estimate.map(|estimate| estimate.mean),
        sd: judged.estimate.and_then(|estimate| estimate.standard_deviation),
        half_width: judged.half_width,
        outside_e_model: judged.outside_model,
    });
    let PlanValue { value, number } = value(plan, trial.value);
    PlanTrial {
        value,
        number,
        verdict: trial
            .verdict
            .map(|verdict| if trial.is_empty() { PlanVerdict::NotApplicable } else { verdict.into() }),
        repetitions: trial.repetitions,
        refused: trial.refused.clone(),
        limits: limits.collect(),
    }
}

impl From<Verdict> for PlanVerdict {
    fn from(verdict: Verdict) -> PlanVerdict {
        match verdict {
            Verdict::Kept => PlanVerdict::Kept,
            Verdict::Broken => PlanVerdict::Broken,
            Verdict::Undecided => PlanVerdict::Undecided,
        }
    }
}

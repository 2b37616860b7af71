//! Draws of learned paths: values that keep the limits in all of them, or in most.

use crate::plan::Plan;
use crate::run::Answer;
use crate::search::Goal;
use crate::text;

/// Shares of the draws for which a value is named.
const SHARES: [f64; 4] = [1.0, 0.95, 0.9, 0.5];

/// The answers to one combination of what else is swept, one for each draw.
pub(crate) struct OverDraws<'a> {
    pub(crate) answers: Vec<&'a Answer>,
    /// Values with the number of draws in which they keep the limits, the safest first.
    pub(crate) kept: Vec<(u64, usize)>,
}

/// The answers by what is swept beside the draws; without draws, each is alone.
pub(crate) fn over_draws<'a>(plan: &Plan, answers: &'a [Answer]) -> Vec<OverDraws<'a>> {
    let others = |answer: &Answer| -> Vec<usize> {
        let choice = answer.choice.iter().zip(&plan.axes);
        choice.filter(|(_, axis)| !axis.is_draws()).map(|(chosen, _)| *chosen).collect()
    };
    let mut groups: Vec<Vec<&Answer>> = Vec::new();
    for answer in answers {
        match groups.iter_mut().find(|group| others(group[0]) == others(answer)) {
            Some(group) => group.push(answer),
            None => groups.push(vec![answer]),
        }
    }
    groups.into_iter().map(|answers| OverDraws { kept: kept(plan.goal, &answers), answers }).collect()
}

fn kept(goal: Goal, answers: &[&Answer]) -> Vec<(u64, usize)> {
    let mut edges: Vec<u64> = answers.iter().filter_map(|answer| answer.edge.kept).collect();
    edges.sort_unstable();
    if goal == Goal::Maximise {
        edges.reverse();
    }
    // A value keeps the limits in all draws whose edge lies behind it.
    let mut kept: Vec<(u64, usize)> = Vec::new();
    for share in SHARES {
        let draws = (share * answers.len() as f64).ceil() as usize;
        let Some(value) = draws.checked_sub(1).and_then(|last| edges.get(last)) else { continue };
        let draws = edges.iter().rposition(|edge| edge == value).map_or(0, |last| last + 1);
        if kept.last().is_none_or(|(other, _)| other != value) {
            kept.push((*value, draws));
        }
    }
    kept
}

impl OverDraws<'_> {
    /// The best value that keeps the limits in all draws.
    pub(crate) fn in_all(&self) -> Option<u64> {
        self.kept.first().filter(|(_, draws)| *draws == self.answers.len()).map(|(value, _)| *value)
    }

    /// The combination of what else is swept: `mbs = 32`.
    pub(crate) fn combination(&self, plan: &Plan) -> String {
        let is_other = |place: usize| !plan.axes[place].is_draws();
        text::combination(&plan.axes, &self.answers[0].choice, is_other)
    }

    /// `24 keeps the limits in 20 of 20 draws, 26 in 19, 30 in 10.`
    pub(crate) fn sentence(&self, plan: &Plan) -> String {
        let of = self.answers.len();
        let Some(((value, draws), others)) = self.kept.split_first() else {
            return format!("No value was shown to keep the limits in half of the {of} draws.");
        };
        let mut text = format!("{} keeps the limits in {draws} of {of} draws", plan.key.written(*value));
        for (value, draws) in others {
            text += &format!(", {} in {draws}", plan.key.written(*value));
        }
        text + "."
    }
}

/// Sentences on the draws, by combination; empty without draws.
pub(crate) fn sentences(plan: &Plan, answers: &[Answer]) -> Vec<String> {
    if !plan.has_draws() {
        return Vec::new();
    }
    let sentence = |group: &OverDraws| match group.combination(plan) {
        combination if combination.is_empty() => group.sentence(plan),
        combination => format!("{combination}: {}", group.sentence(plan)),
    };
    over_draws(plan, answers).iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Edge;

    #[test]
    fn a_value_is_kept_in_every_draw_whose_edge_lies_behind_it() {
        let answers: Vec<Answer> = (0..20)
            .map(|draw| Answer {
                choice: vec![draw],
                edge: Edge {
                    kept: Some(if draw == 7 { 22 } else { 24 + draw as u64 / 10 }),
                    ..Edge::default()
                },
                finished: true,
                trials: Vec::new(),
                rising: Vec::new(),
                overloaded: Vec::new(),
                unfinished: Vec::new(),
            })
            .collect();
        let all: Vec<&Answer> = answers.iter().collect();
        assert_eq!(kept(Goal::Maximise, &all), [(22, 20), (24, 19), (25, 10)]);
        assert_eq!(kept(Goal::Minimise, &all), [(25, 20), (24, 10)]);
        assert_eq!(kept(Goal::Maximise, &[]), []);
    }
}

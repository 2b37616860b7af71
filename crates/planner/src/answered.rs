//! The answer in the file.

use serde_json::Value;
use trunkline_experiment::edit::{Edit, EditError, apply, outline};

use crate::draws::over_draws;
use crate::plan::Plan;
use crate::run::{Answer, Found};
use crate::search::Goal;

/// The experiment file with what was found: the key has the last value that keeps the limits. Where more is swept, that is
/// the combination with the best of them, and it is written as well; over draws of learned paths, a value counts that keeps them
/// in all. `None` if no value was shown to keep them.
///
/// `text` is the file that the plan was made for. All that is not concerned stays in it as it is written.
///
/// # Errors
/// If the file says the key in a way that cannot be edited.
pub fn answered(text: &str, plan: &Plan, found: &Found) -> Option<Result<String, EditError>> {
    let (answer, kept) = best(plan, &found.answers)?;
    Some(written(text, plan, answer, kept))
}

/// The combination of what else is swept whose answer is best; the first of those that are alike.
fn best<'a>(plan: &Plan, answers: &'a [Answer]) -> Option<(&'a Answer, u64)> {
    let groups = over_draws(plan, answers);
    let kept = groups.iter().rev().filter_map(|group| Some((group.answers[0], group.in_all()?)));
    kept.max_by_key(|(_, kept)| match plan.goal {
        Goal::Maximise => *kept,
        Goal::Minimise => u64::MAX - kept,
    })
}

fn written(text: &str, plan: &Plan, answer: &Answer, kept: u64) -> Result<String, EditError> {
    let swept = outline(text).map_err(EditError::NotToml)?.sweep;
    let literal = plan.key.literal(kept);
    // A literal of TOML that is a number or a text without escapes is one of JSON.
    let value: Value =
        serde_json::from_str(&literal).unwrap_or_else(|_| Value::from(literal.trim_matches('"')));
    let mut edits = set_all(plan.key.key(), &value);
    for (axis, chosen) in plan.axes.iter().zip(&answer.choice).filter(|(axis, _)| !axis.is_draws()) {
        let own =
            swept.iter().find(|swept| swept.key == axis.key).and_then(|swept| swept.values.get(*chosen));
        // What is held against the key stands in the plan alone.
        let written = || {
            axis.values.get(*chosen).map(|value| serde_json::from_str(value).unwrap_or(value.as_str().into()))
        };
        edits.extend(own.cloned().or_else(written).iter().flat_map(|value| set_all(&axis.key, value)));
    }
    let known = |key: &str| key == plan.key.key() || plan.axes.iter().any(|axis| axis.key == key);
    let gone = swept
        .iter()
        .filter(|swept| known(&swept.key))
        .map(|swept| Edit::Remove { path: vec!["sweep".to_owned(), swept.key.clone()] });
    edits.extend(gone);
    apply(text, &edits)
}

/// Gives each key of an axis its value: several are joined by commas, and may have a list of as many values.
fn set_all(axis: &str, value: &Value) -> Vec<Edit> {
    let keys: Vec<&str> = axis.split(',').map(str::trim).collect();
    let own = value.as_array().filter(|values| values.len() > 1 && values.len() == keys.len());
    let edit = |(place, key): (usize, &&str)| Edit::Set {
        path: key.split('.').map(str::to_owned).collect(),
        value: own.map_or(value, |own| &own[place]).clone(),
    };
    keys.iter().enumerate().map(edit).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trunkline_experiment::Experiment;

    use super::*;
    use crate::plan::{Nearness, Question};
    use crate::search::Edge;

    const FILE: &str = r#"name = "calls"
duration = "1 s"
[hosts]
a = {}
b = {}
[link.trunk] # the bottleneck
between = ["a", "b"]
rate = "2 Mbit/s"
[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"   # 64 kbit/s
[sweep]
"flow.voice.count" = [1, 2] # searched
"flow.voice.transport" = ["udp", { kind = "tcp", window = "8 KiB" }]
[limits]
"flow.voice.loss" = "< 1 %"
"#;

    fn plan(goal: Goal, key: &str) -> Plan {
        let experiment = Experiment::parse(FILE, "x.toml", &()).unwrap();
        let question = Question {
            goal,
            key,
            against: None,
            from: None,
            to: None,
            nearness: Nearness::Default,
            repetitions: None,
            most: None,
            confidence: 0.95,
        };
        Plan::new(&experiment, Path::new("x.toml"), &question).unwrap()
    }

    fn with(plan: &Plan, kept: &[Option<u64>]) -> Option<String> {
        let answer = |(place, kept): (usize, &Option<u64>)| Answer {
            choice: vec![place; plan.axes.len()],
            edge: Edge { kept: *kept, ..Edge::default() },
            finished: true,
            trials: Vec::new(),
            rising: Vec::new(),
            overloaded: Vec::new(),
            unfinished: Vec::new(),
        };
        let answers: Vec<Answer> = kept.iter().enumerate().map(answer).collect();
        let (answer, kept) = best(plan, &answers)?;
        Some(written(FILE, plan, answer, kept).expect("it can be edited"))
    }

    #[test]
    fn the_best_value_and_its_combination_stand_in_the_file_and_not_in_the_sweep() {
        let largest = plan(Goal::Maximise, "flow.voice.count");
        let text = with(&largest, &[Some(7), Some(9)]).unwrap();
        let expected = FILE
            .replace("transport = \"udp\"", "transport = { kind = \"tcp\", window = \"8 KiB\" }")
            .replace("# 64 kbit/s\n", "# 64 kbit/s\ncount = 9\n");
        let (before, behind) = expected.split_once("\"flow.voice.count\"").unwrap();
        let behind = behind.split_once("[limits]").unwrap().1;
        assert_eq!(text, format!("{before}[limits]{behind}"));
        assert_eq!(Experiment::parse(&text, "x.toml", &()).unwrap().points.len(), 1);
        // Of two that are alike the first.
        assert!(with(&largest, &[Some(7), Some(7)]).unwrap().contains("transport = \"udp\""));
    }

    #[test]
    fn the_smallest_is_best_of_what_is_to_be_small_and_without_any_there_is_no_file() {
        let smallest = plan(Goal::Minimise, "link.trunk.rate");
        let text = with(&smallest, &[Some(1_594_000), Some(900_000), None, None]).unwrap();
        assert!(
            text.contains("rate = \"0.9 Mbit/s\"\n") && text.contains("[link.trunk] # the bottleneck"),
            "{text}"
        );
        assert_eq!(with(&smallest, &[None, None]), None);
    }

    #[test]
    fn keys_that_vary_together_get_their_value_each() {
        let edits = set_all("flow.a.count, flow.b.count", &serde_json::json!([2, 8]));
        let set = |key: &str, value: i64| Edit::Set {
            path: key.split('.').map(str::to_owned).collect(),
            value: value.into(),
        };
        assert_eq!(edits, [set("flow.a.count", 2), set("flow.b.count", 8)]);
        assert_eq!(
            set_all("flow.a.count,flow.b.count", &3.into()),
            [set("flow.a.count", 3), set("flow.b.count", 3)]
        );
    }
}

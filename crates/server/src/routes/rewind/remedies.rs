//! Experiments that repeat a moment with another queue.

use serde_json::{Value, json};
use trunkline_experiment::Scenario;
use trunkline_experiment::edit::{Edit, apply, outline};

use crate::api::Remedies;

/// Number of remedies that are tried.
const TRIED: usize = 3;
/// Longest time to wait in a small queue, in seconds.
const SHORT: f64 = 0.02;

/// The experiment of a point, with the queue of a link as it is and as three others. `culprits` are the flows that fill it, and
/// `choice` the point's value on each axis.
pub(super) fn remedies(
    text: &str,
    scenario: &Scenario,
    choice: &[usize],
    (link, port): (usize, u16),
    culprits: &[usize],
) -> Option<Remedies> {
    let outline = outline(text).ok()?;
    let link = &scenario.links[link];
    let written = outline.links.iter().find(|one| one.name == link.name)?;
    // The table of the direction if that has a queue of its own.
    let way = ["forward", "backward"][usize::from(port.min(1))];
    let own_table =
        [&written.keys, &written.profiled].into_iter().filter_map(|keys| keys.get(way)?.get("queue")).next();
    let key = match own_table {
        Some(_) => format!("link.{}.{way}.queue", link.name),
        None => format!("link.{}.queue", link.name),
    };
    let common = written.keys.get("queue").or_else(|| written.profiled.get("queue"));
    let mut present = own_table.or(common).cloned().unwrap_or_else(|| json!({ "kind": "fifo" }));
    if present.is_string() {
        present = json!({ "kind": present });
    }
    let swept = outline.sweep.iter().zip(choice);
    let mut chosen: Vec<(&str, Value)> =
        swept.filter_map(|(axis, chosen)| Some((&*axis.key, axis.values.get(*chosen)?.clone()))).collect();
    // What is swept of the queue is part of it.
    for (swept, value) in &chosen {
        if *swept == key {
            present = if value.is_string() { json!({ "kind": value }) } else { value.clone() };
        } else if let Some(name) = swept.strip_prefix(&*key).and_then(|rest| rest.strip_prefix('.')) {
            present[name] = value.clone();
        }
    }
    let mut edits: Vec<Edit> = Vec::new();
    for axis in &outline.sweep {
        if axis.key.starts_with(&*key) {
            edits.push(Edit::Remove { path: vec!["sweep".to_owned(), axis.key.clone()] });
        }
    }
    chosen.retain(|(swept, _)| !swept.starts_with(&*key));

    let rate = link.directions.iter().map(|direction| direction.rate.bits_per_second()).min()?;
    let small = ((rate as f64 * SHORT / 8.0 / 1024.0).ceil() as u64).max(6);
    let name = |value: &Value| value["kind"].as_str().unwrap_or("fifo").to_owned();
    let candidates = [
        (json!({ "kind": "fq-codel" }), "fq-codel".to_owned()),
        (json!({ "kind": "fifo", "limit": format!("{small} KiB") }), format!("fifo, at most {small} KiB")),
        (json!({ "kind": "priority" }), "priority to other flows".to_owned()),
        (json!({ "kind": "codel" }), "codel".to_owned()),
        (json!({ "kind": "pie" }), "pie".to_owned()),
    ];
    let others = candidates
        .into_iter()
        .filter(|(value, _)| *value != present && (name(value) != name(&present) || name(value) == "fifo"));
    let mut values = vec![(present.clone(), format!("{}, as it was", name(&present)))];
    values.extend(others.take(TRIED));

    let set = |path: Vec<String>, value: Value| Edit::Set { path, value };
    let sweep = |key: &str| vec!["sweep".to_owned(), key.to_owned()];
    edits.extend(chosen.into_iter().map(|(key, value)| set(sweep(key), json!([value]))));
    let (values, names): (Vec<Value>, Vec<String>) = values.into_iter().unzip();
    edits.push(set(sweep(&key), Value::Array(values)));
    for flow in culprits {
        // Other queues do not read it.
        let path = ["flow", &scenario.flows[*flow].meta.name, "priority"].map(str::to_owned).to_vec();
        edits.push(set(path, json!(1)));
    }
    Some(Remedies { text: apply(text, &edits).ok()?, names })
}

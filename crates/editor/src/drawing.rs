//! What is to be drawn of an experiment file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trunkline_core::schema::Default as Preset;
use trunkline_experiment::edit::{Named, Swept, Tree, outline, sinks};
use trunkline_experiment::schema::{POSITION, Schema, Shape};
use trunkline_experiment::{Problems, shown_among};
use utoipa::ToSchema;

use crate::places;

/// The drawing of an experiment file. Names of objects that do not exist are kept; the check reports them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Drawing {
    /// The experiment's name; empty without one.
    pub title: String,
    /// In the order of the file, like everything below.
    pub hosts: Vec<DrawingHost>,
    /// Links and media.
    pub links: Vec<DrawingLink>,
    /// Flows.
    pub flows: Vec<DrawingFlow>,
    /// Bundles.
    pub bundles: Vec<DrawingBundle>,
    /// The keys before the first table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub experiment: Tree,
    /// Swept keys.
    pub sweep: Vec<DrawingAxis>,
    /// Limits.
    pub limits: Vec<DrawingLimit>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingHost {
    /// Its name.
    pub name: String,
    /// Distance to the right, in pixels of the unscaled drawing.
    pub x: f64,
    /// Distance downwards, in the same pixels.
    pub y: f64,
    /// Whether its position is in the file; otherwise it was computed from the links.
    pub placed: bool,
    /// Number of hosts that it stands for; 1 for a single host.
    pub count: u64,
    /// The agent that is this host in `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A link between two hosts, or a medium of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingLink {
    /// Its name.
    pub name: String,
    /// Its hosts.
    pub between: Vec<String>,
    /// The medium that carries the packets.
    pub medium: String,
    /// Its label: `2 Mbit/s · 5 ms · fifo`, from the keys in the file.
    pub label: String,
    /// Its table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingFlow {
    /// Its name.
    pub name: String,
    /// The host of its sources; empty without one.
    pub from: String,
    /// The hosts of its sinks.
    pub to: Vec<String>,
    /// Its transport's name; empty without one.
    pub transport: String,
    /// Its source's name; empty without one.
    pub source: String,
    /// Number of members.
    pub count: u64,
    /// Its label: `8 × voice · udp`.
    pub label: String,
    /// Its table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingBundle {
    /// Its name.
    pub name: String,
    /// Its flows.
    pub flows: Vec<String>,
    /// Its table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A swept key, or several that vary together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingAxis {
    /// `flow.voice.count`.
    pub key: String,
    /// Its values; a value that is not a list by itself; for a range, the values that it contains, if it is valid.
    pub values: Vec<Value>,
    /// The same as results show them: `fifo 600 KB`.
    pub shown: Vec<String>,
    /// The range as it is written, if it is one: `from`, `to` and a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub range: Option<Tree>,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrawingLimit {
    /// `flow.voice.latency.p99`.
    pub key: String,
    /// `< 150 ms`.
    pub limit: String,
}

/// Reads what is to be drawn. A text that is TOML has a drawing, whether it is a valid experiment or not. The same text has
/// the same places.
///
/// # Errors
/// If it is not TOML.
pub fn drawing(text: &str) -> Result<Drawing, Problems> {
    let outline = outline(text)?;
    let medium = default_medium();
    let mut hosts: Vec<_> = outline.hosts.into_iter().map(DrawingHost::of).collect();
    let links: Vec<_> = outline.links.into_iter().map(|link| DrawingLink::of(link, medium)).collect();
    let flows: Vec<_> = outline.flows.into_iter().map(DrawingFlow::of).collect();
    places::find(&mut hosts, &links, &flows);
    let bundle = |Named { name, keys, .. }| DrawingBundle { name, flows: texts(keys.get("flows")), keys };
    Ok(Drawing {
        title: outline.experiment.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        hosts,
        links,
        flows,
        bundles: outline.bundles.into_iter().map(bundle).collect(),
        experiment: outline.experiment,
        sweep: outline.sweep.into_iter().map(axis).collect(),
        limits: outline
            .limits
            .into_iter()
            .map(|limit| DrawingLimit { key: limit.key, limit: limit.limit })
            .collect(),
    })
}

fn axis(swept: Swept) -> DrawingAxis {
    let shown = swept.written.iter().map(|value| shown_among(&swept.written, value)).collect();
    DrawingAxis { key: swept.key, values: swept.values, shown, range: swept.range }
}

/// The medium of a link that names none.
fn default_medium() -> &'static str {
    let medium = |key: &trunkline_experiment::schema::Key| match (&key.shape, key.default) {
        (Shape::Medium(_), Preset::Text(word)) => Some(word),
        _ => None,
    };
    Schema::default().link.iter().find_map(medium).unwrap_or_default()
}

/// A label, with the number of the things that it stands for.
fn many(count: Option<u32>, label: String) -> String {
    match count {
        Some(count) => format!("{count} × {label}"),
        None => label,
    }
}

/// The kind that a key names, as a word or as a table with `kind`; empty without the key.
fn word(keys: &Tree, key: &str) -> String {
    let written = match keys.get(key) {
        Some(Value::Object(table)) => table.get("kind").and_then(Value::as_str),
        Some(value) => value.as_str(),
        None => None,
    };
    written.unwrap_or_default().to_owned()
}

impl DrawingHost {
    fn of(Named { name, keys, .. }: Named) -> DrawingHost {
        let place = match keys.get(POSITION).and_then(Value::as_array).map(Vec::as_slice) {
            Some([x, y]) => x.as_f64().zip(y.as_f64()).filter(|(x, y)| x.is_finite() && y.is_finite()),
            _ => None,
        };
        let (x, y) = place.unwrap_or_default();
        let agent = keys.get("agent").and_then(Value::as_str).map(str::to_owned);
        let count = keys.get("count").and_then(Value::as_u64).unwrap_or(1);
        DrawingHost { name, x, y, placed: place.is_some(), count, agent, keys }
    }
}

impl DrawingLink {
    fn of(Named { name, keys, count, profiled }: Named, default_medium: &str) -> DrawingLink {
        // What a profile says is drawn as if it stood here.
        let said = |key: &str| profiled.get(key).and_then(Value::as_str);
        let medium = said("medium").unwrap_or(default_medium).to_owned();
        let profile = keys.get("profile").and_then(Value::as_str);
        // As with rate and delay, what nobody has chosen is not drawn.
        let queue = word(&keys, "queue");
        let parts =
            [profile, said("rate"), said("delay"), Some(queue.as_str()).filter(|queue| !queue.is_empty())];
        let mut label = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if label.is_empty() {
            label.clone_from(&medium);
        }
        DrawingLink { name, between: texts(keys.get("between")), medium, label: many(count, label), keys }
    }
}

impl DrawingFlow {
    fn of(Named { name, keys, count: hosts, .. }: Named) -> DrawingFlow {
        let (transport, source) = (word(&keys, "transport"), word(&keys, "source"));
        let count = keys.get("count").and_then(Value::as_u64).unwrap_or(1);
        let known: Vec<&str> =
            [source.as_str(), transport.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
        let label =
            if count == 1 { known.join(" · ") } else { format!("{count} × {}", known.join(" · ")) };
        DrawingFlow {
            from: keys.get("from").and_then(Value::as_str).unwrap_or_default().to_owned(),
            to: sinks(keys.get("to")),
            label: many(hosts, label),
            transport,
            source,
            count,
            name,
            keys,
        }
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

//! What is to be drawn of an experiment file.

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Section, placed, places};
use crate::alike::{self, COUNT};
use crate::problem::Problems;
use crate::range;
use crate::schema::{POSITION, Schema, Shape};
use crate::sweep::{self, flattened};
use crate::tree::{self, Item, Node, Table};

/// A TOML table as it is written, in JSON: texts, numbers, flags, lists, tables.
pub type Tree = Map<String, Value>;

/// An experiment file as it is drawn. Names that lead nowhere are kept: what they lack is told by the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Drawing {
    /// The experiment's name; empty without one.
    pub title: String,
    /// In the order of the file, as everything below.
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
    /// To the right, in pixels of a drawing that is not scaled.
    pub x: f64,
    /// Downwards.
    pub y: f64,
    /// Whether the file says that it stands there; else the place was found from the links.
    pub placed: bool,
    /// How many hosts it stands for; 1 for itself.
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
    /// What carries the packets.
    pub medium: String,
    /// What is said beside it: `2 Mbit/s · 5 ms · fifo`, as far as it is written.
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
    /// How many members it has.
    pub count: u64,
    /// What is said beside it: `8 × voice · udp`.
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
    /// Its values; one that is no list by itself. Of a range those that it stands for, as far as it can be read.
    pub values: Vec<Value>,
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
    let root = tree::parse(text).map_err(|remarks| placed(remarks, text))?;
    let nothing = Table::default();
    let root = root.table().unwrap_or(&nothing);
    let reading = Reading { text, schema: Schema::new() };
    let mut links: Vec<DrawingLink> = reading.tables(root, Section::Link, DrawingLink::read);
    let mut flows: Vec<DrawingFlow> = reading.tables(root, Section::Flow, DrawingFlow::read);
    let mut hosts = reading.tables(root, Section::Hosts, DrawingHost::read);
    let count = |section: Section, name: &str| alike::count_of(&reading.schema, root, section.key(), name);
    let many = |label: &mut String, count: Option<u32>| {
        if let Some(count) = count {
            *label = format!("{count} × {label}");
        }
    };
    links.iter_mut().for_each(|link| many(&mut link.label, count(Section::Link, &link.name)));
    flows.iter_mut().for_each(|flow| many(&mut flow.label, count(Section::Flow, &flow.name)));
    places::find(&mut hosts, &links, &flows);
    Ok(Drawing {
        title: root.node("name").and_then(Node::text).unwrap_or_default().to_owned(),
        hosts,
        links,
        flows,
        bundles: reading.tables(root, Section::Bundle, DrawingBundle::read),
        experiment: reading.experiment(root),
        sweep: reading.sweep(root),
        limits: reading.limits(root),
    })
}

struct Reading<'t> {
    text: &'t str,
    schema: Schema,
}

impl Reading<'_> {
    /// Each table of a section, the first of a name.
    fn tables<T>(
        &self,
        root: &Table,
        section: Section,
        read: fn(&Self, String, &Table, Tree) -> T,
    ) -> Vec<T> {
        let entries = root.node(section.key()).and_then(Node::table).map_or(&[][..], |table| &table.0);
        let tables = entries.iter().filter_map(|entry| Some((&entry.key, entry.node.table()?)));
        tables.map(|(name, table)| read(self, name.to_string(), table, tree_of(self.text, table))).collect()
    }

    fn experiment(&self, root: &Table) -> Tree {
        let sections = crate::schema::SECTIONS;
        let own = root.0.iter().filter(|entry| !sections.iter().any(|(name, _)| *name == &*entry.key));
        own.map(|entry| (entry.key.to_string(), json_of(self.text, &entry.node))).collect()
    }

    fn sweep(&self, root: &Table) -> Vec<DrawingAxis> {
        let entries = flattened(root, "sweep", &mut Vec::new());
        let keys: Vec<&str> = entries.iter().flat_map(|(key, _, _)| sweep::together(key)).collect();
        let known = OnceCell::new();
        let known = || known.get_or_init(|| sweep::sweepable(&self.schema, root, &keys));
        let swept = entries.iter().map(|(key, _, node)| {
            let range = node.table().filter(|table| range::is_range(table));
            let values = match (range, json_of(self.text, node)) {
                (Some(table), _) => {
                    let of = sweep::together(key).next().and_then(|key| sweep::find(key, known()).ok());
                    let values = of.and_then(|of| range::values(key, node, table, of).ok());
                    let (nodes, _) = values.unwrap_or_default();
                    nodes.iter().map(|node| json_of(self.text, node)).collect()
                }
                (None, Value::Array(values)) => values,
                (None, value) => vec![value],
            };
            DrawingAxis { key: key.clone(), values, range: range.map(|table| tree_of(self.text, table)) }
        });
        swept.collect()
    }

    fn limits(&self, root: &Table) -> Vec<DrawingLimit> {
        let entries = flattened(root, "limits", &mut Vec::new());
        let limit = |node: &Node| match json_of(self.text, node) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        entries.into_iter().map(|(key, _, node)| DrawingLimit { key, limit: limit(node) }).collect()
    }

    /// The word of a key of several kinds, as it is or would be if it were written.
    fn word(&self, keys: &Tree, key: &str) -> String {
        let written = match keys.get(key) {
            Some(Value::Object(table)) => table.get("kind").and_then(Value::as_str),
            Some(value) => value.as_str(),
            None => None,
        };
        written.unwrap_or_default().to_owned()
    }
}

impl DrawingHost {
    fn read(_: &Reading<'_>, name: String, _: &Table, keys: Tree) -> DrawingHost {
        let place = match keys.get(POSITION).and_then(Value::as_array).map(Vec::as_slice) {
            Some([x, y]) => x.as_f64().zip(y.as_f64()).filter(|(x, y)| x.is_finite() && y.is_finite()),
            _ => None,
        };
        let (x, y) = place.unwrap_or_default();
        let agent = keys.get("agent").and_then(Value::as_str).map(str::to_owned);
        let count = keys.get(COUNT).and_then(Value::as_u64).unwrap_or(1);
        DrawingHost { name, x, y, placed: place.is_some(), count, agent, keys }
    }
}

impl DrawingLink {
    fn read(reading: &Reading<'_>, name: String, table: &Table, keys: Tree) -> DrawingLink {
        // What a profile says is drawn as if it stood here.
        let filled = crate::link_profile::filled_in(table);
        let said = |key: &str| filled.node(key).and_then(Node::text);
        let media = reading.schema.link.iter().find_map(|key| match (&key.shape, key.default) {
            (Shape::Medium(_), trunkline_core::schema::Default::Text(word)) => Some(word),
            _ => None,
        });
        let medium = said("medium").or(media).unwrap_or_default().to_owned();
        let profile = keys.get("profile").and_then(Value::as_str);
        // As with rate and delay, what nobody has chosen is not drawn.
        let queue = reading.word(&keys, "queue");
        let parts =
            [profile, said("rate"), said("delay"), Some(queue.as_str()).filter(|queue| !queue.is_empty())];
        let mut label = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if label.is_empty() {
            label.clone_from(&medium);
        }
        DrawingLink { name, between: texts(keys.get("between")), medium, label, keys }
    }
}

impl DrawingFlow {
    fn read(reading: &Reading<'_>, name: String, _: &Table, keys: Tree) -> DrawingFlow {
        let (transport, source) = (reading.word(&keys, "transport"), reading.word(&keys, "source"));
        let count = keys.get("count").and_then(Value::as_u64).unwrap_or(1);
        let many = if count == 1 { String::new() } else { format!("{count} × ") };
        let known: Vec<&str> =
            [source.as_str(), transport.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
        DrawingFlow {
            from: keys.get("from").and_then(Value::as_str).unwrap_or_default().to_owned(),
            to: sinks(keys.get("to")),
            label: many + &known.join(" · "),
            transport,
            source,
            count,
            name,
            keys,
        }
    }
}

impl DrawingBundle {
    fn read(_: &Reading<'_>, name: String, _: &Table, keys: Tree) -> DrawingBundle {
        DrawingBundle { name, flows: texts(keys.get("flows")), keys }
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// `"b"`, `["b", { host = "c" }]`
fn sinks(to: Option<&Value>) -> Vec<String> {
    let host = |sink: &Value| match sink {
        Value::Object(table) => table.get("host").and_then(Value::as_str).map(str::to_owned),
        _ => sink.as_str().map(str::to_owned),
    };
    match to {
        Some(Value::Array(list)) => list.iter().filter_map(host).collect(),
        Some(one) => host(one).into_iter().collect(),
        None => Vec::new(),
    }
}

/// A table of a text in JSON.
pub(super) fn tree_of(text: &str, table: &Table) -> Tree {
    table.0.iter().map(|entry| (entry.key.to_string(), json_of(text, &entry.node))).collect()
}

/// A value of a text in JSON. What JSON has no word for stays as it is written.
pub(crate) fn json_of(text: &str, node: &Node) -> Value {
    let written = || Value::from(text.get(node.span.clone()).unwrap_or_default());
    match &node.item {
        Item::Text(text) => Value::from(&**text),
        Item::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => Value::from(value),
            (_, Ok(value)) => Value::from(value),
            _ => written(),
        },
        Item::Number(value) => serde_json::Number::from_f64(*value).map_or_else(written, Value::Number),
        Item::Flag(flag) => Value::from(*flag),
        Item::Array(values) => values.iter().map(|value| json_of(text, value)).collect(),
        Item::Table(table) => Value::Object(tree_of(text, table)),
        Item::Other(_) => written(),
    }
}

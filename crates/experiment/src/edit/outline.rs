//! The parts of an experiment file as they are written: what edits change and what a drawing shows.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::{Section, placed};
use crate::alike;
use crate::problem::Problems;
use crate::range;
use crate::schema::Schema;
use crate::sweep::{self, flattened};
use crate::tree::{self, Item, Node, Table};

/// A TOML table as it is written, in JSON: texts, numbers, flags, lists, tables.
pub type Tree = Map<String, Value>;

/// The parts of an experiment file, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Hosts.
    pub hosts: Vec<Named>,
    /// Links and media.
    pub links: Vec<Named>,
    /// Flows.
    pub flows: Vec<Named>,
    /// Bundles.
    pub bundles: Vec<Named>,
    /// The keys before the first table.
    pub experiment: Tree,
    /// Swept keys.
    pub sweep: Vec<Swept>,
    /// Limits.
    pub limits: Vec<Limited>,
}

/// A host, link, flow or bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its table.
    pub keys: Tree,
    /// The number of hosts, links or flows that it stands for; `None` for itself.
    pub count: Option<u32>,
    /// For a link, its table with the keys that its profile adds.
    pub profiled: Tree,
}

/// A swept key, or several that vary together.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// `flow.voice.count`.
    pub key: String,
    /// Its values; one that is not a list by itself. Of a range those that it stands for, as far as it can be read.
    pub values: Vec<Value>,
    /// The same as they stand in the file, texts without their quotes.
    pub written: Vec<String>,
    /// The range as it is written, if it is one: `from`, `to` and a step.
    pub range: Option<Tree>,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    /// `flow.voice.latency.p99`.
    pub key: String,
    /// `< 150 ms`.
    pub limit: String,
}

/// Reads the parts of a text that is TOML, whether it is a valid experiment or not.
///
/// # Errors
/// If it is not TOML.
pub fn outline(text: &str) -> Result<Outline, Problems> {
    let root = tree::parse(text).map_err(|remarks| placed(remarks, text))?;
    let nothing = Table::default();
    let root = root.table().unwrap_or(&nothing);
    let reading = Reading { text, schema: Schema::default() };
    Ok(Outline {
        hosts: reading.tables(root, Section::Hosts),
        links: reading.tables(root, Section::Link),
        flows: reading.tables(root, Section::Flow),
        bundles: reading.tables(root, Section::Bundle),
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
    fn tables(&self, root: &Table, section: Section) -> Vec<Named> {
        let entries = root.node(section.key()).and_then(Node::table).map_or(&[][..], |table| &table.0);
        let tables = entries.iter().filter_map(|entry| Some((&*entry.key, entry.node.table()?)));
        let named = |(name, table): (&str, &Table)| Named {
            name: name.to_owned(),
            keys: tree_of(self.text, table),
            count: alike::count_of(&self.schema, root, section.key(), name),
            profiled: match section {
                Section::Link => tree_of(self.text, &crate::link_profile::filled_in(table)),
                _ => Tree::new(),
            },
        };
        tables.map(named).collect()
    }

    fn experiment(&self, root: &Table) -> Tree {
        let sections = crate::schema::SECTIONS;
        let own = root.0.iter().filter(|entry| !sections.iter().any(|(name, _)| *name == &*entry.key));
        own.map(|entry| (entry.key.to_string(), json_of(self.text, &entry.node))).collect()
    }

    fn sweep(&self, root: &Table) -> Vec<Swept> {
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
            let written = match (&node.item, range) {
                (_, Some(_)) => values.iter().map(plain).collect(),
                (Item::Array(nodes), None) => {
                    nodes.iter().map(|node| sweep::written(self.text, node)).collect()
                }
                (_, None) => vec![sweep::written(self.text, node)],
            };
            Swept { key: key.clone(), values, written, range: range.map(|table| tree_of(self.text, table)) }
        });
        swept.collect()
    }

    fn limits(&self, root: &Table) -> Vec<Limited> {
        let entries = flattened(root, "limits", &mut Vec::new());
        let limited =
            |(key, _, node): (String, _, &Node)| Limited { key, limit: plain(&json_of(self.text, node)) };
        entries.into_iter().map(limited).collect()
    }
}

/// A text without its quotes, or a number.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The hosts of a flow's sinks, as written in `to`: `"b"`, or `["b", { host = "c" }]`.
pub fn sinks(to: Option<&Value>) -> Vec<String> {
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

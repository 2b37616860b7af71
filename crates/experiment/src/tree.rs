//! The file as a tree in which every value knows its place. Owned and cheap to copy, so that every point of a sweep can
//! have its own with the swept values in place.

use core::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::alike::Alike;
use crate::problem::Remark;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) item: Item,
}

/// What can stand there.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Text(Arc<str>),
    Integer(i128),
    Number(f64),
    Flag(bool),
    Array(Vec<Node>),
    Table(Table),
    /// Something that no key of ours takes: a date, or an integer beyond all bounds.
    Other(&'static str),
}

/// A table, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<Entry>);

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Arc<str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
    /// Which one it is, if it was made from an entry that stands for several.
    pub(crate) of: Option<Arc<Alike>>,
}

impl Entry {
    /// The name in the file.
    pub(crate) fn written(&self) -> &str {
        self.of.as_ref().map_or(&self.key, |alike| &alike.written)
    }

    /// True for a copy of an entry that came before.
    pub(crate) fn is_repeated(&self) -> bool {
        self.of.as_ref().is_some_and(|alike| alike.number > 1)
    }
}

/// The longest text, in bytes, of which all syntax errors are reported.
const ALL_ERRORS: usize = 32 << 10;

/// Parses TOML. What cannot be read is remarked, the rest is read.
pub(crate) fn parse(text: &str) -> Result<Node, Vec<Remark>> {
    let first = match DeTable::parse(text) {
        Ok(table) => {
            let span = table.span();
            return Ok(Node { span, item: Item::Table(table_of(table.get_ref())) });
        }
        Err(first) => first,
    };
    // Of a longer text only the first: for each the parser goes through the rest of the text.
    let errors = match text.len() {
        ..=ALL_ERRORS => DeTable::parse_recoverable(text).1,
        _ => vec![first],
    };
    let remark = |error: &toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let message = match text.get(span.clone()) {
            Some(key) if message == "duplicate key" => {
                format!("duplicate key `{}`", key.escape_debug())
            }
            _ => format!("not TOML: {message}"),
        };
        Remark::new(span, message)
    };
    Err(errors.iter().map(remark).collect())
}

fn table_of(table: &DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().as_ref().into(),
            key_span: key.span(),
            node: Node { span: value.span(), item: item_of(value.get_ref()) },
            of: None,
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Table(entries)
}

fn item_of(value: &DeValue<'_>) -> Item {
    match value {
        DeValue::String(text) => Item::Text(text.as_ref().into()),
        DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Item::Integer(value),
            Err(_) => Item::Other("an integer of too many digits"),
        },
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(value) => Item::Number(value),
            Err(_) => Item::Other("a number"),
        },
        DeValue::Boolean(flag) => Item::Flag(*flag),
        DeValue::Datetime(_) => Item::Other("a date or time of day"),
        DeValue::Array(array) => Item::Array(
            array.iter().map(|node| Node { span: node.span(), item: item_of(node.get_ref()) }).collect(),
        ),
        DeValue::Table(table) => Item::Table(table_of(table)),
    }
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| &*entry.key == key)
    }

    pub(crate) fn node(&self, key: &str) -> Option<&Node> {
        self.get(key).map(|entry| &entry.node)
    }

    /// Puts a value in place of the one that stands under `key`, or beside the others.
    pub(crate) fn set(&mut self, key: &str, node: Node) {
        match self.0.iter_mut().find(|entry| &*entry.key == key) {
            Some(entry) => entry.node = node,
            None => self.0.push(Entry { key: key.into(), key_span: node.span.clone(), node, of: None }),
        }
    }
}

impl Node {
    /// The values in it, with its lists and tables.
    pub(crate) fn values(&self) -> u64 {
        let below: u64 = match &self.item {
            Item::Array(nodes) => nodes.iter().map(Node::values).sum(),
            Item::Table(table) => table.0.iter().map(|entry| entry.node.values()).sum(),
            _ => 0,
        };
        below + 1
    }

    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.item {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its type in words, for "expected ..., found ...".
    pub(crate) fn describe(&self) -> String {
        match &self.item {
            Item::Text(text) => format!("the text `{text}`"),
            Item::Integer(value) => format!("the number {value}"),
            Item::Number(value) => format!("the number {value}"),
            Item::Flag(value) => format!("`{value}`"),
            Item::Array(_) => "a list".to_owned(),
            Item::Table(_) => "a table".to_owned(),
            Item::Other(what) => (*what).to_owned(),
        }
    }
}

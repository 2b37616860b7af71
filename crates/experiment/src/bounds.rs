//! Limits on the work and memory that reading the experiment of a peer may take.

use crate::alike::{self, Counts};
use crate::problem::Remark;
use crate::schema::Schema;
use crate::tree::{Entry, Item, Node, Table};

/// Limits on an experiment file of a peer. A file beyond them is refused before it is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the text.
    pub text: usize,
    /// Steps of reading a point: its values, and the comparisons of its names with each other.
    pub steps: u64,
    /// Values that hosts that are alike, with their links and flows, may become, and that profiles of links may bring.
    pub alike: u64,
}

impl Bounds {
    /// For the text of a peer: less than a second, and 128 bytes of memory for each byte of the text
    /// beside 16 MiB.
    pub const FOREIGN: Bounds = Bounds { text: 1 << 20, steps: 2_000_000, alike: 30_000 };
    /// For a file of the user's own.
    pub const NONE: Bounds = Bounds { text: usize::MAX, steps: u64::MAX, alike: u64::MAX };

    /// Refuses a text that is too long.
    pub(crate) fn check_text(&self, text: &str) -> Result<(), Remark> {
        if text.len() <= self.text {
            return Ok(());
        }
        let message =
            format!("the experiment file has {} bytes; the limit here is {}", text.len(), self.text);
        Err(Remark::new(0..0, message))
    }

    /// Refuses a tree that takes too many steps to be read.
    pub(crate) fn check_tree(&self, schema: &Schema, root: &Node) -> Result<(), Remark> {
        if self.steps == u64::MAX {
            return Ok(());
        }
        let Size { values, names } = root.table().map_or(Size::default(), |table| Size::of(schema, table));
        if values > self.alike.max(root.values()) {
            let message = format!(
                "the experiment is too large to be read here: its hosts with `count` expand to {values} \
                values, but the limit is {}; use fewer",
                self.alike
            );
            return Err(Remark::new(0..0, message));
        }
        let comparisons = names.saturating_mul(names) / 4;
        let steps = values.saturating_add(comparisons);
        if steps <= self.steps {
            return Ok(());
        }
        let message = format!(
            "the experiment is too large to be read here, with {values} values and {names} hosts, links, flows and \
             other names; use fewer"
        );
        Err(Remark::new(0..0, message))
    }
}

/// The size of a tree after hosts that are alike are written by themselves, at most.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Values, lists and tables.
    values: u64,
    /// Names that are looked for among others: hosts, links, flows, and wherever these are named.
    names: u64,
}

impl Size {
    fn of(schema: &Schema, root: &Table) -> Size {
        let counts = alike::counts(root);
        let mut size = Size { values: 1, names: 0 };
        for section in &root.0 {
            let table = section.node.table();
            let is_named = matches!(&*section.key, "hosts" | "link" | "flow" | "bundle" | "limits");
            size.values = size.values.saturating_add(1);
            match table {
                Some(table) if is_named => {
                    table.0.iter().for_each(|entry| size.add(schema, &section.key, entry, &counts));
                }
                Some(table) if &*section.key == "sweep" => {
                    size.values = size.values.saturating_add(section.node.values());
                    size.names = size.names.saturating_add(table.0.iter().map(keys).sum());
                }
                _ => size.values = size.values.saturating_add(section.node.values()),
            }
        }
        size
    }

    /// Adds an entry of a section, as often as it is made.
    fn add(&mut self, schema: &Schema, section: &str, entry: &Entry, counts: &Counts) {
        let none = Counts::new();
        let table = entry.node.table();
        let end = |key: &str| table.and_then(|table| table.node(key));
        let (times, spread) = match section {
            "hosts" => (counts.get(&entry.key).copied().unwrap_or(1).into(), &none),
            "link" if table.is_some_and(|link| alike::has_many_stations(schema, link)) => (1, counts),
            "link" => (end("between").map_or(1, |ends| most(ends, counts)), &none),
            "flow" => (
                ["from", "to"].into_iter().filter_map(end).map(|end| count(end, counts)).fold(1, u64::max),
                counts,
            ),
            _ => (1, &none),
        };
        self.values = self.values.saturating_add(times.saturating_mul(weight(&entry.node, spread)));
        self.names = self.names.saturating_add(times.saturating_mul(1 + listed(&entry.node, spread) / 2));
    }
}

/// The values of a tree in whose lists and stations each of these names stands for several.
fn weight(node: &Node, counts: &Counts) -> u64 {
    let of_entry = |entry: &Entry| {
        let times = counts.get(&entry.key).copied().unwrap_or(1);
        weight(&entry.node, counts).saturating_mul(times.into())
    };
    let below = match &node.item {
        Item::Array(nodes) => nodes
            .iter()
            .map(|node| weight(node, counts).saturating_mul(count(node, counts)))
            .fold(0, u64::saturating_add),
        Item::Table(table) => table.0.iter().map(of_entry).fold(0, u64::saturating_add),
        _ => 0,
    };
    below.saturating_add(1)
}

/// The items of the lists in a tree.
fn listed(node: &Node, counts: &Counts) -> u64 {
    match &node.item {
        Item::Table(table) => {
            table.0.iter().map(|entry| listed(&entry.node, counts)).fold(0, u64::saturating_add)
        }
        Item::Array(nodes) => nodes.iter().map(|node| count(node, counts)).fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// Number of hosts that an item of a list stands for: a name, or a table with a `host`.
fn count(node: &Node, counts: &Counts) -> u64 {
    let host = node.table().and_then(|table| table.node("host")).unwrap_or(node);
    host.text().and_then(|name| counts.get(name)).map_or(1, |count| (*count).into())
}

/// The most hosts that one item of a list stands for.
fn most(list: &Node, counts: &Counts) -> u64 {
    match &list.item {
        Item::Array(nodes) => nodes.iter().map(|node| count(node, counts)).fold(1, u64::max),
        _ => 1,
    }
}

/// The keys of an axis.
fn keys(axis: &Entry) -> u64 {
    axis.key.split(',').count() as u64
}

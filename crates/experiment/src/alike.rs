//! Hosts that are alike: `phone = { count = 50 }` stands for `phone-1` to `phone-50`, and links, stations and flows that name
//! `phone` are made for each of them.
//!
//! The tree of the file becomes a tree in which each of them is written, after swept values are in place. Whatever reads it
//! meets single hosts, links and flows; entries know from which one of the file they were made.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::problem::Remark;
use crate::schema::{PROCESSOR, Schema};
use crate::sweep;
use crate::tree::{Entry, Item, Node, Table};

/// The key of a host that says how many it stands for.
pub(crate) const COUNT: &str = "count";

/// The most hosts that one entry stands for.
pub(crate) const MOST_ALIKE: u64 = 10_000;

/// One of the things that an entry of the file stands for.
#[derive(Clone, Debug)]
pub(crate) struct Alike {
    /// The entry's name: `phone`.
    pub(crate) written: Arc<str>,
    /// From 1.
    pub(crate) number: u32,
    pub(crate) count: u32,
}

/// How many things each of the names stands for.
pub(crate) type Counts = BTreeMap<Arc<str>, u32>;

/// The name of one of several that are alike: `phone-3`.
pub(crate) fn numbered(name: &str, number: u32) -> String {
    format!("{name}-{number}")
}

/// The hosts of a file that stand for several.
pub(crate) fn counts(root: &Table) -> Counts {
    let entries = root.node("hosts").and_then(Node::table).map_or(&[][..], |table| &table.0);
    let count = |entry: &Entry| match entry.node.table()?.node(COUNT)?.item {
        Item::Integer(count) => {
            let count = u64::try_from(count).ok().filter(|count| (1..=MOST_ALIKE).contains(count))?;
            Some((Arc::clone(&entry.key), u32::try_from(count).ok()?))
        }
        _ => None,
    };
    entries.iter().filter_map(count).collect()
}

/// How many flows the flow of this table stands for; `None` if it stands for itself.
pub(crate) fn count_of_flow(flow: &Table, hosts: &Counts) -> Option<u32> {
    let of = |key: &str| hosts.get(flow.node(key)?.text()?).copied();
    of("from").or_else(|| of("to"))
}

/// How many hosts, links or flows an entry of a file stands for; `None` if it stands for itself.
pub(crate) fn count_of(schema: &Schema, root: &Table, section: &str, name: &str) -> Option<u32> {
    let hosts = counts(root);
    let table = root.node(section)?.table()?.node(name)?.table()?;
    match section {
        "hosts" => hosts.get(name).copied(),
        "flow" => count_of_flow(table, &hosts),
        "link" if !has_many_stations(schema, table) => {
            let Item::Array(ends) = &table.node("between")?.item else { return None };
            ends.iter().find_map(|end| hosts.get(end.text()?).copied())
        }
        _ => None,
    }
}

/// The number of one of the things that `name` stands for, if that is what `other` means: 3 for `phone-3`.
pub(crate) fn number_of(other: &str, name: &str, count: u32) -> Option<u32> {
    let number = other.strip_prefix(name)?.strip_prefix('-')?;
    number.parse().ok().filter(|parsed: &u32| (1..=count).contains(parsed) && parsed.to_string() == number)
}

/// Whether a link's medium may have more than two stations.
pub(crate) fn has_many_stations(schema: &Schema, link: &Table) -> bool {
    let kind = trunkline_network::medium::KINDS.get(sweep::medium(schema, link));
    kind.is_some_and(|kind| *kind.stations.end() > 2)
}

/// The tree in which every host, link and flow is written by itself, and what cannot be written so.
pub(crate) fn spread<'r, 's>(schema: &'s Schema, root: &'r Node) -> (Cow<'r, Node>, Vec<Remark>) {
    let Some(table) = root.table() else { return (Cow::Borrowed(root), Vec::new()) };
    let hosts = counts(table);
    if hosts.is_empty() {
        return (Cow::Borrowed(root), Vec::new());
    }
    let mut spreading = Spreading { schema, hosts, links: Counts::new(), remarks: Vec::new() };
    let mut table = table.clone();
    // Links before flows, whose paths name them.
    for (section, spread) in [
        ("hosts", Spreading::host as fn(&mut Spreading<'s>, &Entry) -> Vec<Entry>),
        ("link", Spreading::link),
        ("flow", Spreading::flow),
    ] {
        if let Some(entry) = table.0.iter_mut().find(|entry| &*entry.key == section)
            && let Item::Table(section) = &mut entry.node.item
        {
            *section = spreading.section(section, spread);
        }
    }
    (Cow::Owned(Node { span: root.span.clone(), item: Item::Table(table) }), spreading.remarks)
}

struct Spreading<'s> {
    schema: &'s Schema,
    hosts: Counts,
    links: Counts,
    remarks: Vec<Remark>,
}

/// The number of one of several, and how many they are.
type Of = (u32, u32);

impl Spreading<'_> {
    fn remark(&mut self, at: &Range<usize>, message: String) {
        self.remarks.push(Remark::new(at.clone(), message));
    }

    /// A section with every entry spread.
    fn section(&mut self, table: &Table, spread: fn(&mut Self, &Entry) -> Vec<Entry>) -> Table {
        let entries: Vec<Entry> = table.0.iter().flat_map(|entry| spread(self, entry)).collect();
        let mut made: BTreeMap<&str, &Alike> = BTreeMap::new();
        for entry in &entries {
            if let Some(alike) = &entry.of {
                made.insert(&entry.key, alike);
            }
        }
        let taken = entries.iter().filter(|entry| entry.of.is_none()).filter_map(|entry| {
            let Alike { written, count, .. } = made.get(&*entry.key)?;
            let message = format!(
                "`{}` is one of the {count} names that `{written}` expands to; choose another name",
                entry.key
            );
            Some(Remark::new(entry.key_span.clone(), message))
        });
        let taken: Vec<Remark> = taken.collect();
        self.remarks.extend(taken);
        Table(entries)
    }

    fn host(&mut self, entry: &Entry) -> Vec<Entry> {
        let count = self.hosts.get(&entry.key).copied();
        self.each(entry, count, |spreading, table, of| {
            if let Some(node) = table.node(PROCESSOR).cloned() {
                let hosts = spreading.hosts.clone();
                table.set(PROCESSOR, spreading.named(&node, of, &hosts, "hosts"));
            }
        })
    }

    fn link(&mut self, entry: &Entry) -> Vec<Entry> {
        let Some(link) = entry.node.table() else { return vec![entry.clone()] };
        let Some(Item::Array(ends)) = link.node("between").map(|node| &node.item) else {
            return vec![entry.clone()];
        };
        if has_many_stations(self.schema, link) {
            return vec![self.medium(entry, link, ends)];
        }
        let sizes: Vec<(&Node, u32)> =
            ends.iter().filter_map(|end| Some((end, *self.hosts.get(end.text()?)?))).collect();
        let count = sizes.first().map(|(_, count)| *count);
        if let [(first, count), (other, others)] = sizes.as_slice()
            && count != others
        {
            let message = one_by_one("link", (first, *count), (other, *others));
            let at = other.span.clone();
            self.remark(&at, message);
        }
        if let Some(count) = count {
            self.links.insert(Arc::clone(&entry.key), count);
        }
        let ends = ends.clone();
        self.each(entry, count, move |spreading, table, of| {
            let ends = ends.iter().map(|end| spreading.end(end, of)).collect();
            let span = table.node("between").map_or(0..0, |node| node.span.clone());
            table.set("between", Node { span, item: Item::Array(ends) });
        })
    }

    /// A medium of many stations has all hosts that are alike.
    fn medium(&mut self, entry: &Entry, link: &Table, ends: &[Node]) -> Entry {
        let mut link = link.clone();
        let ends = ends.iter().flat_map(|end| self.all(end)).collect();
        let span = link.node("between").map_or(0..0, |node| node.span.clone());
        link.set("between", Node { span, item: Item::Array(ends) });
        if let Some(stations) = link.0.iter_mut().find(|entry| &*entry.key == "station")
            && let Item::Table(stations) = &mut stations.node.item
        {
            *stations = self.stations(stations);
        }
        Entry { node: Node { span: entry.node.span.clone(), item: Item::Table(link) }, ..entry.clone() }
    }

    /// Tables of stations: that of hosts that are alike for each, with what is said of one by itself in its place.
    fn stations(&self, stations: &Table) -> Table {
        let mut spread = Table::default();
        for entry in &stations.0 {
            let Some(count) = self.hosts.get(&entry.key) else { continue };
            for number in 1..=*count {
                spread.set(&numbered(&entry.key, number), entry.node.clone());
            }
        }
        for entry in stations.0.iter().filter(|entry| !self.hosts.contains_key(&entry.key)) {
            let shared = spread.node(&entry.key).and_then(Node::table).cloned();
            let node = match (shared, entry.node.table()) {
                (Some(mut shared), Some(own)) => {
                    own.0.iter().for_each(|key| shared.set(&key.key, key.node.clone()));
                    Node { span: entry.node.span.clone(), item: Item::Table(shared) }
                }
                _ => entry.node.clone(),
            };
            spread.set(&entry.key, node);
        }
        spread
    }

    fn flow(&mut self, entry: &Entry) -> Vec<Entry> {
        let Some(flow) = entry.node.table() else { return vec![entry.clone()] };
        let size = |key: &str| {
            let node = flow.node(key)?;
            Some((node.clone(), *self.hosts.get(node.text()?)?))
        };
        let (from, to) = (size("from"), size("to"));
        if let (Some((first, count)), Some((other, others))) = (&from, &to)
            && count != others
        {
            let message = one_by_one("flow", (first, *count), (other, *others));
            let at = other.span.clone();
            self.remark(&at, message);
        }
        let sinks: Option<Vec<Node>> = match flow.node("to").map(|node| &node.item) {
            Some(Item::Array(sinks)) => Some(sinks.iter().flat_map(|sink| self.all(sink)).collect()),
            _ => None,
        };
        let several = sinks.as_ref().filter(|sinks| sinks.len() > 1);
        if let (Some((from, count)), Some(_), Some(to)) = (&from, several, flow.node("to")) {
            let name = from.text().unwrap_or_default();
            let message = format!(
                "a flow to several sinks comes from one host, and `{name}` stands for {count}; name one of them in `from`, \
                 such as `{}`",
                numbered(name, 1)
            );
            self.remark(&to.span, message);
        }
        let count = from.or(to).map(|(_, count)| count);
        self.each(entry, count, |spreading, table, of| {
            for key in ["from", "to"] {
                let Some(node) = table.node(key).cloned() else { continue };
                let node = match (&node.item, &sinks) {
                    (Item::Array(_), Some(sinks)) => Node { item: Item::Array(sinks.clone()), ..node },
                    _ => spreading.end(&node, of),
                };
                table.set(key, node);
            }
            spreading.path(table, of);
        })
    }

    /// The links of a path: of links that are made for each host, that of the flow's own number.
    fn path(&mut self, flow: &mut Table, of: Option<Of>) {
        let Some(Node { span, item: Item::Array(path) }) = flow.node("path").cloned() else { return };
        let links = self.links.clone();
        let path = path.iter().map(|link| self.named(link, of, &links, "links")).collect();
        flow.set("path", Node { span, item: Item::Array(path) });
    }

    /// An entry for each of `count`, or the one that there is.
    fn each(
        &mut self,
        entry: &Entry,
        count: Option<u32>,
        mut change: impl FnMut(&mut Self, &mut Table, Option<Of>),
    ) -> Vec<Entry> {
        let Some(table) = entry.node.table() else { return vec![entry.clone()] };
        let mut one = |spreading: &mut Self, key: Arc<str>, of: Option<Of>| {
            let mut table = table.clone();
            change(spreading, &mut table, of);
            let alike =
                of.map(|(number, count)| Arc::new(Alike { written: Arc::clone(&entry.key), number, count }));
            let node = Node { span: entry.node.span.clone(), item: Item::Table(table) };
            Entry { key, key_span: entry.key_span.clone(), node, of: alike }
        };
        match count {
            None => vec![one(self, Arc::clone(&entry.key), None)],
            Some(count) => (1..=count)
                .map(|number| one(self, numbered(&entry.key, number).into(), Some((number, count))))
                .collect(),
        }
    }

    /// The host at an end of a link or a flow, where different numbers have been told before.
    fn end(&self, node: &Node, of: Option<Of>) -> Node {
        let count = node.text().and_then(|name| self.hosts.get(name));
        match (node.text(), count, of) {
            (Some(name), Some(count), Some((number, _))) => text(node, numbered(name, number.min(*count))),
            _ => node.clone(),
        }
    }

    /// What a name stands for beside a thing of this number: the one with the same number, if there are as many.
    fn named(&mut self, node: &Node, of: Option<Of>, counts: &Counts, noun: &str) -> Node {
        let Some(name) = node.text() else { return node.clone() };
        let Some(count) = counts.get(name) else { return node.clone() };
        match of {
            Some((number, all)) if all == *count => text(node, numbered(name, number)),
            _ => {
                let message =
                    format!("`{name}` is {count} {noun}; name one of them, such as `{}`", numbered(name, 1));
                self.remark(&node.span, message);
                text(node, numbered(name, 1))
            }
        }
    }

    /// Every host that a sink or a station stands for.
    fn all(&self, node: &Node) -> Vec<Node> {
        let host = node.table().and_then(|table| table.node("host")).unwrap_or(node);
        let Some((name, count)) = host.text().and_then(|name| Some((name, self.hosts.get(name)?))) else {
            return vec![node.clone()];
        };
        let one = |number: u32| {
            let host = text(host, numbered(name, number));
            match node.table().cloned() {
                Some(mut table) => {
                    table.set("host", host);
                    Node { span: node.span.clone(), item: Item::Table(table) }
                }
                None => host,
            }
        };
        (1..=*count).map(one).collect()
    }
}

/// Another name in the place of a node.
fn text(node: &Node, name: String) -> Node {
    Node { span: node.span.clone(), item: Item::Text(name.into()) }
}

/// Why two numbers of hosts do not go together.
fn one_by_one(noun: &str, (first, count): (&Node, u32), (other, others): (&Node, u32)) -> String {
    format!(
        "`{}` stands for {count} hosts and `{}` for {others}; a {noun} between them joins those of the same number, so give \
         both the same `{COUNT}`",
        first.text().unwrap_or_default(),
        other.text().unwrap_or_default()
    )
}

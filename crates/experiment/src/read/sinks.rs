//! Reads where a flow goes: one sink, several, or none.

use core::ops::Range;

use super::Reader;
use super::paths::{Map, reversed};
use crate::model::{Link, Sink};
use crate::problem::enumerate;
use crate::schema::{Key, SINK};
use crate::tree::{Item, Node, Table};

/// Where a flow goes.
pub(super) struct Ways {
    pub(super) to: Vec<Sink>,
    /// Without sinks: the link and the port at which packets enter it.
    pub(super) nowhere: Option<(usize, u16)>,
}

/// A sink as it is written, without its paths.
struct Written {
    sink: Sink,
    at: Range<usize>,
}

impl Reader<'_> {
    /// Where the flow goes; `None` after remarks. Without links, paths are empty.
    pub(super) fn ways(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        from: Option<usize>,
        hosts: &[String],
        links: Option<&(&[Link], Map)>,
    ) -> Option<Ways> {
        let sinks = self.sinks(table, at, place, hosts);
        let (from, sinks) = (from?, sinks?);
        if let Some(itself) = sinks.iter().find(|written| written.sink.host == from) {
            let message = format!("the flow would go from `{}` to itself; name another host", hosts[from]);
            self.remark(&itself.at, message);
            return None;
        }
        let twice = (1..sinks.len()).find(|i| sinks[..*i].iter().any(|s| s.sink.host == sinks[*i].sink.host));
        if let Some(place) = twice {
            let message = format!("`{}` is already a sink of the flow", hosts[sinks[place].sink.host]);
            self.remark(&sinks[place].at, message);
            return None;
        }
        let several = sinks.len() > 1;
        if let Some(path) = table.node("path").filter(|_| several) {
            let message =
                "`path` is for one sink; several sinks are reached over the shortest paths, so omit it"
                    .to_owned();
            self.remark(&path.span, message);
            return None;
        }
        let (links, map) = match links {
            Some((links, map)) => (*links, map),
            None => return Some(Ways { to: sinks.into_iter().map(|s| s.sink).collect(), nowhere: None }),
        };
        if sinks.is_empty() {
            let nowhere = Some(self.nowhere(table, at, from, hosts, links)?);
            return Some(Ways { to: Vec::new(), nowhere });
        }
        let with_paths = sinks.into_iter().map(|Written { mut sink, at }| {
            sink.forward = self.path(table, &at, (from, sink.host), hosts, links, map)?;
            sink.backward = reversed(&sink.forward);
            Some(sink)
        });
        // All paths are looked for, so that all mistakes are told at once.
        let with_paths: Vec<Option<Sink>> = with_paths.collect();
        Some(Ways { to: with_paths.into_iter().collect::<Option<_>>()?, nowhere: None })
    }

    /// `to = "b"`, `to = ["b", { host = "c", join = "2 s" }]`
    fn sinks(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        hosts: &[String],
    ) -> Option<Vec<Written>> {
        let Some(node) = table.node("to") else {
            self.missing("to", at, place, "the name of a host, or a list of them");
            return None;
        };
        let written: Vec<Option<Written>> = match &node.item {
            Item::Array(sinks) => sinks.iter().map(|node| self.sink(node, hosts)).collect(),
            _ => vec![self.sink(node, hosts)],
        };
        written.into_iter().collect()
    }

    fn sink(&mut self, node: &Node, hosts: &[String]) -> Option<Written> {
        let nothing = Table::default();
        let table = node.table().unwrap_or(&nothing);
        let keys: Vec<Key> = SINK.iter().map(Key::from).collect();
        let known: Vec<&str> = core::iter::once("host").chain(keys.iter().map(|key| key.name)).collect();
        self.refuse_unknown(table, &known, "a sink");
        let values = self.plain_values(table, &node.span, "in a sink of `to`", &keys);
        let host = match (node.table(), table.node("host")) {
            (None, _) => self.host("to", node, hosts),
            (Some(_), Some(host)) => self.host("host", host, hosts),
            (Some(_), None) => {
                self.missing("host", &node.span, "in a sink of `to`", "the name of a host");
                None
            }
        };
        let (values, host) = (values?, host?);
        let sink = Sink {
            host,
            forward: Vec::new(),
            backward: Vec::new(),
            join: values.duration("join"),
            leave: values.duration_if_given("leave"),
            fail: values.duration_if_given("fail"),
        };
        for (key, ends) in [("leave", sink.leave), ("fail", sink.fail)] {
            if ends.is_some_and(|ends| ends <= sink.join) {
                let at = table.node(key).map_or(&node.span, |node| &node.span);
                self.remark(at, format!("`{key}` must be later than `join`, which is {}", sink.join));
                return None;
            }
        }
        Some(Written { sink, at: node.span.clone() })
    }

    /// The link on which packets go to a station that does not exist: the one that `path` names, or the only one.
    fn nowhere(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        from: usize,
        hosts: &[String],
        links: &[Link],
    ) -> Option<(usize, u16)> {
        let port = |link: &Link| link.between.iter().position(|host| *host == from);
        let entrances: Vec<(usize, u16)> =
            (0..).zip(links).filter_map(|(index, link)| Some((index, port(link)? as u16))).collect();
        let name = |entrance: &(usize, u16)| links[entrance.0].name.as_str();
        let names = || enumerate(entrances.iter().map(name));
        let (path, to) = (table.node("path"), table.node("to"));
        let at = path.or(to).map_or(at, |node| &node.span);
        let message = match (path, entrances.as_slice()) {
            (_, []) => {
                format!("no link leaves `{}`; connect it to another host with a `[link.NAME]`", hosts[from])
            }
            (None, [only]) => return Some(*only),
            (None, _) => format!(
                "{} leave `{}`; say which one carries the packets, such as `path = [\"{}\"]`",
                names(),
                hosts[from],
                name(&entrances[0])
            ),
            (Some(path), _) => {
                let only = if let Item::Array(path) = &path.item { path.as_slice() } else { &[] };
                let named = if let [only] = only { only.text() } else { None };
                let found = entrances.iter().find(|entrance| named == Some(name(entrance)));
                if let Some(found) = found {
                    return Some(*found);
                }
                format!("a flow without sinks crosses one link that leaves `{}`: {}", hosts[from], names())
            }
        };
        self.remark(at, message);
        None
    }
}

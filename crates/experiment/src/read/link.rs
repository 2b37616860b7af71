//! Reads links.

use core::ops::Range;

use trunkline_core::schema::{Default as Preset, Value, Values};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_network::{Impairments, Loss, impairment};

use super::Reader;
use crate::model::{Direction, Link};
use crate::problem::{enumerate, suggestion};
use crate::schema::{Alternative, Key, Shape};
use crate::tree::{Entry, Item, Node, Table};

impl Reader<'_> {
    /// The links; `None` after remarks.
    pub(super) fn links(&mut self, root: &Table, hosts: &[String]) -> Option<Vec<Link>> {
        let before = self.remarks.len();
        let entries = self.named_tables(root, "link");
        let links = entries.iter().filter_map(|entry| self.link(entry, hosts)).collect();
        (self.remarks.len() == before).then_some(links)
    }

    fn link(&mut self, entry: &Entry, hosts: &[String]) -> Option<Link> {
        let table = self.table_of(entry, "link")?;
        let place = format!("[link.{}]", entry.key);
        let schema = self.schema;
        let medium = self.medium(table, &entry.node.span, &place)?;
        let keys = schema.direction.get(medium)?;
        let known: Vec<&str> = schema.link.iter().chain(keys).map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let between = self.between(table, &entry.node.span, &place, hosts);
        let forward = self.direction(table, &entry.node.span, &place, "forward", keys);
        let backward = self.direction(table, &entry.node.span, &place, "backward", keys);
        Some(Link {
            name: entry.key.to_string(),
            medium,
            between: between?,
            directions: [forward?, backward?],
        })
    }

    /// The index of the link's medium.
    fn medium(&mut self, table: &Table, at: &Range<usize>, place: &str) -> Option<usize> {
        let key = self.schema.link.iter().find(|key| matches!(key.shape, Shape::Medium(_)))?;
        let Shape::Medium(media) = &key.shape else { return None };
        let find = |word: &str| media.iter().position(|medium| medium.name == word);
        let words = || media.iter().map(|medium: &Alternative| medium.name);
        match (table.node(key.name), key.default) {
            (Some(node), _) => {
                let found = node.text().and_then(find);
                if found.is_none() {
                    let suggestion = suggestion(node.text().unwrap_or_default(), words());
                    self.remark(
                        &node.span,
                        format!("`{}` cannot be {}{suggestion}", key.name, node.describe()),
                    );
                }
                found
            }
            (None, Preset::Text(word)) => find(word),
            (None, _) => {
                self.missing(key.name, at, &format!("in {place}"), &format!("one of {}", enumerate(words())));
                None
            }
        }
    }

    fn between(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        hosts: &[String],
    ) -> Option<[usize; 2]> {
        const EXPECTED: &str = "the names of two hosts such as `[\"a\", \"b\"]`";
        let Some(node) = table.node("between") else {
            self.missing("between", at, &format!("in {place}"), EXPECTED);
            return None;
        };
        let Item::Array(ends) = &node.item else {
            self.remark(&node.span, format!("`between` must be {EXPECTED}, not {}", node.describe()));
            return None;
        };
        let [a, b] = ends.as_slice() else {
            self.remark(&node.span, format!("`between` must be {EXPECTED}, not a list of {}", ends.len()));
            return None;
        };
        let (first, second) = (self.host("between", a, hosts), self.host("between", b, hosts));
        let (first, second) = (first?, second?);
        if first == second {
            self.remark(
                &node.span,
                format!("the link would join `{}` to itself; name two hosts", hosts[first]),
            );
            return None;
        }
        Some([first, second])
    }

    /// The index of the host that a value names.
    pub(super) fn host(&mut self, key: &str, node: &Node, hosts: &[String]) -> Option<usize> {
        let Some(name) = node.text() else {
            self.remark(&node.span, format!("`{key}` must name a host, not {}", node.describe()));
            return None;
        };
        let found = hosts.iter().position(|host| host == name);
        if found.is_none() {
            let suggestion = if hosts.is_empty() {
                "; list the hosts in a table `[hosts]`".to_owned()
            } else {
                suggestion(name, hosts.iter().map(String::as_str))
            };
            self.remark(
                &node.span,
                format!("`{key}` names the unknown host `{}`{suggestion}", name.escape_debug()),
            );
        }
        found
    }

    /// What holds in one direction: the link's keys, with those of the sub-table of that name in their place.
    fn direction(
        &mut self,
        link: &Table,
        at: &Range<usize>,
        place: &str,
        name: &str,
        keys: &[Key],
    ) -> Option<Direction> {
        let mut table = link.clone();
        if let Some(node) = link.node(name) {
            let Some(own) = node.table() else {
                self.remark(&node.span, format!("`{name}` must be a table, not {}", node.describe()));
                return None;
            };
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            self.refuse_unknown(own, &known, &format!("the direction `{name}` of {place}"));
            for entry in &own.0 {
                table.set(&entry.key, entry.node.clone());
            }
        }
        let place = format!("in {place}");
        let values = self.plain_values(&table, at, &place, keys);
        let mut choose = |wanted: &str| {
            let key = keys.iter().find(|key| key.name == wanted)?;
            let Shape::OneOf(one_of) = &key.shape else { return None };
            self.one_of(&table, at, &place, key, one_of)
        };
        let (queue, loss) = (choose("queue"), choose("loss"));
        let (values, queue, loss) = (values?, queue??, loss?);
        let loss = loss.map_or(Loss::None, |chosen| {
            impairment::LOSS_KINDS.get(chosen.index).map_or(Loss::None, |kind| (kind.build)(&chosen.values))
        });
        Some(Direction {
            rate: given(
                &values,
                "rate",
                |value| if let Value::Rate(rate) = value { Some(*rate) } else { None },
            )
            .unwrap_or(Rate::from_bits_per_second(u64::MAX)),
            delay: given(
                &values,
                "delay",
                |value| if let Value::Duration(d) = value { Some(*d) } else { None },
            )
            .unwrap_or(Duration::ZERO),
            mtu: given(&values, "mtu", size).unwrap_or(Bytes(65_535)),
            overhead: given(&values, "overhead", size).unwrap_or(Bytes::ZERO),
            queue: (queue.index, queue.values),
            impairments: Impairments::new(loss, &values),
            values,
        })
    }
}

fn size(value: &Value) -> Option<Bytes> {
    if let Value::Bytes(size) = value { Some(*size) } else { None }
}

/// A value that a medium may have or not.
fn given<T>(values: &Values, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    values.iter().find(|(n, _)| *n == name).and_then(|(_, value)| read(value))
}

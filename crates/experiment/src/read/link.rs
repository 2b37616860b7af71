//! Reads links.

use core::ops::{Range, RangeInclusive};
use std::borrow::Cow;

use trunkline_core::schema::{Default as Preset, Value, Values};
use trunkline_core::{Bytes, Distribution, Duration, OverTime, Rate};
use trunkline_network::{Impairments, Loss, impairment, medium};

use super::Reader;
use crate::alike::numbered;
use crate::link_profile;
use crate::model::{Direction, Link};
use crate::problem::{Remark, enumerate, suggestion};
use crate::schema::{Alternative, Key, PROFILE_DOC, Shape};
use crate::sweep;
use crate::tree::{Entry, Item, Node, Table};

/// Bytes of a packet on the backplane of a Datakit node.
const PACKET_OF_BACKPLANE: u64 = 16;

impl Reader<'_> {
    /// The links; `None` after remarks.
    pub(super) fn links(&mut self, root: &Table, hosts: &[String]) -> Option<Vec<Link>> {
        let before = self.remarks.len();
        let mut links: Vec<Link> = Vec::new();
        for entry in self.named_tables(root, "link") {
            let link = match entry.is_repeated() {
                // Only its ends differ from those of the one before; without that one, all has been told.
                true => self.again(entry, hosts, links.last()),
                false => self.link(entry, hosts),
            };
            links.extend(link);
        }
        (self.remarks.len() == before).then_some(links)
    }

    /// A link like the one before, between other hosts.
    fn again(&mut self, entry: &Entry, hosts: &[String], before: Option<&Link>) -> Option<Link> {
        let of = entry.of.as_ref()?;
        let before = before.filter(|link| link.name == numbered(&of.written, of.number - 1))?;
        let (at, place) = (&entry.node.span, format!("[link.{}]", entry.written()));
        let between = self.between(entry.node.table()?, at, &place, hosts, &(2..=2))?;
        Some(Link { name: entry.key.to_string(), between, ..before.clone() })
    }

    fn link(&mut self, entry: &Entry, hosts: &[String]) -> Option<Link> {
        if self.is_full() {
            return None;
        }
        let own = self.table_of(entry, "link")?;
        let table = &*self.with_profile(own)?;
        let place = format!("[link.{}]", entry.written());
        let schema = self.schema;
        // Of an unknown profile everything would be missing: that alone is told.
        self.plain_values(table, &entry.node.span, &format!("in {place}"), &schema.link)?;
        let medium = self.medium(table, &entry.node.span, &place)?;
        let keys = schema.direction.get(medium)?;
        let kind = medium::KINDS.get(medium)?;
        let is_pair = *kind.stations.end() == 2;
        let apart = |key: &&Key| match key.shape {
            Shape::Direction => is_pair,
            Shape::Stations => !is_pair,
            _ => true,
        };
        let shared = schema.shared.get(medium)?;
        let known: Vec<&str> =
            schema.link.iter().filter(apart).chain(shared).chain(keys).map(|key| key.name).collect();
        self.refuse_unknown(table, &known, &place);
        let between = self.between(table, &entry.node.span, &place, hosts, &kind.stations);
        let values = self.plain_values(table, &entry.node.span, &format!("in {place}"), shared);
        let directions = if is_pair {
            link_profile::DIRECTIONS
                .map(|name| {
                    self.direction(
                        table,
                        &entry.node.span,
                        &place,
                        ("direction", name, table.node(name)),
                        keys,
                    )
                })
                .into()
        } else {
            self.stations(table, &entry.node.span, &place, between.as_deref()?, hosts, keys)?
        };
        let directions: Vec<Direction> = directions.into_iter().collect::<Option<_>>()?;
        self.check_needs(table, kind.needs.iter().chain(impairment::NEEDS), &directions);
        Some(Link { name: entry.key.to_string(), medium, between: between?, shared: values?, directions })
    }

    /// A link with the keys of its profile; `None` after remarks on a profile that is a file.
    fn with_profile<'t>(&mut self, link: &'t Table) -> Option<Cow<'t, Table>> {
        let Some((named, path)) = link_profile::file(link) else {
            return Some(link_profile::filled_in(link));
        };
        let profile = match self.shelf.profile(path) {
            Ok(profile) => profile,
            Err(problem) => {
                self.remark(&named.span, format!("`{path}` {problem}"));
                return None;
            }
        };
        let table = match &profile.table {
            Ok(table) => table,
            Err(remarks) => {
                self.remarks.extend(
                    remarks.iter().cloned().map(|remark| Remark { file: Some(path.into()), ..remark }),
                );
                return None;
            }
        };
        let filled = link_profile::with(link, named, table);
        // What is wrong in the file is told with its own lines; what does not fit together, at the line that names it.
        let before = self.remarks.len();
        self.check_profile(table, sweep::medium(self.schema, &filled));
        for remark in &mut self.remarks[before..] {
            remark.file = Some(path.into());
        }
        (self.remarks.len() == before).then_some(Cow::Owned(filled))
    }

    /// Remarks on keys of a profile that no link over this medium has, and on wrong values.
    fn check_profile(&mut self, profile: &Table, medium: usize) {
        let schema = self.schema;
        let (Some(shared), Some(keys)) = (schema.shared.get(medium), schema.direction.get(medium)) else {
            return;
        };
        let is_pair = medium::KINDS.get(medium).is_some_and(|kind| *kind.stations.end() == 2);
        let own = schema.link.iter().filter(|key| match key.shape {
            Shape::Medium(_) => true,
            Shape::Direction => is_pair,
            _ => false,
        });
        let names = own.chain(shared).chain(keys).map(|key| key.name);
        let known: Vec<&str> = names.chain([PROFILE_DOC]).collect();
        let place = "a profile of a link";
        self.refuse_unknown(profile, &known, place);
        if let Some(doc) = profile.node(PROFILE_DOC).filter(|doc| doc.text().is_none()) {
            self.remark(&doc.span, format!("`{PROFILE_DOC}` must be a text, not {}", doc.describe()));
        }
        if profile.node("medium").is_some() {
            self.medium(profile, &(0..0), place);
        }
        self.check_given(profile, shared);
        self.check_given(profile, keys);
        for name in link_profile::DIRECTIONS.into_iter().filter(|_| is_pair) {
            let Some(node) = profile.node(name) else { continue };
            let Some(direction) = node.table() else {
                self.remark(&node.span, format!("`{name}` must be a table, not {}", node.describe()));
                continue;
            };
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            self.refuse_unknown(direction, &known, &format!("the direction `{name}` of {place}"));
            self.check_given(direction, keys);
        }
    }

    /// Remarks on wrong values among those that are there.
    fn check_given(&mut self, table: &Table, keys: &[Key]) {
        for key in keys.iter().filter(|key| table.node(key.name).is_some()) {
            if let Shape::OneOf(one_of) = &key.shape {
                self.one_of(table, &(0..0), "in the profile", key, one_of);
            } else {
                self.plain_values(table, &(0..0), "in the profile", core::slice::from_ref(key));
            }
        }
    }

    /// Refuses a key that does nothing, because no direction has the one that it needs.
    fn check_needs<'n>(
        &mut self,
        link: &Table,
        needs: impl Iterator<Item = &'n (&'n str, &'n str)>,
        directions: &[Direction],
    ) {
        let own = |name: &str| link.node(name).and_then(Node::table);
        let stations =
            own("station").into_iter().flat_map(|all| &all.0).filter_map(|entry| entry.node.table());
        let tables: Vec<&Table> =
            [Some(link), own("forward"), own("backward")].into_iter().flatten().chain(stations).collect();
        for (key, needed) in needs {
            let is_given = tables.iter().any(|table| table.node(needed).is_some());
            let is_absent = |direction: &Direction| match direction.values.value(needed) {
                Value::Absent => true,
                // A share of nothing that a sweep may change.
                Value::Ratio(share) => share.value() == 0.0 && !is_given,
                _ => false,
            };
            if let Some(node) = tables.iter().find_map(|table| table.node(key))
                && directions.iter().all(is_absent)
            {
                self.remark(&node.span, format!("`{key}` needs `{needed}`; without it, it has no effect"));
            }
        }
    }

    /// What holds at each station.
    fn stations(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        between: &[usize],
        hosts: &[String],
        keys: &[Key],
    ) -> Option<Vec<Option<Direction>>> {
        let empty = Table::default();
        let own = match table.node("station") {
            None => &empty,
            Some(node) => match node.table() {
                Some(own) => own,
                None => {
                    let message = format!("`station` must be a table of stations, not {}", node.describe());
                    self.remark(&node.span, message);
                    return None;
                }
            },
        };
        let names: Vec<&str> = between.iter().map(|host| hosts[*host].as_str()).collect();
        self.refuse_unknown(own, &names, &format!("the stations of {place}"));
        Some(
            names
                .iter()
                .map(|name| self.direction(table, at, place, ("station", name, own.node(name)), keys))
                .collect(),
        )
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
        stations: &RangeInclusive<usize>,
    ) -> Option<Vec<usize>> {
        let expected = match (stations.start(), stations.end()) {
            (2, 2) => "the names of two hosts such as `[\"a\", \"b\"]`".to_owned(),
            (least, most) => format!("the names of {least} to {most} hosts such as `[\"a\", \"b\", \"c\"]`"),
        };
        let Some(node) = table.node("between") else {
            self.missing("between", at, &format!("in {place}"), &expected);
            return None;
        };
        let Item::Array(ends) = &node.item else {
            self.remark(&node.span, format!("`between` must be {expected}, not {}", node.describe()));
            return None;
        };
        if !stations.contains(&ends.len()) {
            self.remark(&node.span, format!("`between` must be {expected}, not a list of {}", ends.len()));
            return None;
        }
        let found: Vec<Option<usize>> = ends.iter().map(|end| self.host("between", end, hosts)).collect();
        let found: Vec<usize> = found.into_iter().collect::<Option<_>>()?;
        let twice = (1..found.len()).find(|place| found[..*place].contains(&found[*place]));
        if let Some(place) = twice {
            let (at, name) = (&ends[place].span, &hosts[found[place]]);
            self.remark(at, format!("the link would join `{name}` to itself; name every host once"));
            return None;
        }
        Some(found)
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

    /// What holds in one direction or at one station: the link's keys, with those of its own table in their place.
    fn direction(
        &mut self,
        link: &Table,
        at: &Range<usize>,
        place: &str,
        (part, name, own): (&str, &str, Option<&Node>),
        keys: &[Key],
    ) -> Option<Direction> {
        let mut table = link.clone();
        if let Some(node) = own {
            let Some(own) = node.table() else {
                self.remark(&node.span, format!("`{name}` must be a table, not {}", node.describe()));
                return None;
            };
            let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
            self.refuse_unknown(own, &known, &format!("the {part} `{name}` of {place}"));
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
        if let Some(Value::Distribution(Distribution::Constant(constant @ 1..))) = value(&values, "jitter") {
            let delay = Duration::from_nanos(*constant);
            let message = format!(
                "`jitter` is a delay that varies, and {delay} would be the same for each packet; add it to `delay`, or write \
                 the range of the jitter, such as `{{ kind = \"uniform\", min = \"0 ms\", max = \"{delay}\" }}`"
            );
            self.remark(table.node("jitter").map_or(at, |node| &node.span), message);
        }
        let has_memory = !matches!(value(&values, impairment::JITTER_MEMORY), None | Some(Value::Absent));
        if let Some(Value::Distribution(Distribution::Trace(_))) =
            value(&values, "jitter").filter(|_| has_memory)
        {
            let message = format!(
                "`{}` has no effect on the values of a `trace`, which have an order of their own; omit it, or draw them \
                 with `kind = \"empirical\"`",
                impairment::JITTER_MEMORY
            );
            self.remark(table.node(impairment::JITTER_MEMORY).map_or(at, |node| &node.span), message);
        }
        // A bucket of the peak rate, and that of the mean rate below it; in cells both may be the same.
        for (peak_key, key, is_higher) in [
            ("shape-peak-rate", "shape-rate", true),
            ("peak-rate", "committed-rate", false),
            ("shape-pcr", "shape-scr", false),
            ("pcr", "scr", false),
        ] {
            let (Some(Value::Rate(peak)), Some(Value::Rate(rate))) =
                (value(&values, peak_key), value(&values, key))
            else {
                continue;
            };
            let expected = if is_higher { "higher than" } else { "at least as high as" };
            if peak < rate || (is_higher && peak == rate) {
                let message =
                    format!("`{peak_key}` is {peak}; it must be {expected} `{key}`, which is {rate}");
                self.remark(table.node(peak_key).map_or(at, |node| &node.span), message);
            }
        }
        if let Some(Value::Bytes(chunk)) = value(&values, "chunk")
            && !chunk.count().is_multiple_of(PACKET_OF_BACKPLANE)
        {
            let message = format!(
                "`chunk` is {chunk}; it must be a multiple of {PACKET_OF_BACKPLANE} B, the size of a packet on the backplane"
            );
            self.remark(table.node("chunk").map_or(at, |node| &node.span), message);
        }
        let loss = loss.map_or(Loss::None, |chosen| {
            impairment::LOSS_KINDS.get(chosen.index).map_or(Loss::None, |kind| (kind.build)(&chosen.values))
        });
        let impairments = Impairments::new(loss, &values);
        Some(Direction {
            rate: Rate::from_bits_per_second(over_time(&values, "rate").map_or(u64::MAX, |rate| rate.max())),
            delay: Duration::from_nanos(over_time(&values, "delay").map_or(0, |delay| delay.min())),
            mtu: given(&values, "mtu", size).unwrap_or(Bytes(65_535)),
            overhead: given(&values, "overhead", size).unwrap_or(Bytes::ZERO),
            queue: (queue.index, queue.values),
            wander: wander(&values, &impairments),
            impairments,
            values,
        })
    }
}

fn size(value: &Value) -> Option<Bytes> {
    if let Value::Bytes(size) = value { Some(*size) } else { None }
}

/// A rate or a duration that may change over time, if the medium has it.
fn over_time(values: &Values, name: &str) -> Option<OverTime> {
    let is_given = |value: &Value| matches!(value, Value::Rate(_) | Value::Duration(_) | Value::Series(_));
    value(values, name).filter(|value| is_given(value)).map(|_| values.over_time(name))
}

/// Difference of the delays at two moments: of the propagation delay, and of nearly all jitter with a memory.
fn wander(values: &Values, impairments: &Impairments) -> Duration {
    let delay = over_time(values, "delay").map_or(0, |delay| delay.max() - delay.min());
    let jitter = impairments.jitter.as_ref().filter(|_| impairments.jitter_memory.is_some());
    let jitter = jitter.map_or(0, |jitter| {
        let values = jitter.quantiles();
        values.at(0.999) - values.at(0.001)
    });
    Duration::from_nanos(delay.saturating_add(jitter))
}

/// A value that a medium may have or not.
fn given<T>(values: &Values, name: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    value(values, name).and_then(read)
}

fn value<'v>(values: &'v Values, name: &str) -> Option<&'v Value> {
    values.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
}

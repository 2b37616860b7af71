//! Sweeps: finds swept keys in the schema, and puts swept values into copies of the tree.

mod draws;

use core::ops::Range;
use std::collections::BTreeSet;

use trunkline_core::schema::{Default as Preset, Kind};

use crate::alike::{self, Counts, number_of};
use crate::files::Shelf;
use crate::link_profile;
use crate::model::{Axis, is_draws};
use crate::problem::{Remark, suggestion};
use crate::quantity;
use crate::range;
use crate::read::MOST_REMARKS;
use crate::schema::{Key, OneOf, Schema, Shape, distribution, series};
use crate::tree::{Item, Node, Table};

/// The most points of a product.
pub(crate) const MOST_POINTS: u64 = 100_000;

/// One swept key with its values.
pub(crate) struct Swept {
    pub(crate) axis: Axis,
    pub(crate) nodes: Vec<Node>,
}

/// A key that can be swept, and what it takes if that is one value.
pub(crate) struct Sweepable {
    pub(crate) key: String,
    pub(crate) kind: Option<Kind>,
    /// The value in the file or the default, where that is a single value.
    pub(crate) now: Option<String>,
}

/// Keys that are the whole run's and cannot differ between points.
pub(crate) const FIXED: [&str; 3] = ["name", "repetitions", "seed"];

/// Reads the sweep of a file, and behind it the draws of its links.
pub(crate) fn read(
    schema: &Schema,
    text: &str,
    root: &Table,
    shelf: &Shelf<'_>,
    remarks: &mut Vec<Remark>,
) -> Vec<Swept> {
    let entries = flattened(root, "sweep", remarks);
    let keys: Vec<&str> = entries.iter().flat_map(|(key, _, _)| together(key)).collect();
    let known = if entries.is_empty() { Vec::new() } else { sweepable(schema, root, &keys) };
    let mut swept = Vec::new();
    for (key, key_span, node) in &entries {
        if remarks.len() >= MOST_REMARKS {
            break;
        }
        let targets: Result<Vec<_>, _> = together(key)
            .map(|key| find(key, &known).map_err(|error| of_all(schema, root, key).unwrap_or(error)))
            .collect();
        let kind = match &targets {
            // Keys that vary together are of one kind, or one of them does not take the values.
            Ok(targets) => targets.first().and_then(|target| target.kind),
            Err(message) => {
                remarks.push(Remark::new(key_span.clone(), message.clone()));
                continue;
            }
        };
        let (nodes, values) = match (&node.item, &targets) {
            (Item::Array(nodes), _) => {
                (nodes.clone(), nodes.iter().map(|node| written(text, node)).collect::<Vec<_>>())
            }
            (Item::Table(table), Ok(targets)) if range::is_range(table) => {
                let Some(target) = targets.first() else { continue };
                match range::values(key, node, table, target) {
                    Ok(values) => values,
                    Err(more) => {
                        remarks.extend(more);
                        continue;
                    }
                }
            }
            _ => {
                let message = format!(
                    "the sweep of `{key}` must be a list of values such as `[1, 2, 5]`, or a range such as \
                     `{{ from = 1, to = 9, step = 2 }}`, not {}",
                    node.describe()
                );
                remarks.push(Remark::new(node.span.clone(), message));
                continue;
            }
        };
        if nodes.is_empty() {
            let message = format!("the sweep of `{key}` is empty; give it at least one value");
            remarks.push(Remark::new(node.span.clone(), message));
            continue;
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = values.iter().position(|value| !seen.insert(value)) {
            let message =
                format!("the sweep of `{key}` has the value `{}` twice; leave one out", values[twice]);
            remarks.push(Remark::new(nodes[twice].span.clone(), message));
            continue;
        }
        let (unit, numbers) = match kind.and_then(|kind| quantity::axis(&kind, &nodes)) {
            Some((unit, numbers)) => (unit, Some(numbers)),
            None => (String::new(), None),
        };
        swept.push(Swept { axis: Axis { key: key.clone(), values, numbers, unit }, nodes });
    }
    swept.extend(draws::read(root, &keys, shelf, remarks));
    let points = swept.iter().fold(1, |points: u64, swept| points.saturating_mul(swept.nodes.len() as u64));
    if points > MOST_POINTS {
        let at = root.get("sweep").map_or(0..0, |entry| entry.key_span.clone());
        let message =
            format!("the sweep has {points} points; the maximum is {MOST_POINTS}; sweep fewer values");
        remarks.push(Remark::new(at, message));
        swept.clear();
    }
    swept
}

/// The keys of one axis: `"flow.there.count, flow.back.count"` gives both the same value at every point.
pub(crate) fn together(key: &str) -> impl Iterator<Item = &str> {
    key.split(',').map(str::trim)
}

/// The value of each key of an axis: the same of all, or that of its own from a list of as many.
pub(crate) fn values<'a>(key: &'a str, value: &'a Node) -> impl Iterator<Item = (&'a str, &'a Node)> {
    let own = match &value.item {
        Item::Array(values) if values.len() > 1 && values.len() == together(key).count() => Some(values),
        _ => None,
    };
    together(key).enumerate().map(move |(place, key)| (key, own.map_or(value, |own| &own[place])))
}

/// The key of this name, or why there is none.
pub(crate) fn find<'k>(key: &str, known: &'k [Sweepable]) -> Result<&'k Sweepable, String> {
    if is_draws(key) {
        return Err(format!("`{key}` makes an axis of its own and cannot be swept"));
    }
    known.iter().find(|known| known.key == key).ok_or_else(|| match FIXED.contains(&key) {
        true => format!("`{key}` applies to all points and cannot be swept"),
        false => format!("unknown key `{key}`{}", nearest(key, known, "swept")),
    })
}

/// The error for a key of one of several links, hosts or flows that are alike, which have all keys in common.
pub(crate) fn of_all(schema: &Schema, root: &Table, key: &str) -> Option<String> {
    let (section, rest) = key.split_once('.')?;
    let (name, rest) = rest.split_once('.')?;
    let (written, _) = name.rsplit_once('-')?;
    let count = alike::count_of(schema, root, section, written)?;
    number_of(name, written, count)?;
    Some(format!(
        "unknown key `{key}`: `{name}` is one of {count} that have the keys of `{written}`; write `{section}.{written}.{rest}` for all \
         of them"
    ))
}

/// The key that was meant, or what stands behind the part that is right.
pub(crate) fn nearest(key: &str, known: &[Sweepable], verb: &str) -> String {
    let mut prefix = "";
    for (at, _) in key.match_indices('.') {
        if known.iter().any(|known| known.key.starts_with(&key[..=at])) {
            prefix = &key[..=at];
        }
    }
    // A table whose keys are set one by one.
    let is_table =
        known.iter().any(|known| known.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')));
    let whole = format!("{key}.");
    if is_table {
        prefix = &whole;
    }
    let behind = |full: &str| Some(full.strip_prefix(prefix)?.split('.').next()?.to_owned());
    let next: BTreeSet<String> = known.iter().filter_map(|known| behind(&known.key)).collect();
    let written = key.get(prefix.len()..).and_then(|rest| rest.split('.').next()).unwrap_or_default();
    let suggestion = suggestion(written, next.iter().map(String::as_str));
    match suggestion.strip_prefix("; known: ") {
        Some(names) if prefix.is_empty() => format!("; keys that can be {verb} begin with {names}"),
        Some(names) => format!("; known in `{}`: {names}", prefix.trim_end_matches('.')),
        None => suggestion.replace("did you mean `", &format!("did you mean `{prefix}")),
    }
}

/// A value as it stands in the file, a text without its quotes.
pub(crate) fn written(text: &str, node: &Node) -> String {
    match &node.item {
        Item::Text(text) => text.to_string(),
        _ => text.get(node.span.clone()).unwrap_or_default().to_owned(),
    }
}

/// The entries of a section whose keys are dotted, quoted (`"flow.voice.count"`) or not (`flow.voice.count`).
pub(crate) fn flattened<'t>(
    root: &'t Table,
    section: &str,
    remarks: &mut Vec<Remark>,
) -> Vec<(String, Range<usize>, &'t Node)> {
    let Some(entry) = root.get(section) else { return Vec::new() };
    let Item::Table(table) = &entry.node.item else {
        let message = format!("`{section}` must be a table, not {}", entry.node.describe());
        remarks.push(Remark::new(entry.node.span.clone(), message));
        return Vec::new();
    };
    let mut flat = Vec::new();
    flatten("", table, &mut flat);
    flat
}

fn flatten<'t>(prefix: &str, table: &'t Table, flat: &mut Vec<(String, Range<usize>, &'t Node)>) {
    for entry in &table.0 {
        let key = if prefix.is_empty() { entry.key.to_string() } else { format!("{prefix}.{}", entry.key) };
        match &entry.node.item {
            Item::Table(inner) if !range::is_range(inner) => flatten(&key, inner, flat),
            _ => flat.push((key, entry.key_span.clone(), &entry.node)),
        }
    }
}

/// Every key that can be swept in this file; `swept` are those that are.
pub(crate) fn sweepable(schema: &Schema, root: &Table, swept: &[&str]) -> Vec<Sweepable> {
    let mut found = Vec::new();
    let hosts = alike::counts(root);
    for key in schema.experiment.iter().filter(|key| !FIXED.contains(&key.name)) {
        list(key.name.to_owned(), key, root.node(key.name), swept, &mut found);
    }
    for (name, host) in named(root, "hosts") {
        for key in &schema.host {
            list(format!("hosts.{name}.{}", key.name), key, host.node(key.name), swept, &mut found);
        }
    }
    for (name, link) in named(root, "link") {
        let link = &*link_profile::filled_in(link);
        for key in &schema.link {
            list(format!("link.{name}.{}", key.name), key, link.node(key.name), swept, &mut found);
        }
        let medium = medium(schema, link);
        for key in schema.shared.get(medium).into_iter().flatten() {
            list(format!("link.{name}.{}", key.name), key, link.node(key.name), swept, &mut found);
        }
        let parts = parts(medium, link, &hosts, &members(name, swept));
        for key in schema.direction.get(medium).into_iter().flatten() {
            list(format!("link.{name}.{}", key.name), key, link.node(key.name), swept, &mut found);
            for part in &parts {
                let node = part.own(link, key.name).or(link.node(key.name));
                let path = format!("link.{name}.{}.{}", part.way.join("."), key.name);
                list(path, key, node, swept, &mut found);
            }
        }
    }
    for (name, flow) in named(root, "flow") {
        for key in &schema.flow {
            list(format!("flow.{name}.{}", key.name), key, flow.node(key.name), swept, &mut found);
        }
    }
    found
}

/// A table in a link's for one direction or one station.
struct Part<'a> {
    /// The way there: `["station", "phone-2"]`.
    way: Vec<&'a str>,
    /// The station whose table holds where this one says nothing: `phone` for `phone-2`.
    group: Option<&'a str>,
}

impl Part<'_> {
    /// The value in the table of this part, or else in that of its group.
    fn own<'l>(&self, link: &'l Table, key: &str) -> Option<&'l Node> {
        let own = self.way.iter().try_fold(link, |table, name| table.node(name)?.table());
        let group = || link.node(self.way[0])?.table()?.node(self.group?)?.table();
        own.and_then(|own| own.node(key)).or_else(|| group()?.node(key))
    }
}

/// The tables in a link's for one direction or one station each; of hosts that are alike, those of `members` by themselves too.
fn parts<'a>(medium: usize, link: &'a Table, alike: &'a Counts, members: &[&'a str]) -> Vec<Part<'a>> {
    match trunkline_network::medium::KINDS.get(medium) {
        Some(kind) if *kind.stations.end() > 2 => {
            let hosts = match link.node("between").map(|node| &node.item) {
                Some(Item::Array(hosts)) => hosts.as_slice(),
                _ => &[],
            };
            let written = link.node("station").and_then(Node::table).map_or(&[][..], |table| &table.0);
            let written = written.iter().map(|entry| &*entry.key);
            let members: BTreeSet<&str> = written.chain(members.iter().copied()).collect();
            let own = |host: &'a str| {
                let count = alike.get(host).copied().unwrap_or_default();
                let of_it = members.iter().copied().filter(|member| number_of(member, host, count).is_some());
                let group = Part { way: vec!["station", host], group: None };
                let one = |member| Part { way: vec!["station", member], group: Some(host) };
                std::iter::once(group).chain(of_it.map(one)).collect::<Vec<_>>()
            };
            hosts.iter().filter_map(Node::text).flat_map(own).collect()
        }
        _ => ["forward", "backward"].map(|way| Part { way: vec![way], group: None }).into(),
    }
}

/// The stations of a link that these keys name.
fn members<'k>(link: &str, keys: &[&'k str]) -> Vec<&'k str> {
    let station = |key: &&'k str| {
        let rest = key.strip_prefix("link.")?.strip_prefix(link)?.strip_prefix(".station.")?;
        rest.split('.').next()
    };
    keys.iter().filter_map(station).collect()
}

fn named<'t>(root: &'t Table, section: &str) -> impl Iterator<Item = (&'t str, &'t Table)> {
    let entries = root.node(section).and_then(Node::table).map_or(&[][..], |table| &table.0);
    entries.iter().filter_map(|entry| Some((&*entry.key, entry.node.table()?)))
}

/// The index of a link's medium; that of the default if none is given.
pub(crate) fn medium(schema: &Schema, link: &Table) -> usize {
    let link = link_profile::filled_in(link);
    let word = link.node("medium").and_then(Node::text);
    let media = schema
        .link
        .iter()
        .find_map(|key| if let Shape::Medium(media) = &key.shape { Some(media) } else { None });
    word.and_then(|word| media?.iter().position(|medium| medium.name == word)).unwrap_or(0)
}

/// Lists a key and the keys behind it.
fn list(path: String, key: &Key, node: Option<&Node>, swept: &[&str], found: &mut Vec<Sweepable>) {
    match &key.shape {
        Shape::Direction
        | Shape::Stations
        | Shape::Host
        | Shape::Sinks
        | Shape::Hosts
        | Shape::Flow
        | Shape::Flows
        | Shape::Links
        | Shape::Medium(_) => found.push(Sweepable { key: path, kind: None, now: None }),
        Shape::Position => {}
        Shape::Plain(kind) => list_plain(path, *kind, node, key.default, found),
        Shape::OneOf(one_of) => {
            let kind_key = format!("{path}.kind");
            let fixed = !swept.contains(&path.as_str()) && !swept.contains(&kind_key.as_str());
            let chosen = chosen(key, one_of, node).filter(|_| fixed);
            let table = node.and_then(Node::table);
            for (index, alternative) in one_of.alternatives.iter().enumerate() {
                if chosen.is_none_or(|chosen| chosen == index) {
                    for parameter in alternative.parameters {
                        let node = table.and_then(|table| table.node(parameter.name));
                        let path = format!("{path}.{}", parameter.name);
                        list_plain(path, parameter.kind, node, parameter.default, found);
                    }
                }
            }
            found.push(Sweepable { key: kind_key, kind: None, now: None });
            let kind = one_of.plain_share.map(|_| Kind::Ratio);
            found.push(Sweepable { key: path, kind, now: now(node, key.default) });
        }
    }
}

/// Lists a key of one value, and the parts of the distribution that stands there.
fn list_plain(path: String, kind: Kind, node: Option<&Node>, default: Preset, found: &mut Vec<Sweepable>) {
    if let Some(table) = node.and_then(Node::table) {
        for entry in table.0.iter().filter(|entry| &*entry.key != "kind") {
            let kind = match kind {
                Kind::OverTime(_) => series::part(&entry.key),
                _ => Some(distribution::part(&entry.key).map_or(kind, |part| part.kind(kind))),
            };
            let now = now(Some(&entry.node), Preset::Absent);
            found.push(Sweepable { key: format!("{path}.{}", entry.key), kind, now });
        }
    }
    found.push(Sweepable { key: path, kind: Some(kind), now: now(node, default) });
}

fn now(node: Option<&Node>, default: Preset) -> Option<String> {
    match (node.map(|node| &node.item), default) {
        (Some(Item::Text(text)), _) => Some(text.to_string()),
        (Some(Item::Integer(number)), _) => Some(number.to_string()),
        (Some(Item::Number(number)), _) => Some(number.to_string()),
        (None, Preset::Text(text)) => Some(text.to_owned()),
        _ => None,
    }
}

/// The alternative that a key says, or would if it were written.
fn chosen(key: &Key, one_of: &OneOf, node: Option<&Node>) -> Option<usize> {
    match node.map(|node| &node.item) {
        Some(Item::Text(word)) => one_of.find(word).or(one_of.plain_share),
        Some(Item::Table(table)) => one_of.find(table.node("kind")?.text()?),
        Some(_) => one_of.plain_share,
        None => match key.default {
            Preset::Text(word) => one_of.find(word),
            _ => one_of.plain_share,
        },
    }
}

/// Puts the values of a point in place, those of profiles first: other values override what these say. Profiles that are files
/// bring at most `most` values.
pub(crate) fn apply_point<'v>(
    schema: &Schema,
    root: &mut Node,
    shelf: &Shelf<'_>,
    most: u64,
    point: impl Iterator<Item = (&'v str, &'v Node)>,
) {
    let is_profile =
        |(key, _): &(&str, &Node)| is_draws(key) || key.starts_with("link.") && key.ends_with(".profile");
    let (profiles, others): (Vec<_>, Vec<_>) = point.partition(is_profile);
    for (key, value) in &profiles {
        // A draw is a profile.
        match key.strip_suffix(link_profile::DRAWS).filter(|_| is_draws(key)) {
            Some(link) => apply(schema, root, &format!("{link}{}", link_profile::PROFILE), value),
            None => apply(schema, root, key, value),
        }
    }
    if !profiles.is_empty() {
        // Reading the link reports errors of the file.
        let _ = link_profile::fill_in_files(root, shelf, most);
    }
    for (key, value) in others {
        apply(schema, root, key, value);
    }
}

/// Puts a value in place of what stands under a swept key.
pub(crate) fn apply(schema: &Schema, root: &mut Node, path: &str, value: &Node) {
    let Item::Table(root) = &mut root.item else { return };
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        [key] => root.set(key, value.clone()),
        ["hosts", name, key, rest @ ..] => {
            let Some(host) = inner(root, "hosts").and_then(|hosts| inner(hosts, name)) else { return };
            let Some(key) = schema.host.iter().find(|k| k.name == *key) else { return };
            put(host, key, rest, value, None);
        }
        ["flow", name, key, rest @ ..] => {
            let Some(flow) = inner(root, "flow").and_then(|flows| inner(flows, name)) else { return };
            let Some(key) = schema.flow.iter().find(|k| k.name == *key) else { return };
            put(flow, key, rest, value, None);
        }
        ["link", name, direction @ ("forward" | "backward"), key, rest @ ..] => {
            apply_to_part(schema, root, name, &[direction], key, rest, value);
        }
        ["link", name, "station", host, key, rest @ ..] => {
            apply_to_part(schema, root, name, &["station", host], key, rest, value);
        }
        ["link", name, key, rest @ ..] => {
            let Some(link) = inner(root, "link").and_then(|links| inner(links, name)) else { return };
            let medium = medium(schema, link);
            let of_medium =
                schema.shared.get(medium).into_iter().chain(schema.direction.get(medium)).flatten();
            let Some(key) = schema.link.iter().chain(of_medium).find(|k| k.name == *key) else { return };
            if key.name == link_profile::PROFILE {
                link_profile::forget_file(link);
            } else if rest.is_empty() {
                link_profile::forget_in_directions(link, key.name);
            }
            let inherited = link_profile::filled_in(link).node(key.name).cloned();
            put(link, key, rest, value, inherited);
        }
        _ => {}
    }
}

/// Puts a value into the table of one direction or one station of a link, and creates that table if it is missing.
fn apply_to_part(
    schema: &Schema,
    root: &mut Table,
    link: &str,
    part: &[&str],
    key: &str,
    rest: &[&str],
    value: &Node,
) {
    let alike = alike::counts(root);
    let group = part
        .get(1)
        .and_then(|member| alike.iter().find(|(name, count)| number_of(member, name, **count).is_some()));
    let group = group.map(|(name, _)| &**name);
    let Some(link) = inner(root, "link").and_then(|links| inner(links, link)) else { return };
    let own = |part: &Part<'_>, link: &Table| part.own(link, key).or(link.node(key)).cloned();
    let part = Part { way: part.to_vec(), group };
    let inherited = own(&part, &link_profile::filled_in(link));
    let keys = schema.direction.get(medium(schema, link));
    let Some(key) = keys.and_then(|keys| keys.iter().find(|k| k.name == key)) else { return };
    let mut own = link;
    for name in &part.way {
        if own.node(name).is_none() {
            own.set(name, Node { span: value.span.clone(), item: Item::Table(Table::default()) });
        }
        let Some(next) = inner(own, name) else { return };
        own = next;
    }
    put(own, key, rest, value, inherited);
}

fn inner<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    let entry = table.0.iter_mut().find(|entry| &*entry.key == key)?;
    match &mut entry.node.item {
        Item::Table(table) => Some(table),
        _ => None,
    }
}

fn put(table: &mut Table, key: &Key, rest: &[&str], value: &Node, inherited: Option<Node>) {
    let node = table.node(key.name).cloned().or(inherited);
    let Some((first, rest)) = rest.split_first() else {
        // The name of the kind that the file has stands for what the file says of it.
        let own = node.filter(|node| is_of_kind(key, node, value));
        return table.set(key.name, own.unwrap_or_else(|| value.clone()));
    };
    let span = node.as_ref().map_or(value.span.clone(), |node| node.span.clone());
    let mut own = match &key.shape {
        Shape::OneOf(one_of) => spelled_out(key, one_of, node, &span),
        _ => match node.map(|node| node.item) {
            Some(Item::Table(table)) => table,
            _ => return,
        },
    };
    match rest {
        [] => own.set(first, value.clone()),
        [part] => {
            if let Some(distribution) = inner(&mut own, first) {
                distribution.set(part, value.clone());
            }
        }
        _ => return,
    }
    table.set(key.name, Node { span, item: Item::Table(own) });
}

/// Whether a value is a word alone, and what stands there is a table of that kind.
fn is_of_kind(key: &Key, there: &Node, value: &Node) -> bool {
    let Shape::OneOf(one_of) = &key.shape else { return false };
    let kind = |word: &str| one_of.find(word);
    let own = there.table().and_then(|table| table.node("kind")?.text()).and_then(kind);
    own.is_some() && own == value.text().and_then(kind)
}

/// A word, a plain share or nothing as the table that says the same.
fn spelled_out(key: &Key, one_of: &OneOf, node: Option<Node>, span: &Range<usize>) -> Table {
    let word = |word: &str| Node { span: span.clone(), item: Item::Text(word.into()) };
    let mut table = Table::default();
    let default = chosen(key, one_of, None).map(|index| &one_of.alternatives[index]);
    match node.map(|node| node.item) {
        Some(Item::Table(table)) => return table,
        Some(Item::Text(text)) if one_of.find(&text).is_some() || one_of.plain_share.is_none() => {
            table.set("kind", word(&text));
        }
        share => {
            let Some(alternative) = default else { return table };
            table.set("kind", word(alternative.name));
            if let (Some(item), Some(first)) = (share, alternative.parameters.first()) {
                table.set(first.name, Node { span: span.clone(), item });
            }
        }
    }
    table
}

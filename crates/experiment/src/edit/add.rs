//! Adds lines and tables where a person would.

use serde_json::Value as Json;
use trunkline_core::schema::{Default as Preset, Kind};

use super::document::{Document, Statement};
use super::outline::Tree;
use super::set::{is_dotted, segments};
use super::splice::{Splice, spliced};
use super::{EditError, Editor, Section, names, write};
use crate::schema::{Key, Shape};

/// The order in which files have their tables.
const ORDER: [&str; 6] = ["hosts", "link", "flow", "bundle", "sweep", "limits"];

impl Editor {
    pub(super) fn add(
        &self,
        text: String,
        section: Section,
        name: Option<&str>,
        values: &Tree,
    ) -> Result<String, EditError> {
        let taken = names::of(&text, section);
        let mut values = values.clone();
        self.fill_in(&text, section, &mut values);
        let name = match name {
            Some(name) if taken.iter().any(|taken| taken == name) => {
                return Err(EditError::Taken { noun: section.noun(), name: name.to_owned() });
            }
            Some(name) => name.to_owned(),
            None => names::free(&usual_name(section, &values), &taken),
        };
        names::check(&name)?;
        self.set(text, &[section.key().to_owned(), name], &Json::Object(values))
    }

    /// Gives what must be there a usual value.
    fn fill_in(&self, text: &str, section: Section, values: &mut Tree) {
        let keys: Vec<&Key> = match section {
            Section::Hosts => return,
            Section::Flow => self.schema.flow.iter().collect(),
            Section::Bundle => self.schema.bundle.iter().collect(),
            Section::Link => {
                let word = values.get("medium").and_then(Json::as_str);
                let media = trunkline_network::medium::KINDS;
                let medium = media.iter().position(|kind| Some(kind.name) == word).unwrap_or(0);
                let own = [&self.schema.shared, &self.schema.direction].map(|keys| keys.get(medium));
                let own = own.into_iter().flatten().flatten();
                // A profile says what the medium needs.
                self.schema.link.iter().chain(own.filter(|_| !values.contains_key("profile"))).collect()
            }
        };
        let hosts = names::of(text, Section::Hosts);
        let required = keys.into_iter().filter(|key| key.default == Preset::Required);
        for key in required.filter(|key| !values.contains_key(key.name)).collect::<Vec<_>>() {
            let from = values.get("from").and_then(Json::as_str);
            let usual = match (&key.shape, key.name) {
                (Shape::Hosts, _) => Some(hosts.iter().take(2).cloned().collect::<Vec<_>>().into()),
                (Shape::Host, _) => hosts.first().cloned().map(Json::from),
                (Shape::Sinks, _) => {
                    hosts.iter().find(|host| Some(host.as_str()) != from).cloned().map(Json::from)
                }
                (Shape::Flows, _) => Some(names::of(text, Section::Flow).into()),
                (Shape::OneOf(_), "transport") => Some("udp".into()),
                (Shape::OneOf(_), "source") => Some("voice".into()),
                (Shape::Plain(Kind::Rate { .. } | Kind::OverTime(Kind::Rate { .. })), _) => {
                    Some("10 Mbit/s".into())
                }
                (Shape::Plain(Kind::Duration { .. }), _) => Some("10 ms".into()),
                _ => None,
            };
            values.extend(usual.map(|usual| (key.name.to_owned(), usual)));
        }
    }

    /// Writes a key, or a table, of which nothing is there yet but tables above it.
    pub(super) fn insert(
        &self,
        document: &Document<'_>,
        way: &[String],
        value: &Json,
    ) -> Result<String, EditError> {
        let header = self.header(document, way, value);
        for length in (0..way.len()).rev() {
            let above = &way[..length];
            let own = |statement: &&Statement| !statement.is_listed && header_of(statement) == above;
            if let Some(last) = document.statements.iter().rfind(own).filter(|_| header <= length) {
                return self.line(document, Some(last), above, &way[length..], value);
            }
            let dotted = |statement: &&Statement| {
                statement.pair.is_some()
                    && header_of(statement).len() < length
                    && way_of(statement).starts_with(above)
            };
            // Swept keys and limits come one behind the other, whatever they begin with.
            let may_join = length == 1 || length > 1 && !is_dotted(&way[0]);
            if let Some(last) = document.statements.iter().rfind(dotted).filter(|_| may_join) {
                let above = &way[..header_of(last).len()];
                return self.dotted_line(document, last, above, way, length, value);
            }
            if header > length {
                return self.block(document, &way[..header], &way[header..], value);
            }
        }
        self.line(document, None, &[], way, value)
    }

    /// How many parts of a way the header of its table has, as a person would write it.
    fn header(&self, document: &Document<'_>, way: &[String], value: &Json) -> usize {
        let parts: Vec<&str> = way.iter().map(String::as_str).collect();
        let has = |wanted: fn(usize) -> bool| {
            document.statements.iter().any(|statement| {
                let header = header_of(statement);
                header.first().map(String::as_str) == Some("hosts") && wanted(header.len())
            })
        };
        let wanted = match parts.as_slice() {
            ["hosts", ..] if has(|length| length == 1) || !has(|length| length > 1) => 1,
            ["hosts" | "flow" | "bundle", _, ..] => 2,
            ["link", _, "forward" | "backward", ..] => 3,
            ["link", _, "station", ..] => 4,
            ["link", _, ..] => 2,
            [section, ..] if ORDER.contains(section) => 1,
            _ => 0,
        };
        let most = if value.is_object() { way.len() } else { way.len() - 1 };
        wanted.min(most)
    }

    /// A line behind the last one of a table, or of the keys before the first.
    fn line(
        &self,
        document: &Document<'_>,
        last: Option<&Statement>,
        above: &[String],
        rest: &[String],
        value: &Json,
    ) -> Result<String, EditError> {
        let pair = self.pair(above, rest, value)?;
        Ok(match last {
            Some(last) => behind(document, last, &pair),
            None => first(document, &pair),
        })
    }

    /// A line behind the last one that has the same dotted keys, with the same.
    fn dotted_line(
        &self,
        document: &Document<'_>,
        last: &Statement,
        above: &[String],
        way: &[String],
        length: usize,
        value: &Json,
    ) -> Result<String, EditError> {
        let prefix: String = way[above.len()..length].iter().map(|name| write::key(name) + ".").collect();
        let pair = self.pair(&way[..length], &way[length..], value)?;
        Ok(behind(document, last, &(prefix + &pair)))
    }

    /// A table of its own lines.
    fn block(
        &self,
        document: &Document<'_>,
        header: &[String],
        rest: &[String],
        value: &Json,
    ) -> Result<String, EditError> {
        let lines = match (rest, value) {
            ([], Json::Object(table)) => self.table(header, table)?,
            _ => format!("{}\n{}\n", heading(header), self.pair(header, rest, value)?),
        };
        let text = document.text;
        let (at, is_behind) = place(document, header);
        let (before, after) = (&text[..at], &text[at..]);
        let gap = match before {
            _ if !is_behind || before.trim().is_empty() => "",
            _ if !before.ends_with('\n') => "\n\n",
            _ => "\n",
        };
        let is_apart =
            after.trim_start_matches([' ', '\t', '\r']).starts_with('\n') || after.trim().is_empty();
        let end = if is_apart { "" } else { "\n" };
        let block = format!("{gap}{lines}{end}").replace('\n', document.newline());
        Ok(spliced(text, vec![Splice::insert(at, block)]))
    }

    /// The lines of a table; parts of links get tables of their own.
    fn table(&self, header: &[String], table: &Tree) -> Result<String, EditError> {
        let section = header.first().and_then(|first| Section::of_key(first)).filter(|_| header.len() == 2);
        let is_link = section == Some(Section::Link);
        let mut lines = format!("{}\n", heading(header));
        let mut parts = String::new();
        for (name, value) in write::ordered(&self.schema, section, table) {
            let own = |part: &[&str]| -> Vec<String> {
                header.iter().cloned().chain(part.iter().map(|name| (*name).to_owned())).collect()
            };
            match (name.as_str(), value) {
                ("forward" | "backward", Json::Object(part)) if is_link => {
                    parts += &format!("\n{}", self.table(&own(&[name]), part)?);
                }
                ("station", Json::Object(stations))
                    if is_link && stations.values().all(Json::is_object) && !stations.is_empty() =>
                {
                    for (host, part) in stations {
                        let part = part.as_object().cloned().unwrap_or_default();
                        parts += &format!("\n{}", self.table(&own(&[name, host]), &part)?);
                    }
                }
                _ => lines += &format!("{}\n", self.pair(header, core::slice::from_ref(name), value)?),
            }
        }
        Ok(lines + &parts)
    }
}

/// What something new is called that has no name.
fn usual_name(section: Section, values: &Tree) -> String {
    let word = |key: &str| match values.get(key) {
        Some(Json::Object(table)) => table.get("kind").and_then(Json::as_str),
        Some(value) => value.as_str(),
        None => None,
    };
    let usual = match section {
        Section::Hosts => None,
        Section::Link => {
            let ends = values.get("between").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
            match ends {
                [Json::String(a), Json::String(b)] => Some(format!("{a}-{b}")),
                _ => word("medium").map(str::to_owned),
            }
        }
        Section::Flow => word("source").map(str::to_owned),
        Section::Bundle => None,
    };
    let usual = usual.filter(|name| names::check(name).is_ok());
    usual.unwrap_or_else(|| format!("{}-1", section.noun()))
}

/// `[link.trunk]`
fn heading(header: &[String]) -> String {
    let names: Vec<String> = header.iter().map(|name| write::key(name)).collect();
    format!("[{}]", names.join("."))
}

pub(super) fn header_of(statement: &Statement) -> Vec<String> {
    segments(statement.header.iter().map(|key| key.name.as_str()))
}

/// The whole way to what a statement says.
pub(super) fn way_of(statement: &Statement) -> Vec<String> {
    let own = statement.pair.iter().flat_map(|pair| &pair.keys);
    segments(statement.header.iter().chain(own).map(|key| key.name.as_str()))
}

/// The text with a line behind a statement, as far to the right as that is.
fn behind(document: &Document<'_>, last: &Statement, line: &str) -> String {
    let text = document.text;
    let at = last.lines.end;
    let own = &text[last.lines.clone()];
    let indent = match last.pair {
        Some(_) => &own[..own.len() - own.trim_start_matches([' ', '\t']).len()],
        None => "",
    };
    let newline = document.newline();
    let line = line.replace('\n', newline);
    let line = match own.ends_with('\n') {
        true => format!("{indent}{line}{newline}"),
        false => format!("{newline}{indent}{line}"),
    };
    spliced(text, vec![Splice::insert(at, line)])
}

/// The text with a first key before all tables, behind what is said of the whole file.
fn first(document: &Document<'_>, line: &str) -> String {
    let (text, newline) = (document.text, document.newline());
    let mut at = 0;
    for line in
        text.split_inclusive('\n').take_while(|line| line.trim_start_matches('\u{feff}').starts_with('#'))
    {
        at += line.len();
    }
    let (before, after) = text.split_at(at);
    let begin = if before.is_empty() || before.ends_with('\n') { "" } else { newline };
    let is_apart = after.trim_start_matches([' ', '\t', '\r']).starts_with('\n') || after.is_empty();
    let end = if is_apart { "" } else { newline };
    let line = line.replace('\n', newline);
    spliced(text, vec![Splice::insert(at, format!("{begin}{line}{newline}{end}"))])
}

/// Where a new table goes, and whether that is behind something: behind its own kind, or behind what comes before it.
fn place(document: &Document<'_>, header: &[String]) -> (usize, bool) {
    let (text, statements) = (document.text, &document.statements);
    let last_of =
        |prefix: &[String]| statements.iter().rposition(|statement| way_of(statement).starts_with(prefix));
    let last_of_root = || statements.iter().rposition(|statement| statement.header.is_empty());
    let rank = ORDER.iter().position(|section| Some(*section) == header.first().map(String::as_str));
    let earlier = ORDER[..rank.unwrap_or(ORDER.len())].iter().rev();
    let own = (1..header.len()).rev().find_map(|length| last_of(&header[..length]));
    let own = own.or_else(|| earlier.into_iter().find_map(|section| last_of(&[(*section).to_owned()])));
    if let Some(last) = own.or_else(last_of_root) {
        // Behind all of its table: what follows there would be in the new one.
        let of_table = statements[last + 1..].iter().take_while(|statement| statement.pair.is_some()).count();
        return (past_comments(text, statements[last + of_table].lines.end), true);
    }
    match statements.first() {
        Some(statement) => (above_comments(text, statement.lines.start), false),
        None => (text.len(), true),
    }
}

/// Behind comments that stand right below a line and not right above another.
fn past_comments(text: &str, from: usize) -> usize {
    let mut at = from;
    for line in text[from..].split_inclusive('\n') {
        match line.trim() {
            "" => return at,
            line if line.starts_with('#') => {}
            _ => return from,
        }
        at += line.len();
    }
    at
}

/// Before comments that stand right above a line.
pub(super) fn above_comments(text: &str, from: usize) -> usize {
    let mut at = from;
    for line in text[..from].split_inclusive('\n').rev().take_while(|line| line.trim_start().starts_with('#'))
    {
        at -= line.len();
    }
    at
}

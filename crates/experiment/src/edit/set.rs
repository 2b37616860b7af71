//! Gives keys values.

use serde_json::Value as Json;

use super::document::{Document, Item, Pair, Value};
use super::list::List;
use super::outline::{Tree, json_of};
use super::splice::{Splice, spliced};
use super::{EditError, Editor, Section, shape, write};
use crate::tree;

/// Where a way through the file ends.
pub(super) enum Found<'d> {
    /// At a value.
    Value(&'d Value),
    /// At a table of its own lines: under a header or of dotted keys.
    Table,
    /// Before its end, within this value, behind so many parts.
    Within(&'d Value, usize),
    /// There is nothing on the way but tables.
    Nothing,
    /// In a list of tables, `[[...]]`, or above one. No experiment has any.
    Listed,
}

/// The parts of a way. Behind `sweep` and `limits` keys hold dots, with or without quotation marks.
pub(super) fn segments<S: AsRef<str>>(path: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    for part in path {
        let part = part.as_ref();
        match segments.first().is_some_and(|first| is_dotted(first)) {
            true => segments.extend(part.split('.').map(str::to_owned)),
            false => segments.push(part.to_owned()),
        }
    }
    segments
}

pub(super) fn is_dotted(section: &str) -> bool {
    matches!(section, "sweep" | "limits")
}

pub(super) fn locate<'d>(document: &'d Document<'_>, path: &[String]) -> Found<'d> {
    let mut is_table = false;
    for statement in &document.statements {
        let header = statement.header.iter().map(|key| key.name.as_str());
        if statement.is_listed {
            let header = segments(header);
            if header.starts_with(path) || path.starts_with(&header) {
                return Found::Listed;
            }
            continue;
        }
        let Some(pair) = &statement.pair else {
            is_table |= segments(header).starts_with(path);
            continue;
        };
        let whole = segments(header.chain(pair.keys.iter().map(|key| key.name.as_str())));
        if path.starts_with(&whole) {
            return within(&pair.value, path, whole.len());
        }
        is_table |= whole.starts_with(path);
    }
    if is_table { Found::Table } else { Found::Nothing }
}

/// Goes on behind the first parts of a way.
fn within<'d>(value: &'d Value, path: &[String], done: usize) -> Found<'d> {
    let Some(next) = path.get(done) else { return Found::Value(value) };
    match &value.item {
        Item::Table(pairs) => {
            for pair in pairs {
                let names = path.iter().take(1).map(String::as_str);
                let keys = segments(names.chain(pair.keys.iter().map(|key| key.name.as_str())));
                let (keys, rest) = (&keys[1..], &path[done..]);
                if rest.starts_with(keys) {
                    return within(&pair.value, path, done + keys.len());
                }
                if keys.starts_with(rest) {
                    return Found::Table;
                }
            }
            Found::Within(value, done)
        }
        Item::Array(values) => match next.parse::<usize>().ok().and_then(|index| values.get(index)) {
            Some(value) => within(value, path, done + 1),
            None => Found::Within(value, done),
        },
        Item::Scalar => Found::Within(value, done),
    }
}

impl Editor {
    pub(super) fn set(&self, text: String, path: &[String], value: &Json) -> Result<String, EditError> {
        let way = segments(path);
        if way.is_empty() || way.iter().any(String::is_empty) {
            return Err(EditError::Value(
                "the path of a key is a list of names, none of them empty".to_owned(),
            ));
        }
        let document = Document::new(&text);
        match locate(&document, &way) {
            Found::Value(old) => {
                let splice = Splice::new(old.span.clone(), self.merged(&document, old, value)?);
                Ok(spliced(&text, vec![splice]))
            }
            Found::Table => match value {
                Json::Object(table) => self.replace_table(text, path, table),
                _ => {
                    // What cannot be written must not cost the table.
                    write::value(&self.schema, value)?;
                    let text = self.take(&text, &way)?;
                    self.set(text, path, value)
                }
            },
            Found::Within(outer, done) => {
                let splice = self.inside(&document, outer, &way, done, value)?;
                Ok(spliced(&text, vec![splice]))
            }
            Found::Nothing => self.insert(&document, &way, value),
            Found::Listed => Err(EditError::unfit(path, "is in a list of tables; edit it as text")),
        }
    }

    /// Makes a table of lines hold what another says, key by key.
    fn replace_table(&self, mut text: String, path: &[String], table: &Tree) -> Result<String, EditError> {
        let behind = |name: &str| path.iter().cloned().chain([name.to_owned()]).collect::<Vec<String>>();
        for name in self.names_in(&text, path).into_iter().filter(|name| !table.contains_key(name)) {
            text = self.take(&text, &segments(behind(&name)))?;
        }
        let section = path.first().and_then(|first| Section::of_key(first)).filter(|_| path.len() == 2);
        for (name, value) in write::ordered(&self.schema, section, table) {
            text = self.set(text, &behind(name), value)?;
        }
        Ok(text)
    }

    /// The keys of a table; behind `sweep` and `limits` with their dots.
    fn names_in(&self, text: &str, path: &[String]) -> Vec<String> {
        let Ok(root) = tree::parse(text) else { return Vec::new() };
        if let ([section], Some(table)) = (path, root.table())
            && is_dotted(section)
        {
            let flat = crate::sweep::flattened(table, section, &mut Vec::new());
            return flat.into_iter().map(|(key, _, _)| key).collect();
        }
        let table = path.iter().try_fold(&root, |node, name| node.table()?.node(name));
        let entries = table.and_then(tree::Node::table).map_or(&[][..], |table| &table.0);
        entries.iter().map(|entry| entry.key.to_string()).collect()
    }

    /// The text of a value that is to become another; what is the same in both keeps its own.
    fn merged(&self, document: &Document<'_>, old: &Value, new: &Json) -> Result<String, EditError> {
        let written = document.slice(&old.span);
        if json_of_text(written).as_ref() == Some(new) {
            return Ok(written.to_owned());
        }
        match (&old.item, new) {
            (Item::Table(pairs), Json::Object(table)) if shares(pairs, table) => {
                self.merged_table(document, old, pairs, table)
            }
            (Item::Array(values), Json::Array(new)) if !values.is_empty() && !new.is_empty() => {
                self.merged_list(document, old, values, new)
            }
            _ => write::value(&self.schema, new),
        }
    }

    fn merged_table(
        &self,
        document: &Document<'_>,
        old: &Value,
        pairs: &[Pair],
        new: &Tree,
    ) -> Result<String, EditError> {
        let name = |pair: &Pair| pair.keys.first().map(|key| key.name.clone()).unwrap_or_default();
        let (first, last) = ends(pairs.iter().map(Pair::span));
        let mut text = document.slice(&(old.span.start..first)).to_owned();
        let (mut is_first, mut before) = (true, first);
        for pair in pairs {
            let span = pair.span();
            if let Some(value) = new.get(&name(pair)) {
                if !is_first {
                    text.push_str(document.slice(&(before..span.start)));
                }
                text.push_str(document.slice(&(span.start..pair.value.span.start)));
                text.push_str(&self.merged(document, &pair.value, value)?);
                is_first = false;
            }
            before = span.end;
        }
        for (added, value) in write::ordered(&self.schema, None, new) {
            if !pairs.iter().any(|pair| name(pair) == *added) {
                let separator = if is_first { "" } else { ", " };
                text += &format!("{separator}{} = {}", write::key(added), write::value(&self.schema, value)?);
                is_first = false;
            }
        }
        Ok(text + document.slice(&(last..old.span.end)))
    }

    fn merged_list(
        &self,
        document: &Document<'_>,
        old: &Value,
        values: &[Value],
        new: &[Json],
    ) -> Result<String, EditError> {
        let is: Vec<Option<Json>> =
            values.iter().map(|value| json_of_text(document.slice(&value.span))).collect();
        let same = |(old, new): &(&Option<Json>, &Json)| old.as_ref() == Some(*new);
        let before = is.iter().zip(new).take_while(same).count();
        let most = is.len().min(new.len()) - before;
        let behind = is.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
        let middle = is.len() - before - behind;
        let mut list = List::new(document, old, values);
        for (place, value) in new.iter().enumerate() {
            let own = match place {
                _ if place < before => Some(place),
                _ if place >= new.len() - behind => Some(place + is.len() - new.len()),
                _ if place - before < middle => Some(place),
                _ => None,
            };
            let text = match own {
                Some(own) => self.merged(document, &values[own], value)?,
                None => write::value(&self.schema, value)?,
            };
            list.push(own, &text);
        }
        Ok(list.finish())
    }

    /// Puts a key into a value that stands above it.
    fn inside(
        &self,
        document: &Document<'_>,
        outer: &Value,
        way: &[String],
        done: usize,
        value: &Json,
    ) -> Result<Splice, EditError> {
        let (above, rest) = way.split_at(done);
        let written = document.slice(&outer.span);
        match &outer.item {
            Item::Table(pairs) => {
                let pair = self.pair(above, rest, value)?;
                Ok(match pairs.last() {
                    Some(last) => Splice::insert(last.span().end, format!(", {pair}")),
                    None => Splice::new(outer.span.clone(), format!("{{ {pair} }}")),
                })
            }
            Item::Array(_) => Err(EditError::unfit(above, "is a list; set it as a whole")),
            Item::Scalar => {
                let known: Vec<&str> = above.iter().map(String::as_str).collect();
                let key = shape::key(&self.schema, &known).filter(|(_, length)| *length == done);
                let share = json_of_text(written).map(|value| match value {
                    Json::String(word) => word,
                    other => other.to_string(),
                });
                let said = key.and_then(|(key, _)| shape::spelled_out(key, share.as_deref()));
                let Some(said) = said else {
                    return Err(EditError::unfit(
                        above,
                        format!("is {written}, which has no keys; replace the whole value"),
                    ));
                };
                let mut table: Vec<String> = Vec::new();
                for (name, word) in
                    said.iter().filter(|(name, _)| Some(*name) != rest.first().map(String::as_str))
                {
                    // The word of a share may be a number.
                    let word = if *name == "kind" { write::text(word) } else { written.to_owned() };
                    table.push(format!("{name} = {word}"));
                }
                table.push(self.pair(above, rest, value)?);
                Ok(Splice::new(outer.span.clone(), format!("{{ {} }}", table.join(", "))))
            }
        }
    }

    /// `key = value` for the rest of a way, with tables in the line for all but its first part.
    pub(super) fn pair(&self, above: &[String], rest: &[String], value: &Json) -> Result<String, EditError> {
        let (first, value) = self.nested(above, rest, value);
        Ok(format!("{} = {}", write::key(&first), write::value(&self.schema, &value)?))
    }

    /// The first part of the rest of a way, and the value that stands there so that the last part has this one.
    fn nested(&self, above: &[String], rest: &[String], value: &Json) -> (String, Json) {
        if above.first().is_some_and(|section| is_dotted(section)) {
            return (rest.join("."), value.clone());
        }
        let mut value = value.clone();
        for place in (1..rest.len()).rev() {
            let mut table = Tree::from_iter([(rest[place].clone(), value)]);
            let way: Vec<&str> = above.iter().chain(&rest[..place]).map(String::as_str).collect();
            let key = shape::key(&self.schema, &way).filter(|(_, length)| *length == way.len());
            for (name, word) in key.and_then(|(key, _)| shape::spelled_out(key, None)).into_iter().flatten() {
                table.entry(name).or_insert(Json::String(word));
            }
            value = Json::Object(table);
        }
        (rest.first().cloned().unwrap_or_default(), value)
    }
}

/// Where the first of some ranges begins and the last one ends.
fn ends(spans: impl Iterator<Item = core::ops::Range<usize>>) -> (usize, usize) {
    spans.fold((usize::MAX, 0), |(first, last), span| (first.min(span.start), last.max(span.end)))
}

/// Whether a table of plain keys has some of another's.
fn shares(pairs: &[Pair], table: &Tree) -> bool {
    let is_plain = pairs.iter().all(|pair| pair.keys.len() == 1);
    is_plain && pairs.iter().any(|pair| pair.keys.iter().any(|key| table.contains_key(&key.name)))
}

/// The value of a text that is one.
fn json_of_text(written: &str) -> Option<Json> {
    let text = format!("v = {written}");
    let root = tree::parse(&text).ok()?;
    Some(json_of(&text, root.table()?.node("v")?))
}

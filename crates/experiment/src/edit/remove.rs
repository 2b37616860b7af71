//! Takes keys and tables away, and what named them.

use core::ops::Range;
use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::add::{above_comments, header_of, way_of};
use super::document::{Document, Item, Pair, Value};
use super::outline::{Outline, Tree, outline, sinks};
use super::set::segments;
use super::splice::{Splice, spliced};
use super::{EditError, Editor, Section, names};
use crate::alike::{number_of, numbered};

impl Editor {
    pub(super) fn remove(&self, text: String, path: &[String]) -> Result<String, EditError> {
        let way = segments(path);
        let edited = self.take(&text, &way)?;
        let [section, name] = path else { return Ok(edited) };
        let Some(section) = Section::of_key(section) else { return Ok(edited) };
        let count = names::count_of(&self.schema, &text, section, name);
        let forgotten = self.forget(edited, section, name)?;
        // What stood for several may be named one by one.
        let mut singles = singles_in(&forgotten, name, count).into_iter();
        singles.try_fold(forgotten, |text, number| self.forget(text, section, &numbered(name, number)))
    }

    /// Takes away what stands at the end of a way, and nothing else.
    pub(super) fn take(&self, text: &str, way: &[String]) -> Result<String, EditError> {
        let document = Document::new(text);
        let mut splices = Vec::new();
        let mut run: Option<Range<usize>> = None;
        for statement in document.statements.iter().filter(|_| !way.is_empty()) {
            let whole = way_of(statement);
            let is_table = header_of(statement).starts_with(way) && !statement.is_listed;
            match &statement.pair {
                None if is_table => {
                    let start = above_comments(text, statement.lines.start);
                    // Tables in a row go as one, with what stands between them.
                    let start = run.take().map_or(start, |run| run.start);
                    run = Some(start..statement.lines.end);
                    continue;
                }
                Some(_) if is_table && run.is_some() => {
                    run = run.map(|run| run.start..statement.lines.end);
                    continue;
                }
                Some(_) if whole.starts_with(way) => splices.push(Splice::new(statement.lines.clone(), "")),
                Some(pair) if way.starts_with(&whole) => {
                    splices.extend(without(&document, &pair.value, way, whole.len()));
                }
                _ => {}
            }
            splices.extend(run.take().map(|run| Splice::new(tidied(text, run), "")));
        }
        splices.extend(run.map(|run| Splice::new(tidied(text, run), "")));
        if splices.is_empty() {
            return Err(EditError::Missing(way.join(".")));
        }
        Ok(spliced(text, splices))
    }

    /// Takes away what named something that is gone and means nothing without it.
    fn forget(&self, text: String, section: Section, name: &str) -> Result<String, EditError> {
        let Ok(outline) = outline(&text) else { return Ok(text) };
        let text = self.forget_figures(text, &outline, section, name)?;
        match section {
            Section::Hosts => self.forget_host(text, &outline, name),
            Section::Link => self.each(text, &outline.flows, |editor, text, flow| {
                let is_on = list(&flow.keys, "path").iter().any(|link| link.as_str() == Some(name));
                if is_on { editor.take(&text, &way(&["flow", &flow.name, "path"])) } else { Ok(text) }
            }),
            Section::Flow => {
                let text = self.each(text, &outline.bundles, |editor, text, bundle| {
                    let path = ["bundle", bundle.name.as_str()];
                    editor.shorten(text, &path, "flows", list(&bundle.keys, "flows"), name)
                })?;
                match outline.experiment.get("until").and_then(Json::as_str) {
                    Some(until) if until == name => self.take(&text, &way(&["until"])),
                    _ => Ok(text),
                }
            }
            Section::Bundle => Ok(text),
        }
    }

    fn forget_host(&self, text: String, outline: &Outline, name: &str) -> Result<String, EditError> {
        let text = self.each(text, &outline.hosts, |editor, text, host| {
            let is_shared = host.keys.get(crate::schema::PROCESSOR).and_then(Json::as_str) == Some(name);
            match is_shared {
                true => editor.take(&text, &way(&["hosts", &host.name, crate::schema::PROCESSOR])),
                false => Ok(text),
            }
        })?;
        let text = self.each(text, &outline.links, |editor, text, link| {
            let path = ["link", link.name.as_str()];
            let between = list(&link.keys, "between");
            if !between.iter().any(|host| host.as_str() == Some(name)) {
                return Ok(text);
            }
            if between.len() <= 2 {
                return editor.remove(text, &way(&path));
            }
            let text = editor.shorten(text, &path, "between", between, name)?;
            let has_own = |station: &Json| station.as_object().is_some_and(|table| table.contains_key(name));
            match link.keys.get("station").is_some_and(has_own) {
                true => editor.take(&text, &way(&["link", &link.name, "station", name])),
                false => Ok(text),
            }
        })?;
        self.each(text, &outline.flows, |editor, text, flow| {
            let path = ["flow", flow.name.as_str()];
            let to = sinks(flow.keys.get("to"));
            if flow.keys.get("from").and_then(Json::as_str) == Some(name) || to == [name] {
                return editor.remove(text, &way(&path));
            }
            match to.iter().any(|sink| sink == name) {
                true => editor.shorten(text, &path, "to", list(&flow.keys, "to"), name),
                false => Ok(text),
            }
        })
    }

    /// Takes away swept keys and limits of something that is gone.
    fn forget_figures(
        &self,
        text: String,
        outline: &Outline,
        section: Section,
        name: &str,
    ) -> Result<String, EditError> {
        let is_of = |key: &str| {
            let parts: Vec<&str> = key.trim().split('.').collect();
            match (section, parts.as_slice()) {
                (Section::Hosts, ["link", _, "station", host, ..] | ["flow", _, "sink", host, ..]) => {
                    *host == name
                }
                (_, [first, second, ..]) => *first == section.key() && *second == name,
                (Section::Flow, _) | (_, _) => false,
            }
        };
        let swept = outline.sweep.iter().map(|swept| ("sweep", &swept.key));
        let all = swept.chain(outline.limits.iter().map(|limit| ("limits", &limit.key)));
        let gone = all.filter(|(_, key)| key.split(',').any(is_of));
        gone.into_iter().try_fold(text, |text, (table, key)| self.take(&text, &segments([table, key])))
    }

    /// A list without a name; without any that is left, what the list belongs to is removed.
    fn shorten(
        &self,
        text: String,
        path: &[&str; 2],
        key: &str,
        list: Vec<Json>,
        name: &str,
    ) -> Result<String, EditError> {
        let is_it = |value: &Json| match value {
            Json::Object(table) => table.get("host").and_then(Json::as_str) == Some(name),
            value => value.as_str() == Some(name),
        };
        if !list.iter().any(is_it) {
            return Ok(text);
        }
        let left: Vec<Json> = list.into_iter().filter(|value| !is_it(value)).collect();
        match left.is_empty() {
            true => self.remove(text, &way(path)),
            false => self.set(text, &way(&[path[0], path[1], key]), &Json::Array(left)),
        }
    }

    fn each<T>(
        &self,
        text: String,
        all: &[T],
        edit: impl Fn(&Editor, String, &T) -> Result<String, EditError>,
    ) -> Result<String, EditError> {
        all.iter().try_fold(text, |text, one| edit(self, text, one))
    }
}

/// The numbers of those of several things that a text names.
fn singles_in(text: &str, name: &str, count: u32) -> BTreeSet<u32> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let words = text.split(|c| !is_part(c)).filter(|_| count > 0);
    words.filter_map(|word| number_of(word, name, count)).collect()
}

fn way(path: &[&str]) -> Vec<String> {
    path.iter().map(|part| (*part).to_owned()).collect()
}

fn list(keys: &Tree, key: &str) -> Vec<Json> {
    keys.get(key).and_then(Json::as_array).cloned().unwrap_or_default()
}

/// What to cut from a value so that it lacks what stands at the end of a way.
fn without(document: &Document<'_>, value: &Value, path: &[String], done: usize) -> Vec<Splice> {
    let spans: Vec<Range<usize>> = match &value.item {
        Item::Table(pairs) => pairs.iter().map(Pair::span).collect(),
        Item::Array(values) => values.iter().map(|value| value.span.clone()).collect(),
        Item::Scalar => return Vec::new(),
    };
    let rest = &path[done..];
    let mut gone = vec![false; spans.len()];
    match &value.item {
        Item::Table(pairs) => {
            for (place, pair) in pairs.iter().enumerate() {
                let names = path.iter().take(1).map(String::as_str);
                let keys = segments(names.chain(pair.keys.iter().map(|key| key.name.as_str())));
                let keys = &keys[1..];
                if keys.starts_with(rest) {
                    gone[place] = true;
                } else if rest.starts_with(keys) {
                    return without(document, &pair.value, path, done + keys.len());
                }
            }
        }
        Item::Array(values) => {
            let index = rest.first().and_then(|part| part.parse::<usize>().ok());
            match index.and_then(|index| Some((index, values.get(index)?))) {
                Some((index, _)) if rest.len() == 1 => gone[index] = true,
                Some((_, value)) => return without(document, value, path, done + 1),
                None => {}
            }
        }
        Item::Scalar => {}
    }
    cut(document, value, &spans, &gone)
}

/// Cuts entries of a list or table in a line, each with a comma.
fn cut(document: &Document<'_>, value: &Value, spans: &[Range<usize>], gone: &[bool]) -> Vec<Splice> {
    if !gone.contains(&true) {
        return Vec::new();
    }
    let Some(first_left) = gone.iter().position(|gone| !gone) else {
        let written = document.slice(&value.span);
        let empty = if written.starts_with('{') { "{}" } else { "[]" };
        return vec![Splice::new(value.span.clone(), empty)];
    };
    let cut = |place: usize| match place < first_left {
        true => spans[place].start..spans[place + 1].start,
        false => spans[place - 1].end..spans[place].end,
    };
    let places = (0..spans.len()).filter(|place| gone[*place]);
    places.map(|place| Splice::new(cut(place), "")).collect()
}

/// The range of a table's lines, with the empty lines that would be too many without it.
fn tidied(text: &str, run: Range<usize>) -> Range<usize> {
    let blank = |line: &&str| line.trim().is_empty();
    let before: usize = text[..run.start].split_inclusive('\n').rev().take_while(blank).map(str::len).sum();
    let behind: usize = text[run.end..].split_inclusive('\n').take_while(blank).map(str::len).sum();
    let is_last = run.end + behind == text.len();
    match (is_last, before > 0 || run.start == 0) {
        (true, _) => run.start - before..text.len(),
        (false, true) => run.start..run.end + behind,
        (false, false) => run,
    }
}

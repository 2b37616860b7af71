//! Gives things other names, wherever a file names them.

use std::collections::BTreeSet;

use super::document::{Document, Item, Key, Pair, Value, plain_text};
use super::set::is_dotted;
use super::splice::{Splice, spliced};
use super::{EditError, Editor, Section, names, shape, write};
use crate::alike::{number_of, numbered};

impl Editor {
    pub(super) fn rename(
        &self,
        text: String,
        section: Section,
        from: &str,
        to: &str,
    ) -> Result<String, EditError> {
        let taken = names::of(&text, section);
        if !taken.iter().any(|name| name == from) {
            return Err(EditError::Missing(format!("{}.{from}", section.key())));
        }
        if from == to {
            return Ok(text);
        }
        names::check(to)?;
        if taken.iter().any(|name| name == to) {
            return Err(EditError::Taken { noun: section.noun(), name: to.to_owned() });
        }
        let document = Document::new(&text);
        let mut renaming = Renaming {
            editor: self,
            document: &document,
            section,
            from,
            to,
            count: names::count_of(&self.schema, &text, section, from),
            splices: Vec::new(),
            is_defined: false,
        };
        // The keys of a header count for every line below it, and are renamed once.
        let mut done = BTreeSet::new();
        for statement in document.statements.iter().filter(|statement| !statement.is_listed) {
            let header: Vec<&Key> = statement.header.iter().collect();
            match &statement.pair {
                None => renaming.keys(&header, &mut done),
                Some(pair) => renaming.pair(&header, pair, &mut done),
            }
        }
        let Renaming { splices, is_defined, .. } = renaming;
        if !is_defined {
            return Err(EditError::unfit(
                &[section.key().to_owned(), from.to_owned()],
                "is a list of tables",
            ));
        }
        Ok(spliced(&text, splices))
    }
}

struct Renaming<'r> {
    editor: &'r Editor,
    document: &'r Document<'r>,
    section: Section,
    from: &'r str,
    to: &'r str,
    /// How many it stands for, which have names of their own: `phone-3`.
    count: u32,
    splices: Vec<Splice>,
    /// Whether the thing itself was found, not only what names it.
    is_defined: bool,
}

impl Renaming<'_> {
    fn pair(&mut self, above: &[&Key], pair: &Pair, done: &mut BTreeSet<usize>) {
        let keys: Vec<&Key> = above.iter().copied().chain(&pair.keys).collect();
        match &pair.value.item {
            Item::Table(pairs) if !self.is_reference(&keys) => {
                self.keys(&keys, done);
                pairs.iter().for_each(|pair| self.pair(&keys, pair, done));
            }
            _ => {
                self.keys(&keys, done);
                self.references(&keys, &pair.value);
            }
        }
    }

    /// Renames those parts of a dotted key that are the name.
    fn keys(&mut self, keys: &[&Key], done: &mut BTreeSet<usize>) {
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        if names.first().is_some_and(|first| is_dotted(first)) {
            return self.figure(&keys[1..], done);
        }
        for (place, key) in keys.iter().enumerate() {
            let Some(new) = self.renamed(&key.name).filter(|_| self.is_name(&names[..place])) else {
                continue;
            };
            if done.insert(key.span.start) {
                self.is_defined |= place == 1;
                self.write_key(key, new);
            }
        }
    }

    /// The new name of what has this one, if it gets one.
    fn renamed(&self, name: &str) -> Option<String> {
        match number_of(name, self.from, self.count) {
            Some(number) => Some(numbered(self.to, number)),
            None => (name == self.from).then(|| self.to.to_owned()),
        }
    }

    /// Renames within a swept key or a limit, which may be one key with dots or several: `"flow.a.count, flow.b.count"`.
    fn figure(&mut self, keys: &[&Key], done: &mut BTreeSet<usize>) {
        let mut way: Vec<String> = Vec::new();
        for key in keys {
            let mut new = String::new();
            for (place, one) in key.name.split(',').enumerate() {
                if place > 0 {
                    new.push(',');
                    way.clear();
                }
                for (place, part) in one.split('.').enumerate() {
                    if place > 0 {
                        new.push('.');
                    }
                    let name = part.trim();
                    let before: Vec<&str> = way.iter().map(String::as_str).collect();
                    match self.renamed(name).filter(|_| self.is_name(&before)) {
                        Some(renamed) => new += &part.replacen(name, &renamed, 1),
                        None => new += part,
                    }
                    way.push(name.to_owned());
                }
            }
            if new != key.name && done.insert(key.span.start) {
                self.write_key(key, new);
            }
        }
    }

    /// Whether what stands behind these parts of a way is a name of the section.
    fn is_name(&self, before: &[&str]) -> bool {
        match (self.section, before) {
            (section, [first]) => *first == section.key(),
            (Section::Hosts, ["link", _, "station"] | ["flow", _, "sink"]) => true,
            _ => false,
        }
    }

    /// Puts a key in place of another, in the same quotation marks.
    fn write_key(&mut self, key: &Key, new: String) {
        let written = self.document.slice(&key.span);
        let new = match plain_text(self.document, &key.span) {
            Some((_, inner)) => return self.splices.push(Splice::new(inner, new)),
            None if written.starts_with(['"', '\'']) => write::text(&new),
            None => write::key(&new),
        };
        self.splices.push(Splice::new(key.span.clone(), new));
    }

    fn is_reference(&self, keys: &[&Key]) -> bool {
        let way: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        shape::names(&self.editor.schema, &way).is_some()
    }

    /// Renames within the values of keys that hold names, and within swept values of such keys.
    fn references(&mut self, keys: &[&Key], value: &Value) {
        let way: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        if way.first() != Some(&"sweep") {
            if shape::names(&self.editor.schema, &way) == Some(self.section) {
                self.values(value);
            }
            return;
        }
        let whole = way[1..].join(".");
        let holds: Vec<bool> = crate::sweep::together(&whole)
            .map(|key| {
                let way: Vec<&str> = key.split('.').collect();
                shape::names(&self.editor.schema, &way) == Some(self.section)
            })
            .collect();
        let Item::Array(values) = &value.item else { return };
        for value in values {
            match &value.item {
                Item::Array(own) if holds.len() > 1 && own.len() == holds.len() => {
                    own.iter()
                        .zip(&holds)
                        .filter(|(_, holds)| **holds)
                        .for_each(|(value, _)| self.values(value));
                }
                _ if holds.contains(&true) => self.values(value),
                _ => {}
            }
        }
    }

    /// `"a"`, `["a", "b"]`, `{ host = "a" }`
    fn values(&mut self, value: &Value) {
        match &value.item {
            Item::Scalar => {
                let written = self.document.slice(&value.span);
                let Some(name) = names::text_of(written) else { return };
                let Some(new) = self.renamed(&name) else { return };
                // Without escapes the name stands there as it is, between whatever quotation marks.
                let place = written.find(&name).filter(|_| !written.contains('\\'));
                let splice = match place.map(|place| value.span.start + place) {
                    Some(start) => Splice::new(start..start + name.len(), new),
                    None => Splice::new(value.span.clone(), write::text(&new)),
                };
                self.splices.push(splice);
            }
            Item::Array(values) => values.iter().for_each(|value| self.values(value)),
            Item::Table(pairs) => {
                for pair in pairs {
                    if let [key] = pair.keys.as_slice()
                        && key.name == "host"
                    {
                        self.values(&pair.value);
                    }
                }
            }
        }
    }
}

//! Keys that get another value than the file gives them: `--set link.trunk.rate="5 Mbit/s"`.
//!
//! A setting is put into the tree of the file first, so that whatever is wrong with it is reported at its own text. If
//! nothing is wrong, the same settings become edits of the file's text, and that text is what runs and what is stored: whoever
//! reads it later needs no settings.

use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};
use trunkline_core::schema::Kind;

use crate::edit::{self, Edit};
use crate::problem::Remark;
use crate::schema::{Schema, Shape};
use crate::sweep::{self, Sweepable};
use crate::tree::{self, Item, Node, Table};

/// A key and the value that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The option of the command line that says it: `--set`, or `--seed`, which names its key.
    option: String,
    key: String,
    value: String,
}

impl Setting {
    /// The value of `key`, given by an option that is named after it: `--seed 7`. One that ends with `=` stands before its
    /// value without a space.
    pub fn of_option(option: &str, key: &str, value: &str) -> Setting {
        Setting { option: option.to_owned(), key: key.to_owned(), value: value.trim().replace('\n', " ") }
    }

    /// The dotted key: `link.trunk.rate`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The text on the command line.
    pub(crate) fn shown(&self) -> String {
        match &*self.option {
            SET => format!("{SET} {}={}", self.key, self.value),
            option if option.ends_with('=') => format!("{option}{}", self.value),
            option => format!("{option} {}", self.value),
        }
    }

    /// The place of `written` in the value, as bytes of that text.
    pub(crate) fn value_with(&self, written: &str) -> Option<Range<usize>> {
        let start = self.places().1.start + self.value.find(written)?;
        Some(start..start + written.len())
    }

    /// Where the key and the value stand in that text.
    fn places(&self) -> (Range<usize>, Range<usize>) {
        let (option, length) = (self.option.len(), self.shown().len());
        let value = length - self.value.len()..length;
        let key = if self.option == SET {
            option + 1..value.start - 1
        } else {
            0..self.option.trim_end_matches('=').len()
        };
        (key, value)
    }
}

/// `link.trunk.rate=5 Mbit/s`, which [`FromStr`](core::str::FromStr) reads.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The option that takes any key.
const SET: &str = "--set";

impl core::str::FromStr for Setting {
    type Err = String;
    fn from_str(text: &str) -> Result<Setting, String> {
        let split = text.split_once('=').filter(|(key, _)| !key.trim().is_empty());
        let (key, value) = split
            .ok_or_else(|| format!("expected KEY=VALUE, such as `link.trunk.rate=5 Mbit/s`, not `{text}`"))?;
        Ok(Setting::of_option(SET, key.trim(), value))
    }
}

/// A file's text with settings behind it, as one text in which every node and every remark has a place.
pub(crate) struct Sources<'s> {
    pub(crate) text: String,
    file: usize,
    settings: &'s [Setting],
    /// Where the text of each setting begins.
    begins: Vec<usize>,
}

impl<'s> Sources<'s> {
    pub(crate) fn new(file: &str, settings: &'s [Setting]) -> Sources<'s> {
        let mut text = file.to_owned();
        let mut begins = Vec::new();
        for setting in settings {
            text.push('\n');
            begins.push(text.len());
            text.push_str(&setting.shown());
        }
        Sources { text, file: file.len(), settings, begins }
    }

    /// The text that a remark is about, what it is called if it is a setting's, and where it begins.
    pub(crate) fn of(&self, remark: &Remark) -> (&str, Option<String>, usize) {
        let place = self.begins.partition_point(|begin| *begin <= remark.start);
        match place.checked_sub(1) {
            Some(place) => {
                let shown = self.settings[place].shown();
                let begin = self.begins[place];
                (&self.text[begin..begin + shown.len()], Some(shown), begin)
            }
            None => (&self.text[..self.file], None, 0),
        }
    }

    /// The file's tree with every setting in place, and the edits that make the same of its text.
    pub(crate) fn tree(&self, schema: &Schema) -> Result<(Node, Vec<Edit>), Vec<Remark>> {
        let mut root = tree::parse(&self.text[..self.file])?;
        let (mut edits, mut remarks) = (Vec::new(), Vec::new());
        for (setting, begin) in self.settings.iter().zip(&self.begins) {
            let (key, value) = setting.places();
            let at = |range: Range<usize>| begin + range.start..begin + range.end;
            let put =
                Put { schema, text: &self.text, key: &setting.key, key_at: at(key), value_at: at(value) };
            match put.put(&mut root) {
                Ok(more) => edits.extend(more),
                Err(more) => remarks.extend(more),
            }
        }
        if remarks.is_empty() { Ok((root, edits)) } else { Err(remarks) }
    }

    /// The file's text after the edits; if they do not fit it, a remark at the last setting.
    pub(crate) fn edited(&self, edits: &[Edit]) -> Result<String, Vec<Remark>> {
        let last = self.begins.last().copied().unwrap_or_default();
        edit::apply(&self.text[..self.file], edits)
            .map_err(|error| vec![Remark::new(last..self.text.len(), error.to_string())])
    }
}

/// One setting on its way into the tree.
struct Put<'p> {
    schema: &'p Schema,
    text: &'p str,
    key: &'p str,
    key_at: Range<usize>,
    value_at: Range<usize>,
}

impl Put<'_> {
    fn put(&self, root: &mut Node) -> Result<Vec<Edit>, Vec<Remark>> {
        let Item::Table(table) = &mut root.item else { return Ok(Vec::new()) };
        let parts: Vec<&str> = self.key.split('.').collect();
        match parts.as_slice() {
            [section @ ("sweep" | "limits"), _, ..] => {
                let key = &self.key[section.len() + 1..];
                let value = self.node(None)?;
                let edit = self.edit(vec![(*section).to_owned(), key.to_owned()], &value);
                self.put_flat(table, section, key, value)?;
                Ok(vec![edit])
            }
            [section @ ("hosts" | "link" | "flow" | "bundle"), name] => {
                let value = self.node(None)?;
                if value.table().is_none() {
                    return Err(self.wrong(format!(
                        "`{}` must be a table such as `{{ ... }}`, not {}; name a key behind it",
                        self.key,
                        value.describe()
                    )));
                }
                let edit = self.edit(vec![(*section).to_owned(), (*name).to_owned()], &value);
                self.section(table, section)?.set(name, value);
                Ok(vec![edit])
            }
            ["bundle", name, "flows"] => {
                let value = self.node(None)?;
                let edit = self.edit(parts.iter().map(|part| (*part).to_owned()).collect(), &value);
                let bundle = self.section(table, "bundle")?.0.iter_mut().find(|entry| &*entry.key == *name);
                match bundle.map(|entry| &mut entry.node.item) {
                    Some(Item::Table(bundle)) => bundle.set("flows", value),
                    _ => return Err(self.unknown(&self.known(table))),
                }
                Ok(vec![edit])
            }
            _ => self.put_key(root, &parts),
        }
    }

    /// Puts a key of the file, a host, a link or a flow.
    fn put_key(&self, root: &mut Node, parts: &[&str]) -> Result<Vec<Edit>, Vec<Remark>> {
        let table = root.table().cloned().unwrap_or_default();
        let known = self.known(&table);
        let found = known.iter().find(|known| known.key == self.key);
        let found = found.ok_or_else(|| match sweep::of_all(self.schema, &table, self.key) {
            Some(error) => self.wrong(error),
            None => self.unknown(&known),
        })?;
        let value = self.node(found.kind)?;
        let mut edits = vec![self.edit(parts.iter().map(|part| (*part).to_owned()).collect(), &value)];
        sweep::apply(self.schema, root, self.key, &value);
        if let Item::Table(table) = &mut root.item {
            edits.extend(self.unswept(table)?);
        }
        Ok(edits)
    }

    /// The keys that can be set.
    fn known(&self, root: &Table) -> Vec<Sweepable> {
        let mut known = sweep::sweepable(self.schema, root, &[self.key]);
        for key in self.schema.experiment.iter().filter(|key| sweep::FIXED.contains(&key.name)) {
            let kind = if let Shape::Plain(kind) = key.shape { Some(kind) } else { None };
            known.push(Sweepable { key: key.name.to_owned(), kind, now: None });
        }
        known
    }

    /// Takes the key out of the sweep: it has one value now.
    fn unswept(&self, root: &mut Table) -> Result<Vec<Edit>, Vec<Remark>> {
        let flat: Vec<String> =
            sweep::flattened(root, "sweep", &mut Vec::new()).into_iter().map(|(key, _, _)| key).collect();
        let mut edits = Vec::new();
        for axis in flat {
            let keys: Vec<&str> = sweep::together(&axis).collect();
            let outer = keys
                .iter()
                .find(|key| self.key.strip_prefix(**key).is_some_and(|rest| rest.starts_with('.')));
            if let Some(outer) = outer {
                return Err(self.wrong(format!(
                    "the file sweeps `{outer}` as a whole, which replaces `{}`; set `sweep.{axis}` instead",
                    self.key
                )));
            }
            if !keys.contains(&self.key) {
                continue;
            }
            if keys.len() > 1 {
                return Err(
                    self.wrong(format!("the file sweeps `{axis}` together; set `sweep.{axis}` instead"))
                );
            }
            if let Some(Item::Table(sweep)) =
                root.0.iter_mut().find(|e| &*e.key == "sweep").map(|e| &mut e.node.item)
            {
                remove_flat(sweep, &axis);
            }
            edits.push(Edit::Remove { path: vec!["sweep".to_owned(), axis] });
        }
        Ok(edits)
    }

    /// Puts a swept key or a limit, in whatever way the file writes them.
    fn put_flat(&self, root: &mut Table, section: &str, key: &str, value: Node) -> Result<(), Vec<Remark>> {
        let table = self.section(root, section)?;
        remove_flat(table, key);
        table.set(key, value);
        if let Some(entry) = table.0.last_mut() {
            entry.key_span = self.key_at.clone();
        }
        Ok(())
    }

    /// A table of the file, made if it has none.
    fn section<'t>(&self, root: &'t mut Table, section: &str) -> Result<&'t mut Table, Vec<Remark>> {
        if root.node(section).is_none() {
            root.set(section, Node { span: self.key_at.clone(), item: Item::Table(Table::default()) });
        }
        match root.0.iter_mut().find(|entry| &*entry.key == section).map(|entry| &mut entry.node.item) {
            Some(Item::Table(table)) => Ok(table),
            _ => Err(self.wrong(format!("`{section}` is not a table in the file"))),
        }
    }

    /// The value: TOML where it is written as such or the key takes a number or a flag, else a text without quotes.
    fn node(&self, kind: Option<Kind>) -> Result<Node, Vec<Remark>> {
        let text = &self.text[self.value_at.clone()];
        let is_toml = text.starts_with(['[', '{', '"', '\'']);
        let is_bare =
            matches!(kind, Some(Kind::Integer { .. } | Kind::Number { .. } | Kind::Flag | Kind::Ratio));
        let word = Node { span: self.value_at.clone(), item: Item::Text(text.into()) };
        if !is_toml && !is_bare {
            return Ok(word);
        }
        const BEFORE: &str = "v=";
        let to_place =
            |at: usize| (self.value_at.start + at).saturating_sub(BEFORE.len()).max(self.value_at.start);
        match tree::parse(&format!("{BEFORE}{text}")) {
            Ok(root) => {
                let node = root.table().and_then(|table| table.node("v")).cloned();
                Ok(node.map_or(word, |node| moved(node, &|span| to_place(span.start)..to_place(span.end))))
            }
            Err(_) if !is_toml => Ok(word),
            Err(remarks) => Err(remarks
                .into_iter()
                .map(|remark| Remark::new(to_place(remark.start)..to_place(remark.end), remark.message))
                .collect()),
        }
    }

    fn edit(&self, path: Vec<String>, value: &Node) -> Edit {
        Edit::Set { path, value: edit::json_of(self.text, value) }
    }

    fn unknown(&self, known: &[Sweepable]) -> Vec<Remark> {
        self.wrong(format!("unknown key `{}`{}", self.key, sweep::nearest(self.key, known, "set")))
    }

    /// A remark on the key.
    fn wrong(&self, message: String) -> Vec<Remark> {
        vec![Remark::new(self.key_at.clone(), message)]
    }
}

/// Removes a dotted key, whether it is quoted or a path of tables.
fn remove_flat(table: &mut Table, key: &str) {
    table.0.retain(|entry| &*entry.key != key);
    for entry in &mut table.0 {
        let rest = key.strip_prefix(&*entry.key).and_then(|rest| rest.strip_prefix('.'));
        if let (Some(rest), Item::Table(inner)) = (rest, &mut entry.node.item) {
            remove_flat(inner, rest);
        }
    }
}

/// A node with all its places changed.
fn moved(mut node: Node, place: &impl Fn(Range<usize>) -> Range<usize>) -> Node {
    node.span = place(node.span);
    match &mut node.item {
        Item::Table(table) => {
            for entry in &mut table.0 {
                entry.key_span = place(entry.key_span.clone());
                entry.node = moved(entry.node.clone(), place);
            }
        }
        Item::Array(nodes) => nodes.iter_mut().for_each(|node| *node = moved(node.clone(), place)),
        _ => {}
    }
    node
}

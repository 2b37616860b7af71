//! Reads tables against their keys.

use core::ops::Range;

use trunkline_core::schema::{Default as Preset, Kind, Parameter, Value, Values};

use super::Reader;
use crate::problem::suggestion;
use crate::quantity;
use crate::schema::{Key, OneOf, Shape};
use crate::tree::{Item, Node, Table};

/// Keys that are gone, with the table that had them and what to write instead.
const GONE: &[(&str, &str, &str)] = &[(
    "the transport `tcp`",
    "engine",
    "; the simulator has one TCP: leave the key out, or for a TCP of the 1990s set `profile = \"solaris-2.5\"` or \
     `profile = \"bsd-reno\"`",
)];

/// One of several kinds, as the file chose.
pub(super) struct Chosen {
    /// Which alternative.
    pub(super) index: usize,
    pub(super) values: Values,
    /// Where it stands.
    pub(super) span: Range<usize>,
    /// The table, if it is one.
    pub(super) table: Option<Table>,
}

impl Chosen {
    /// True if the key is given.
    pub(super) fn gives(&self, key: &str) -> bool {
        self.table.as_ref().is_some_and(|table| table.node(key).is_some())
    }

    /// Where a key's value stands; the whole if it is not given.
    pub(super) fn span_of(&self, key: &str) -> &Range<usize> {
        self.table.as_ref().and_then(|table| table.node(key)).map_or(&self.span, |node| &node.span)
    }
}

impl Reader<'_> {
    /// Remarks on every key that is not known; `place` names the table: `[link.trunk]`, or nothing for the root.
    pub(super) fn refuse_unknown(&mut self, table: &Table, known: &[&str], place: &str) {
        for entry in table.0.iter().filter(|entry| !known.contains(&&*entry.key)) {
            if self.is_full() {
                return;
            }
            let of = if place.is_empty() { String::new() } else { format!(" in {place}") };
            let gone = GONE.iter().find(|(had, key, _)| *had == place && *key == &*entry.key);
            let suggestion = if let Some((_, _, instead)) = gone {
                (*instead).to_owned()
            } else if known.is_empty() {
                "; it takes no keys".to_owned()
            } else {
                suggestion(&entry.key, known.iter().copied())
            };
            self.remark(
                &entry.key_span,
                format!("unknown key `{}`{of}{suggestion}", entry.key.escape_debug()),
            );
        }
    }

    /// The values of the plain keys among `keys`; all of them, or `None` after remarks.
    pub(super) fn plain_values(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        keys: &[Key],
    ) -> Option<Values> {
        let plain = keys.iter().filter_map(|key| match &key.shape {
            Shape::Plain(kind) => Some((key.name, kind, key.default)),
            _ => None,
        });
        self.values(table, at, place, plain)
    }

    /// The values of a registry's parameters.
    pub(super) fn parameters(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        parameters: &[Parameter],
    ) -> Option<Values> {
        self.values(table, at, place, parameters.iter().map(|p| (p.name, &p.kind, p.default)))
    }

    fn values<'k>(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        keys: impl Iterator<Item = (&'static str, &'k Kind, Preset)>,
    ) -> Option<Values> {
        let mut values = Vec::new();
        let mut complete = true;
        for (name, kind, default) in keys {
            let value = match (table.node(name), default) {
                (Some(node), _) => match quantity::value(name, node, kind, self.shelf) {
                    Ok(value) => Some(value),
                    Err(remarks) => {
                        self.remarks.extend(remarks);
                        None
                    }
                },
                (None, Preset::Absent) => Some(Value::Absent),
                (None, Preset::Required) => {
                    self.missing(name, at, place, &quantity::describe(kind));
                    None
                }
                (None, Preset::Text(text)) => match quantity::default_value(text, kind) {
                    Ok(value) => Some(value),
                    Err(problem) => {
                        // Only a registry can be wrong here; its tests say so first.
                        self.remark(at, format!("the default `{text}` of `{name}` {problem}"));
                        None
                    }
                },
            };
            complete &= value.is_some();
            values.push((name, value.unwrap_or(Value::Absent)));
        }
        complete.then(|| Values::new(values))
    }

    /// Remarks on a required key that is not there.
    pub(super) fn missing(&mut self, key: &str, at: &Range<usize>, place: &str, expected: &str) {
        self.remark(at, format!("the key `{key}` is missing {place}; expected {expected}"));
    }

    /// What a key of several kinds says; `None` after remarks. An absent key takes its default, or is `Some(None)`.
    pub(super) fn one_of(
        &mut self,
        table: &Table,
        at: &Range<usize>,
        place: &str,
        key: &Key,
        one_of: &OneOf,
    ) -> Option<Option<Chosen>> {
        let Some(node) = table.node(key.name) else {
            return match key.default {
                Preset::Absent => Some(None),
                Preset::Text(word) => self.chosen(key.name, word, at.clone(), None, one_of).map(Some),
                Preset::Required => {
                    let expected = format!("one of {}", crate::problem::enumerate(one_of.words()));
                    self.missing(key.name, at, place, &expected);
                    None
                }
            };
        };
        if let Some(index) = one_of.plain_share.filter(|_| is_share(node)) {
            return self.plain_share(key.name, index, node, one_of).map(Some);
        }
        match &node.item {
            Item::Text(word) => self.chosen(key.name, word, node.span.clone(), None, one_of).map(Some),
            Item::Table(table) => {
                let Some(kind) = table.node("kind") else {
                    let expected = format!("one of {}", crate::problem::enumerate(one_of.words()));
                    self.missing("kind", &node.span, &format!("in `{}`", key.name), &expected);
                    return None;
                };
                let Some(word) = kind.text() else {
                    self.remark(&kind.span, format!("`kind` must be a word, not {}", kind.describe()));
                    return None;
                };
                self.chosen(key.name, word, node.span.clone(), Some((table, &kind.span)), one_of).map(Some)
            }
            _ => {
                let share = if one_of.plain_share.is_some() { "a share, " } else { "" };
                let message =
                    format!("`{}` must be {share}a word or a table, not {}", key.name, node.describe());
                self.remark(&node.span, message);
                None
            }
        }
    }

    fn chosen(
        &mut self,
        key: &str,
        word: &str,
        span: Range<usize>,
        table: Option<(&Table, &Range<usize>)>,
        one_of: &OneOf,
    ) -> Option<Chosen> {
        let at = table.map_or(&span, |(_, kind)| kind);
        let Some(index) = one_of.find(word) else {
            let suggestion = suggestion(word, one_of.words());
            self.remark(at, format!("there is no {key} `{}`{suggestion}", word.escape_debug()));
            return None;
        };
        let alternative = &one_of.alternatives[index];
        let nothing = Table::default();
        let table = table.map(|(table, _)| table);
        let place = format!("in the {key} `{}`", alternative.name);
        if let Some(table) = table {
            let known: Vec<&str> =
                core::iter::once("kind").chain(alternative.parameters.iter().map(|p| p.name)).collect();
            self.refuse_unknown(table, &known, &format!("the {key} `{}`", alternative.name));
        }
        let values = self.parameters(table.unwrap_or(&nothing), &span, &place, alternative.parameters)?;
        Some(Chosen { index, values, span, table: table.cloned() })
    }

    /// `loss = "1 %"`
    fn plain_share(&mut self, key: &str, index: usize, node: &Node, one_of: &OneOf) -> Option<Chosen> {
        let alternative = &one_of.alternatives[index];
        let first = alternative.parameters.first()?;
        if let Err(remarks) = quantity::value(key, node, &Kind::Ratio, self.shelf) {
            self.remarks.extend(remarks);
            return None;
        }
        let mut table = Table::default();
        table.set(first.name, node.clone());
        let place = format!("in the {key} `{}`", alternative.name);
        let values = self.parameters(&table, &node.span, &place, alternative.parameters)?;
        Some(Chosen { index, values, span: node.span.clone(), table: None })
    }
}

/// Whether a value is meant as a share: a number, or a text that begins as one.
fn is_share(node: &Node) -> bool {
    match &node.item {
        Item::Integer(_) | Item::Number(_) => true,
        Item::Text(text) => {
            text.trim().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
        }
        _ => false,
    }
}

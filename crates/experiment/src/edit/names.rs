//! Names of hosts, links, flows and bundles.

use super::{EditError, Section};
use crate::alike;
use crate::schema::Schema;
use crate::tree::{self, Node};

/// Those of a section, in the order of the file.
pub(super) fn of(text: &str, section: Section) -> Vec<String> {
    let root = tree::parse(text).ok();
    let table = root.as_ref().and_then(|root| root.table()?.node(section.key())?.table().cloned());
    table.into_iter().flat_map(|table| table.0).map(|entry| entry.key.to_string()).collect()
}

/// How many things a name of a section stands for that have names of their own, `phone-3`; 0 if it stands for itself.
pub(super) fn count_of(schema: &Schema, text: &str, section: Section, name: &str) -> u32 {
    let root = tree::parse(text).ok();
    let count =
        root.as_ref().and_then(Node::table).map(|root| alike::count_of(schema, root, section.key(), name));
    count.flatten().unwrap_or(0)
}

/// Refuses a name that nothing can have.
pub(super) fn check(name: &str) -> Result<(), EditError> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !name.is_empty() && name.chars().all(good) {
        true => Ok(()),
        false => Err(EditError::Name(name.escape_debug().to_string())),
    }
}

/// The name, or the first of `name-2`, `name-3` ... that is free.
pub(super) fn free(name: &str, taken: &[String]) -> String {
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    core::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// The text of a value that is one.
pub(super) fn text_of(written: &str) -> Option<String> {
    let root = tree::parse(&format!("v = {written}")).ok()?;
    root.table()?.node("v").and_then(Node::text).map(str::to_owned)
}

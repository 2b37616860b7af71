//! Profiles of links: measured networks by name, as data. Keys beside `profile` override it.

use std::borrow::Cow;

use trunkline_core::schema::Choice;

use crate::tree::{self, Item, Node, Table};

/// The key that names one.
pub(crate) const PROFILE: &str = "profile";

/// The profiles, in the order of the reference.
pub(crate) const PROFILES: &[(Choice, &str)] = &[
    (
        Choice {
            name: "crossover-100",
            doc: "Two computers of 2012 at the ends of one cable of 100 Mbit/s.",
        },
        include_str!("../profiles/crossover-100.toml"),
    ),
    (
        Choice { name: "switch-100", doc: "The same with the switch of a home router between them." },
        include_str!("../profiles/switch-100.toml"),
    ),
    (
        Choice {
            name: "wifi-g-adhoc",
            doc: "The same in a cell of 802.11g, sending to each other directly.",
        },
        include_str!("../profiles/wifi-g-adhoc.toml"),
    ),
    (
        Choice {
            name: "wifi-g-ap",
            doc: "The same through the access point of a home router, which `between` names first.",
        },
        include_str!("../profiles/wifi-g-ap.toml"),
    ),
];

/// The names, for the schema.
pub(crate) const NAMES: &[Choice] = &{
    let mut names = [PROFILES[0].0; PROFILES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = PROFILES[index].0;
        index += 1;
    }
    names
};

/// A link with the keys of its profile, if it names a known one, where it has none of its own.
pub(crate) fn filled_in(link: &Table) -> Cow<'_, Table> {
    let Some(named) = link.node(PROFILE) else { return Cow::Borrowed(link) };
    let known = |(choice, _): &&(Choice, &str)| named.text() == Some(choice.name);
    let Some((_, text)) = PROFILES.iter().find(known) else { return Cow::Borrowed(link) };
    let mut filled = link.clone();
    // Every profile is read by a test.
    let profile = tree::parse(text).ok().and_then(|root| root.table().cloned()).unwrap_or_default();
    for entry in profile.0 {
        if filled.node(&entry.key).is_none() {
            // Whoever complains about it must complain about the line that names the profile.
            filled.set(&entry.key, at(named, entry.node));
        }
    }
    Cow::Owned(filled)
}

/// A node as if it stood where `place` does.
fn at(place: &Node, mut node: Node) -> Node {
    node.span = place.span.clone();
    match &mut node.item {
        Item::Table(table) => {
            for entry in &mut table.0 {
                entry.key_span = place.span.clone();
                entry.node = at(place, entry.node.clone());
            }
        }
        Item::Array(nodes) => nodes.iter_mut().for_each(|node| *node = at(place, node.clone())),
        _ => {}
    }
    node
}

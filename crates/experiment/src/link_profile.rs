//! Profiles of links: fits of measured networks by name, as data, or files of the user. Keys beside `profile` override them.

use std::borrow::Cow;

use trunkline_core::schema::Choice;

use crate::files::Shelf;
use crate::problem::Remark;
use crate::schema::PROFILE_DOC;
use crate::tree::{self, Entry, Item, Node, Table};

/// The key that names one.
pub(crate) const PROFILE: &str = "profile";

/// The key with the number of links that take the place of a profile.
pub(crate) const DRAWS: &str = "draws";

/// The profile of a draw, counted from 1: `home.draws/01.toml` beside `home.toml`.
pub fn profile_of_draw(profile: &str, number: u64) -> String {
    format!("{}.{DRAWS}/{number:02}.toml", profile.strip_suffix(".toml").unwrap_or(profile))
}

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

/// The tables of a profile, or of a link, for one direction each.
pub(crate) const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// The path of the file that a link has as its profile.
pub(crate) fn file(link: &Table) -> Option<(&Node, &str)> {
    let named = link.node(PROFILE)?;
    let path = named.text().filter(|path| is_file(path))?;
    Some((named, path))
}

/// Returns true if a profile is a file, not one of those with a name.
pub(crate) fn is_file(profile: &str) -> bool {
    profile.ends_with(".toml")
}

/// A link with the keys of its profile, if it names a known one. Its own keys override them.
pub(crate) fn filled_in(link: &Table) -> Cow<'_, Table> {
    let Some(named) = link.node(PROFILE) else { return Cow::Borrowed(link) };
    let known = |(choice, _): &&(Choice, &str)| named.text() == Some(choice.name);
    let Some((_, text)) = PROFILES.iter().find(known) else { return Cow::Borrowed(link) };
    // Every profile is read by a test.
    let profile = tree::parse(text).ok().and_then(|root| root.table().cloned()).unwrap_or_default();
    Cow::Owned(with(link, named, &profile))
}

/// Fills in every link whose profile is a file that can be read. Profiles bring at most `most` values, or as many as the
/// experiment has. Reading the link reports errors of the profile.
pub(crate) fn fill_in_files(root: &mut Node, shelf: &Shelf<'_>, most: u64) -> Result<(), Remark> {
    let mut left = most.max(root.values());
    let Some(links) = root.table_mut().and_then(|root| root.0.iter_mut().find(|entry| &*entry.key == "link"))
    else {
        return Ok(());
    };
    for link in links.node.table_mut().into_iter().flat_map(|links| &mut links.0) {
        let Some(link) = link.node.table_mut() else { continue };
        name_file(link, shelf);
        let Some((named, path)) = file(link) else { continue };
        let profile = shelf.profile(path);
        let Some(profile) = profile.as_ref().ok().filter(|profile| profile.table.is_ok()) else { continue };
        left = left.checked_sub(profile.values).ok_or_else(|| {
            let message =
                "the experiment is too large to be read here with the profiles of its links; use fewer";
            Remark::new(named.span.clone(), message.to_owned())
        })?;
        if let Ok(table) = &profile.table {
            *link = with(link, named, table);
        }
    }
    Ok(())
}

/// True for the name of a profile of a link that every installation has.
pub fn is_built_in_profile(name: &str) -> bool {
    NAMES.iter().any(|known| known.name == name)
}

/// Replaces the name of a learned path by that of its file, if there is one.
fn name_file(link: &mut Table, shelf: &Shelf<'_>) {
    let profile = link.0.iter_mut().find(|entry| &*entry.key == PROFILE);
    let Some(Item::Text(name)) = profile.map(|entry| &mut entry.node.item) else { return };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if is_file(name) || name.is_empty() || !name.chars().all(is_plain) || is_built_in_profile(name) {
        return;
    }
    let path = format!("{name}.toml");
    if shelf.profile(&path).is_ok() {
        *name = path.into();
    }
}

/// Takes a key out of both directions of a link where its profile, a file, has put it: a value for the whole link
/// overrides those of the file.
pub(crate) fn forget_in_directions(link: &mut Table, key: &str) {
    let Some((named, _)) = file(link) else { return };
    let place = named.span.clone();
    for direction in link.0.iter_mut().filter(|entry| DIRECTIONS.contains(&&*entry.key)) {
        if let Some(direction) = direction.node.table_mut() {
            direction.0.retain(|entry| &*entry.key != key || entry.key_span != place);
        }
    }
}

/// Takes the keys out of a link that its profile, a file, has put there.
pub(crate) fn forget_file(link: &mut Table) {
    let Some((named, _)) = file(link) else { return };
    let place = named.span.clone();
    // A key of the link's own stands elsewhere.
    link.0.retain(|entry| entry.key_span != place);
    for direction in link.0.iter_mut().filter(|entry| DIRECTIONS.contains(&&*entry.key)) {
        if let Item::Table(direction) = &mut direction.node.item {
            direction.0.retain(|entry| entry.key_span != place);
        }
    }
}

/// A link with the keys of the profile that `named` names that it does not have itself: for one direction, neither there
/// nor for both.
pub(crate) fn with(link: &Table, named: &Node, profile: &Table) -> Table {
    let mut filled = link.clone();
    for entry in profile.0.iter().filter(|entry| &*entry.key != PROFILE_DOC) {
        // Whoever complains about it must complain about the line that names the profile.
        let from_profile = || at(named, entry.node.clone());
        let own = filled.0.iter_mut().find(|own| own.key == entry.key);
        if !DIRECTIONS.contains(&&*entry.key) {
            if own.is_none() {
                filled.0.push(Entry { key_span: named.span.clone(), node: from_profile(), ..entry.clone() });
            }
            continue;
        }
        let mut direction = from_profile();
        if let Item::Table(table) = &mut direction.item {
            table.0.retain(|inner| link.node(&inner.key).is_none());
        }
        match own {
            None => filled.0.push(Entry { key_span: named.span.clone(), node: direction, ..entry.clone() }),
            Some(own) => {
                if let (Item::Table(own), Item::Table(more)) = (&mut own.node.item, direction.item) {
                    let more: Vec<Entry> =
                        more.0.into_iter().filter(|entry| own.node(&entry.key).is_none()).collect();
                    own.0.extend(more);
                }
            }
        }
    }
    filled
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

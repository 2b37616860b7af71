//! What the schema says of the key at the end of a way through the file.

use trunkline_core::schema::Default as Preset;

use super::Section;
use crate::schema::{Key, OneOf, Schema, Shape};

/// The key at the beginning of what a way leads to inside a host, link, flow or bundle, or before the first table, and how
/// many parts of the way lead to it.
pub(super) fn key<'s>(schema: &'s Schema, path: &[&str]) -> Option<(&'s Key, usize)> {
    let find = |keys: &'s [Key], place: usize| {
        let name = path.get(place)?;
        Some((keys.iter().find(|key| key.name == *name)?, place + 1))
    };
    match path.first().copied()? {
        "hosts" => find(&schema.host, 2),
        "flow" => find(&schema.flow, 2),
        "bundle" => find(&schema.bundle, 2),
        "link" => {
            let place = match path.get(2).copied()? {
                "forward" | "backward" if path.len() > 3 => 3,
                "station" if path.len() > 4 => 4,
                _ => 2,
            };
            // Keys of one name mean the same on every medium, as far as editing goes.
            let of_media = schema.shared.iter().chain(&schema.direction);
            core::iter::once(&schema.link).chain(of_media).find_map(|keys| find(keys, place))
        }
        _ => find(&schema.experiment, 0),
    }
}

/// Whose names stand behind a key.
pub(super) fn names(schema: &Schema, path: &[&str]) -> Option<Section> {
    let (key, _) = key(schema, path)?;
    match key.shape {
        Shape::Host | Shape::Hosts | Shape::Sinks => Some(Section::Hosts),
        Shape::Links => Some(Section::Link),
        Shape::Flow | Shape::Flows => Some(Section::Flow),
        _ => None,
    }
}

/// The keys that say the same as one word or share, or as nothing at all: `[("kind", "voice")]`. `None` if such a word is no
/// kind of the key.
pub(super) fn spelled_out(key: &Key, written: Option<&str>) -> Option<Vec<(&'static str, String)>> {
    let Shape::OneOf(one_of) = &key.shape else { return None };
    let kind = |one_of: &OneOf, index: usize| Some(("kind", one_of.alternatives.get(index)?.name.to_owned()));
    match (written, key.default) {
        (None, Preset::Text(word)) => Some(vec![kind(one_of, one_of.find(word)?)?]),
        (None, _) => Some(Vec::new()),
        (Some(word), _) => match (one_of.find(word), one_of.plain_share) {
            // An alias stays what its author called it.
            (Some(_), _) => Some(vec![("kind", word.to_owned())]),
            (None, Some(share)) => {
                let first = one_of.alternatives.get(share)?.parameters.first()?.name;
                Some(vec![kind(one_of, share)?, (first, word.to_owned())])
            }
            (None, None) => None,
        },
    }
}

//! Places of the keys of a text, in the units of browsers and text editors.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The place of a key or table in the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyPlace {
    /// `["flow", "voice", "source", "samples"]`; below `sweep` and `limits`, a dotted key is one part.
    pub path: Vec<String>,
    /// Offset of its start in the text, in UTF-16 code units.
    pub from: usize,
    /// Offset of the end of all that it holds, in the same units.
    pub to: usize,
}

/// Returns the places of every key and table of a text, in its order. If the text is not TOML, those of the readable ones.
pub fn key_places(text: &str) -> Vec<KeyPlace> {
    // Code units before each byte.
    let mut units = Vec::with_capacity(text.len() + 1);
    let mut before = 0;
    for character in text.chars() {
        units.resize(units.len() + character.len_utf8(), before);
        before += character.len_utf16();
    }
    units.push(before);
    let unit = |byte: usize| units.get(byte).copied().unwrap_or(before);
    let places = trunkline_experiment::edit::key_places(text).into_iter();
    places
        .map(|place| KeyPlace { path: place.path, from: unit(place.span.start), to: unit(place.span.end) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_as_browsers_do() {
        let text = "name = \"𝄞é\"\nseed = 1";
        let place = |key: &str, from, to| KeyPlace { path: vec![key.to_owned()], from, to };
        assert_eq!(key_places(text), [place("name", 0, 12), place("seed", 13, 21)]);
    }
}

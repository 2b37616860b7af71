//! Places of the keys of a text, with which an editor finds the field of a problem and the line of a host.

use core::ops::Range;

use super::document::{Document, Item, Pair, Value};

/// A key or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlace {
    /// `["flow", "voice", "source", "samples"]`; below `sweep` and `limits`, a dotted key is one part.
    pub path: Vec<String>,
    /// The bytes of the key with all that it holds.
    pub span: Range<usize>,
}

/// Returns every key and table of a text, in its order. If the text is not TOML, the readable ones.
pub fn key_places(text: &str) -> Vec<KeyPlace> {
    let mut found: Vec<KeyPlace> = Vec::new();
    let mut table = None;
    // A table ends where the next one begins, or the text.
    let close = |found: &mut Vec<KeyPlace>, table: Option<usize>, end: usize| {
        if let Some(place) = table.and_then(|table| found.get_mut(table)) {
            place.span.end = text.get(..end).unwrap_or_default().trim_end().len();
        }
    };
    for statement in &Document::new(text).statements {
        let header: Vec<String> = statement.header.iter().map(|key| key.name.clone()).collect();
        match &statement.pair {
            Some(pair) => add(&header, pair, &mut found),
            None => {
                close(&mut found, table, statement.lines.start);
                table = Some(found.len());
                found.push(KeyPlace { path: header, span: statement.lines.clone() });
            }
        }
    }
    close(&mut found, table, text.len());
    found
}

fn add(table: &[String], pair: &Pair, found: &mut Vec<KeyPlace>) {
    let names = pair.keys.iter().map(|key| key.name.as_str());
    let mut path = table.to_vec();
    match table {
        [section] if section == "sweep" || section == "limits" => {
            path.push(names.collect::<Vec<_>>().join("."));
        }
        _ => path.extend(names.map(str::to_owned)),
    }
    found.push(KeyPlace { path: path.clone(), span: pair.span() });
    within(&path, &pair.value, found);
}

fn within(path: &[String], value: &Value, found: &mut Vec<KeyPlace>) {
    match &value.item {
        Item::Scalar => {}
        Item::Table(pairs) => pairs.iter().for_each(|pair| add(path, pair, found)),
        Item::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                if !matches!(value.item, Item::Scalar) {
                    within(&[path, &[index.to_string()]].concat(), value, found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"duration = "30 s" # ♪

[hosts]
berlin = {}
ottawa = { agent = "ottawa:4781", position = [10, 20] }

[link.trunk]
between = ["berlin", "ottawa"]
queue = { kind = "fifo", limit = "64 KiB" }

# Back.
[link.trunk.backward]
rate = "1 Mbit/s"

[flow.voice]
source.kind = "voice"
to = ['ottawa', { host = "oslo" }]

[sweep]
"flow.voice.count" = [1, 2]
flow.voice.channels = [{ a = 1 }]
"#;

    /// The innermost key at a word.
    fn at(text: &str, word: &str) -> Vec<String> {
        let at = text.find(word).expect("it is there");
        let places = key_places(text);
        let around = places.iter().filter(|place| place.span.start <= at && at < place.span.end);
        around.min_by_key(|place| place.span.len()).map(|place| place.path.clone()).unwrap_or_default()
    }

    #[test]
    fn each_key_has_its_place() {
        let expected: [(&str, &[&str]); 13] = [
            ("30 s", &["duration"]),
            ("[link.trunk]", &["link", "trunk"]),
            ("64 KiB", &["link", "trunk", "queue", "limit"]),
            ("{ kind = \"fifo\"", &["link", "trunk", "queue"]),
            ("# Back", &["link", "trunk"]),
            ("1 Mbit/s", &["link", "trunk", "backward", "rate"]),
            ("ottawa:4781", &["hosts", "ottawa", "agent"]),
            ("20]", &["hosts", "ottawa", "position"]),
            ("source.kind", &["flow", "voice", "source", "kind"]),
            ("oslo", &["flow", "voice", "to", "1", "host"]),
            ("[1, 2]", &["sweep", "flow.voice.count"]),
            ("channels", &["sweep", "flow.voice.channels"]),
            ("a = 1", &["sweep", "flow.voice.channels", "0", "a"]),
        ];
        for (word, path) in expected {
            assert_eq!(at(TEXT, word), path, "{word}");
        }
    }

    #[test]
    fn a_text_that_is_not_toml_keeps_its_readable_keys() {
        let broken = TEXT.replace("\"1 Mbit/s\"", "1 Mbit");
        assert_eq!(at(&broken, "1 Mbit"), ["link", "trunk", "backward", "rate"]);
        assert_eq!(at(&broken, "oslo"), ["flow", "voice", "to", "1", "host"]);
        for cut in (0..TEXT.len()).filter(|cut| TEXT.is_char_boundary(*cut)) {
            for KeyPlace { span, .. } in key_places(&TEXT[..cut]) {
                assert!(TEXT.get(span.clone()).is_some() && span.end <= cut, "{cut}: {span:?}");
            }
        }
    }

    #[test]
    fn values_of_any_depth_are_read() {
        for open in ["[", "{ a = "] {
            let deep = format!("a = {}", open.repeat(200_000));
            assert!(key_places(&deep).len() <= 100);
        }
    }
}

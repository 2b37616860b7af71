//! The library of learned paths: a folder of link profiles, and what their texts say of each value.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use utoipa::ToSchema;

use crate::observations::Way;
use crate::placeholder::placeholders;
use crate::write::VERIFIED;

/// The largest profile.
const MAX_TEXT: u64 = 1 << 20;

/// A learned path.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LearnedPath {
    /// Its name, for `profile`.
    pub name: String,
    /// The time at which it was learned, by the description or else by the file.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub learned: Option<Timestamp>,
    /// The description's `doc`: what it was learned from.
    pub from: Option<String>,
    /// Both directions.
    pub directions: Vec<PathDirection>,
}

/// A direction of a learned path, in the words of its description.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PathDirection {
    /// `forward` or `backward`.
    pub direction: String,
    /// The rate, or the file of a trace; `-` if it was not learned.
    pub rate: String,
    /// The propagation delay; `-` if it was not learned.
    pub delay: String,
    /// The queue; `-` if it was not learned.
    pub queue: String,
}

/// A learned path with the values of its description.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PathDetails {
    /// The path.
    pub path: LearnedPath,
    /// Remarks about all of it.
    pub notes: Vec<String>,
    /// Values, by direction.
    pub parts: Vec<PathPart>,
    /// Figures that were predicted and then measured, each in a line.
    pub verified: Vec<String>,
    /// The description: TOML.
    pub text: String,
}

/// The values of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathPart {
    /// `forward` or `backward`; empty for values of both.
    pub direction: String,
    /// Remarks.
    pub notes: Vec<String>,
    /// The values.
    pub values: Vec<PathValue>,
}

/// A value of a learned path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathValue {
    /// The key of the link.
    pub key: String,
    /// The value, in words.
    pub value: String,
    /// Its interval and the evidence for it; empty if the description says nothing of it.
    pub evidence: String,
}

/// A path that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// There is no such path.
    #[error("there is no path `{name}` in {}; {}", folder.display(), known(folder))]
    Unknown {
        /// The name.
        name: String,
        /// The library.
        folder: PathBuf,
    },
    /// A file or the folder cannot be read.
    #[error("`{}` cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A description is not TOML.
    #[error("`{}` is not TOML: {why}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

fn known(folder: &Path) -> String {
    let known = names(folder).unwrap_or_default();
    match known.is_empty() {
        true => "the library is empty; `trunkline paths import FILE.toml` adds a path".to_owned(),
        false => format!("known: {}", known.join(", ")),
    }
}

/// Returns true for a name that a path, or a file of one, can have.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 100 && name.chars().all(is_plain)
}

/// The paths of a folder, in the order of their names.
///
/// # Errors
/// If the folder cannot be read. One that does not exist is empty.
pub fn names(folder: &Path) -> Result<Vec<String>, LibraryError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LibraryError::Unreadable { path: folder.to_owned(), error }),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
        .filter(|name| is_name(name))
        .collect();
    names.sort();
    Ok(names)
}

/// The description of a path.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// The text.
    pub text: String,
    /// Its content.
    pub table: Table,
    /// When the file was written.
    pub written: Option<Timestamp>,
}

impl Description {
    /// Reads the description of a path of a folder.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn read(folder: &Path, name: &str) -> Result<Description, LibraryError> {
        let unknown = || LibraryError::Unknown { name: name.to_owned(), folder: folder.to_owned() };
        if !is_name(name) {
            return Err(unknown());
        }
        let path = folder.join(format!("{name}.toml"));
        let read = || -> std::io::Result<(String, Option<Timestamp>)> {
            let file = File::open(&path)?;
            let written = file.metadata()?.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
            let mut text = String::new();
            file.take(MAX_TEXT).read_to_string(&mut text)?;
            Ok((text, written))
        };
        match read() {
            Ok((text, written)) => match text.parse() {
                Ok(table) => Ok(Description { name: name.to_owned(), text, table, written }),
                Err(error) => {
                    let error: toml::de::Error = error;
                    Err(LibraryError::NotToml { path, why: error.message().to_owned() })
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Err(unknown()),
            Err(error) => Err(LibraryError::Unreadable { path, error }),
        }
    }

    /// True if the description has directions and no hosts, unlike an experiment or a profile of hosts.
    pub fn has_directions(&self) -> bool {
        let is_table = |key: &str| self.table.get(key).is_some_and(Value::is_table);
        Way::ALL.iter().any(|way| is_table(way.name())) && !is_table("hosts")
    }

    /// The keys of a direction, own ones first, without those that describe no link.
    pub fn keys(&self, direction: &str) -> impl Iterator<Item = &str> {
        let own = self.table.get(direction).and_then(Value::as_table).into_iter().flatten();
        let keys = own.chain(&self.table).map(|(key, _)| key.as_str());
        keys.filter(|key| *key != "doc" && Way::ALL.iter().all(|way| way.name() != *key))
    }

    /// The value of a key in a direction, in words, and whether it is a placeholder.
    pub fn value(&self, direction: &str, key: &str) -> Option<(String, bool)> {
        let own = self.table.get(direction).and_then(Value::as_table).and_then(|table| table.get(key));
        let table = if own.is_some() { direction } else { "" };
        let is_placeholder =
            || placeholders(&self.text).iter().any(|(of, other)| of == table && other == key);
        own.or_else(|| self.table.get(key)).map(|value| (in_words(value), is_placeholder()))
    }

    fn direction(&self, direction: &str) -> PathDirection {
        let is_trace = self.value(direction, "medium").is_some_and(|(medium, _)| medium == "trace");
        let shown = |key| match self.value(direction, key) {
            Some((value, false)) => value,
            _ => "-".to_owned(),
        };
        PathDirection {
            direction: direction.to_owned(),
            rate: shown(if is_trace { "file" } else { "rate" }),
            delay: shown("delay"),
            queue: shown("queue"),
        }
    }

    /// When it was learned, by its first line or the file's time.
    fn learned(&self) -> Option<Timestamp> {
        let first = self.text.lines().next().unwrap_or_default();
        let imported = || first.strip_prefix("# Learned ")?.split(' ').next()?.parse().ok();
        let measured = || {
            let (_, at) = first.split_once("learned by `trunkline learn` on ")?;
            format!("{}:00Z", at.strip_suffix(" UTC.")?).parse().ok()
        };
        imported().or_else(measured).or(self.written)
    }

    /// The path in a few words.
    pub fn summary(&self) -> LearnedPath {
        LearnedPath {
            name: self.name.clone(),
            learned: self.learned(),
            from: self.table.get("doc").and_then(Value::as_str).map(str::to_owned),
            directions: Way::ALL.map(|way| self.direction(way.name())).into(),
        }
    }

    /// The files that it names.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        files_of(&Value::Table(self.table.clone()), &mut files);
        files.sort();
        files.dedup();
        files
    }

    /// All values with their evidence.
    pub fn details(self) -> PathDetails {
        let comments = Comments::of(&self.text);
        let part = |name: &str, table: &Table| {
            let of_it = comments.parts.iter().find(|part| part.direction == name);
            let evidence = |key: &str| of_it?.values.iter().position(|value| value.key == key);
            let mut keys: Vec<&str> = table.keys().map(String::as_str).collect();
            keys.retain(|key| {
                !name.is_empty() || (*key != "doc" && Way::ALL.iter().all(|way| way.name() != *key))
            });
            keys.sort_by_key(|key| evidence(key).unwrap_or(usize::MAX));
            let value = |key: &str| PathValue {
                key: key.to_owned(),
                value: in_words(&table[key]),
                evidence: of_it
                    .zip(evidence(key))
                    .map_or_else(String::new, |(part, at)| part.values[at].evidence.clone()),
            };
            PathPart {
                direction: name.to_owned(),
                // Those of the head are about all of it.
                notes: of_it.filter(|_| !name.is_empty()).map_or_else(Vec::new, |part| part.notes.clone()),
                values: keys.into_iter().map(value).collect(),
            }
        };
        let directions =
            Way::ALL.iter().filter_map(|way| Some((way.name(), self.table.get(way.name())?.as_table()?)));
        let parts =
            std::iter::once(("", &self.table)).chain(directions).map(|(name, table)| part(name, table));
        let parts = parts.filter(|part| !part.values.is_empty() || !part.notes.is_empty()).collect();
        let notes = comments
            .parts
            .iter()
            .filter(|part| part.direction.is_empty())
            .flat_map(|part| part.notes.clone());
        PathDetails {
            path: self.summary(),
            notes: notes.collect(),
            parts,
            verified: comments.verified.clone(),
            text: self.text,
        }
    }
}

/// The comments of a description: behind a value, as `trunkline learn` writes them, or before it, as `learn --from` does.
struct Comments {
    parts: Vec<PathPart>,
    verified: Vec<String>,
}

impl Comments {
    fn of(text: &str) -> Comments {
        let is_before = text.starts_with("# Learned ");
        let mut found = Comments { parts: vec![PathPart::default()], verified: Vec::new() };
        let (mut waiting, mut is_verified) = (Vec::new(), false);
        for line in text.lines().map(str::trim) {
            let Some(part) = found.parts.last_mut() else { break };
            if let Some(comment) = line.strip_prefix('#') {
                let comment = comment.trim();
                match comment {
                    VERIFIED => is_verified = true,
                    _ if is_verified => found.verified.push(comment.to_owned()),
                    _ => waiting.push(comment.to_owned()),
                }
            } else if let Some(direction) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
                part.notes.append(&mut waiting);
                found.parts.push(PathPart { direction: direction.trim().to_owned(), ..PathPart::default() });
            } else if let Some((key, value)) = line.split_once('=') {
                let before = waiting.pop_if(|_| is_before && key.trim() != "doc");
                part.notes.append(&mut waiting);
                let evidence = before.or_else(|| comment_of(value)).unwrap_or_default();
                part.values.push(PathValue { key: key.trim().to_owned(), value: String::new(), evidence });
            }
        }
        if let Some(part) = found.parts.last_mut() {
            part.notes.append(&mut waiting);
        }
        found
    }
}

/// The comment behind a value.
fn comment_of(value: &str) -> Option<String> {
    let mut quote = None;
    let at = value.char_indices().find(|(_, c)| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(*c),
            (Some(open), c) if open == *c => quote = None,
            _ => {}
        }
        quote.is_none() && *c == '#'
    });
    at.map(|(at, _)| value[at + 1..].trim().to_owned())
}

fn files_of(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| match value {
            Value::String(path) if key == "file" => into.push(path.clone()),
            value => files_of(value, into),
        }),
        Value::Array(values) => values.iter().for_each(|value| files_of(value, into)),
        _ => {}
    }
}

/// A value as a person writes it: `fifo, 100 packets`.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Table(table) => table
            .iter()
            .map(|(key, value)| match key.as_str() {
                "kind" => in_words(value),
                key => format!("{key} {}", in_words(value)),
            })
            .collect::<Vec<_>>()
            .join(", "),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(text: &str) -> PathDetails {
        let table = text.parse().expect("TOML");
        Description { name: "home".to_owned(), text: text.to_owned(), table, written: None }.details()
    }

    #[test]
    fn the_first_line_dates_a_path() {
        let learned = |first: &str| {
            let text = format!("{first}\n[forward]\nrate = \"1 Mbit/s\"\n");
            let at = details(&text).path.learned;
            at.map(|at| at.to_string())
        };
        assert_eq!(
            learned("# The path to b, learned by `trunkline learn` on 2026-11-28 02:27 UTC.").as_deref(),
            Some("2026-11-28T02:27:00Z")
        );
        assert_eq!(
            learned("# Learned 2026-01-02T03:04:05Z from a capture.").as_deref(),
            Some("2026-01-02T03:04:05Z")
        );
        assert_eq!(learned("# The path to b, learned by `trunkline learn` on 2026-11-28 02:27."), None);
    }

    fn values(part: &PathPart) -> Vec<(&str, &str, &str)> {
        part.values.iter().map(|one| (one.key.as_str(), one.value.as_str(), one.evidence.as_str())).collect()
    }

    #[test]
    fn a_measured_path_has_its_evidence_behind_each_value_and_its_predictions_at_the_end() {
        let found = details(
            "# The path to b, learned by `trunkline learn` on 2026-01-02 03:04.\n# forward 8 Mbit/s, PIE.\n\
             doc = \"The path to b # 1\"\n\n[forward]\n# Cannot tell PIE or CoDel. The simpler one is used.\n\
             rate = \"8 Mbit/s\"   # 7.9 Mbit/s to 8.1 Mbit/s: 4 overloads\n\
             queue = { kind = \"pie\", target = \"15 ms\" }   # 14 ms to 16 ms\nloss = \"#\"\n\n[backward]\n\
             rate = \"1 Gbit/s\"   # not learned: no answer\n\n\
             # Predicted, and then measured, for traffic that was not learned from:\n\
             #   a call, delay p95: predicted 20 ms (18 ms to 22 ms), measured 21 ms, off by 5 %\n",
        );
        assert_eq!(
            found.notes,
            ["The path to b, learned by `trunkline learn` on 2026-01-02 03:04.", "forward 8 Mbit/s, PIE."]
        );
        assert_eq!(found.verified.len(), 1);
        assert!(found.verified[0].starts_with("a call, delay p95: predicted 20 ms"), "{:?}", found.verified);
        let [forward, backward] = found.parts.as_slice() else { panic!("{:?}", found.parts) };
        assert_eq!(forward.notes, ["Cannot tell PIE or CoDel. The simpler one is used."]);
        assert_eq!(
            values(forward),
            [
                ("rate", "8 Mbit/s", "7.9 Mbit/s to 8.1 Mbit/s: 4 overloads"),
                ("queue", "pie, target 15 ms", "14 ms to 16 ms"),
                ("loss", "#", "")
            ]
        );
        assert_eq!(values(backward), [("rate", "1 Gbit/s", "not learned: no answer")]);
    }

    #[test]
    fn a_path_of_a_recording_has_its_evidence_before_each_value() {
        let mut learned = crate::import::Learned { from: "a capture".to_owned(), ..Default::default() };
        learned.remarks.push("12 packets.".to_owned());
        learned.both.text("rate", "1 Mbit/s", "busy periods");
        learned.forward.text("delay", "5 ms", "the smallest delay");
        learned.forward.unknown("loss", "none was seen");
        let found = details(&learned.to_toml("home", "2026-01-02T03:04:05Z"));
        assert_eq!(found.path.learned, "2026-01-02T03:04:05Z".parse().ok());
        assert_eq!(found.notes, ["Learned 2026-01-02T03:04:05Z from a capture.", "12 packets."]);
        let [both, forward] = found.parts.as_slice() else { panic!("{:?}", found.parts) };
        assert_eq!(values(both), [("rate", "1 Mbit/s", "busy periods")]);
        assert_eq!(values(forward), [("delay", "5 ms", "the smallest delay")]);
        assert_eq!(forward.notes, ["loss: none was seen"]);
        assert!(both.notes.is_empty() && found.verified.is_empty());
    }

    #[test]
    fn only_profiles_with_directions_are_paths() {
        let has = |text: &str| {
            let table = text.parse().expect("TOML");
            Description { name: String::new(), text: String::new(), table, written: None }.has_directions()
        };
        assert!(has("[forward]\nrate = \"1 Mbit/s\"\n"));
        assert!(!has("rate = \"1 Mbit/s\"\n"));
        assert!(!has("[hosts]\n[forward]\n"));
    }
}

//! A link as it was learned: keys of `[link]` with their evidence, keys that cannot be known, and the files beside them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use trunkline_core::Rate;

use crate::Way;

/// A link that was learned from something recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Its source in a few words: "the iBoxNet profile `a.json`".
    pub from: String,
    /// Facts about the source, a sentence each.
    pub remarks: Vec<String>,
    /// Keys of both directions.
    pub both: Side,
    /// Keys of the direction from the first host of `between` to the second.
    pub forward: Side,
    /// Keys of the other direction.
    pub backward: Side,
    /// Files that the keys name.
    pub attachments: Vec<Attachment>,
    /// Traffic of others. A link's description cannot hold it: it is a flow.
    pub others: Vec<Others>,
    /// Whatever the user should know before relying on it, a sentence each.
    pub warnings: Vec<String>,
}

/// The keys of a direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Keys with values.
    pub known: Vec<Known>,
    /// Keys that stay at their defaults, because the source cannot tell them.
    pub unknown: Vec<Unknown>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The key: `rate`.
    pub key: Cow<'static, str>,
    /// Its value.
    pub value: Written,
    /// The source of the value, and the bounds of the true one.
    pub evidence: String,
}

/// A value as TOML writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Written {
    /// A text, which is written in quotation marks.
    Text(String),
    /// TOML: a table or a number.
    Toml(String),
    /// The path of an attachment, by its suffix.
    File(Cow<'static, str>),
}

/// A key that cannot be known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    /// The key: `loss`.
    pub key: Cow<'static, str>,
    /// Why, and what is known of it all the same.
    pub why: String,
}

/// Traffic of others in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Its direction.
    pub way: Way,
    /// Its rate over time: a file of a series.
    pub series: Attachment,
    /// Time after which it repeats.
    pub seconds: u64,
}

/// A file beside the description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name is that of the description, a hyphen and this: `up.trace`.
    pub suffix: Cow<'static, str>,
    /// Its content.
    pub text: String,
}

impl Written {
    /// The value in the description `name`, without quotation marks.
    pub fn text(&self, name: &str) -> String {
        match self {
            Written::Text(text) | Written::Toml(text) => text.clone(),
            Written::File(suffix) => format!("{name}-{suffix}"),
        }
    }
}

impl Side {
    /// Adds a key with a text as its value.
    pub fn text(&mut self, key: &'static str, value: impl ToString, evidence: impl Into<String>) {
        let value = Written::Text(value.to_string());
        self.known.push(Known { key: key.into(), value, evidence: evidence.into() });
    }

    /// Adds a key whose value is TOML.
    pub fn toml(&mut self, key: &'static str, value: impl Into<String>, evidence: impl Into<String>) {
        self.known.push(Known {
            key: key.into(),
            value: Written::Toml(value.into()),
            evidence: evidence.into(),
        });
    }

    /// Adds a key that cannot be known.
    pub fn unknown(&mut self, key: &'static str, why: impl Into<String>) {
        self.unknown.push(Unknown { key: key.into(), why: why.into() });
    }
}

impl Learned {
    /// The keys of a direction.
    pub fn side(&mut self, way: Way) -> &mut Side {
        match way {
            Way::Forward => &mut self.forward,
            Way::Backward => &mut self.backward,
        }
    }

    /// The name of the file of an attachment of the description `name`.
    pub fn file_name(name: &str, attachment: &Attachment) -> String {
        format!("{name}-{}", attachment.suffix)
    }

    /// The description as the file `name`.toml: the keys of a link's profile, each with its evidence as a comment. `when` is
    /// the time at which it was learned.
    pub fn to_toml(&self, name: &str, when: &str) -> String {
        let mut out = String::new();
        comment(&mut out, &format!("Learned {when} from {}.", self.from));
        self.remarks.iter().chain(&self.warnings).for_each(|line| comment(&mut out, line));
        out += &format!("doc = {}\n", quoted(&format!("Learned from {}", self.from)));
        self.both.write(&mut out, name);
        for (head, side) in [("forward", &self.forward), ("backward", &self.backward)] {
            if !side.known.is_empty() || !side.unknown.is_empty() {
                out += &format!("\n[{head}]\n");
                side.write(&mut out, name);
            }
        }
        out
    }

    /// An experiment that plays traffic of others over the link `name`.toml: a call from either host to the other. `None` if
    /// the source knows of no others.
    pub fn to_experiment(&self, name: &str) -> Option<String> {
        if self.others.is_empty() {
            return None;
        }
        let mut out = String::new();
        comment(
            &mut out,
            &format!("A call over the path of `{name}.toml`, beside the traffic of others on it."),
        );
        out +=
            &format!("name = {}\nduration = \"30 s\"\n\n[hosts]\nhere = {{}}\nthere = {{}}\n", quoted(name));
        out += &format!(
            "\n[link.path]\nbetween = [\"here\", \"there\"]\nprofile = {}\n",
            quoted(&format!("{name}.toml"))
        );
        out += "\n[flow.call]\nfrom = \"here\"\nto = \"there\"\nreflect = true\ntransport = \"udp\"\nsource = \"voice\"\n";
        for Others { way, series, seconds } in &self.others {
            let (flow, from, to) = match way {
                Way::Forward => ("others-there", "here", "there"),
                Way::Backward => ("others-back", "there", "here"),
            };
            let file = quoted(&Self::file_name(name, series));
            out += &format!(
                "\n[flow.{flow}]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = \"udp\"\n[flow.{flow}.source]\n\
                 kind = \"cross-traffic\"\nrate = {{ kind = \"series\", file = {file}, every = \"{seconds} s\" }}\n\
                 message = \"972 B\"\narrivals = \"even\"\n"
            );
        }
        Some(out)
    }
}

impl Side {
    fn write(&self, out: &mut String, name: &str) {
        for Known { key, value, evidence } in &self.known {
            comment(out, evidence);
            let value = match value {
                Written::Toml(toml) => toml.clone(),
                _ => quoted(&value.text(name)),
            };
            *out += &format!("{key} = {value}\n");
        }
        for Unknown { key, why } in &self.unknown {
            comment(out, &format!("{key}: {why}"));
        }
    }
}

fn comment(out: &mut String, line: &str) {
    if !line.is_empty() {
        *out += &format!("# {}\n", one_line(line));
    }
}

/// Without characters that TOML does not allow in a comment, or that a terminal obeys.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A rate to the last bit per second.
pub(super) fn exact(rate: Rate) -> String {
    match rate.bits_per_second() {
        bits if bits.is_multiple_of(1_000_000) => format!("{} Mbit/s", bits / 1_000_000),
        bits if bits.is_multiple_of(1_000) => format!("{} kbit/s", bits / 1_000),
        bits => format!("{bits} bit/s"),
    }
}

/// A text as TOML's basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_do_not_break_the_text() {
        let mut learned =
            Learned { from: "the capture `a\"\n\u{1b}[1m.pcap`".to_owned(), ..Learned::default() };
        learned.both.text("rate", "1 Mbit/s", "measured\nlong ago");
        learned.both.unknown("loss", "nobody knows");
        let text = learned.to_toml("a", "today");
        assert_eq!(
            text,
            "# Learned today from the capture `a\"  [1m.pcap`.\n\
             doc = \"Learned from the capture `a\\\"\\u000a\\u001b[1m.pcap`\"\n\
             # measured long ago\nrate = \"1 Mbit/s\"\n# loss: nobody knows\n"
        );
    }
}

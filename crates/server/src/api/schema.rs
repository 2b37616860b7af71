//! What can be written into an experiment file, for forms.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Section;

/// All that can be written into an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormSchema {
    /// Section by section.
    pub sections: Vec<FormSection>,
}

/// A section of the file: a kind of table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormSection {
    /// Which.
    pub name: Section,
    /// What it is for.
    pub doc: String,
    /// The keys of one of its tables.
    pub keys: Vec<FormKey>,
    /// Links only: the media, with the keys that each has beside those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub media: Vec<FormMedium>,
    /// Limits only: the figures that one can name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub figures: Vec<FormFigure>,
}

/// A key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormKey {
    /// As written.
    pub name: String,
    /// What it says.
    pub doc: String,
    /// Whether it must be there.
    pub required: bool,
    /// What holds if it is missing, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What its value looks like.
    pub shape: FormShape,
    /// The units that can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<Vec<String>>,
    /// The smallest value, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The largest value, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// The words to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<Choice>>,
    /// What the value may be a table of, by `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub alternatives: Option<Vec<Alternative>>,
    /// The keys of a table in its place: of a sink beside its `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion)]
    pub keys: Option<Vec<FormKey>>,
    /// Whether a share such as `1 %` may stand for the first alternative.
    pub share: bool,
}

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FormShape {
    /// Any text.
    Text,
    /// `"10 ms"`.
    Duration,
    /// `"2 Mbit/s"`.
    Rate,
    /// `"64 KiB"`.
    Bytes,
    /// Bytes or packets: `"100 packets"`.
    Limit,
    /// `"1 %"`.
    Ratio,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// true or false.
    Flag,
    /// One of some words.
    Choice,
    /// The name of a host.
    Host,
    /// Names of hosts.
    Hosts,
    /// The name of a flow.
    Flow,
    /// Names of flows.
    Flows,
    /// The sinks of a flow.
    Sinks,
    /// Names of links.
    Links,
    /// A word or a table of a kind with its own keys: `alternatives` has them.
    OneOf,
    /// The path of a file beside the experiment file.
    File,
    /// A table with keys of its own for one direction of a link.
    Direction,
    /// Per station of a medium.
    Stations,
    /// A duration, or a distribution of durations: `alternatives` has those.
    Durations,
    /// A size, or a distribution of sizes: `alternatives` has those.
    Sizes,
    /// Two numbers: a place in the drawing.
    Position,
}

/// A word that can be written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Choice {
    /// As written.
    pub name: String,
    /// What it means.
    pub doc: String,
}

/// A kind of table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alternative {
    /// Its `kind`.
    pub name: String,
    /// Other words for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub aliases: Vec<String>,
    /// What it is.
    pub doc: String,
    /// Its keys beside `kind`.
    #[schema(no_recursion)]
    pub keys: Vec<FormKey>,
}

/// A medium.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormMedium {
    /// As written.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// How many hosts it connects.
    pub stations: Stations,
    /// Its own keys: those of the medium as a whole, then those of a direction or station.
    pub keys: Vec<FormKey>,
    /// Which of them are of the medium as a whole, and so cannot stand in a direction or station.
    pub shared: Vec<String>,
}

/// A figure that a limit can name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormFigure {
    /// Of what.
    pub of: FigureOf,
    /// As written behind the name of what has it.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// What it is compared with.
    pub shape: FormShape,
    /// The units of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<Vec<String>>,
}

/// What has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureOf {
    /// `flow.NAME.FIGURE`
    Flow,
    /// `flow.NAME.sink.HOST.FIGURE`
    Sink,
    /// `bundle.NAME.FIGURE`
    Bundle,
    /// `bundle.NAME.TRANSPORT.FIGURE`
    Transport,
}

/// How many hosts a medium connects.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stations {
    /// At least.
    pub min: u32,
    /// At most; null if there is no bound.
    pub max: Option<u32>,
}

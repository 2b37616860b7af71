//! An experiment file as a drawing, and changes of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Problem;

/// A TOML table as written: strings, numbers, flags, lists and tables.
pub type Tree = Map<String, Value>;

/// A section of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// `[hosts]`
    Hosts,
    /// `[link.NAME]`
    Link,
    /// `[flow.NAME]`
    Flow,
    /// `[bundle.NAME]`
    Bundle,
    /// What holds for the whole: the keys before the first table.
    Experiment,
    /// `[sweep]`
    Sweep,
    /// `[limits]`
    Limits,
}

/// An experiment file as a drawing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Drawing {
    /// The experiment's name.
    pub title: String,
    /// The hosts.
    pub hosts: Vec<DrawingHost>,
    /// The links between them.
    pub links: Vec<DrawingLink>,
    /// The flows between them.
    pub flows: Vec<DrawingFlow>,
    /// Flows that are counted together.
    pub bundles: Vec<DrawingBundle>,
    /// The keys before the first table.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub experiment: Tree,
    /// What is swept.
    pub sweep: Vec<DrawingAxis>,
    /// What counts as good enough.
    pub limits: Vec<DrawingLimit>,
}

/// A host in a drawing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingHost {
    /// Its name.
    pub name: String,
    /// Its place, to the right.
    pub x: f64,
    /// Its place, downwards.
    pub y: f64,
    /// Whether the file says its place (`position`); otherwise it was found.
    pub placed: bool,
    /// The agent on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// All that is written.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A link in a drawing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingLink {
    /// Its name.
    pub name: String,
    /// The hosts that it connects.
    pub between: Vec<String>,
    /// What it is made of: `serial`, `fddi` ...
    pub medium: String,
    /// What to write beside it: `2 Mbit/s · 5 ms`.
    pub label: String,
    /// All that is written.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A flow in a drawing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingFlow {
    /// Its name.
    pub name: String,
    /// Where it starts.
    pub from: String,
    /// Where it ends.
    pub to: Vec<String>,
    /// Over which transport.
    pub transport: String,
    /// What kind of source.
    pub source: String,
    /// How many members.
    pub count: u64,
    /// What to write beside it.
    pub label: String,
    /// All that is written.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A bundle in a drawing.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingBundle {
    /// Its name.
    pub name: String,
    /// Its flows.
    pub flows: Vec<String>,
    /// All that is written.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: Tree,
}

/// A swept key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingAxis {
    /// `flow.voice.count`
    pub key: String,
    /// Its values as written.
    pub values: Vec<Value>,
}

/// A limit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrawingLimit {
    /// `flow.voice.loss`
    pub key: String,
    /// `< 1 %`
    pub limit: String,
}

/// An experiment file as a drawing, with what is wrong with it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Drawn {
    /// How it looks; missing if it is not TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawing: Option<Drawing>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// Changes of an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// The file before.
    pub text: String,
    /// What to change, one after the other.
    pub edits: Vec<Edit>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Edit {
    /// Writes a value, which may be new.
    Set {
        /// Where: `["flow", "voice", "source", "samples"]`.
        path: Vec<String>,
        /// What.
        value: Value,
    },
    /// Takes a key or a table away.
    Remove {
        /// Which.
        path: Vec<String>,
    },
    /// Gives a host, link, flow or bundle another name; what refers to it follows.
    Rename {
        /// What it is.
        section: Section,
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Adds a host, link, flow or bundle.
    Add {
        /// What it is.
        section: Section,
        /// Its name; one that is free if missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its keys.
        #[schema(value_type = BTreeMap<String, Value>)]
        values: Tree,
    },
    /// Puts a host somewhere else in the drawing.
    Place {
        /// Which.
        host: String,
        /// To the right.
        x: f64,
        /// Downwards.
        y: f64,
    },
}

/// An experiment file after changes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Edited {
    /// The file; its comments and its layout are kept.
    pub text: String,
    /// What is wrong with it now.
    pub problems: Vec<Problem>,
    /// How it looks; missing if it is not TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawing: Option<Drawing>,
}

/// An experiment file to begin with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Example {
    /// For addresses: `voice-beside-bulk`.
    pub name: String,
    /// For people.
    pub title: String,
    /// The file.
    pub text: String,
}

//! Edits as a client of the API writes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trunkline_experiment::edit::{self, EditError, Tree};
use utoipa::ToSchema;

/// One change to an experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Edit {
    /// Sets a key; creates the tables of its path if necessary. A table as value replaces the whole table.
    Set {
        /// The way to the key: `["flow", "voice", "source", "samples"]`; of a swept key or a limit
        /// `["sweep", "flow.voice.count"]`.
        path: Vec<String>,
        /// The value, as JSON writes TOML's.
        value: Value,
    },
    /// Removes a key or a table; for a host, link, flow or bundle, also everything that has no meaning without it.
    Remove {
        /// Its path.
        path: Vec<String>,
    },
    /// Renames a host, link, flow or bundle, wherever the file names it.
    Rename {
        /// The section of the file.
        section: Section,
        /// Its name.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Adds a host, link, flow or bundle. Required keys that are missing get usual values.
    Add {
        /// What to add.
        section: Section,
        /// Its name; if missing, an unused one is chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its keys.
        #[serde(default)]
        #[schema(value_type = BTreeMap<String, Value>)]
        values: Tree,
    },
    /// Sets the position of a host in the drawing.
    Place {
        /// Its name.
        host: String,
        /// Distance to the right, in pixels of the unscaled drawing.
        x: f64,
        /// Distance downwards, in the same pixels.
        y: f64,
    },
}

/// A kind of object that an experiment file has by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// `[hosts]`
    Hosts,
    /// `[link.NAME]`
    Link,
    /// `[flow.NAME]`
    Flow,
    /// `[bundle.NAME]`
    Bundle,
}

impl From<Edit> for edit::Edit {
    fn from(edit: Edit) -> edit::Edit {
        match edit {
            Edit::Set { path, value } => edit::Edit::Set { path, value },
            Edit::Remove { path } => edit::Edit::Remove { path },
            Edit::Rename { section, from, to } => edit::Edit::Rename { section: section.into(), from, to },
            Edit::Add { section, name, values } => edit::Edit::Add { section: section.into(), name, values },
            Edit::Place { host, x, y } => edit::Edit::Place { host, x, y },
        }
    }
}

impl From<Section> for edit::Section {
    fn from(section: Section) -> edit::Section {
        match section {
            Section::Hosts => edit::Section::Hosts,
            Section::Link => edit::Section::Link,
            Section::Flow => edit::Section::Flow,
            Section::Bundle => edit::Section::Bundle,
        }
    }
}

/// The text after the edits: see [`trunkline_experiment::edit::apply`].
///
/// # Errors
/// As there.
pub fn apply(text: &str, edits: Vec<Edit>) -> Result<String, EditError> {
    let edits: Vec<edit::Edit> = edits.into_iter().map(edit::Edit::from).collect();
    edit::apply(text, &edits)
}

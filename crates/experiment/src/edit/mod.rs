//! Edits of an experiment file: [`apply`] carries them into the text, where everything that they do not concern stays as it
//! is, to the byte: comments, order, empty lines. [`outline()`] reads the parts that an edit can name. `--set` is such an
//! edit, so they are part of this crate; what the page alone uses is in the crate `editor`.
//!
//! An edit becomes splices of the text at places that the document knows. So nothing else can change.

mod add;
mod document;
mod list;
mod names;
mod outline;
mod places;
mod remove;
mod rename;
mod set;
mod shape;
mod splice;
mod write;

#[cfg(test)]
mod tests;

use core::ops::Range;

use serde_json::Value;

use crate::problem::Problems;
use crate::schema::Schema;
use crate::tree;
use document::{Document, Item, Value as Placed};
pub(crate) use outline::json_of;
pub use outline::{Limited, Named, Outline, Swept, Tree, outline, sinks};
pub use places::{KeyPlace, key_places};

/// The place of a key's value in a text, as bytes: in the sweep if a value there contains `written`, otherwise in its
/// table, or the nearest value above it.
pub(crate) fn place(text: &str, path: &[&str], written: &str) -> Range<usize> {
    let document = Document::new(text);
    let holds = |value: &&Placed| text.get(value.span.clone()).is_some_and(|text| text.contains(written));
    let swept = (1..=path.len()).rev().find_map(|length| {
        let way = ["sweep".to_owned(), path[..length].join(".")];
        match set::locate(&document, &set::segments(way)) {
            set::Found::Value(Placed { item: Item::Array(values), .. }) => values.iter().find(holds),
            _ => None,
        }
    });
    let found = swept.or_else(|| match set::locate(&document, &set::segments(path)) {
        set::Found::Value(value) | set::Found::Within(value, _) => Some(value),
        _ => None,
    });
    found.map_or(0..0, |value| value.span.clone())
}

/// One change to an experiment file.
#[derive(Clone, Debug, PartialEq)]
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
        /// The kind of object.
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
        name: Option<String>,
        /// Its keys.
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

impl Edit {
    /// The way to what it changes.
    fn place(&self) -> Vec<String> {
        let named = |section: Section, name: &str| vec![section.key().to_owned(), name.to_owned()];
        match self {
            Edit::Set { path, .. } | Edit::Remove { path } => path.clone(),
            Edit::Rename { section, from, .. } => named(*section, from),
            Edit::Add { section, .. } => vec![section.key().to_owned()],
            Edit::Place { host, .. } => named(Section::Hosts, host),
        }
    }
}

/// A kind of object that an experiment file has by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Section {
    /// Every one, in the order in which files have them.
    pub const ALL: [Section; 4] = [Section::Hosts, Section::Link, Section::Flow, Section::Bundle];

    /// The key of its table.
    pub fn key(self) -> &'static str {
        match self {
            Section::Hosts => "hosts",
            Section::Link => "link",
            Section::Flow => "flow",
            Section::Bundle => "bundle",
        }
    }

    /// What one of them is called.
    pub fn noun(self) -> &'static str {
        match self {
            Section::Hosts => "host",
            Section::Link => "link",
            Section::Flow => "flow",
            Section::Bundle => "bundle",
        }
    }

    fn of_key(key: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| section.key() == key)
    }
}

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The text is not TOML, so that nobody knows what stands where.
    #[error("the text is not TOML; fix that first:\n{0}")]
    NotToml(Problems),
    /// What is to be changed is not there.
    #[error("there is no `{0}` in the file")]
    Missing(String),
    /// What is to be changed is there, in a shape that the edit does not fit.
    #[error("`{path}` {reason}")]
    Unfit {
        /// The key.
        path: String,
        /// What it is, and what to do.
        reason: String,
    },
    /// A name is in use.
    #[error("a {noun} `{name}` already exists; choose another name")]
    Taken {
        /// The kind of object.
        noun: &'static str,
        /// The name.
        name: String,
    },
    /// A name that no host, link, flow or bundle can have.
    #[error("the name `{0}` must consist of ASCII letters, digits, `-` and `_`")]
    Name(String),
    /// A value that TOML cannot say.
    #[error("{0}")]
    Value(String),
}

impl EditError {
    fn unfit(path: &[String], reason: impl Into<String>) -> EditError {
        EditError::Unfit { path: path.join("."), reason: reason.into() }
    }
}

/// The text after the edits, one after the other.
///
/// The text need not be a valid experiment, before or after. What an edit does not concern keeps its bytes. On the line of
/// a value that is replaced the comment stays; that of a key that is removed goes, and so do comments right above and
/// within a table that is removed.
///
/// # Errors
/// If the text is not TOML, or an edit does not fit it. Then no edit counts.
///
/// ```
/// use trunkline_experiment::edit::{Edit, apply};
///
/// let text = "[flow.voice]\ncount = 2   # calls\n";
/// let path = ["flow", "voice", "count"].map(String::from).to_vec();
/// let edited = apply(text, &[Edit::Set { path, value: 8.into() }])?;
/// assert_eq!(edited, "[flow.voice]\ncount = 8   # calls\n");
/// # Ok::<(), trunkline_experiment::edit::EditError>(())
/// ```
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let editor = Editor { schema: Schema::default() };
    readable(text)?;
    edits.iter().try_fold(text.to_owned(), |text, edit| {
        let edited = editor.edited(text, edit)?;
        // What cannot be read must not leave here, whatever shape the text had.
        match readable(&edited) {
            Ok(()) => Ok(edited),
            Err(_) => Err(EditError::unfit(
                &edit.place(),
                "is written in a way that this edit does not fit; edit it as text",
            )),
        }
    })
}

/// Carries edits out.
struct Editor {
    schema: Schema,
}

impl Editor {
    fn edited(&self, text: String, edit: &Edit) -> Result<String, EditError> {
        match edit {
            Edit::Set { path, value } => self.set(text, path, value),
            Edit::Remove { path } => self.remove(text, path),
            Edit::Rename { section, from, to } => self.rename(text, *section, from, to),
            Edit::Add { section, name, values } => self.add(text, *section, name.as_deref(), values),
            Edit::Place { host, x, y } => self.place(text, host, *x, *y),
        }
    }

    fn place(&self, text: String, host: &str, x: f64, y: f64) -> Result<String, EditError> {
        let path = ["hosts", host].map(String::from);
        if !names::of(&text, Section::Hosts).iter().any(|name| name == host) {
            return Err(EditError::Missing(path.join(".")));
        }
        if !x.is_finite() || !y.is_finite() {
            return Err(EditError::Value(format!("`{host}` cannot stand at {x}, {y}: expected two numbers")));
        }
        // Pixels; no file needs their fractions. What is too large for a place is told by the check.
        let whole = |number: f64| Value::from(number.round() as i64);
        let path: Vec<String> = path.into_iter().chain([crate::schema::POSITION.to_owned()]).collect();
        self.set(text, &path, &Value::Array(vec![whole(x), whole(y)]))
    }
}

fn readable(text: &str) -> Result<(), EditError> {
    tree::parse(text).map(drop).map_err(|remarks| EditError::NotToml(placed(remarks, text)))
}

/// Remarks on a text that is no file yet.
fn placed(remarks: Vec<crate::problem::Remark>, text: &str) -> Problems {
    Problems::place(remarks, "experiment.toml", text, |_| "".into())
}

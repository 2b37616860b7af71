//! An experiment file as a drawing, and changes of it.

use serde::{Deserialize, Serialize};
use trunkline_editor::{Drawing, Edit, KeyPlace};
use utoipa::ToSchema;

use super::Problem;

/// The drawing of an experiment file, with its problems.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Drawn {
    /// The drawing; missing if the text is not TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawing: Option<Drawing>,
    /// Problems of the file.
    pub problems: Vec<Problem>,
    /// Places of its keys.
    pub places: Vec<KeyPlace>,
}

/// Changes to an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Edits {
    /// The text of the file before the changes.
    pub text: String,
    /// The changes, in order.
    pub edits: Vec<Edit>,
}

/// An experiment file after changes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Edited {
    /// The file; its comments and its layout are kept.
    pub text: String,
    /// Its problems now.
    pub problems: Vec<Problem>,
    /// Places of its keys now.
    pub places: Vec<KeyPlace>,
    /// The drawing; missing if the text is not TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawing: Option<Drawing>,
}

/// An example experiment file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Example {
    /// A heading for several examples.
    pub topic: String,
    /// For addresses: `voice-beside-bulk`.
    pub name: String,
    /// The text for people.
    pub title: String,
    /// The file.
    pub text: String,
}

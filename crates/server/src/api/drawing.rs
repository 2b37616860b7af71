//! An experiment file as a drawing, and changes of it.

use serde::{Deserialize, Serialize};
use trunkline_editor::{Drawing, Edit};
use utoipa::ToSchema;

use super::Problem;

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

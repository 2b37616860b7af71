//! Drafts of experiment files.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A draft without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DraftInfo {
    /// Its id.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// Its last version.
    pub version: u64,
    /// The time of that.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// A draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Draft {
    /// Its id.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// The experiment file.
    pub text: String,
    /// The versions that are kept, the oldest first: those within a minute become one, and at most 100 are kept.
    pub versions: Vec<DraftVersion>,
}

/// A version of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DraftVersion {
    /// Its number.
    pub number: u64,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// A text to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDraft {
    /// The file's name.
    pub name: String,
    /// The experiment file.
    #[schema(max_length = 4_194_304)]
    pub text: String,
    /// The version that the text is based on; missing for a new draft. If it is not the last one, nothing is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
}

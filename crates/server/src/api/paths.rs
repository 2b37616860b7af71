//! Learned paths.

use serde::{Deserialize, Serialize};
use trunkline_learn::library::LearnedPath;
use utoipa::ToSchema;

/// Learned paths.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Paths {
    /// The paths, by name.
    pub paths: Vec<LearnedPath>,
    /// Descriptions of the library that cannot be read, and why.
    pub problems: Vec<String>,
}

//! The PNG files of a build without the feature `png`: there are none.

use std::path::{Path, PathBuf};

use trunkline_store::StoredRun;

use crate::Error;

/// Says which feature is missing.
///
/// # Errors
/// Always.
pub fn png(_: &StoredRun, _: Option<&StoredRun>, _: &Path) -> Result<Vec<PathBuf>, Error> {
    Err(Error::NotBuilt(missing()))
}

/// The same.
///
/// # Errors
/// Always.
pub fn rasterised(_: &str) -> Result<Vec<u8>, String> {
    Err(missing())
}

fn missing() -> String {
    trunkline_core::not_built("PNG", "png")
}

//! The files of runs where every host of a team has them: in a bucket of an S3-compatible server.
//!
//! A run is measured into its folder on this host, as ever; what is finished is copied to the bucket meanwhile, and entered
//! among the rows when it is there. Whoever has no such file fetches it into the same place in a folder of the same name.
//!
//! ```text
//! s3://bucket/prefix/7-atlantic-live-<key of the run>/traces/p003-r01-voice.parquet
//! runs/7-atlantic-live/
//!     files.pending              some files are not in the bucket yet, or were not when this was written
//!     files.fetched              this folder was made for what was measured elsewhere
//! ```

mod address;
#[cfg_attr(not(feature = "s3"), path = "no_bucket.rs")]
mod bucket;
mod fetch;
mod sweep;
mod upload;

use std::path::Path;

pub(crate) use address::{FilesAddress, split};
pub(crate) use bucket::Bucket;
pub(crate) use fetch::fetch;
pub(crate) use sweep::{Leftovers, list};
pub(crate) use upload::{PATIENCE, Uploads};

use crate::StoreError;
use crate::model::RunInfo;

/// Says that files of a folder may not be in the bucket yet.
const PENDING: &str = "files.pending";
/// Says that a folder was not made by who measured.
const FETCHED: &str = "files.fetched";
/// How a file is called that is being fetched.
const FETCHING: &str = "fetching";

/// A file that is in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedFile {
    /// In the run's folder.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
}

/// Whether what a run's folder has was measured here.
pub(crate) fn is_own(directory: &Path) -> bool {
    directory.join("experiment.toml").is_file() && !directory.join(FETCHED).exists()
}

/// Makes sure that a run may be put there, before it is measured.
pub(crate) fn check(bucket: &Bucket, folder: &str, key: &str) -> Result<(), StoreError> {
    // A mark as good as any: it goes with the run.
    let name = format!("{folder}-{key}/{PENDING}");
    let put = bucket.put_text(&name, "").and_then(|()| bucket.remove(&name));
    put.map_err(|failed| bucket.failed("uploaded", Path::new(&name), failed))
}

/// Removes these files of a run from the bucket.
pub(crate) fn remove(bucket: &Bucket, run: &RunInfo, files: &[SharedFile]) -> Result<(), StoreError> {
    files.iter().try_for_each(|file| {
        let name = format!("{}/{}", place(run), file.path);
        bucket.remove(&name).map_err(|failed| bucket.failed("removed", Path::new(&name), failed))
    })
}

/// Where a run's files are in the bucket, below its prefix.
fn place(info: &RunInfo) -> String {
    let folder = info.directory.file_name().unwrap_or_default().to_string_lossy();
    format!("{folder}-{}", info.key)
}

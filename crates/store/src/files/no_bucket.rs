//! The bucket of a build without the feature `s3`: there is none.

use std::fs::File;
use std::path::Path;

use super::{FilesAddress, SharedFile};
use crate::StoreError;

/// No value has this type.
#[derive(Debug)]
pub(crate) enum Bucket {}

/// Nothing fails in a bucket that is not there.
pub(crate) enum Failed {}

impl Bucket {
    /// Says which feature is missing.
    pub(crate) fn open(address: FilesAddress) -> Result<Bucket, StoreError> {
        let why = trunkline_core::not_built("S3", "s3");
        Err(StoreError::NotBuilt { place: address.shown(), why })
    }

    pub(crate) fn shown(&self) -> String {
        match *self {}
    }

    pub(crate) fn put(&self, _: &str, _: &Path, _: &dyn Fn() -> bool) -> Result<(u64, String), Failed> {
        match *self {}
    }

    pub(crate) fn put_text(&self, _: &str, _: &str) -> Result<(), Failed> {
        match *self {}
    }

    pub(crate) fn get(&self, _: &str, _: &mut File, _: &SharedFile) -> Result<bool, Failed> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: &str) -> Result<(), Failed> {
        match *self {}
    }

    pub(crate) fn failed(&self, _: &'static str, _: &Path, _: Failed) -> StoreError {
        match *self {}
    }
}

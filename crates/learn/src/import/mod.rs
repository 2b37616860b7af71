//! Link descriptions from what others have recorded: captures of packets at one or both ends of a path, delivery traces and
//! logs of mahimahi and Pantheon, iBoxNet profiles, and traces of our own runs.
//!
//! Every source becomes [`Observations`](crate::Observations) or, if it describes a link itself, a [`Learned`] at once. What a
//! source cannot tell stays at its default, and [`Learned`] lists it key by key.

pub mod capture;
pub mod delivery;
mod description;
mod estimate;
mod files;
pub mod iboxnet;
mod recognise;

pub use description::{Attachment, Known, Learned, Side, Unknown, Written};
pub use estimate::{Clocks, describe};
pub use files::{FilesError, ReadTrace, from_files};
pub use recognise::{Format, recognise};

/// Why a file cannot be imported: one sentence that continues "`FILE` ...", with the place if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImportError(String);

impl ImportError {
    /// A reason that continues the sentence "`FILE` ...": "is empty".
    pub fn new(reason: impl Into<String>) -> ImportError {
        ImportError(reason.into())
    }
}

/// Packets or lines that are kept in memory at most. What follows them is not read, and the result has a warning.
pub const MAX_PACKETS: usize = 1 << 22;

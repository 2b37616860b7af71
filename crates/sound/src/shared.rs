//! The state that a device, its keeper, its callbacks and its files share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wanted::Format;

/// What a device is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Sound comes and goes.
    #[default]
    Running,
    /// The card or the server is gone, or came back as something that cannot be used; tried again until it can.
    Waiting {
        /// One sentence without its full stop.
        why: String,
    },
    /// All of the file was captured. Playing goes on.
    Finished,
    /// A file can no longer be read or written. Nothing mends that.
    Failed {
        /// One sentence without its full stop.
        why: String,
    },
}

/// The state that the device, its keeper and its callbacks share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) format: Mutex<Format>,
    pub(crate) status: Mutex<Status>,
    pub(crate) failure: Mutex<Option<String>>,
    pub(crate) finished: AtomicBool,
    /// Nothing is captured from a file.
    pub(crate) held: AtomicBool,
    pub(crate) refused: AtomicBool,
    pub(crate) xruns: AtomicU64,
}

impl Shared {
    /// Notes lost blocks; as all of these that the audio thread uses, without a lock.
    pub(crate) fn lose(&self, blocks: u64) {
        self.xruns.fetch_add(blocks, Ordering::Relaxed);
    }

    pub(crate) fn xruns(&self) -> u64 {
        self.xruns.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn real_time_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Not from the audio thread.
    pub(crate) fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
    }

    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }
}

/// The value behind a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these, and each holds one whole value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

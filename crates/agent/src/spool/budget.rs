//! What is kept on disk, against what the owner allows for all controllers and for each.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_control::Fingerprint;
use trunkline_core::Bytes;

use super::SpoolError;

/// What is kept, against what the owner allows.
#[derive(Debug)]
pub(super) struct Budget {
    limit: Bytes,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    used: BTreeMap<Fingerprint, u64>,
    /// Whether each controller leaves something for others.
    is_shared: bool,
}

impl Budget {
    pub(super) fn new(limit: Bytes) -> Budget {
        Budget { limit, books: Mutex::default() }
    }

    /// Takes room for a controller. Where it is shared, a controller has at most half of what the others leave.
    ///
    /// # Errors
    /// [`SpoolError::Full`] if there is not so much.
    pub(super) fn take(&self, controller: &Fingerprint, bytes: Bytes) -> Result<(), SpoolError> {
        let mut books = self.books();
        let (all, own) = (books.all(), books.of(controller));
        let limit = self.limit;
        if all.checked_add(bytes.count()).is_none_or(|sum| sum > limit.count()) {
            return Err(SpoolError::Full(format!(
                "the disk limit of {limit} set by the host's owner is reached ({} are stored for controllers)",
                Bytes(all)
            )));
        }
        let share = limit.count().saturating_sub(all - own) / 2;
        if books.is_shared && own + bytes.count() > share {
            return Err(SpoolError::Full(format!(
                "this controller's share of the disk limit of {limit}, half of what others leave, is full ({} \
                are stored for it); collect or discard its parts",
                Bytes(own)
            )));
        }
        *books.used.entry(*controller).or_default() += bytes.count();
        Ok(())
    }

    /// Counts what is there already, or has to be kept in any case.
    pub(super) fn add(&self, controller: &Fingerprint, bytes: Bytes) {
        *self.books().used.entry(*controller).or_default() += bytes.count();
    }

    pub(super) fn give(&self, controller: &Fingerprint, bytes: Bytes) {
        let mut books = self.books();
        if let Some(own) = books.used.get_mut(controller) {
            *own = own.saturating_sub(bytes.count());
            if *own == 0 {
                books.used.remove(controller);
            }
        }
    }

    pub(super) fn used(&self) -> Bytes {
        Bytes(self.books().all())
    }

    pub(super) fn used_by(&self, controller: &Fingerprint) -> Bytes {
        Bytes(self.books().of(controller))
    }

    pub(super) fn set_shared(&self, is_shared: bool) {
        self.books().is_shared = is_shared;
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn all(&self) -> u64 {
        self.used.values().sum()
    }

    fn of(&self, controller: &Fingerprint) -> u64 {
        self.used.get(controller).copied().unwrap_or_default()
    }
}

//! Connections of clients that this host has paired with: they end when the client is revoked.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_peer::Fingerprint;

/// Connections of one client at once.
pub(super) const OF_CLIENT: usize = 32;

/// Connections of clients that this host has paired with.
#[derive(Debug, Default)]
pub(super) struct Known {
    open: Mutex<(u64, BTreeMap<u64, Entry>)>,
}

#[derive(Debug)]
struct Entry {
    key: Fingerprint,
    /// `None` if the system had no descriptor left.
    stream: Option<TcpStream>,
}

/// A connection that is among them until this is dropped.
#[derive(Debug)]
pub(super) struct Entered<'k> {
    known: &'k Known,
    number: u64,
}

impl Known {
    /// Takes in a connection; `None` if the client has too many.
    pub(super) fn enter(&self, key: Fingerprint, stream: &TcpStream) -> Option<Entered<'_>> {
        let mut open = self.open();
        if open.1.values().filter(|entry| entry.key == key).count() >= OF_CLIENT {
            return None;
        }
        let number = open.0;
        open.0 += 1;
        open.1.insert(number, Entry { key, stream: stream.try_clone().ok() });
        Some(Entered { known: self, number })
    }

    /// Ends the connections of clients that have been revoked.
    pub(super) fn cut(&self, is_known: impl Fn(&Fingerprint) -> bool) {
        let open = self.open();
        for Entry { key, stream } in open.1.values() {
            if let Some(stream) = stream
                && !is_known(key)
            {
                // Fails only where there is no connection any more.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Entry>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.known.open().1.remove(&self.number);
    }
}

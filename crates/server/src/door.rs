//! Connections: how many there may be, and which is closed when there are too many.
//!
//! A connection is a stranger's until a request on it was let in: with a valid token, or any request where nobody has to log
//! in. Strangers have a time limit from their first moment, TLS included, and a newcomer takes the place of the oldest
//! stranger of the address that has the most. Connections of others are counted apart, and are not closed for a newcomer.

use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use trunkline_io::admission::{Admission, Places, Ticket};

/// How many connections a server has at once. Together with its files they have to fit into the 1,024 descriptors that a
/// process usually may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections on which no request was let in yet.
    pub strangers: usize,
    /// Those of one address, or of an IPv6 network of 64 bits. Not limited on a loopback address and behind a proxy, where
    /// everybody has the same one.
    pub of_address: usize,
    /// How long such a connection may last, from its first moment.
    pub patience: Duration,
    /// Connections on which a request was let in.
    pub known: usize,
}

impl Default for Connections {
    fn default() -> Connections {
        Connections { strangers: 256, of_address: 32, patience: Duration::from_secs(60), known: 512 }
    }
}

/// Takes connections in.
#[derive(Debug)]
pub(crate) struct Door {
    admission: Arc<Admission>,
    known: Arc<Semaphore>,
    patience: Duration,
}

/// The place of a connection, which requests on it carry as an extension.
#[derive(Debug)]
pub(crate) struct Place {
    held: Mutex<Held>,
    known: Arc<Semaphore>,
}

#[derive(Debug)]
enum Held {
    Stranger(Option<Ticket>),
    Known { _permit: OwnedSemaphorePermit },
}

/// Ends when the connection has to.
pub(crate) struct Loss {
    place: Arc<Place>,
    cut: oneshot::Receiver<()>,
    patience: Duration,
}

impl Door {
    /// A door for so many; `one_address` says that everybody comes from the same address.
    pub(crate) fn new(connections: Connections, one_address: bool) -> Door {
        let of_source = if one_address { connections.strangers } else { connections.of_address };
        Door {
            admission: Admission::new(Places { total: connections.strangers, of_source }),
            known: Arc::new(Semaphore::new(connections.known)),
            patience: connections.patience,
        }
    }

    /// Takes a connection in. Another may lose its place to it.
    pub(crate) fn enter(&self, from: IpAddr) -> (Arc<Place>, Loss) {
        let (cutter, cut) = oneshot::channel();
        // A connection that has ended by itself need not be cut.
        let ticket = self.admission.enter(from.to_canonical(), move || {
            let _ = cutter.send(());
        });
        let held = Mutex::new(Held::Stranger(Some(ticket)));
        let place = Arc::new(Place { held, known: Arc::clone(&self.known) });
        (Arc::clone(&place), Loss { place, cut, patience: self.patience })
    }
}

impl Place {
    /// A request was let in: the connection is no stranger's any more. False if there are too many of such connections.
    pub(crate) fn know(&self) -> bool {
        let mut held = self.held();
        let Held::Stranger(ticket) = &mut *held else { return true };
        let Ok(permit) = Arc::clone(&self.known).try_acquire_owned() else { return false };
        if let Some(ticket) = ticket.take() {
            ticket.known();
        }
        *held = Held::Known { _permit: permit };
        true
    }

    fn is_known(&self) -> bool {
        matches!(*self.held(), Held::Known { .. })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loss {
    /// Returns when the connection has lost its place to another, or when its time as a stranger is over.
    pub(crate) async fn comes(self) {
        // Without a sender it is no stranger's any more.
        let kept = matches!(tokio::time::timeout(self.patience, self.cut).await, Ok(Err(_)));
        if kept || self.place.is_known() {
            pending::<()>().await;
        }
    }
}

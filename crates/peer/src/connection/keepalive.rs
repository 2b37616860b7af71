//! One thread for all connections of the process, which has each show that it lives.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use trunkline_core::Duration;

use super::shared::Shared;
use crate::error::PeerError;

/// Connections that show that they live; those that nobody holds any more drop out.
#[derive(Default)]
struct Beating {
    connections: Mutex<Vec<Weak<Shared>>>,
    more: Condvar,
}

/// The shortest rest between two rounds.
const REST: Duration = Duration::from_millis(5);

/// Has a connection show that it lives for as long as somebody holds it.
pub(super) fn keep_alive(connection: &Arc<Shared>) -> Result<(), PeerError> {
    static BEATING: OnceLock<Arc<Beating>> = OnceLock::new();
    static STARTED: Mutex<bool> = Mutex::new(false);
    let beating = BEATING.get_or_init(Arc::default);
    {
        let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            let beating = Arc::clone(beating);
            thread::Builder::new()
                .name("control-alive".to_owned())
                .stack_size(256 << 10)
                .spawn(move || beating.run())
                .map_err(|error| PeerError::System { what: "cannot start a thread", error })?;
            *started = true;
        }
    }
    let mut connections = beating.connections.lock().unwrap_or_else(PoisonError::into_inner);
    connections.push(Arc::downgrade(connection));
    beating.more.notify_one();
    Ok(())
}

impl Beating {
    fn run(&self) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut rest: Option<Duration> = None;
            connections.retain(|connection| {
                let Some(due) = connection.upgrade().and_then(|connection| connection.beat()) else {
                    return false;
                };
                rest = Some(rest.map_or(due, |rest| rest.min(due)));
                true
            });
            connections = match rest {
                None => self.more.wait(connections).unwrap_or_else(PoisonError::into_inner),
                Some(rest) => {
                    let waited = self.more.wait_timeout(connections, rest.max(REST).to_std());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

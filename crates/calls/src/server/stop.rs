//! Ending a server from another thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_io::Wakeup;

/// Ends a server and its sessions; set once, for ever.
#[derive(Debug)]
pub struct Stop {
    stopped: AtomicBool,
    wakeup: Wakeup,
}

impl Stop {
    /// Not stopped.
    ///
    /// # Errors
    /// If the system gives no descriptors.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop { stopped: AtomicBool::new(false), wakeup: Wakeup::new()? })
    }

    /// Stops.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wakeup.set();
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Wakes whoever waits when it is stopped; never cleared.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }
}

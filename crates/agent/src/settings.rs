//! The settings of an agent, and the names in its folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_control::Identity;

use crate::config::Config;
use crate::notices::{Log, Notices};

/// The version of Trunkline.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Where an agent keeps its state, and whom it tells what happens.
pub struct Settings {
    /// What its owner allows.
    pub config: Config,
    /// Its folder: its key, the controllers that it knows, the pairing code, and what is kept for controllers.
    pub state: PathBuf,
    /// Takes the lines of its log.
    pub log: Log,
}

/// Settings with the key that is in the agent's folder.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) config: Config,
    pub(crate) state: PathBuf,
    pub(crate) notices: Notices,
    pub(crate) identity: Identity,
}

/// Tells an agent to stop, from another thread or a handler of signals.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Tells it: running parts end in order, and what was recorded is kept.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The file in an agent's folder that says where it listens, for commands on the same host.
pub const ADDRESS_FILE: &str = "address";

/// The folder of the controllers that an agent knows.
pub(crate) const CONTROLLERS: &str = "controllers";
/// The folder of what it keeps for them.
pub(crate) const SPOOL: &str = "spool";

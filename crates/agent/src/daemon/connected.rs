//! Controllers, and the open connections of controllers and agents.

use trunkline_control::{Closer, Fingerprint};

/// Who has connected.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    pub(crate) name: String,
    pub(crate) fingerprint: Fingerprint,
    /// The owner of this host, with the agent's own key: may look, and nothing else.
    pub(crate) is_owner: bool,
}

/// A connection of somebody who is known.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(super) fingerprint: Fingerprint,
    /// Of a controller; `None` of another agent.
    pub(super) controller: Option<String>,
    pub(super) closer: Closer,
}

impl Open {
    /// Whether this controller has opened it.
    pub(super) fn is_controllers(&self, controller: &Fingerprint) -> bool {
        self.is_controller() && self.fingerprint == *controller
    }

    pub(crate) fn is_controller(&self) -> bool {
        self.controller.is_some()
    }
}

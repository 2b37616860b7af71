//! Why a live run failed.

use std::io;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_metrics::DriverOutcome;
use trunkline_peer::PeerError;

/// Why a live run failed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Somebody else has the port: the user's to change.
    #[error(
        "port {port} on {address} is in use; choose another with `--port`, or 0 to let the system choose"
    )]
    PortInUse {
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
    },
    /// The address is not one of this host: the user's to change.
    #[error("{address} is not an address of this host; choose one of its own with `--address`")]
    AddressNotHere {
        /// The address.
        address: IpAddr,
    },
    /// A flow cannot be set up as the experiment says: the user's to change.
    #[error("flow `{flow}` cannot be set up: {reason}")]
    Flow {
        /// Its name.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// Only the simulator has what a flow asks for: the user's to change.
    #[error("flow `{flow}` cannot be set up: {reason}")]
    Simulated {
        /// Its name.
        flow: String,
        /// The key that asks for it.
        key: &'static str,
        /// The reason, in a sentence.
        reason: String,
    },
    /// The far end could not be started.
    #[error("the far end `{program}` cannot be started: {error}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// A conversation did not come about.
    #[error("flow `{flow}` cannot connect to {to} over `{transport}`: {reason}")]
    NotConnected {
        /// The flow.
        flow: String,
        /// Where the far end's socket is.
        to: SocketAddr,
        /// The transport's name in experiment files.
        transport: String,
        /// What happened, or for how long nothing has.
        reason: String,
    },
    /// The far end did not answer.
    #[error("the far end timed out after {patience} while {step}")]
    NoAnswer {
        /// How long we waited.
        patience: Duration,
        /// What was going on.
        step: &'static str,
    },
    /// The far end ended or failed. What was measured until then has been recorded.
    #[error("the far end {reason}; the results so far are kept")]
    FarEndLost {
        /// What happened to it.
        reason: String,
        /// What a whole run would have returned, marked partial.
        outcome: Box<DriverOutcome>,
    },
    /// A clock jumped, so that arrivals can no more be brought to the near end's. What was measured until then has been recorded.
    #[error(
        "the clock of the far end jumped by {by} relative to that of the near end; the results so far are \
        kept"
    )]
    ClockJumped {
        /// How far, at least.
        by: Duration,
        /// What a whole run would have returned, marked partial.
        outcome: Box<DriverOutcome>,
    },
    /// Another session of the run has failed before they began.
    #[error("another pair of hosts could not start")]
    Abandoned,
    /// The far end's host does not allow it.
    #[error("the far end refused: {0}")]
    NotAllowed(String),
    /// The other end was made before hosts greeted each other.
    #[error("{0} runs a version of Trunkline that is too old for this one; update it")]
    TooOld(&'static str),
    /// The connection to the other end failed, or its greeting does not fit ours.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The other end sends what is not our protocol.
    #[error("the other end violates the protocol: {0}")]
    Protocol(String),
    /// A socket or thread.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl LiveError {
    /// Whether the user's input is wrong, rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        self.place().is_some()
    }

    /// The flow and its key that the experiment must change.
    pub fn place(&self) -> Option<(&str, &'static str)> {
        match self {
            LiveError::Flow { flow, .. } => Some((flow, "transport")),
            LiveError::Simulated { flow, key, .. } => Some((flow, key)),
            _ => None,
        }
    }

    /// What was measured before the failure, if the run had begun.
    pub fn outcome(&self) -> Option<&DriverOutcome> {
        match self {
            LiveError::FarEndLost { outcome, .. } | LiveError::ClockJumped { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> LiveError {
        let what = what.into();
        move |error| LiveError::System { what, error }
    }

    /// What opening a socket at an address of the user's choice can come to.
    pub(crate) fn binding(address: IpAddr, port: u16) -> impl FnOnce(io::Error) -> LiveError {
        move |error| match error.kind() {
            io::ErrorKind::AddrInUse => LiveError::PortInUse { address, port },
            io::ErrorKind::AddrNotAvailable => LiveError::AddressNotHere { address },
            _ => LiveError::System { what: format!("cannot open a socket at {address} port {port}"), error },
        }
    }
}

/// A [`LiveError`] that the far end tells the near end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Failure {
    PortInUse { address: IpAddr, port: u16 },
    AddressNotHere { address: IpAddr },
    Flow { flow: String, reason: String },
    Other(String),
}

impl From<&LiveError> for Failure {
    fn from(error: &LiveError) -> Failure {
        match error {
            &LiveError::PortInUse { address, port } => Failure::PortInUse { address, port },
            &LiveError::AddressNotHere { address } => Failure::AddressNotHere { address },
            LiveError::Flow { flow, reason } => Failure::Flow { flow: flow.clone(), reason: reason.clone() },
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<Failure> for LiveError {
    fn from(failure: Failure) -> LiveError {
        match failure {
            Failure::PortInUse { address, port } => LiveError::PortInUse { address, port },
            Failure::AddressNotHere { address } => LiveError::AddressNotHere { address },
            Failure::Flow { flow, reason } => LiveError::Flow { flow, reason },
            Failure::Other(reason) => {
                LiveError::FarEndLost { reason: format!("failed: {reason}"), outcome: Box::default() }
            }
        }
    }
}

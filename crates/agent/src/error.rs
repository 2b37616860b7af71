//! What can go wrong with an agent as a whole.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use trunkline_experiment::Problems;

/// Why an agent does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Something is wrong with the text of its configuration.
    #[error("{0}")]
    Problems(#[from] Problems),
    /// Its configuration cannot be read.
    #[error("cannot read the configuration {}: {error}", path.display())]
    Config {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Its key, the controllers that it knows, or its port.
    #[error("{0}")]
    Control(#[from] trunkline_control::PeerError),
    /// What it keeps for controllers.
    #[error("{0}")]
    Spool(#[from] crate::spool::SpoolError),
    /// It cannot answer for its metrics.
    #[error("the agent cannot serve its metrics on {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// Its folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another agent uses its folder.
    #[error(
        "another agent uses the folder {}; stop it, or give this one a different folder with `--state`",
        path.display()
    )]
    Busy {
        /// Which folder.
        path: PathBuf,
    },
    /// It cannot become this user.
    #[error("the agent cannot switch to the user `{name}`: {reason}")]
    User {
        /// The user's name.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// Whatever else the system refuses.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl AgentError {
    /// Whether the user's input is wrong, rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            AgentError::Problems(_) | AgentError::Config { .. } | AgentError::User { .. } => true,
            AgentError::Control(error) => error.is_bad_input(),
            _ => false,
        }
    }

    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> AgentError {
        let what = what.into();
        move |error| AgentError::System { what, error }
    }

    pub(crate) fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> AgentError {
        let path = path.into();
        move |error| AgentError::Folder { path, error }
    }
}

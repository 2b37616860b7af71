//! What can go wrong with a wire.

use std::io;
use std::path::PathBuf;

use crate::plan::PlanError;

/// Why a wire cannot be made or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The experiment asks for what a wire cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system does not let this user make namespaces, or lacks something that the wire needs.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such host.
    #[error("there is no host `{name}`; this wire has {}", listed(known))]
    UnknownHost {
        /// What was asked for.
        name: String,
        /// The hosts there are.
        known: Vec<String>,
    },
    /// A relay is to run where it cannot.
    #[error("there is no core {0} for this process; they are counted from 0")]
    Core(usize),
    /// There is no such wire, or not exactly one.
    #[error("{0}")]
    Which(String),
    /// A running wire refuses what it is told.
    #[error("{0}")]
    Refused(String),
    /// What a wire keeps in its folder cannot be used.
    #[error("{}: {problem}", path.display())]
    State {
        /// The file or folder.
        path: PathBuf,
        /// What is the matter with it.
        problem: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was being done: "making a namespace for `berlin`".
        doing: String,
        /// What the system says.
        source: io::Error,
    },
}

impl WireError {
    /// For `map_err`: what was being done when the system refused.
    pub fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> WireError {
        let doing = doing.into();
        move |source| WireError::System { doing, source: source.into() }
    }

    /// Whether the user has to change the file or the command line, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            WireError::Plan(_)
                | WireError::UnknownHost { .. }
                | WireError::Core(_)
                | WireError::Which(_)
                | WireError::Refused(_)
        )
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

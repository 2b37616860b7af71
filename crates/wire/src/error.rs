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
    #[error("this process cannot use core {0}; cores are numbered from 0")]
    Core(usize),
    /// There is no such wire, or not exactly one.
    #[error("{0}")]
    Which(String),
    /// A running wire refuses what it is told.
    #[error("{0}")]
    Refused(String),
    /// A capture would take the place of a file or of another capture.
    #[error("{0}")]
    Captured(String),
    /// What a wire keeps in its folder cannot be used.
    #[error("{}: {problem}", path.display())]
    State {
        /// The file or folder.
        path: PathBuf,
        /// What is the matter with it.
        problem: String,
    },
    /// A program cannot be started.
    #[error("cannot start `{program}` on `{host}`: {}", why_not_started(source))]
    Program {
        /// The program.
        program: String,
        /// The host.
        host: String,
        /// What the system says.
        source: io::Error,
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

    /// The exit code that shells give a program that cannot be started: 127 if there is none of that name, 126 if it cannot
    /// be executed (POSIX.1-2017 XCU section 2.8.2); `None` of other errors.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            WireError::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(127),
            WireError::Program { .. } => Some(126),
            _ => None,
        }
    }

    /// Whether the other end of a connection has gone.
    pub fn is_disconnection(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        let kind = if let WireError::System { source, .. } = self { Some(source.kind()) } else { None };
        matches!(kind, Some(BrokenPipe | ConnectionReset | UnexpectedEof))
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
                | WireError::Captured(_)
        )
    }
}

fn why_not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        _ => error.to_string(),
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

//! Why the server cannot serve.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others would read along, and everybody could come in: bad input.
    #[error(
        "other machines can reach {0}: use HTTPS, with `--certificate FILE --key FILE`, with `--tls`, or with \
        `--behind-proxy https://NAME`; or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// What was given as the proxy's address is none: bad input.
    #[error("invalid proxy address `{0}`; expected `https://NAME` or `https://NAME:PORT`")]
    Proxy(String),
    /// A token's name is taken, or none: bad input.
    #[error("invalid token name `{name}`: {why}")]
    TokenName {
        /// What was given.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// There is no such token: bad input.
    #[error("no token or browser `{0}`; `trunkline serve tokens` lists them")]
    NoToken(String),
    /// A certificate or its key cannot be used: bad input.
    #[error("`{path}` cannot be used: {why}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address with `--listen`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A file or a folder.
    #[error("`{path}` cannot be {what}: {source}")]
    File {
        /// What was tried: "read", "written".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something else of the system.
    #[error("{0}")]
    System(String),
}

impl ServeError {
    /// Whether the user can mend it by other arguments.
    pub fn is_bad_input(&self) -> bool {
        match self {
            ServeError::Open(_)
            | ServeError::Proxy(_)
            | ServeError::TokenName { .. }
            | ServeError::NoToken(_)
            | ServeError::Certificate { .. } => true,
            ServeError::Listen { .. } | ServeError::File { .. } | ServeError::System(_) => false,
        }
    }

    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ServeError + use<> {
        let path = path.to_path_buf();
        move |source| ServeError::File { what, path, source }
    }
}

//! The page and its API, from one program: experiments are drawn, checked, run, watched and compared in a browser, and
//! everything that the page does can be done by any other program too.
//!
//! - [`Server::bind`] listens; what it needs to know stands in [`Options`]. [`Server::serve`] answers until it is told to end.
//! - [`api`] has the types of the API; [`openapi`] is its document, made from them and from the handlers.
//! - [`Tokens`] are what others than the users of this machine show to be let in.
//! - Every experiment, plan, study and probe is a job with a thread of its own, which can be watched and stopped; what it
//!   measures is in the store and outlives the server.
//!
//! It has no logic that another face would need: that is in the libraries which it calls.

mod access;
mod answers;
pub mod api;
mod app;
mod assets;
mod compare;
mod door;
mod drawing;
mod error;
mod extract;
mod files;
mod forms;
mod jobs;
mod listen;
mod measure;
mod papers;
mod predict;
mod routes;
mod transfer;
mod whole;

use std::net::SocketAddr;
use std::path::PathBuf;

use trunkline_runner::WireMeans;
use trunkline_store::Store;

pub use access::Transport;
pub use access::tokens::{BROWSER_LASTS, LINK_LASTS, Token, TokenKind, Tokens};
pub use door::Connections;
pub use error::ServeError;
pub use listen::Server;
pub use routes::{openapi, saved_run};

/// What a server needs to know.
#[derive(Debug)]
pub struct Options {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// How browsers reach it.
    pub transport: Transport,
    /// Whether users of this machine have to log in too. All others always have to.
    pub authenticate: bool,
    /// How many connections there may be at once.
    pub connections: Connections,
    /// The runs.
    pub store: Store,
    /// Where they are stored, as people say it.
    pub place: String,
    /// Where the files are that experiments name.
    pub files: PathBuf,
    /// Where this controller's identity is kept, and what it knows of agents.
    pub folder: PathBuf,
    /// Where tokens and the server's own certificate are kept.
    pub secrets: PathBuf,
    /// This program: it is started again, with `far-end`, for the far end of what is measured live.
    pub program: PathBuf,
    /// With what wires are made, or why none can be. To be gained before the process starts its second thread.
    pub wire: Result<WireMeans, String>,
}

/// Where [`Options::secrets`] keeps tokens.
pub fn tokens_folder(secrets: &std::path::Path) -> PathBuf {
    secrets.join("tokens")
}

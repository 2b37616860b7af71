//! Why a session or a server did not come about.

use std::io;
use std::net::SocketAddr;

use trunkline_core::Duration;
use trunkline_peer::PeerError;

/// Why a session or a server did not come about.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The name of the server means no address: the user's to change.
    #[error(
        "cannot resolve `{name}` ({reason}): check the name; expected `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`"
    )]
    Name {
        /// What was given.
        name: String,
        /// What the resolver said.
        reason: String,
    },
    /// Nobody answers there.
    #[error(
        "no server responds at {address}: {error}; start one there with `trunkline reflect` or `trunkline \
        receive`"
    )]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// What answers is no server of ours.
    #[error("{address} does not speak the session protocol: {reason}")]
    Protocol {
        /// Where.
        address: SocketAddr,
        /// What it said instead.
        reason: String,
    },
    /// The server has the protocol that sessions had before there were frames.
    #[error(
        "the server at {address} is too old: it has a protocol for sessions that Trunkline {} no longer speaks; update the \
        server",
        env!("CARGO_PKG_VERSION")
    )]
    TooOld {
        /// Where.
        address: SocketAddr,
    },
    /// The server has another key than expected or another version, or keys cannot be read.
    #[error("{0}")]
    Keys(PeerError),
    /// It accepts the connection and says nothing.
    #[error(
        "the server at {address} accepts connections, but has not responded for {patience}: it hangs, or is \
        not Trunkline; start one with `trunkline reflect` or `trunkline receive`"
    )]
    Silent {
        /// Where.
        address: SocketAddr,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The server refuses.
    #[error("the server at {address} refused: {why}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// Its own words.
        why: String,
    },
    /// The transport cannot be set up at this end.
    #[error("transport `{transport}` cannot be set up: {reason}")]
    Transport {
        /// As it was written.
        transport: String,
        /// What is wrong.
        reason: String,
    },
    /// Packets over the transport do not arrive.
    #[error(
        "packets over `{transport}` do not reach port {} of {} (none within {patience}): a firewall may block \
        them; try another transport",
        .address.port(), .address.ip()
    )]
    NotHeard {
        /// As it was written.
        transport: String,
        /// Where they were sent.
        address: SocketAddr,
        /// How long they were waited for.
        patience: Duration,
    },
    /// The session ended before it had begun.
    #[error("the session with {address} did not start: {why}")]
    Ended {
        /// Who with.
        address: SocketAddr,
        /// What happened.
        why: String,
    },
    /// A server cannot listen: the user's to change.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A socket or thread.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl SessionError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> SessionError {
        let what = what.into();
        move |error| SessionError::System { what, error }
    }
}

//! Conversations with programs that know nothing of our control connection: [RTP](rtp) as a session description announces
//! it, and [JackTrip](jacktrip).

pub mod jacktrip;
mod rtcp;
pub mod rtp;
mod socket;

use std::io;
use std::net::SocketAddr;

use trunkline_audio::foreign::jacktrip::JackTripError;
use trunkline_audio::pipeline::{Packer, Stream, StreamError, Unpacker};
use trunkline_core::Duration;

use crate::line::Line;

pub(crate) use socket::{any, resolve};

/// A conversation with another program.
pub struct Foreign {
    /// What carries its packets. It ends when the other program says that it leaves, or is not heard any more.
    pub line: Box<dyn Line>,
    /// What is sent and what makes packets of it, unless this end only listens.
    pub sends: Option<(Stream, Box<dyn Packer>)>,
    /// What is received and what makes blocks of it, unless this end only sends.
    pub receives: Option<(Stream, Box<dyn Unpacker>)>,
    /// This end.
    pub local: SocketAddr,
    /// The other end: where packets go, or where they are expected.
    pub peer: SocketAddr,
}

/// Why there is no conversation with another program. Each text is a sentence for users.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// The name of a host means no address.
    #[error("`{name}` is not the address of a host: {reason}")]
    Name {
        /// What was given.
        name: String,
        /// Why it is none.
        reason: String,
    },
    /// A socket cannot be set up.
    #[error("{what}: {error}")]
    Socket {
        /// What was being done, and where.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// The stream is out of bounds.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// RTP has no format for the stream.
    #[error(
        "RTP carries 16 and 24 bits, G.711 in any number of channels and Opus in one or two, but not this stream"
    )]
    NoFormat,
    /// JackTrip has no format for a codec.
    #[error("JackTrip carries uncompressed audio only; choose `i16`, `i24` or `f32`")]
    Compressed,
    /// JackTrip has no format for the stream.
    #[error(transparent)]
    JackTrip(#[from] JackTripError),
    /// Nobody answers.
    #[error("JackTrip at {address} did not respond within {patience}; start `jacktrip -s` there")]
    NotHeard {
        /// Where.
        address: SocketAddr,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The other end does something else.
    #[error("{address}: {reason}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// What it does or says.
        reason: String,
    },
}

impl ForeignError {
    fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> ForeignError {
        let what = what.into();
        move |error| ForeignError::Socket { what, error }
    }
}

//! Hosts that know each other by their keys: identities, pairing, and authenticated connections with framed messages.
//!
//! An [`Identity`] is a key that a host makes once; others know it by its [`Fingerprint`]. A [`PairingCode`], shown at one
//! end and typed at the other once, makes the two known to each other ([`enrol`], [`Pairing`]); from then on each finds the
//! other among its [`Peers`]. A [`Connection`] is TLS 1.3 with a certificate at both ends: [`connect`] accepts one key and no
//! other, a [`Listener`] accepts every key and leaves the decision to its caller. A [`Channel`] is the same for event loops,
//! and carries frames without TLS too. [`frames`] carries
//! them between two processes of one host.
//!
//! The first messages of a connection are in [`message`]; [`wire`] cuts all of them into frames. What follows the greeting
//! depends on the [`Purpose`](message::Purpose): commands of agents are in the crate `control`. The threat model is in
//! docs/security.md.

mod base32;
pub mod bounded;
pub mod clock;
mod connection;
mod error;
mod files;
mod fingerprint;
pub mod frames;
#[doc(hidden)]
pub mod fuzz;
mod identity;
mod memory;
pub mod message;
mod pairing;
mod peers;
mod service;
mod tls;
pub mod wire;

pub use connection::{
    Beginning, Channel, Closer, Connection, FrameReader, FrameWriter, Incoming, Listener, Pulse, Received,
    connect,
};
pub use error::{ParseCodeError, PeerError, Refusal, RefusalKind, printable};
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use identity::Identity;
pub use memory::{Held, Memory, NoMemory, Share};
pub use pairing::{Pairing, PairingCode, enrol};
pub use peers::{Peer, Peers, check_name};
pub use service::Service;

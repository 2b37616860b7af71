//! Sessions between two hosts: packets of audio over any transport, and the control connection that arranges them.
//!
//! A [`Server`] listens on one TCP port. A [`Client`] tells it what it wants ([`Request`]: a role, a transport, a stream),
//! and gets a [`Session`], which is a [`Line`]: packets in, packets out, whatever carries them. The same type stands at the
//! server's end, in the hands of its [`Handler`].
//!
//! **Time** is the monotonic clock of the host ([`now`]); [`Session::offset`] relates it to the peer's.
//!
//! **Threads.** A session does nothing by itself: its owner's thread waits ([`Waiter`]) and calls [`Line::turn`]. A server
//! has a thread for accepting and one for each session.
//!
//! **Who is answered.** A server sends packets only to the host that the control connection came from, and only after a
//! packet with the session's key has come from there; reflecting, it never sends more than it has received.

mod choice;
mod client;
mod control;
mod error;
pub mod foreign;
mod key;
mod keys;
pub mod line;
mod lines;
pub mod probe;
pub mod program;
mod request;
mod server;
mod session;
mod settings;
mod wait;

pub use choice::TransportChoice;
pub use client::{Client, DEFAULT_PORT};
pub use error::SessionError;
pub use key::SharedKey;
pub use keys::{Keys, SESSIONS};
pub use line::{Ended, Line, LineCounters, Packets, Refused};
pub use lines::{available, udp_line};
pub use request::{Facts, Request, Role};
pub use server::{Bounds, Handler, Peers, Server, ServerOptions, Stop};
pub use session::{GOODBYE, Session};
pub use settings::Settings;
pub use trunkline_io::networks::Network;
pub use wait::Waiter;

/// The monotonic clock of this host.
pub fn now() -> trunkline_core::Time {
    trunkline_core::Time::from_nanos(trunkline_io::clock::raw_now())
}

/// What must hold for any bytes on a control connection; for fuzzing.
#[doc(hidden)]
pub fn fuzz_control(data: &[u8]) {
    control::wire::fuzz_frames(data);
}

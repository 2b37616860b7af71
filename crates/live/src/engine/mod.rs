//! Protocol engines over real sockets: each is an [`Endpoint`] as in the simulator, whose packets are what a socket of UDP
//! or UDP-Lite or a raw socket of IP carries.
//!
//! What carries an engine through a socket ([`Carried`]) is for other drivers too.
//!
//! Every conversation has a socket of its own at either end, and every flow a thread at either end that turns its
//! engines (`Engines`). Engines have a clock that runs from the set-up on, because they connect before the run's
//! clock starts; they never see the run's, and nobody else sees theirs.
//!
//! [`Endpoint`]: trunkline_transport::Endpoint

mod carried;
mod engines;
mod one;
mod sockets;
#[cfg(test)]
mod tests;

pub use carried::{Carried, Counters, Loss, Route, receive_batch};
pub(crate) use engines::{Application, Engines, Line, NotConnected};
pub(crate) use one::Engine;
pub(crate) use sockets::not_opened;
pub use sockets::{Intake, Known, open};

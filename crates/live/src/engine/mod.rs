//! Protocol engines over real sockets: each is an [`Endpoint`] as in the simulator, whose packets are the datagrams of a
//! UDP socket, with nothing in front of them.
//!
//! Every conversation has a socket of its own at either end, and every flow a thread at either end that turns its
//! engines ([`Engines`]). Engines have a clock that runs from the set-up on, because they connect before the run's
//! clock starts; they never see the run's, and nobody else sees theirs.
//!
//! [`Endpoint`]: trunkline_transport::Endpoint

mod engines;
mod one;
mod sockets;
#[cfg(test)]
mod tests;

pub(crate) use engines::{Application, Engines, Line, NotConnected};
pub(crate) use one::{Counters, Engine, Loss, Route};
pub(crate) use sockets::open;

//! Protocol engines over real sockets: each is an [`Endpoint`] as in the simulator, whose packets are what a socket of UDP
//! or UDP-Lite or a raw socket of IP carries.
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
pub(crate) use one::{Counters, Engine, Loss, Route, has_no_room};
pub(crate) use sockets::{Intake, not_opened, open};

//! Measures what a network does to audio within a time budget, and says how to send it: over which transport, in packets
//! of which size, with how deep a playout buffer and with which redundancy.
//!
//! A [`Plan`] says what to measure next, a [`Prober`] measures it, and [`advise`] judges what was found. Nothing of this
//! opens a socket: a prober may be the simulator.

mod configuration;
mod trace;

pub use configuration::{Configuration, Load, Packets, Transport};
pub use trace::Trace;

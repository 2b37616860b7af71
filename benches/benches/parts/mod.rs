//! The pure parts, each ready to do its work again and again: criterion takes their time, callgrind counts their
//! instructions. What stands in a registry is taken from there, so that nothing that is added is forgotten.

#![allow(dead_code, reason = "each bench uses its part")]

pub(crate) mod codecs;
pub(crate) mod metrics;
pub(crate) mod network;
pub(crate) mod traffic;
pub(crate) mod transport;

/// Something that does one unit of its work at each step.
pub(crate) trait Part {
    /// Does at least one unit of work; returns how many.
    fn step(&mut self) -> u64;
}

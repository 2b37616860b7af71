//! The hot paths, each ready to do its work again and again: criterion takes their time (`pure`), callgrind counts their
//! instructions (`cargo xtask instructions`). What stands in a registry is taken from there, so that nothing that is added is
//! forgotten.

pub mod codecs;
pub mod metrics;
pub mod network;
pub mod queues;
pub mod simulated;
pub mod traffic;
pub mod transport;

/// Something that does one unit of its work at each step.
pub trait Part {
    /// Does at least one unit of work; returns how many.
    fn step(&mut self) -> u64;
}

//! Learns the description of a network path from measurements of it.
//!
//! [`Observations`] are packets with their times at both ends, whatever measured them: an experiment on any backend
//! ([`Collector`]), or a capture. All that follows is computed from them.

mod collector;
mod link;
mod observations;
pub mod plan;
mod replay;

pub use collector::Collector;
pub use link::{Bucket, Jitter, JitterShape, Link, Loss, Queue};
pub use observations::{Observations, ObservedFlow, Packet, Way};
pub use replay::Replay;

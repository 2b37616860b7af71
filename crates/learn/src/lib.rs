//! Learns the description of a network path from measurements of it.
//!
//! [`Observations`] are packets with their times at both ends, whatever measured them: an experiment on any backend
//! ([`Collector`]), or a capture. All that follows is computed from them.

mod collector;
mod direction;
mod estimate;
mod fit;
pub mod import;
pub mod library;
mod link;
mod observations;
pub mod output;
mod placeholder;
pub mod plan;
mod probing;
mod replay;
mod simulated;
mod verify;
pub mod watch;
mod write;

pub use collector::Collector;
pub use direction::{Learned, learn};
pub use estimate::statistics::Interval;
pub use link::{Bucket, Jitter, JitterShape, Link, Loss, Queue};
pub use observations::{Observations, ObservedFlow, Packet, Way};
pub use placeholder::placeholders;
pub use probing::{Observer, Path, ProbeError, Prober, Question, probe};
pub use replay::Replay;
pub use simulated::Simulated;
pub use verify::{Verified, verify};
pub use write::{ensemble, line, profile, sentence};

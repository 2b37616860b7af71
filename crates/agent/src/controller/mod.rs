//! Measures between real hosts, through the agents on them.
//!
//! ```text
//! controller            near agent                              far agent
//!  | Offer(part)          |                                      |
//!  |-------------------------------------------------------------->|
//!  |<--------------------------------------------- Offered(token) -|
//!  | Prepare(part, token) |                                      |
//!  |--------------------->| Join(token), sockets, clocks       ->|
//!  |<---------- Prepared -|                                      |
//!  | Start(at)          ->|   all parts at one moment            |
//!  |<-------------- Chunk |<- what arrived                       |
//!  |<----------- Finished |                                      |
//!  | Discard            ->|   once it is stored                  |
//! ```
//! A repetition has one *part* for each pair of hosts between which flows run. Its near agent sends, records, and keeps
//! what it has recorded on its disk until the controller has stored the repetition; so a controller that is cut off
//! goes on where it was when it is back, and one that died finds finished parts there when the run is resumed
//! ([`Fleet::kept`]). An agent that died has what it had written; the repetition is partial then.
//!
//! All parts begin at one moment: the clock of each agent is related to this host's by exchanges, with the bound of
//! [`trunkline_metrics::clocks`]. One-way times are related between the two agents themselves (see
//! [`trunkline_live::part`]).

mod agent;
mod agents;
mod away;
mod check;
mod error;
mod fleet;
mod held;
mod hosts;
mod part;
mod prepare;
mod repetition;
mod task;

pub use agents::PartKey;
pub use error::FleetError;
pub use fleet::{Fleet, Kept};
pub use hosts::agents_of;

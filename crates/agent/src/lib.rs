//! Agents and their controller.
//!
//! The daemon of a host executes the parts of experiments assigned to it, streams their records back while they run, and
//! keeps them on disk until the controller has acknowledged them.
//!
//! An [`Agent`] is both ends of parts. As the near end of one it connects to the far end's agent with the token that its
//! controller was given there, sends what the flows of the part want, and records; as the far end it sinks or reflects what
//! comes from the address that has joined with that token, and from no other. What is recorded goes to disk first
//! ([`spool`]) and from there to whoever is attached, so a controller that is cut off misses nothing, and a part goes on
//! without it.
//!
//! What the owner of the host allows stands in its [`Config`]: how much is sent, held and kept, for whom and to whom. Every
//! part is judged before it begins ([`permission`]), by what its sources will send ([`demand`]); what it really sends is
//! watched ([`meter`]).
//!
//! The [`controller`] is the other side: it measures between hosts through the agents on them.

mod agent;
mod clocks;
pub mod config;
pub mod controller;
mod counters;
mod daemon;
pub mod demand;
mod error;
mod http;
mod memory;
pub mod meter;
mod notices;
mod outbound;
pub mod permission;
pub mod privileges;
mod prometheus;
mod settings;
pub mod spool;
#[cfg_attr(not(feature = "telemetry"), path = "no_traces.rs")]
mod traces;

pub use agent::{Agent, Ports};
pub use config::Config;
pub use error::AgentError;
pub use notices::Log;
pub use settings::{ADDRESS_FILE, Settings, Stop};

/// Lets this process have as many descriptors open as a large part needs, as far as the system lets it; says how many.
///
/// # Errors
/// If the system does not tell its limit.
pub fn raise_open_files() -> std::io::Result<u64> {
    trunkline_io::process::raise_open_files(1 << 16)
}

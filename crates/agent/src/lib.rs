//! The daemon of a host: executes the parts of experiments assigned to it, streams their records back while they run, and
//! keeps them on disk until the controller has acknowledged them.

pub mod config;
pub mod demand;
mod error;
pub mod meter;
pub mod permission;
pub mod spool;

pub use config::Config;
pub use error::AgentError;

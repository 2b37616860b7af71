//! Foreign protocol engines behind Trunkline's traits. Each runs in any time, draws its randomness from bits that it
//! is given, and so does the same in every process (`docs/checks.md`, "same seed, same packets").

pub mod pinned;
pub mod quic;

pub use quic::{QuicConfig, QuicConfigError, QuicEndpoint};

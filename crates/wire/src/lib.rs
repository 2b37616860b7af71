//! The wire: the links of an experiment file in real time, between real programs. Every host of the file is a network
//! namespace of this machine (the [`ground`]); every link is a [`relay`] that drives the very `Medium` that the simulator
//! drives, by the monotonic clock. Needs no kernel module and, inside a user namespace, no privileges.
//!
//! Linux only; [`plan`] and [`error`] are there on every system.

#[cfg(target_os = "linux")]
pub mod capture;
#[cfg(target_os = "linux")]
mod checksum;
#[cfg(target_os = "linux")]
pub mod control;
#[cfg(target_os = "linux")]
pub mod device;
#[cfg(target_os = "linux")]
mod dropped;
pub mod error;
#[cfg(target_os = "linux")]
pub mod ground;
pub mod plan;
#[cfg(target_os = "linux")]
pub mod programs;
#[cfg(target_os = "linux")]
pub mod prompt;
#[cfg(target_os = "linux")]
pub mod relay;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use dropped::OnDrop;
pub use error::WireError;
pub use plan::Plan;
#[cfg(target_os = "linux")]
pub use wire::{Wire, WireEnd, WireOptions};

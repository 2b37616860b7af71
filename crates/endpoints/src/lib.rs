//! The endpoints of a flow's conversations, made from what the experiment says: the same ones in every driver, in
//! virtual time and over real sockets.
//!
//! A [`Blueprint`] holds what both ends of a flow have to know. It can be written down and sent, so that a far end in
//! another process makes the counterpart of what the near end makes. A new transport is an arm of
//! [`Blueprint::pair`], and one of [`Blueprint::over_sockets`] that says whether its packets can travel between real hosts.

mod answered;
mod blueprint;
mod options;
#[cfg(test)]
mod tests;

pub use blueprint::{Blueprint, Carrier, Group, Made, Pair};

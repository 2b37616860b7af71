//! The control connection of a session.

mod channel;
pub(crate) mod wire;

pub(crate) use channel::{Channel, ended};

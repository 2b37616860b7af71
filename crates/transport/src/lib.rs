//! What an application sees of any transport ([`Conversation`]), what a driver sees of a protocol engine that it runs
//! itself ([`Endpoint`]), UDP as such an engine, and the framing of measured messages.
//!
//! The contract: after any input (`send`, `handle_packet`, `handle_timeout`, `close`) the driver drains
//! `poll_transmit` until `None`, then `poll_event` until `None`, then asks `next_timeout`, which is `None` or later
//! than the time of the last input. [`drain`] is that loop, used by every driver.

pub mod conversation;
pub mod endpoint;
pub mod framing;
pub mod udp;

pub use conversation::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};
pub use endpoint::{Accept, Acceptor, Endpoint, Transmit, drain};

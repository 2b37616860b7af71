//! What an application sees of any transport ([`Conversation`]), what a driver sees of a protocol engine that it runs
//! itself ([`Endpoint`]), UDP and URP as such engines, and the framing of measured messages.
//!
//! The contract: after any input (`send`, `handle_packet`, `handle_timeout`, `close`) the driver drains
//! `poll_transmit` until `None`, then `poll_event` until `None`, then asks `next_timeout`, which is `None` or later
//! than the time of the last input. [`drain`] is that loop, used by every driver. A `receive` that returned something
//! counts as an input too: it may have opened a receive window, which the peer must be told.

pub mod addressing;
mod checksum;
pub mod conversation;
mod crc32c;
mod datagrams;
pub mod dccp;
pub mod endpoint;
pub mod features;
pub mod framing;
pub mod kind;
mod pending;
pub mod rtp;
pub mod sctp;
pub mod tcp;
pub mod udp;
pub mod urp;
pub mod xtp;

pub use addressing::{host_of, ipv4_of};
pub use conversation::{
    Close, CloseReason, Conversation, Event, Features, Membership, Message, Received, SendError,
};
pub use dccp::{DccpAcceptor, DccpConfig, DccpEndpoint};
pub use endpoint::{Accept, Acceptor, Endpoint, Transmit, drain};
pub use pending::PendingEvents;
pub use rtp::{RtpConfig, RtpConfigError, RtpEndpoint, RtpSession};
pub use sctp::{SctpConfig, SctpConfigError, SctpEndpoint};
pub use udp::{UdpConfig, UdpEndpoint};
pub use urp::{UrpConfig, UrpConfigError, UrpEndpoint};
pub use xtp::{XtpConfig, XtpConfigError, XtpEndpoint};

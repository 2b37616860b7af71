//! XTP 4.0 (the Xpress Transport Protocol; XTP Forum, 1995; with the changes of 4.0b), without clock and sockets.
//!
//! XTP separates mechanisms from policy: error control, flow control, rate control, the checksum's reach, and how often
//! an acknowledgement is asked for are each chosen by themselves for every conversation ([`XtpConfig`]). The sender
//! asks, the receiver answers; asking does not stop the sender.
//!
//! | service | type |
//! | --- | --- |
//! | datagram, acknowledged datagram | [`XtpDatagrams`] |
//! | transaction | [`XtpTransactions`] |
//! | unicast stream | [`XtpEndpoint`], [`XtpAcceptor`] |
//! | unacknowledged and reliable multicast stream | [`XtpGroupSender`], [`XtpGroupReceiver`] |
//!
//! Packets are XTP packets; [`Transmit::size`](crate::Transmit::size) adds what carries them: 20 bytes of IPv4 where
//! they go as protocol 36, 28 where they are the payload of UDP ([`Encapsulation`]).
//!
//! Where the specification leaves a choice, or is silent:
//! - a stream's bytes are numbered from 0 in both directions by our own senders; receivers take any first number;
//! - FIRST and control packets always carry the whole checksum; NOCHECK is for DATA;
//! - until the first report, a sender under flow control sends what fits into FIRST and no more;
//! - a packet is lost if a report misses it though the receiver has seen a request that was made not before it was sent,
//!   or, as long as it was sent once only, if data from behind it arrived.

mod acceptor;
mod answered;
mod asking;
mod config;
mod datagram;
mod flight;
mod fuzz;
mod group;
mod incoming;
mod kind;
mod outgoing;
mod promises;
mod rate;
mod remembered;
mod sorted;
mod stream;
mod transaction;
mod wait;
pub mod wire;
mod withheld;

pub use acceptor::XtpAcceptor;
pub use config::{
    Acknowledge, Encapsulation, ErrorControl, FlowControl, Meaning, Open, RateLimit, XtpConfig,
    XtpConfigError,
};
pub use datagram::XtpDatagrams;
#[doc(hidden)]
pub use fuzz::fuzz_xtp;
pub use group::{XtpGroupConfig, XtpGroupReceiver, XtpGroupSender};
pub use kind::KIND;
pub use stream::XtpEndpoint;
pub use transaction::XtpTransactions;

/// XTP's protocol number in IPv4 (IANA).
pub const IP_PROTOCOL: u8 = 36;

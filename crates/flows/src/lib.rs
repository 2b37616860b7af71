//! What a flow is, the same for both of its ends and for every driver, in virtual time and over real sockets.
//!
//! - [`FlowSpec`] is what both ends have to know to make their endpoints. It can be serialised and sent, so that a far
//!   end in another process makes the counterpart of what the near end makes. The transport's
//!   [kind](trunkline_transport::kind) makes the endpoints.
//! - [`Talker`] is the sending half of a member: source, sequence numbers, headers, the messages that wait, the send
//!   timeout, refusals. Messages stand in a [`Lane`], from which a driver sends one by one or many with one system
//!   call.
//! - [`Listener`] is the receiving half of a conversation: it tells messages of its flows from unmatched ones, observes
//!   them, and answers. A [`Reader`] finds the messages in what has arrived.
//!
//! Both work over any [`Conversation`](trunkline_transport::Conversation), are given the time, and hand what they
//! observe to an [`Observer`]. Drivers own the clock, the sockets and the threads.

mod buffers;
mod lane;
mod listener;
mod observer;
mod reader;
mod spec;
mod talker;
#[cfg(test)]
mod tests;

pub use buffers::Buffers;
pub use lane::{Lane, TalkerSpec};
pub use listener::{Delivery, Listener, ListenerSpec, Reply, Side};
pub use observer::{NOT_REFLECTED, Observer, oversize_counter};
pub use reader::{Found, Reader};
pub use spec::FlowSpec;
pub use talker::{Answer, Progress, Talker};
pub use trunkline_transport::kind::{Carrier, Group, Made, Pair};

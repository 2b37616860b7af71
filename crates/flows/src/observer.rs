//! The interface to a driver's recorder.

use trunkline_core::{FlowId, Time};
use trunkline_metrics::Observation;
use trunkline_transport::framing::Header;

/// Takes what talkers and listeners observe. Drivers implement it over what leads to their recorder.
pub trait Observer {
    /// Takes an observation. The payload is that of a received message, where the flow keeps it.
    fn observe(&mut self, at: Time, flow: FlowId, what: Observation, payload: Option<&[u8]>);

    /// The transport carries no message larger than `largest` bytes of payload, and refused one that was.
    fn oversize(&mut self, largest: usize);

    /// A header is about to be written over the first bytes of `message`: before it is offered, and each time it is
    /// offered again.
    fn covering(&mut self, _header: &Header, _message: &[u8]) {}

    /// The transport took a message that travels without its header.
    fn unframed(&mut self, _header: &Header) {}
}

/// Counter of messages that a transport refused because they have more than `largest` bytes of payload.
pub fn oversize_counter(largest: usize) -> String {
    format!("refused-larger-than-{largest}")
}

/// Counter of replies that a transport did not take.
pub const NOT_REFLECTED: &str = "not-reflected";

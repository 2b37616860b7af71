//! One engine and its messages.

use std::io;
use std::net::UdpSocket;

use trunkline_core::Address;
use trunkline_transport::Endpoint;
use trunkline_transport::framing::{Deframer, Header, Key, decode_message};

use super::carried::{Carried, Loss, Route};
use super::sockets::Intake;

/// A protocol engine whose packets travel through a socket, and whose messages are those of a run.
pub(crate) struct Engine {
    pub(crate) carried: Carried,
    key: Key,
    /// For byte streams: finds the messages again.
    deframer: Option<Deframer>,
    /// Where the endpoint writes messages.
    received: Vec<u8>,
}

/// What comes out of an engine.
pub(crate) enum Found<'e> {
    /// A message, header included.
    Message(Header, &'e mut [u8]),
    /// So many bytes that are no message of this run.
    Stray(usize),
}

impl Engine {
    /// An engine whose packets go through `socket`, and whose messages are those of the flows `ids`.
    ///
    /// # Errors
    /// If the socket has no address.
    pub(crate) fn new(
        endpoint: Box<dyn Endpoint + Send>,
        peer: Address,
        way: (&UdpSocket, Route, Intake),
        (key, ids): (Key, core::ops::Range<u32>),
        loss: Loss,
    ) -> io::Result<Engine> {
        let deframer = (!endpoint.features().message_oriented).then(|| Deframer::new(key, ids));
        let carried = Carried::new(endpoint, peer, way, loss)?;
        Ok(Engine { carried, key, deframer, received: Vec::new() })
    }

    /// Reads once from the endpoint and says what came out; false if it had nothing.
    pub(crate) fn receive(&mut self, mut found: impl FnMut(Found<'_>)) -> bool {
        self.received.clear();
        if !self.carried.receive(&mut self.received) {
            return false;
        }
        let Some(deframer) = &mut self.deframer else {
            match decode_message(&self.received, self.key) {
                Ok((header, _)) => found(Found::Message(header, &mut self.received)),
                Err(_) => found(Found::Stray(self.received.len())),
            }
            return true;
        };
        deframer.push(&self.received);
        while let Some(framed) = deframer.next() {
            if framed.skipped > 0 {
                found(Found::Stray(framed.skipped));
            }
            found(Found::Message(framed.header, framed.bytes));
        }
        true
    }
}

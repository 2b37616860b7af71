//! One engine and its messages.

use std::io;
use std::net::UdpSocket;

use trunkline_core::Address;
use trunkline_flows::{Found, Reader};
use trunkline_transport::Endpoint;
use trunkline_transport::framing::Key;

use super::carried::{Carried, Loss, Route};
use super::sockets::Intake;

/// A protocol engine whose packets travel through a socket, and whose messages are those of a run.
pub(crate) struct Engine {
    pub(crate) carried: Carried,
    reader: Reader,
    /// Where the endpoint writes messages.
    scratch: Vec<u8>,
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
        let reader = Reader::new(endpoint.features(), key, ids);
        let carried = Carried::new(endpoint, peer, way, loss)?;
        Ok(Engine { carried, reader, scratch: Vec::new() })
    }

    /// Reads once from the endpoint and says what came out; false if it had nothing.
    pub(crate) fn receive(&mut self, found: impl FnMut(Found<'_>)) -> bool {
        let any = self.reader.receive(self.carried.conversation(), &mut self.scratch);
        if any {
            self.reader.messages(&mut self.scratch, found);
        }
        any
    }
}

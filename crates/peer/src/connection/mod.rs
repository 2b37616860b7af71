//! TLS connections with frames, readable and writable at once.
//!
//! A connection has one TLS state behind a lock that is held only while bytes go through it, never while waiting. What
//! comes out of it goes to the socket in the same order, under a second lock that one frame holds at a time; whoever reads
//! never waits for that one. So both ends may write at once for as long as both also read.

mod channel;
pub(crate) mod greeting;
mod handshake;
mod keepalive;
mod listen;
mod reader;
mod shared;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_core::Duration;

use self::shared::Shared;
use crate::error::PeerError;
use crate::fingerprint::Fingerprint;
use crate::wire::Message;

pub use channel::{Beginning, Channel, Received};
pub use handshake::connect;
pub(crate) use handshake::connect_with;
pub use listen::{Incoming, Listener};
pub use reader::FrameReader;
pub(crate) use shared::describe;
pub use shared::{Closer, Pulse};
pub use writer::FrameWriter;

/// A TLS 1.3 connection between two keys. It shows that it lives by itself ([`Pulse`]); that the other end lives is known
/// to whoever reads.
#[derive(Debug)]
pub struct Connection {
    reader: FrameReader,
    writer: FrameWriter,
}

impl Connection {
    fn new(shared: Shared, limit: usize) -> Result<Connection, PeerError> {
        let shared = Arc::new(shared);
        keepalive::keep_alive(&shared)?;
        let writer = FrameWriter::new(Arc::clone(&shared));
        Ok(Connection { reader: FrameReader::new(shared, limit), writer })
    }

    /// One end to read, in one thread, and one to write, in any.
    pub fn split(self) -> (FrameReader, FrameWriter) {
        (self.reader, self.writer)
    }

    /// As [`FrameWriter::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send<M: Message>(&self, message: &M) -> Result<(), PeerError> {
        self.writer.send(message)
    }

    /// As [`FrameReader::receive`].
    ///
    /// # Errors
    /// As there.
    pub fn receive<M: Message>(&mut self) -> Result<Option<M>, PeerError> {
        self.reader.receive()
    }

    /// As [`FrameReader::receive_within`].
    ///
    /// # Errors
    /// As there.
    pub fn receive_within<M: Message>(
        &mut self,
        patience: Duration,
        step: &'static str,
    ) -> Result<Option<M>, PeerError> {
        self.reader.receive_within(patience, step)
    }

    /// Accepts large frames from now on: the other end is known.
    pub fn trust(&mut self) {
        self.reader.trust();
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        self.reader.closer()
    }

    /// The other end's address: that of the TCP connection.
    pub fn peer_address(&self) -> SocketAddr {
        self.reader.shared.peer
    }

    /// This end's address.
    pub fn local_address(&self) -> SocketAddr {
        self.reader.shared.local
    }

    /// The other end's key, which it has shown to be its own.
    pub fn peer_fingerprint(&self) -> Fingerprint {
        self.reader.shared.fingerprint
    }

    /// What only the two ends of this connection can derive.
    pub(crate) fn export(&self, label: &[u8]) -> Result<[u8; 32], PeerError> {
        self.reader.shared.export(label)
    }

    /// Who the other end is, for messages.
    pub(crate) fn who(&self) -> &str {
        &self.reader.shared.who
    }
}

#[cfg(test)]
mod tests;

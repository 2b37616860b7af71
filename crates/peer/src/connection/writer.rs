//! The writing end of a connection.

use std::sync::Arc;

use super::shared::{Closer, Shared};
use crate::error::PeerError;
use crate::wire::{Frame, Message};

/// The writing end of a connection. Clones share it: what one says is never mixed with what another says. When the last
/// is dropped, the other end learns that this was all.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    end: Arc<WritingEnd>,
}

/// Says farewell when nobody is left who could say anything.
#[derive(Debug)]
struct WritingEnd {
    shared: Arc<Shared>,
}

impl FrameWriter {
    pub(super) fn new(shared: Arc<Shared>) -> FrameWriter {
        FrameWriter { end: Arc::new(WritingEnd { shared }) }
    }

    /// Says something. Returns when the system has taken it, which is when the other end reads on, if it is much.
    ///
    /// # Errors
    /// If the connection is cut or closed, or the message is larger than any may be.
    pub fn send<M: Message>(&self, message: &M) -> Result<(), PeerError> {
        self.send_frame(&message.to_frame().map_err(|error| PeerError::unsendable(&error))?)
    }

    /// As [`send`](FrameWriter::send), for a message that is a frame already.
    ///
    /// # Errors
    /// As there.
    pub fn send_frame(&self, frame: &Frame) -> Result<(), PeerError> {
        self.end.shared.send(frame.tag, &frame.body)
    }

    /// Says that this was all. The other end may go on.
    ///
    /// # Errors
    /// If the connection is cut or closed.
    pub fn finish(self) -> Result<(), PeerError> {
        self.end.shared.finish(true)
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.end.shared))
    }
}

impl Drop for WritingEnd {
    fn drop(&mut self) {
        // Nobody waits here, and nobody is told: whoever wants to know uses `finish`.
        let _ = self.shared.finish(false);
    }
}

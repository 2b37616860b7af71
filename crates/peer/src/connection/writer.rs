//! The writing end of a connection.

use std::sync::Arc;

use super::pipe::PipeWriter;
use super::shared::{Closer, Shared};
use crate::error::PeerError;
use crate::wire::{Message, tag};

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
        let frame = message.to_frame().map_err(|error| PeerError::Protocol {
            who: "this end".to_owned(),
            reason: format!("it cannot send {error}"),
        })?;
        self.end.shared.send(frame.tag, &frame.body)
    }

    /// Says that this was all. The other end may go on.
    ///
    /// # Errors
    /// If the connection is cut or closed.
    pub fn finish(self) -> Result<(), PeerError> {
        self.end.shared.finish(true)
    }

    /// From now on bytes: what is written comes out of the other end's [`PipeReader`](super::PipeReader).
    pub fn into_pipe(self) -> PipeWriter {
        PipeWriter::new(self)
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.end.shared))
    }

    pub(super) fn send_raw(&self, bytes: &[u8]) -> Result<(), PeerError> {
        self.end.shared.send(tag::RAW, bytes)
    }
}

impl Drop for WritingEnd {
    fn drop(&mut self) {
        // Nobody waits here, and nobody is told: whoever wants to know uses `finish`.
        let _ = self.shared.finish(false);
    }
}

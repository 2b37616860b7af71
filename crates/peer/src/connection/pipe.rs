//! A connection as a pair of byte pipes.

use std::io::{self, Read, Write};

use super::reader::FrameReader;
use super::shared::Closer;
use super::writer::FrameWriter;
use crate::error::PeerError;
use crate::wire::{WireError, tag};

/// Bytes that the other end has written. Signs of life go beside them.
#[derive(Debug)]
pub struct PipeReader {
    frames: FrameReader,
    held: Vec<u8>,
    taken: usize,
}

/// Bytes for the other end, gathered until they are flushed or many. Dropping it ends the pipe; what was not flushed is
/// lost.
#[derive(Debug)]
pub struct PipeWriter {
    frames: FrameWriter,
    held: Vec<u8>,
}

/// So many bytes are sent without a flush; with what was held before, a frame has fewer than twice as many.
const MANY: usize = 64 << 10;

impl PipeReader {
    pub(super) fn new(mut frames: FrameReader) -> PipeReader {
        frames.set_limit(2 * MANY);
        PipeReader { frames, held: Vec::new(), taken: 0 }
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        self.frames.closer()
    }
}

impl Read for PipeReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.taken == self.held.len() {
            let Some(frame) = self.frames.frame(None).map_err(to_io)? else { return Ok(0) };
            if frame.tag != tag::RAW {
                let wrong = WireError::Tag { found: frame.tag, expected: "a pipe's bytes" };
                return Err(to_io(self.frames.not_understood(&wrong)));
            }
            (self.held, self.taken) = (frame.body, 0);
        }
        let read = into.len().min(self.held.len() - self.taken);
        into[..read].copy_from_slice(&self.held[self.taken..self.taken + read]);
        self.taken += read;
        Ok(read)
    }
}

impl PipeWriter {
    pub(super) fn new(frames: FrameWriter) -> PipeWriter {
        PipeWriter { frames, held: Vec::new() }
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        self.frames.closer()
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(MANY);
        self.held.extend_from_slice(&bytes[..taken]);
        if self.held.len() >= MANY {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let sent = self.frames.send_raw(&self.held);
        self.held.clear();
        sent.map_err(to_io)
    }
}

fn to_io(error: PeerError) -> io::Error {
    let kind = match error {
        PeerError::CutOff { .. } => io::ErrorKind::UnexpectedEof,
        PeerError::Silent { .. } | PeerError::TimedOut { .. } => io::ErrorKind::TimedOut,
        PeerError::Closed { .. } => io::ErrorKind::ConnectionAborted,
        PeerError::Protocol { .. } => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

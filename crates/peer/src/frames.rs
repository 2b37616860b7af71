//! Frames over any connection: TLS, or a pair of byte streams such as the pipes of a process of this host.

use std::io::{self, BufReader, Read, Write};

use crate::connection::{FrameReader, FrameWriter, describe, greeting};
use crate::error::PeerError;
use crate::message::{Hello, Purpose, Welcome};
use crate::wire::{self, Deframer, Frame, MAX_FRAME, Message, tag};

/// Frames from the other end of a connection.
pub trait FrameSource: Send {
    /// The next frame, or `None` if the other end has said that this was all. Signs of life are skipped.
    ///
    /// # Errors
    /// If the connection is cut, or the other end sends something else than frames.
    fn next_frame(&mut self) -> Result<Option<Frame>, PeerError>;

    /// The other end, for messages.
    fn who(&self) -> &str;
}

/// Frames to the other end of a connection. Dropping it tells the other end that this was all.
pub trait FrameSink: Send {
    /// Sends a frame. Returns when the system has taken it.
    ///
    /// # Errors
    /// If the connection is cut.
    fn send_frame(&mut self, frame: &Frame) -> Result<(), PeerError>;
}

/// Sends a message.
///
/// # Errors
/// If the connection is cut, or the message is larger than any may be.
pub fn send(to: &mut (impl FrameSink + ?Sized), message: &impl Message) -> Result<(), PeerError> {
    to.send_frame(&message.to_frame().map_err(|error| PeerError::unsendable(&error))?)
}

/// The next message, or `None` if the other end has said that this was all.
///
/// # Errors
/// If the connection is cut, or the other end sends something else.
pub fn receive<M: Message>(from: &mut (impl FrameSource + ?Sized)) -> Result<Option<M>, PeerError> {
    let Some(frame) = from.next_frame()? else { return Ok(None) };
    M::from_frame(frame).map(Some).map_err(|error| PeerError::not_understood(from.who(), &error))
}

/// Greets the other end, as the end that connected.
///
/// # Errors
/// If the connection is cut.
pub fn greet(to: &mut (impl FrameSink + ?Sized), purpose: Purpose) -> Result<(), PeerError> {
    send(to, &greeting::hello(purpose))
}

/// The welcome in the first frame of the end that was connected to.
///
/// # Errors
/// If that end refuses, has another version, or sends something else.
pub fn welcomed(frame: Frame, who: &str) -> Result<Welcome, PeerError> {
    greeting::read_welcome(who, frame)
}

/// Welcomes the end that connected, whose first frame this is. An end of another version receives ours.
///
/// # Errors
/// If it has another version, or the frame is not a greeting.
pub fn welcome(frame: Frame, who: &str, to: &mut (impl FrameSink + ?Sized)) -> Result<Hello, PeerError> {
    let hello = greeting::read_hello(who, frame);
    if matches!(hello, Ok(_) | Err(PeerError::Version { .. })) {
        let sent = send(to, &greeting::welcome(""));
        // An end of another version may have left.
        return hello.and_then(|hello| sent.map(|()| hello));
    }
    hello
}

/// Frames that come through a byte stream.
#[derive(Debug)]
pub struct PipeReader<R> {
    from: BufReader<R>,
    deframer: Deframer,
    who: String,
}

/// Frames that go into a byte stream.
#[derive(Debug)]
pub struct PipeWriter<W> {
    to: W,
    who: String,
    /// A frame with its head, so that one call of the system takes both.
    bytes: Vec<u8>,
}

/// The content of a kernel's pipe.
const PIPE: usize = 64 << 10;

impl<R: Read> PipeReader<R> {
    /// Reads frames of any length that is allowed; `who` is the other end in messages.
    pub fn new(from: R, who: impl Into<String>) -> PipeReader<R> {
        let from = BufReader::with_capacity(PIPE, from);
        PipeReader { from, deframer: Deframer::new(MAX_FRAME), who: who.into() }
    }
}

impl<R: Read + Send> FrameSource for PipeReader<R> {
    fn next_frame(&mut self) -> Result<Option<Frame>, PeerError> {
        loop {
            let read = match self.from.read(self.deframer.space()) {
                Ok(0) if self.deframer.is_between_frames() => return Ok(None),
                Ok(0) => return Err(cut_off(&self.who, &io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cut_off(&self.who, &error)),
            };
            match self.deframer.advance(read) {
                Ok(Some(frame)) if frame.tag != tag::PING => return Ok(Some(frame)),
                Ok(_) => {}
                Err(error) => return Err(PeerError::not_understood(&self.who, &error)),
            }
        }
    }

    fn who(&self) -> &str {
        &self.who
    }
}

impl<W: Write> PipeWriter<W> {
    /// Writes into a stream; `who` is the other end in messages.
    pub fn new(to: W, who: impl Into<String>) -> PipeWriter<W> {
        PipeWriter { to, who: who.into(), bytes: Vec::new() }
    }
}

impl<W: Write + Send> FrameSink for PipeWriter<W> {
    fn send_frame(&mut self, frame: &Frame) -> Result<(), PeerError> {
        let head = wire::head(frame.tag, frame.body.len()).map_err(|error| PeerError::unsendable(&error))?;
        self.bytes.clear();
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(&frame.body);
        let written = self.to.write_all(&self.bytes).and_then(|()| self.to.flush());
        // A burst leaves no memory behind.
        self.bytes.shrink_to(2 * PIPE);
        written.map_err(|error| cut_off(&self.who, &error))
    }
}

impl FrameSource for FrameReader {
    fn next_frame(&mut self) -> Result<Option<Frame>, PeerError> {
        self.frame(None)
    }

    fn who(&self) -> &str {
        FrameReader::who(self)
    }
}

impl FrameSink for FrameWriter {
    fn send_frame(&mut self, frame: &Frame) -> Result<(), PeerError> {
        FrameWriter::send_frame(self, frame)
    }
}

fn cut_off(who: &str, error: &io::Error) -> PeerError {
    PeerError::CutOff { who: who.to_owned(), reason: describe(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::VERSION;

    fn said(write: impl FnOnce(&mut PipeWriter<&mut Vec<u8>>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut PipeWriter::new(&mut bytes, "the far end"));
        bytes
    }

    #[test]
    fn frames_go_through_a_pipe_until_it_ends() {
        let frames =
            [Frame { tag: tag::CHUNK, body: vec![7; 200_000] }, Frame { tag: b'x', body: Vec::new() }];
        let bytes = said(|to| frames.iter().for_each(|frame| to.send_frame(frame).unwrap()));
        let mut from = PipeReader::new(bytes.as_slice(), "the near end");
        for frame in frames {
            assert_eq!(from.next_frame().unwrap(), Some(frame));
        }
        assert_eq!(from.next_frame().unwrap(), None);
    }

    #[test]
    fn a_pipe_that_breaks_off_is_told_from_one_that_ends() {
        let bytes = said(|to| to.send_frame(&Frame { tag: b'x', body: vec![1, 2, 3] }).unwrap());
        for cut in 1..bytes.len() {
            let error = PipeReader::new(&bytes[..cut], "the near end").next_frame().unwrap_err();
            assert!(matches!(error, PeerError::CutOff { .. }), "cut at {cut}: {error}");
        }
    }

    #[test]
    fn both_ends_learn_that_their_versions_differ() {
        let bytes = said(|to| {
            let hello = Hello { version: VERSION - 1, program: "0.0.1".into(), purpose: Purpose::FarEnd };
            send(to, &hello).unwrap();
        });
        let frame = PipeReader::new(bytes.as_slice(), "the near end").next_frame().unwrap().unwrap();
        let mut answer = Vec::new();
        let error = welcome(frame, "the near end", &mut PipeWriter::new(&mut answer, "the near end"));
        let error = error.unwrap_err().to_string();
        let theirs = format!("the near end runs Trunkline 0.0.1 (protocol {})", VERSION - 1);
        assert!(error.starts_with(&theirs) && error.ends_with("update the other end"), "{error}");
        // The older end finds the newer version in the welcome.
        let frame = PipeReader::new(answer.as_slice(), "the far end").next_frame().unwrap().unwrap();
        assert_eq!(Welcome::from_frame(frame).unwrap().version, VERSION);
    }
}

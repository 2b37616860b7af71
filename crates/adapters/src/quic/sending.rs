//! From messages to streams and datagrams.

use bytes::Bytes;
use quinn_proto::{Connection, Dir, StreamId, WriteError};
use trunkline_transport::SendError;

use super::config::{MAX_MESSAGE, Mode};

/// What one end sends. Each end opens one stream towards the other in every mode, its main stream: it carries the
/// bytes in the mode [`Mode::Stream`], and its end says that nothing more follows in all of them.
#[derive(Debug)]
pub(super) struct Sending {
    mode: Mode,
    main: Option<StreamId>,
    /// The stream of the message that is being handed over, or an unused one for the next.
    current: Option<StreamId>,
    /// The part of the last message that the engine had no room for yet.
    rest: Vec<u8>,
    fed: usize,
    /// Message streams of which the peer has not acknowledged everything.
    unfinished: u32,
    /// The engine has no room, and will say when it has.
    blocked: bool,
    /// A message was refused, and nobody has been told that there is room again.
    refused: bool,
    end: End,
    /// The engine's room for datagrams when it holds none.
    empty: usize,
}

/// How far the end of sending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// Wanted as soon as everything has left.
    Wanted,
    /// The main stream is finished.
    Said,
    /// The peer knows.
    Known,
}

impl Sending {
    pub(super) fn new(mode: Mode) -> Sending {
        Sending {
            mode,
            main: None,
            current: None,
            rest: Vec::new(),
            fed: 0,
            unfinished: 0,
            blocked: false,
            refused: false,
            end: End::Open,
            empty: 0,
        }
    }

    /// The connection stands.
    pub(super) fn connected(&mut self, connection: &mut Connection) {
        self.empty = connection.datagrams().send_buffer_space();
        self.main = connection.streams().open(Dir::Uni);
    }

    pub(super) fn send(&mut self, connection: &mut Connection, bytes: &[u8]) -> Result<(), SendError> {
        let limit = match self.mode {
            Mode::Datagrams => connection.datagrams().max_size().unwrap_or(0),
            Mode::Stream => usize::MAX,
            Mode::Streams => MAX_MESSAGE,
        };
        if bytes.len() > limit {
            return Err(SendError::TooLarge { limit });
        }
        let taken = !self.blocked
            && self.rest.is_empty()
            && match self.mode {
                Mode::Datagrams => self.send_datagram(connection, bytes),
                Mode::Stream | Mode::Streams => self.send_on_stream(connection, bytes),
            };
        if taken {
            return Ok(());
        }
        self.refused = true;
        Err(SendError::Full)
    }

    /// Hands the engine what it has room for, and says whether that was anything.
    pub(super) fn advance(&mut self, connection: &mut Connection) -> bool {
        let mut moved = false;
        if !self.rest.is_empty() && !self.blocked {
            let rest = core::mem::take(&mut self.rest);
            let written = self.write(connection, &rest[self.fed..]);
            self.rest = rest;
            self.fed += written;
            moved = written > 0;
            if self.fed == self.rest.len() {
                self.rest.clear();
                self.fed = 0;
                self.finish_message(connection);
            }
        }
        if self.end == End::Wanted
            && self.has_left(connection)
            && let Some(main) = self.main(connection)
        {
            // It fails only if the peer refused the stream, which ends the conversation by itself.
            let _ = connection.send_stream(main).finish();
            self.end = End::Said;
            moved = true;
        }
        moved
    }

    /// The engine has room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// The peer has acknowledged all of a stream.
    pub(super) fn acknowledged(&mut self, stream: StreamId) {
        if Some(stream) == self.main {
            self.end = End::Known;
        } else {
            self.unfinished = self.unfinished.saturating_sub(1);
        }
    }

    /// Nothing more will be sent. What was taken still is.
    pub(super) fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Wanted;
        }
    }

    /// Nothing more can be sent.
    pub(super) fn forget(&mut self) {
        self.rest.clear();
        self.fed = 0;
        self.refused = false;
    }

    /// Whether everything has left and the end has been said.
    pub(super) fn has_said_so(&self) -> bool {
        matches!(self.end, End::Said | End::Known)
    }

    /// Whether the peer knows that nothing more follows.
    pub(super) fn is_over(&self) -> bool {
        self.end == End::Known
    }

    /// Whether something waits for the peer to make room, or to acknowledge the end.
    pub(super) fn waits(&self) -> bool {
        self.refused || !self.rest.is_empty() || matches!(self.end, End::Wanted | End::Said)
    }

    /// Whether a message was refused and there is room now. True once.
    pub(super) fn take_writable(&mut self) -> bool {
        self.refused && self.rest.is_empty() && !self.blocked && core::mem::take(&mut self.refused)
    }

    fn send_datagram(&mut self, connection: &mut Connection, bytes: &[u8]) -> bool {
        // Its size is possible, so the only reason not to take it is a full buffer.
        let taken = connection.datagrams().send(Bytes::copy_from_slice(bytes), false).is_ok();
        self.blocked = !taken;
        taken
    }

    fn send_on_stream(&mut self, connection: &mut Connection, bytes: &[u8]) -> bool {
        if self.stream(connection).is_none() {
            self.blocked = true;
            return false;
        }
        let written = self.write(connection, bytes);
        if written == 0 && !bytes.is_empty() {
            return false;
        }
        self.rest.extend_from_slice(&bytes[written..]);
        if self.rest.is_empty() {
            self.finish_message(connection);
        }
        true
    }

    /// Writes until all is written or the engine is full.
    fn write(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let Some(stream) = self.stream(connection) else { return 0 };
        let mut written = 0;
        while written < bytes.len() {
            match connection.send_stream(stream).write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(WriteError::Blocked) => {
                    self.blocked = true;
                    break;
                }
                // The peer refused the stream, which ends the conversation by itself.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return bytes.len(),
            }
        }
        written
    }

    fn finish_message(&mut self, connection: &mut Connection) {
        if self.mode == Mode::Streams
            && let Some(stream) = self.current.take()
            && connection.send_stream(stream).finish().is_ok()
        {
            self.unfinished += 1;
        }
    }

    /// The stream for the message at hand; `None` while the peer allows no more.
    fn stream(&mut self, connection: &mut Connection) -> Option<StreamId> {
        if self.mode == Mode::Streams {
            self.main(connection)?;
            self.current = self.current.or_else(|| connection.streams().open(Dir::Uni));
            self.current
        } else {
            self.main(connection)
        }
    }

    fn main(&mut self, connection: &mut Connection) -> Option<StreamId> {
        self.main = self.main.or_else(|| connection.streams().open(Dir::Uni));
        self.main
    }

    /// Whether everything taken has left: on streams of their own so far that the peer has it, since the end could
    /// overtake it.
    fn has_left(&self, connection: &mut Connection) -> bool {
        self.rest.is_empty()
            && match self.mode {
                Mode::Datagrams => connection.datagrams().send_buffer_space() == self.empty,
                Mode::Stream => true,
                Mode::Streams => self.unfinished == 0,
            }
    }
}

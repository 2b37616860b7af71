//! From streams and datagrams to messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError, StreamId};
use trunkline_core::Ecn;
use trunkline_transport::{CloseReason, Received};

use super::config::{MAX_MESSAGE, Mode};

/// What one end receives.
#[derive(Debug)]
pub(super) struct Receiving {
    mode: Mode,
    /// Bytes of messages that may be held here.
    limit: usize,
    /// The peer's first stream: its end says that nothing more follows.
    main: Option<StreamId>,
    /// The next bytes of the main stream. They are taken out of the engine ahead of time, since a stream that has only
    /// ended is readable, too.
    front: Option<Bytes>,
    /// Messages on streams of their own, as far as they have come.
    partial: BTreeMap<StreamId, Vec<u8>>,
    /// Of them, those of which more may have come.
    ready: BTreeSet<StreamId>,
    whole: VecDeque<(Bytes, Ecn)>,
    /// Bytes in `partial` and `whole`.
    held: usize,
    /// Nothing more comes, and why.
    end: Option<CloseReason>,
    /// The peer has closed the connection: what is not there will not come.
    over: bool,
    /// The ECN field of the packet that came last.
    ecn: Ecn,
    dropped: u64,
}

impl Receiving {
    pub(super) fn new(mode: Mode, limit: usize) -> Receiving {
        Receiving {
            mode,
            limit,
            main: None,
            front: None,
            partial: BTreeMap::new(),
            ready: BTreeSet::new(),
            whole: VecDeque::new(),
            held: 0,
            end: None,
            over: false,
            ecn: Ecn::NotCapable,
            dropped: 0,
        }
    }

    /// A packet with this ECN field came; takes the datagrams that were in it. True if there is a message to receive
    /// that was not there.
    pub(super) fn packet(&mut self, connection: &mut Connection, ecn: Ecn) -> bool {
        self.ecn = ecn;
        let mut any = false;
        while let Some(datagram) = connection.datagrams().recv() {
            if self.held > 0 && self.held + datagram.len() > self.limit {
                self.dropped += 1;
                continue;
            }
            self.held += datagram.len();
            self.whole.push_back((datagram, ecn));
            any = true;
        }
        any
    }

    /// The peer has opened streams. True if there is something to receive that was not there.
    pub(super) fn accept(&mut self, connection: &mut Connection) -> bool {
        let mut any = false;
        while let Some(stream) = connection.streams().accept(Dir::Uni) {
            if self.main.is_none() {
                self.main = Some(stream);
            } else {
                self.partial.insert(stream, Vec::new());
            }
            any |= self.readable(connection, stream);
        }
        any
    }

    /// There is news on a stream. True if there is something to receive that was not there.
    pub(super) fn readable(&mut self, connection: &mut Connection, stream: StreamId) -> bool {
        if Some(stream) != self.main {
            self.ready.insert(stream);
            return self.gather(connection);
        }
        if self.front.is_none() {
            self.front = self.next_chunk(connection);
        }
        if self.mode != Mode::Stream {
            // Only its end counts.
            while self.front.take().is_some() {
                self.front = self.next_chunk(connection);
            }
        }
        self.front.is_some()
    }

    /// Appends what there is of the stream, or one message.
    pub(super) fn receive(&mut self, connection: &mut Connection, into: &mut Vec<u8>) -> Option<Received> {
        if self.mode == Mode::Stream {
            let before = into.len();
            while let Some(bytes) = self.front.take() {
                into.extend_from_slice(&bytes);
                self.front = self.next_chunk(connection);
            }
            let length = into.len() - before;
            return (length > 0).then_some(Received { length, ecn: self.ecn });
        }
        let (message, ecn) = self.whole.pop_front()?;
        into.extend_from_slice(&message);
        self.held -= message.len();
        self.gather(connection);
        Some(Received { length: message.len(), ecn })
    }

    /// The peer has closed the connection. What came before can still be received.
    pub(super) fn finish(&mut self, connection: &mut Connection) {
        self.over = true;
        if self.mode == Mode::Stream {
            if self.front.is_none() {
                self.front = self.next_chunk(connection);
            }
            return;
        }
        self.limit = usize::MAX;
        self.gather(connection);
        self.partial.clear();
        self.end.get_or_insert(CloseReason::Peer);
    }

    /// Why nothing more comes, once all that came has been received.
    pub(super) fn ended(&self) -> Option<CloseReason> {
        self.end.filter(|_| self.front.is_none() && self.whole.is_empty() && self.partial.is_empty())
    }

    /// Datagrams for which there was no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn next_chunk(&mut self, connection: &mut Connection) -> Option<Bytes> {
        let main = self.main.filter(|_| self.end.is_none());
        let next = match main {
            Some(main) => read(connection, main),
            None => Err(ReadError::Blocked),
        };
        match next {
            Ok(Some(bytes)) => return Some(bytes),
            Ok(None) => self.end = Some(CloseReason::Peer),
            Err(ReadError::Reset(_)) => self.end = Some(CloseReason::Reset),
            Err(ReadError::Blocked) if self.over => {
                self.end.get_or_insert(CloseReason::Peer);
            }
            Err(ReadError::Blocked) => {}
        }
        None
    }

    /// Reads messages on streams of their own. Beyond the limit only the oldest goes on, but not for ever: while no whole
    /// message waits for the application, nothing but reading gives the peer the credit by which one becomes whole, and
    /// what others hold unread is taken from the same credit. True if a message is there that was not.
    fn gather(&mut self, connection: &mut Connection) -> bool {
        let before = self.whole.len();
        while let Some(&stream) = self.ready.first() {
            let is_oldest = self.partial.keys().next() == Some(&stream);
            if self.held >= self.limit && !self.whole.is_empty() && !is_oldest {
                break;
            }
            let Some(message) = self.partial.get_mut(&stream) else {
                self.ready.remove(&stream);
                continue;
            };
            match read(connection, stream) {
                Ok(Some(bytes)) if message.len() + bytes.len() <= MAX_MESSAGE => {
                    message.extend_from_slice(&bytes);
                    self.held += bytes.len();
                }
                Ok(None) => {
                    let message = core::mem::take(message);
                    self.whole.push_back((message.into(), self.ecn));
                    self.partial.remove(&stream);
                }
                Err(ReadError::Blocked) => {
                    self.ready.remove(&stream);
                }
                // Taken back by the peer, or larger than any message may be.
                Ok(Some(_)) | Err(ReadError::Reset(_)) => {
                    self.held -= message.len();
                    self.partial.remove(&stream);
                    // An error says that the stream is gone already.
                    let _ = connection.recv_stream(stream).stop(0u32.into());
                }
            }
        }
        self.whole.len() > before
    }
}

/// The next bytes of a stream, in order; `None` at its end.
fn read(connection: &mut Connection, stream: StreamId) -> Result<Option<Bytes>, ReadError> {
    let mut stream = connection.recv_stream(stream);
    // A stream that is unknown has been read to its end before.
    let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
    let next = chunks.next(usize::MAX).map(|chunk| chunk.map(|chunk| chunk.bytes));
    // Whether that allows the peer to send more is asked by the draining that follows every `receive`.
    let _ = chunks.finalize();
    next
}

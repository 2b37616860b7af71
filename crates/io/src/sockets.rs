//! Kernel sockets as conversations: what an application sees of any transport.

use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use socket2::SockRef;
use trunkline_core::{Duration, Ecn, Time};
use trunkline_transport::{
    Close, CloseReason, Conversation, Event, Features, Message, Received, SendError, features,
};

use crate::poll::{Interest, Poller};

/// As many bytes are read at once.
const CHUNK: usize = 64 << 10;

/// A connection of the kernel: TCP, or MPTCP or SCTP as a byte stream.
///
/// Sending never blocks. A message of which the kernel has taken a part is sent: the rest is kept here and goes first,
/// at the latest with [`flush`](Self::flush); until then the conversation is full. Receiving waits as long as the
/// socket says.
#[derive(Debug)]
pub struct StreamSocket {
    stream: TcpStream,
    /// The most that is handed to the kernel at once.
    piece: usize,
    /// The rest of a message that has begun, from `start` on.
    rest: Vec<u8>,
    start: usize,
    /// Bytes that the kernel has taken since they were last asked for.
    taken: usize,
    chunk: Vec<u8>,
    broken: Option<io::ErrorKind>,
    /// Whether the peer sends nothing more.
    is_ended: bool,
    is_told: bool,
}

impl StreamSocket {
    /// A connected socket.
    pub fn new(stream: TcpStream) -> StreamSocket {
        StreamSocket {
            stream,
            piece: usize::MAX,
            rest: Vec::new(),
            start: 0,
            taken: 0,
            chunk: Vec::new(),
            broken: None,
            is_ended: false,
            is_told: false,
        }
    }

    /// Hands at most so many bytes to the kernel at once.
    #[must_use]
    pub fn in_pieces(self, piece: usize) -> StreamSocket {
        StreamSocket { piece, ..self }
    }

    /// The socket, without the rest of a message.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether the kernel has not taken all of a message that has begun.
    pub fn has_rest(&self) -> bool {
        self.start < self.rest.len()
    }

    /// Hands more of the rest to the kernel; false if that took nothing.
    pub fn flush(&mut self) -> bool {
        if !self.has_rest() {
            return false;
        }
        let end = self.rest.len().min(self.start.saturating_add(self.piece));
        let taken = put(&self.stream, &self.rest[self.start..end], &mut self.broken);
        self.start += taken;
        self.taken += taken;
        if !self.has_rest() {
            self.rest.clear();
            self.start = 0;
        }
        taken > 0
    }

    /// How many bytes the kernel has taken since the last call.
    pub fn take_taken(&mut self) -> usize {
        core::mem::take(&mut self.taken)
    }

    /// Waits until the kernel takes more, at most so long.
    pub fn wait_for_room(&self, patience: Duration) {
        let mut poller = Poller::new([(self.stream.as_fd(), Interest::Write)]);
        if poller.wait(patience).is_err() {
            // For lack of memory; a moment later there may be some.
            crate::pace::sleep(Duration::from_millis(1));
        }
    }

    /// How the connection broke, if it did.
    pub fn broken(&self) -> Option<io::ErrorKind> {
        self.broken
    }

    /// Whether nothing more will be received.
    pub fn is_ended(&self) -> bool {
        self.is_ended || self.broken.is_some()
    }

    fn reason(&self) -> Option<CloseReason> {
        Some(match self.broken? {
            io::ErrorKind::BrokenPipe => CloseReason::Peer,
            io::ErrorKind::TimedOut => CloseReason::TimedOut(Duration::ZERO),
            _ => CloseReason::Reset,
        })
    }
}

impl Conversation for StreamSocket {
    fn send(&mut self, _: Time, message: Message<'_>) -> Result<(), SendError> {
        while self.has_rest() && self.flush() {
            if self.piece < usize::MAX {
                break;
            }
        }
        let first = &message.bytes[..message.bytes.len().min(self.piece)];
        let is_free = !self.has_rest() && self.broken.is_none();
        let taken = if is_free { put(&self.stream, first, &mut self.broken) } else { 0 };
        match self.reason() {
            Some(reason) => return Err(SendError::Closed(reason)),
            None if taken == 0 && !message.bytes.is_empty() => return Err(SendError::Full),
            None => {}
        }
        self.taken += taken;
        self.rest.extend_from_slice(&message.bytes[taken..]);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.chunk.resize(CHUNK, 0);
        match self.stream.read(&mut self.chunk) {
            Ok(0) => self.is_ended = true,
            Ok(length) => {
                into.extend_from_slice(&self.chunk[..length]);
                return Some(Received { length, ecn: Ecn::NotCapable });
            }
            Err(error) if is_for_now(error.kind()) => {}
            Err(error) => self.broken = Some(error.kind()),
        }
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        let reason = self.reason().or(self.is_ended.then_some(CloseReason::Peer))?;
        (!core::mem::replace(&mut self.is_told, true)).then_some(Event::Closed(reason))
    }

    fn close(&mut self, _: Time, how: Close) {
        let how = if how == Close::Abort { std::net::Shutdown::Both } else { std::net::Shutdown::Write };
        // It may be closed already.
        let _ = self.stream.shutdown(how);
    }

    fn features(&self) -> &'static Features {
        &features::TCP
    }
}

/// Hands bytes to the kernel, and says how many that took.
fn put(stream: &TcpStream, bytes: &[u8], broken: &mut Option<io::ErrorKind>) -> usize {
    loop {
        match SockRef::from(stream).send_with_flags(bytes, libc::MSG_DONTWAIT | NO_SIGNAL) {
            Ok(taken) => return taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
            Err(error) => {
                *broken = Some(error.kind());
                return 0;
            }
        }
    }
}

/// Whether a read only gave up waiting.
fn is_for_now(error: io::ErrorKind) -> bool {
    matches!(error, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A broken connection is an error, not a signal.
#[cfg(target_os = "linux")]
const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
/// A broken connection is an error, not a signal: elsewhere the runtime ignores the signal.
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: libc::c_int = 0;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (StreamSocket, StreamSocket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (StreamSocket::new(near), StreamSocket::new(listener.accept().unwrap().0))
    }

    fn send(socket: &mut StreamSocket, bytes: &[u8]) -> Result<(), SendError> {
        socket.send(Time::ZERO, Message::new(bytes))
    }

    #[test]
    fn a_message_that_has_begun_goes_before_the_next() {
        let (mut near, mut far) = pair();
        let message: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let mut sent = 0;
        while send(&mut near, &message).is_ok() {
            sent += 1;
        }
        assert!(near.has_rest() && sent > 0);
        assert_eq!(send(&mut near, b"more"), Err(SendError::Full));
        let mut received = Vec::new();
        while received.len() < sent * message.len() {
            near.flush();
            far.receive(&mut received).unwrap();
        }
        assert!(!near.has_rest() && !near.flush());
        assert_eq!(near.take_taken(), received.len());
        assert!(received.chunks(message.len()).all(|chunk| chunk == message));
    }

    #[test]
    fn in_pieces_no_call_hands_over_more() {
        let (near, _far) = pair();
        let mut near = near.in_pieces(1000);
        send(&mut near, &[7; 2500]).unwrap();
        assert_eq!(near.take_taken(), 1000);
        assert!(near.flush());
        assert_eq!(near.take_taken(), 1000);
        assert_eq!(send(&mut near, &[8; 10]), Ok(()));
        assert_eq!(near.take_taken(), 510);
    }

    #[test]
    fn a_peer_that_closes_or_resets_is_an_event_and_refuses_what_is_sent() {
        let (mut near, far) = pair();
        assert_eq!(near.poll_event(), None);
        drop(far);
        assert_eq!(near.receive(&mut Vec::new()), None);
        assert!(near.is_ended() && near.broken().is_none());
        assert_eq!(near.poll_event(), Some(Event::Closed(CloseReason::Peer)));
        assert_eq!(near.poll_event(), None);
        // The peer answers data with a reset.
        let refused = loop {
            if let Err(error) = send(&mut near, &[7; 100]) {
                break error;
            }
            crate::pace::sleep(Duration::from_millis(1));
        };
        assert!(matches!(refused, SendError::Closed(CloseReason::Peer | CloseReason::Reset)), "{refused:?}");
    }
}

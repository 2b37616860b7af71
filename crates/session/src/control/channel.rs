//! One end of a control connection.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};

use serde::Serialize;
use trunkline_core::Time;
use trunkline_io::{Interest, PollSet};

use super::wire::{self, LONGEST, Lines};
use crate::line::Ended;
use crate::server::Stop;

/// So much may wait to be sent: a peer that reads nothing is let go.
const MOST_UNSENT: usize = 64 << 10;

/// Lines to and from the peer, without ever waiting but in [`wait`](Self::wait).
#[derive(Debug)]
pub(crate) struct Channel {
    stream: TcpStream,
    lines: Lines,
    unsent: Vec<u8>,
    /// Who is at the other end, for sentences.
    peer: &'static str,
    heard: Time,
}

impl Channel {
    /// Over a connection; `peer` is what the other end is called in sentences.
    pub(crate) fn new(stream: TcpStream, peer: &'static str, now: Time) -> io::Result<Channel> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Channel { stream, lines: Lines::default(), unsent: Vec::new(), peer, heard: now })
    }

    /// What to wait for.
    pub(crate) fn descriptors<'c>(&'c self, add: &mut dyn FnMut(BorrowedFd<'c>, Interest)) {
        add(self.stream.as_fd(), Interest::Read);
        if !self.unsent.is_empty() {
            add(self.stream.as_fd(), Interest::Write);
        }
    }

    /// When the last line came.
    pub(crate) fn heard(&self) -> Time {
        self.heard
    }

    /// The connection, for its addresses.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Says something; what the connection does not take now waits.
    pub(crate) fn say(&mut self, what: &impl Serialize) -> Result<(), Ended> {
        wire::write(what, &mut self.unsent);
        self.flush()
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) -> Result<(), Ended> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.broken(&error)),
            }
        }
        match self.unsent.len() {
            ..=MOST_UNSENT => Ok(()),
            _ => Err(Ended(format!("the {} does not read its replies", self.peer))),
        }
    }

    /// Takes the next line that has come, if there is a whole one, and says what it is by `read`.
    ///
    /// # Errors
    /// That the peer has gone, or says what is not of the protocol.
    pub(crate) fn hear<T>(
        &mut self,
        now: Time,
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, Ended> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => {
                    self.heard = now;
                    let peer = self.peer;
                    let strange = |error| {
                        Ended(format!(
                            "the {peer} sent a message that this version does not \
                            understand: {error}"
                        ))
                    };
                    return read(line).map(Some).map_err(strange);
                }
                Ok(None) => {}
                Err(wire::TooLong) => {
                    return Err(Ended(format!("the {} sent a line of more than {LONGEST} bytes", self.peer)));
                }
            }
            let mut bytes = [0; 4096];
            let most = self.lines.room().min(bytes.len());
            match self.stream.read(&mut bytes[..most]) {
                Ok(0) => return Err(Ended(format!("the {} has ended the session", self.peer))),
                Ok(more) => self.lines.push(&bytes[..more]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    /// Waits for the next line, until `deadline` or `stop`; `None` if it has not come.
    pub(crate) fn wait<T>(
        &mut self,
        deadline: Time,
        stop: Option<&Stop>,
        parse: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, Ended> {
        let mut set = PollSet::default();
        loop {
            let now = crate::now();
            if let Some(heard) = self.hear(now, &parse)? {
                return Ok(Some(heard));
            }
            if now >= deadline || stop.is_some_and(Stop::is_stopped) {
                return Ok(None);
            }
            self.flush()?;
            let write = (!self.unsent.is_empty()).then(|| (self.stream.as_fd(), Interest::Write));
            let stopped = stop.map(|stop| (stop.wakeup().as_fd(), Interest::Read));
            let read = [(self.stream.as_fd(), Interest::Read)];
            set.wait(read.into_iter().chain(write).chain(stopped), deadline.since(now))
                .map_err(|error| Ended(format!("the system cannot wait: {error}")))?;
        }
    }

    fn broken(&self, error: &io::Error) -> Ended {
        Ended(format!("the connection to the {} was lost: {error}", self.peer))
    }
}

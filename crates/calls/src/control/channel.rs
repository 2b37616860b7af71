//! One end of a control connection.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::{Interest, PollSet};
use trunkline_peer::wire::{Frame, Message};
use trunkline_peer::{PeerError, Received};

use super::wire::LARGEST;
use crate::line::Ended;
use crate::server::Stop;

/// So much may wait to be sent: a peer that reads nothing is let go.
const MOST_UNSENT: usize = 64 << 10;

/// Messages to and from the peer, without ever waiting but in [`wait`](Self::wait).
#[derive(Debug)]
pub(crate) struct Channel {
    frames: trunkline_peer::Channel,
    /// The other end, for sentences.
    peer: &'static str,
    heard: Time,
}

impl Channel {
    /// Over a connection; `peer` is what the other end is called in sentences.
    pub(crate) fn new(stream: TcpStream, peer: &'static str, now: Time) -> io::Result<Channel> {
        let frames = trunkline_peer::Channel::new(stream, format!("the {peer}"), LARGEST)?;
        Ok(Channel { frames, peer, heard: now })
    }

    /// The frames, for greetings and keys.
    pub(crate) fn frames(&mut self) -> &mut trunkline_peer::Channel {
        &mut self.frames
    }

    /// Descriptors to wait for.
    pub(crate) fn descriptors<'c>(&'c self, add: &mut dyn FnMut(BorrowedFd<'c>, Interest)) {
        add(self.frames.as_fd(), Interest::Read);
        if self.frames.unsent() > 0 {
            add(self.frames.as_fd(), Interest::Write);
        }
    }

    /// When the last message came.
    pub(crate) fn heard(&self) -> Time {
        self.heard
    }

    /// The connection, for its addresses.
    pub(crate) fn stream(&self) -> &TcpStream {
        self.frames.stream()
    }

    /// Says something; what the connection does not take now waits.
    pub(crate) fn say(&mut self, what: &impl Message) -> Result<(), Ended> {
        self.frames.send(what).map_err(ended)?;
        self.is_read()
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) -> Result<(), Ended> {
        self.frames.flush().map_err(ended)?;
        self.is_read()
    }

    fn is_read(&self) -> Result<(), Ended> {
        match self.frames.unsent() {
            ..=MOST_UNSENT => Ok(()),
            _ => Err(Ended(format!("the {} does not read its replies", self.peer))),
        }
    }

    /// Takes the next message that has come, if there is a whole one.
    ///
    /// # Errors
    /// That the peer has gone, or says what is not of the protocol.
    pub(crate) fn hear<M: Message>(&mut self, now: Time) -> Result<Option<M>, Ended> {
        let Some(frame) = self.frame(now).map_err(ended)? else { return Ok(None) };
        M::from_frame(frame).map(Some).map_err(|error| {
            Ended(format!("the {} sent a message that this version does not understand: {error}", self.peer))
        })
    }

    /// Takes the next frame that has come.
    fn frame(&mut self, now: Time) -> Result<Option<Frame>, PeerError> {
        match self.frames.receive()? {
            Received::Frame(frame) => {
                self.heard = now;
                Ok(Some(frame))
            }
            Received::Nothing => Ok(None),
            Received::End => Err(PeerError::CutOff {
                who: self.frames.who().to_owned(),
                reason: "it has closed the connection".to_owned(),
            }),
        }
    }

    /// Waits for the next frame, until `deadline` or `stop`; `None` if it has not come.
    pub(crate) fn wait(&mut self, deadline: Time, stop: Option<&Stop>) -> Result<Option<Frame>, PeerError> {
        self.wait_until(deadline, stop, Channel::frame)
    }

    /// Waits for what `look` finds, until `deadline` or `stop`; `None` if it has not come.
    pub(crate) fn wait_until<T>(
        &mut self,
        deadline: Time,
        stop: Option<&Stop>,
        mut look: impl FnMut(&mut Channel, Time) -> Result<Option<T>, PeerError>,
    ) -> Result<Option<T>, PeerError> {
        let mut set = PollSet::default();
        loop {
            let now = crate::now();
            if let Some(found) = look(self, now)? {
                return Ok(Some(found));
            }
            if now >= deadline || stop.is_some_and(Stop::is_stopped) {
                return Ok(None);
            }
            self.frames.flush()?;
            let write = (self.frames.unsent() > 0).then(|| (self.frames.as_fd(), Interest::Write));
            let stopped = stop.map(|stop| (stop.wakeup().as_fd(), Interest::Read));
            let read = [(self.frames.as_fd(), Interest::Read)];
            set.wait(read.into_iter().chain(write).chain(stopped), deadline.since(now))
                .map_err(|error| PeerError::System { what: "cannot wait for events", error })?;
        }
    }
}

/// The end of a session, in the words of an error.
pub(crate) fn ended(error: PeerError) -> Ended {
    Ended(error.to_string())
}

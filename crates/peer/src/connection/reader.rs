//! The reading end of a connection.

use std::sync::Arc;
use std::time::Instant;

use trunkline_core::Duration;

use super::shared::{Closer, Got, Shared};
use crate::error::PeerError;
use crate::memory::{Held, Share};
use crate::wire::{Deframer, Frame, MAX_FRAME, Message, WireError, tag};

/// The reading end of a connection. Somebody has to read all the time: it is here that the other end is known to live.
#[derive(Debug)]
pub struct FrameReader {
    pub(super) shared: Arc<Shared>,
    deframer: Deframer,
}

impl FrameReader {
    pub(super) fn new(shared: Arc<Shared>, limit: usize) -> FrameReader {
        FrameReader { shared, deframer: Deframer::new(limit) }
    }

    /// The next thing that is said, or `None` when the other end has said that this was all. Waits for as long as the
    /// other end shows that it lives.
    ///
    /// # Errors
    /// If the connection is cut or closed, or something else than such a message comes. It cannot be used any more then.
    pub fn receive<M: Message>(&mut self) -> Result<Option<M>, PeerError> {
        let frame = self.frame(None)?;
        frame.map(|frame| self.understand(frame)).transpose()
    }

    /// As [`receive`](FrameReader::receive), with the memory that it takes of the other end's share
    /// ([`trust_within`](FrameReader::trust_within)); what it holds is not larger than its frame was.
    ///
    /// # Errors
    /// As there, and [`PeerError::Memory`] if the share has no room for it, after which the connection can be used on.
    pub fn receive_held<M: Message>(&mut self) -> Result<Option<(M, Option<Held>)>, PeerError> {
        let Some(frame) = self.frame(None)? else { return Ok(None) };
        let held_by_frame = self.deframer.take_held();
        let own = match (&held_by_frame, self.deframer.share()) {
            (Some(held), Some(share)) => {
                let length = frame.body.len() as u64;
                let taken = share.take(held.bytes()).map_err(|why| WireError::Memory { length, why });
                Some(taken.map_err(|error| self.no_memory(&error))?)
            }
            _ => None,
        };
        self.understand(frame).map(|said| Some((said, own)))
    }

    /// The next thing that is said within so long.
    ///
    /// # Errors
    /// [`PeerError::TimedOut`] if nothing is, after which the connection can be used on; otherwise as
    /// [`receive`](FrameReader::receive).
    pub fn receive_within<M: Message>(
        &mut self,
        patience: Duration,
        step: &'static str,
    ) -> Result<Option<M>, PeerError> {
        let frame = self.frame_within(patience, step)?;
        frame.map(|frame| self.understand(frame)).transpose()
    }

    /// Accepts large frames from now on: the other end is known.
    pub fn trust(&mut self) {
        self.deframer.set_limit(MAX_FRAME);
    }

    /// The same, and what is said takes its memory from this share.
    pub fn trust_within(&mut self, share: Share) {
        self.deframer.set_share(share);
        self.trust();
    }

    /// The other end, for messages.
    pub(crate) fn who(&self) -> &str {
        &self.shared.who
    }

    /// Ends the connection from another thread.
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.shared))
    }

    pub(super) fn frame_within(
        &mut self,
        patience: Duration,
        step: &'static str,
    ) -> Result<Option<Frame>, PeerError> {
        match self.frame(Instant::now().checked_add(patience.to_std())) {
            Err(PeerError::TimedOut { who, .. }) => Err(PeerError::TimedOut { who, patience, step }),
            other => other,
        }
    }

    /// The next frame that is more than a sign of life.
    pub(crate) fn frame(&mut self, deadline: Option<Instant>) -> Result<Option<Frame>, PeerError> {
        loop {
            let read = match self.shared.read(self.deframer.space(), deadline)? {
                Got::Bytes(read) => read,
                Got::Nothing => return Err(self.timed_out()),
                Got::End if self.deframer.is_between_frames() => return Ok(None),
                Got::End => {
                    let who = self.shared.who.clone();
                    let reason = "it ended in the middle of a message".to_owned();
                    return Err(self.shared.fail(PeerError::CutOff { who, reason }));
                }
            };
            match self.deframer.advance(read) {
                Ok(Some(frame)) if frame.tag != tag::PING => return Ok(Some(frame)),
                Ok(_) => {}
                Err(error @ WireError::Memory { .. }) => return Err(self.no_memory(&error)),
                Err(error) => return Err(self.not_understood(&error)),
            }
            // However often somebody says that they live, or a bit of an answer, it is none.
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(self.timed_out());
            }
        }
    }

    /// Its patience and step are those of whoever waits.
    fn timed_out(&self) -> PeerError {
        let who = self.shared.who.clone();
        PeerError::TimedOut { who, patience: Duration::ZERO, step: "sending its message" }
    }

    /// The connection can be used on.
    fn no_memory(&self, error: &WireError) -> PeerError {
        PeerError::Memory { who: self.shared.who.clone(), reason: error.to_string() }
    }

    fn understand<M: Message>(&self, frame: Frame) -> Result<M, PeerError> {
        M::from_frame(frame).map_err(|error| self.not_understood(&error))
    }

    fn not_understood(&self, error: &WireError) -> PeerError {
        self.shared.fail(PeerError::not_understood(&self.shared.who, error))
    }

    /// Cuts the connection if the other end has broken the protocol.
    pub(super) fn or_cut<T>(&self, read: Result<T, PeerError>) -> Result<T, PeerError> {
        read.map_err(|error| match error {
            PeerError::Protocol { .. } => self.shared.fail(error),
            error => error,
        })
    }
}

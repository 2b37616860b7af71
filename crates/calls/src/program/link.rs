//! What a session of a program runs over: a session of ours, or a conversation with another program.

use trunkline_audio::pipeline::{NativePacker, NativeUnpacker, Packer, Stream, StreamError, Unpacker};
use trunkline_core::Time;
use trunkline_metrics::clocks::Offset;

use super::words::Word;
use super::worker::Aim;
use crate::foreign::Foreign;
use crate::line::{Ended, Line};
use crate::session::Session;

/// A line, and what both ends tell each other beside it, if they do.
pub(super) trait Link: Send {
    /// What carries packets.
    fn line(&self) -> &dyn Line;

    /// The same.
    fn line_mut(&mut self) -> &mut dyn Line;

    /// See [`Session::offset`].
    fn offset(&self, _: Time) -> Option<Offset> {
        None
    }

    /// Whether the other end will tell what it has got.
    fn is_answered(&self) -> bool {
        false
    }

    /// Tells the other end something.
    ///
    /// # Errors
    /// That the session is over.
    fn tell(&mut self, _: &Word) -> Result<(), Ended> {
        Ok(())
    }

    /// What the other end has told.
    fn told(&mut self) -> Option<serde_json::Value> {
        None
    }
}

impl Link for Session {
    fn line(&self) -> &dyn Line {
        self
    }

    fn line_mut(&mut self) -> &mut dyn Line {
        self
    }

    fn offset(&self, time: Time) -> Option<Offset> {
        Session::offset(self, time)
    }

    fn is_answered(&self) -> bool {
        true
    }

    fn tell(&mut self, word: &Word) -> Result<(), Ended> {
        Session::tell(self, word)
    }

    fn told(&mut self) -> Option<serde_json::Value> {
        Session::told(self)
    }
}

impl Link for Foreign {
    fn line(&self) -> &dyn Line {
        &*self.line
    }

    fn line_mut(&mut self) -> &mut dyn Line {
        &mut *self.line
    }
}

/// What makes packets of what is sent, and blocks of what is received; each only where there is such.
pub(super) struct Ways {
    pub(super) packer: Option<Box<dyn Packer>>,
    pub(super) unpacker: Option<Box<dyn Unpacker>>,
}

impl Ways {
    /// Our own packets.
    ///
    /// # Errors
    /// The stream is out of bounds.
    pub(super) fn native(stream: &Stream, aim: Aim) -> Result<Ways, StreamError> {
        let (sends, receives) = (aim != Aim::Play, aim != Aim::Send);
        let packer = sends.then(|| NativePacker::new(stream)).transpose()?;
        let unpacker = receives.then(|| NativeUnpacker::new(stream)).transpose()?;
        Ok(Ways {
            packer: packer.map(|packer| Box::new(packer) as _),
            unpacker: unpacker.map(|unpacker| Box::new(unpacker) as _),
        })
    }
}

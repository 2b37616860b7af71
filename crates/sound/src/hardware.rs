//! Whatever drives the sound: a server, a card, or a clock.

use crate::cycle::Cycle;
use crate::error::SoundError;
use crate::wanted::Format;

/// Hardware that is there, or what stands for it.
pub(crate) trait Hardware {
    /// Its format: channels as wanted, the rest as it has them.
    fn format(&self) -> Format;

    /// Begins.
    fn start(self: Box<Self>, cycle: Cycle) -> Result<Box<dyn Running>, SoundError>;
}

/// Hardware that calls a [`Cycle`] until it is dropped.
pub(crate) trait Running {
    /// Asked several times a second: whether it still runs, or why not.
    fn check(&mut self) -> Result<(), String>;
}

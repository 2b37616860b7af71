//! Why a program does not begin, or ends before its time.

use std::io;

use trunkline_audio::pipeline::StreamError;
use trunkline_sound::SoundError;

use crate::error::SessionError;
use crate::foreign::ForeignError;

/// Why a program does not begin, or ends before its time. Each text is a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The device cannot be had.
    #[error(transparent)]
    Sound(#[from] SoundError),
    /// The stream cannot be made.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The other end is not there, or refuses; or a server cannot listen.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Another program is not there, or does not understand.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The other end has gone.
    #[error("{0}; `--reconnect` keeps trying")]
    Gone(String),
    /// A file can no longer be read or written.
    #[error("{0}")]
    Device(String),
    /// A limit of recordings is reached.
    #[error("{0}")]
    Limit(String),
    /// The only session has failed, or a recording that had to be whole is not.
    #[error("{0}")]
    NotWhole(String),
    /// A descriptor or a thread.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A thread has panicked: a mistake in this program.
    #[error("the network thread failed; please report this bug")]
    Panicked,
}

impl ProgramError {
    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> ProgramError {
        move |error| ProgramError::System { what, error }
    }

    /// Whether it is the user's to change.
    pub fn is_bad_input(&self) -> bool {
        match self {
            ProgramError::Stream(_)
            | ProgramError::Sound(
                SoundError::Wanted(_) | SoundError::Refused(_) | SoundError::Input { .. },
            ) => true,
            ProgramError::Foreign(error) => matches!(
                error,
                ForeignError::Name { .. }
                    | ForeignError::Stream(_)
                    | ForeignError::NoFormat
                    | ForeignError::Compressed
                    | ForeignError::JackTrip(_)
            ),
            ProgramError::Session(error) => {
                matches!(error, SessionError::Name { .. } | SessionError::Transport { .. })
            }
            _ => false,
        }
    }
}

//! Why a device cannot be had.

use std::path::PathBuf;

use trunkline_io::jack::JackError;

/// Why a device cannot be had. Each text is a whole sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SoundError {
    /// What is asked makes no sense, whatever the machine.
    #[error("{0}")]
    Wanted(String),
    /// JACK is not there, or refuses.
    #[error(transparent)]
    Jack(#[from] JackError),
    /// No JACK port has a name that was asked for.
    #[error("no JACK port matches `{pattern}`; there are {there}")]
    Ports {
        /// What was asked for.
        pattern: String,
        /// The ports that there are.
        there: String,
    },
    /// ALSA is not there, or refuses.
    #[error("{0}")]
    Alsa(String),
    /// What is to be heard from a file cannot be: it is not there, no audio, or damaged.
    #[error("`{}` {why}", path.display())]
    Input {
        /// Which file.
        path: PathBuf,
        /// A clause that reads on after its name.
        why: String,
    },
    /// A file cannot be written.
    #[error("`{}` {why}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// A clause that reads on after its name.
        why: String,
    },
    /// Who makes the callbacks refuses the device.
    #[error("{0}")]
    Refused(String),
    /// A thread cannot be started.
    #[error("cannot start the audio thread: {0}")]
    Thread(String),
}

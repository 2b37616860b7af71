//! Hear it: what a listener of a flow would have heard, as a WAV file.
//!
//! The file begins with the run and follows the listener's clock, so that files of the same experiment can be compared
//! moment by moment. Its sound is made from the payloads that arrived, after the run, by the same rules and the same
//! records as the run's figures: what the report calls lost, refused or late is concealed there, and nothing else is. A
//! flow with a `playout` is played as its deadlines say, one with a `playback` through its D/A FIFO, and one with neither
//! as late as its slowest message, so that it misses what was lost only.

mod again;
mod ears;
mod payloads;
mod request;
#[cfg(test)]
mod tests;
mod track;

use std::path::PathBuf;

use trunkline_core::Ratio;

pub use again::{Arrivals, ChannelSound, channel_sound};
pub(crate) use ears::Ears;
pub use request::{Hear, Sound};

/// A file that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// What was asked for: `flow.voice.1`.
    pub key: String,
    /// The point and the repetition, from 0.
    pub of: (u32, u32),
    /// Where it is.
    pub path: PathBuf,
    /// How many samples it has of each channel, and how many of them a second.
    pub frames: u64,
    /// Samples per second.
    pub sample_rate: u32,
    /// How much of the audio that was due is made up, over its channels.
    pub concealed: Ratio,
}

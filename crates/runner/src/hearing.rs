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
mod replay;
mod request;
#[cfg(test)]
mod tests;
mod track;

use std::path::PathBuf;

use trunkline_core::{Ratio, Time};
use trunkline_traffic::AudioFormat;

pub use again::{ChannelSound, Listener, channel_sound, has_sound, playout_of};
pub(crate) use ears::Ears;
pub use request::{Hear, Sound};

/// A file that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The request: `flow.voice.1`.
    pub key: String,
    /// The point and the repetition, from 0.
    pub of: (u32, u32),
    /// Its path.
    pub path: PathBuf,
    /// Number of samples of each channel.
    pub frames: u64,
    /// Samples per second.
    pub sample_rate: u32,
    /// Share of the due audio that is made up, over its channels.
    pub concealed: Ratio,
}

/// The sample that is played at this time.
fn frame(format: AudioFormat, at: Time) -> usize {
    let rate = u128::from(format.sample_rate);
    let frame = (u128::from(at.as_nanos()) * rate + 500_000_000) / 1_000_000_000;
    usize::try_from(frame).unwrap_or(usize::MAX)
}

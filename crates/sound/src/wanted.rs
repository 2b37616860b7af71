//! What is asked of a device, and what it turned out to be.

use trunkline_audio::format::Encoding;

use crate::error::SoundError;
use crate::place::Place;

/// What is asked of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Where sound comes from, and how many channels of it. A file has its own number, whatever is asked.
    pub capture: Option<(Place, u16)>,
    /// Where sound goes to, and how many channels of it.
    pub playback: Option<(Place, u16)>,
    /// Frames per second. JACK and files that are read have their own, which [`Format`] then says; the default of what has
    /// none is 48,000.
    pub sample_rate: Option<u32>,
    /// Frames per callback. JACK has its own; the default of what has none is 128.
    pub block_frames: Option<u32>,
    /// Whether a file that is captured waits until [`Device::hold`](crate::Device::hold) lets it go.
    pub hold: bool,
    /// How the device calls itself, where others see it (JACK).
    pub client: String,
    /// The JACK server; the default is the one that `JACK_DEFAULT_SERVER` names, or `default`.
    pub server: Option<String>,
    /// How samples are written to a file. FLAC has integers only.
    pub encoding: Encoding,
}

impl Default for Wanted {
    /// Nothing in either direction; samples of 24 bits.
    fn default() -> Wanted {
        Wanted {
            capture: None,
            playback: None,
            sample_rate: None,
            block_frames: None,
            hold: false,
            client: "trunkline".to_owned(),
            server: None,
            encoding: Encoding::I24,
        }
    }
}

const MOST_CHANNELS: u16 = 1024;
const MOST_FRAMES: u32 = 16_384;
const MOST_RATE: u32 = 1_536_000;

impl Wanted {
    /// Whether it makes sense, whatever the machine.
    pub(crate) fn check(&self) -> Result<(), SoundError> {
        let wrong = |why: String| Err(SoundError::Wanted(why));
        if self.capture.is_none() && self.playback.is_none() {
            return wrong("a device neither captures nor plays; expected a place for one of them".to_owned());
        }
        let is_read = |place: &Place| matches!(place, Place::File(_) | Place::Loop(_));
        let capture = self.capture.iter().filter(|(place, _)| !is_read(place));
        for (_, channels) in capture.chain(&self.playback) {
            check_channels(*channels)?;
        }
        if let Some(rate) = self.sample_rate {
            check_rate(rate)?;
        }
        if let Some(frames) = self.block_frames.filter(|frames| !(1..=MOST_FRAMES).contains(frames)) {
            return wrong(format!("a block cannot have {frames} frames; expected 1 to {MOST_FRAMES}"));
        }
        self.playback.as_ref().map_or(Ok(()), |(place, _)| place.check_playback())
    }

    /// A format of the channels that are wanted, and nothing else.
    pub(crate) fn channels(&self) -> Format {
        let channels = |wanted: &Option<(Place, u16)>| wanted.as_ref().map_or(0, |(_, channels)| *channels);
        Format {
            capture_channels: channels(&self.capture),
            playback_channels: channels(&self.playback),
            ..Format::default()
        }
    }
}

/// Whether a device can have so many channels.
pub(crate) fn check_channels(channels: u16) -> Result<(), SoundError> {
    if (1..=MOST_CHANNELS).contains(&channels) {
        return Ok(());
    }
    Err(SoundError::Wanted(format!(
        "a device cannot have {channels} channels; expected 1 to {MOST_CHANNELS}"
    )))
}

/// Whether a device can have so many frames per second.
pub(crate) fn check_rate(rate: u32) -> Result<(), SoundError> {
    if (1..=MOST_RATE).contains(&rate) {
        return Ok(());
    }
    Err(SoundError::Wanted(format!(
        "a device cannot have {rate} frames per second; expected 1 to {MOST_RATE}"
    )))
}

/// What a device turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Frames per second.
    pub sample_rate: u32,
    /// Frames per callback: never more; fewer where a file ends or a card says so.
    pub block_frames: u32,
    /// Channels that are captured; 0 if none are wanted.
    pub capture_channels: u16,
    /// Channels that are played; 0 if none are wanted.
    pub playback_channels: u16,
}

//! A device, and the ends of the rings that lead to it: they come anew whenever it is opened.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use trunkline_audio::pipeline::{DeviceFormat, Player, PlayerSettings, Stream};
use trunkline_io::Wakeup;
use trunkline_sound::{Device, Format, SoundError, Wanted};

use super::exact::Recording;
use super::halves::{CaptureHalf, Captured, Halves, Mix, Overflows, PlaybackHalf};
use super::incoming::PlaybackEnd;
use super::outgoing::CaptureEnd;
use super::ring::{Room, ring};

/// A device at work for a stream.
pub(super) struct Desk {
    pub(super) device: Device,
    pub(super) stream: Stream,
    /// Whoever turns the session waits for it: something was captured, or the device is another.
    pub(super) wakeup: Arc<Wakeup>,
    pub(super) arriving: Receiver<Ends>,
    /// Those that came last.
    pub(super) ends: Option<Ends>,
    pub(super) overflows: Arc<Overflows>,
    /// True if it captures a file whose samples have more bits than those of the stream.
    pub(super) narrowed: bool,
}

/// The network's ends of both directions of a device.
pub(super) struct Ends {
    pub(super) format: Format,
    pub(super) capture: Option<CaptureEnd>,
    pub(super) playback: Option<PlaybackEnd>,
}

impl Desk {
    /// Opens what is wanted. `decide` says what the stream is when it is known what the device is; one of more channels
    /// than the device plays is mixed down with `mix`, and refused without.
    ///
    /// # Errors
    /// The device cannot be had, or does not fit.
    pub(super) fn open(
        wanted: Wanted,
        decide: impl FnOnce(Format) -> Result<Stream, String> + Send + 'static,
        (player, mix): (PlayerSettings, bool),
        wakeup: Arc<Wakeup>,
    ) -> Result<Desk, SoundError> {
        let overflows = Arc::new(Overflows::default());
        let (send, arriving) = mpsc::channel();
        let (decided, stream) = mpsc::channel();
        let (mut decide, mut known) = (Some(decide), None);
        let kit = Kit { player, mix, wakeup: Arc::clone(&wakeup), overflows: Arc::clone(&overflows) };
        let device = trunkline_sound::open(
            Wanted { hold: true, ..wanted },
            Box::new(move |format| {
                if let Some(decide) = decide.take() {
                    let stream = decide(format)?;
                    known = Some(stream);
                    // Who opens the device waits for it.
                    let _ = decided.send(stream);
                }
                let stream = known.ok_or("the stream could not be created")?;
                let (halves, made) = kit.make(&stream, format)?;
                // If nobody turns a session any more, the callbacks find their rings full.
                let _ = send.send(made);
                kit.wakeup.set();
                Ok(Box::new(halves))
            }),
        )?;
        let refused = || SoundError::Refused("the device was opened without a stream".to_owned());
        let stream = stream.try_recv().map_err(|_| refused())?;
        Ok(Desk { device, stream, wakeup, arriving, ends: None, overflows, narrowed: false })
    }

    /// Writes what arrives to a file instead of playing it.
    pub(super) fn record(&mut self, recording: Recording) {
        self.ends = self.arriving.try_iter().last().or(self.ends.take());
        if let Some(ends) = &mut self.ends {
            ends.playback = Some(PlaybackEnd::file(recording));
        }
    }

    /// Whether a file has all that was sent, and if not, why not.
    ///
    /// # Errors
    /// A sentence without its full stop.
    pub(super) fn outcome(&self) -> Result<(), String> {
        self.ends.as_ref().and_then(|ends| ends.playback.as_ref()).map_or(Ok(()), PlaybackEnd::outcome)
    }

    /// A session begins: what was captured before is nobody's, and a file goes on where it is.
    pub(super) fn begin(&mut self) {
        self.ends = self.arriving.try_iter().last().or(self.ends.take());
        if let Some(capture) = self.ends.as_mut().and_then(|ends| ends.capture.as_mut()) {
            capture.clear();
        }
        self.device.hold(false);
    }
}

/// What callbacks are made of.
struct Kit {
    player: PlayerSettings,
    mix: bool,
    wakeup: Arc<Wakeup>,
    overflows: Arc<Overflows>,
}

/// How long the network's thread may be away before audio is left out, as a share of a second.
const PATIENCE: usize = 2;

impl Kit {
    fn make(&self, stream: &Stream, format: Format) -> Result<(Halves, Ends), String> {
        let device = |channels| DeviceFormat {
            channels,
            sample_rate: format.sample_rate,
            block_frames: format.block_frames,
        };
        let mut halves = Halves { capture: None, playback: None };
        let mut ends = Ends { format, capture: None, playback: None };
        if format.capture_channels > 0 {
            let channels = usize::from(format.capture_channels);
            let frames = format.block_frames as usize;
            let stretches = (format.sample_rate as usize / PATIENCE).div_ceil(frames.max(1)).max(16);
            let longest = frames * channels;
            let (writer, reader) =
                ring::<Captured>(Room { stretches, longest, samples: stretches * longest });
            let end = CaptureEnd::new(reader, stream, device(format.capture_channels));
            ends.capture = Some(end.map_err(|error| error.to_string())?);
            halves.capture = Some(CaptureHalf {
                ring: writer,
                wakeup: Arc::clone(&self.wakeup),
                overflows: Arc::clone(&self.overflows),
                channels,
                sample_rate: format.sample_rate,
            });
        }
        if format.playback_channels > 0 {
            // What the device has too few channels for is mixed down behind the player.
            let played = if self.mix {
                stream.channels.max(format.playback_channels)
            } else {
                format.playback_channels
            };
            let player =
                Player::new(stream, device(played), self.player).map_err(|error| error.to_string())?;
            let (channels, frames) = (usize::from(stream.channels), stream.block_frames as usize);
            let blocks = (stream.sample_rate as usize / PATIENCE).div_ceil(frames.max(1)).max(16);
            let longest = frames * channels;
            // A block comes in as many parts as it has channels, at most.
            let room = Room { stretches: blocks * channels, longest, samples: blocks * longest };
            let (writer, reader) = ring(room);
            let mix = (played > format.playback_channels).then(|| Mix::new(played, format));
            let (half, told) = PlaybackHalf::new(reader, player, mix);
            halves.playback = Some(half);
            ends.playback = Some(PlaybackEnd::new(writer, told));
        }
        Ok((halves, ends))
    }
}

//! Directions without a clock of their own: they go at the pace of whatever drives them.

use crate::device::Shared;
use crate::error::SoundError;
use crate::place::Place;
use crate::signal::{Noise, Tone};
use crate::wanted::{Format, Wanted};

/// The soft directions of a device. They outlive the hardware beside them.
#[derive(Default)]
pub(crate) struct Soft {
    pub(crate) source: Option<Source>,
    pub(crate) sink: Option<Sink>,
}

/// Where sound comes from without a clock.
pub(crate) enum Source {
    Tone(Tone),
    Noise(Noise),
    Silence,
}

/// Where sound goes to without a clock.
pub(crate) enum Sink {
    Nowhere,
}

impl Source {
    /// Fills the next frames and says how many samples there are: 0 once it is at its end.
    pub(crate) fn fill(&mut self, frames: &mut [f32], _shared: &Shared) -> usize {
        match self {
            Source::Tone(tone) => tone.fill(frames),
            Source::Noise(noise) => noise.fill(frames),
            Source::Silence => frames.fill(0.0),
        }
        frames.len()
    }
}

impl Sink {
    /// Takes the next frames.
    pub(crate) fn take(&mut self, _frames: &[f32], _shared: &Shared) {
        match self {
            Sink::Nowhere => {}
        }
    }
}

impl Soft {
    /// Makes what of this is soft, for hardware of this format.
    pub(crate) fn make(wanted: &Wanted, format: &Format) -> Result<Soft, SoundError> {
        let source = match &wanted.capture {
            Some((Place::Tone { hertz }, channels)) => {
                Some(Source::Tone(Tone::new(hertz, *channels, format.sample_rate)))
            }
            Some((Place::Noise { seed }, _)) => Some(Source::Noise(Noise::new(*seed))),
            Some((Place::None, _)) => Some(Source::Silence),
            Some((place @ (Place::File(_) | Place::Loop(_)), _)) => {
                return Err(SoundError::Wanted(format!("`{place}` cannot be read yet")));
            }
            Some((Place::Jack { .. } | Place::Alsa { .. }, _)) | None => None,
        };
        let sink = match &wanted.playback {
            Some((Place::None, _)) => Some(Sink::Nowhere),
            Some((Place::Jack { .. } | Place::Alsa { .. }, _)) | None => None,
            Some((place, _)) => return Err(SoundError::Wanted(format!("`{place}` cannot be played to"))),
        };
        Ok(Soft { source, sink })
    }
}

//! Directions without a clock of their own: they go at the pace of whatever drives them.

use std::sync::Arc;

use crate::error::SoundError;
use crate::file::{FileSink, FileSource, Reader, Writer};
use crate::place::Place;
use crate::shared::Shared;
use crate::signal::{Noise, Tone};
use crate::wanted::{Format, Wanted, check_channels, check_rate};

/// The soft directions of a device. They outlive the hardware beside them: a recording goes on when a server comes back.
#[derive(Default)]
pub(crate) struct Soft {
    pub(crate) source: Option<Source>,
    pub(crate) sink: Option<Sink>,
    /// What they were made for.
    format: Format,
}

/// Where sound comes from without a clock.
pub(crate) enum Source {
    Tone(Tone),
    Noise(Noise),
    Silence,
    File(FileSource),
}

/// Where sound goes to without a clock.
pub(crate) enum Sink {
    Nowhere,
    File(FileSink),
}

impl Source {
    /// Fills the next frames and says how many samples there are: 0 once it is at its end.
    pub(crate) fn fill(&mut self, samples: &mut [f32], shared: &Shared) -> usize {
        match self {
            Source::Tone(tone) => tone.fill(samples),
            Source::Noise(noise) => noise.fill(samples),
            Source::Silence => samples.fill(0.0),
            Source::File(file) => return file.fill(samples, shared),
        }
        samples.len()
    }
}

impl Sink {
    /// Takes the next frames.
    pub(crate) fn take(&mut self, samples: &[f32], shared: &Shared) {
        match self {
            Sink::Nowhere => {}
            Sink::File(file) => file.take(samples, shared),
        }
    }
}

impl Soft {
    /// The file that sound is wanted from, if it is a file.
    pub(crate) fn input(wanted: &Wanted) -> Result<Option<Reader>, SoundError> {
        match &wanted.capture {
            Some((Place::File(path) | Place::Loop(path), _)) => {
                let reader = Reader::open(path)?;
                check_channels(reader.channels())?;
                check_rate(reader.sample_rate())?;
                Ok(Some(reader))
            }
            _ => Ok(None),
        }
    }

    /// Makes what of this is soft, for a device of this format.
    pub(crate) fn make(
        wanted: &Wanted,
        input: Option<Reader>,
        format: Format,
        shared: &Arc<Shared>,
    ) -> Result<Soft, SoundError> {
        let source = match (&wanted.capture, input) {
            (Some((place, _)), Some(reader)) => {
                let repeat = matches!(place, Place::Loop(_));
                Some(Source::File(FileSource::start(reader, repeat, Arc::clone(shared))?))
            }
            (Some((Place::Tone { hertz }, channels)), _) => {
                let half = f64::from(format.sample_rate) / 2.0;
                if let Some(high) = hertz.iter().find(|hertz| **hertz >= half) {
                    return Err(SoundError::Wanted(format!(
                        "there is no tone of {high} Hz at {} samples per second; expected less than {half} Hz, or a \
                         higher `--rate`",
                        format.sample_rate
                    )));
                }
                Some(Source::Tone(Tone::new(hertz, *channels, format.sample_rate)))
            }
            (Some((Place::Noise { seed }, _)), _) => Some(Source::Noise(Noise::new(*seed))),
            (Some((Place::None, _)), _) => Some(Source::Silence),
            _ => None,
        };
        let sink = match &wanted.playback {
            Some((Place::File(path), _)) => {
                let writer =
                    Writer::create(path, format.playback_channels, format.sample_rate, wanted.encoding)?;
                Some(Sink::File(FileSink::start(writer, &format, Arc::clone(shared))?))
            }
            Some((Place::None, _)) => Some(Sink::Nowhere),
            _ => None,
        };
        Ok(Soft { source, sink, format })
    }

    /// Whether it goes on beside hardware of this rate, or has to be made anew: a file has one rate.
    pub(crate) fn fits(&self, sample_rate: u32) -> Result<bool, SoundError> {
        let own = self.format.sample_rate;
        let is_file =
            matches!(self.source, Some(Source::File(_))) || matches!(self.sink, Some(Sink::File(_)));
        if is_file && own != sample_rate { Err(other_rate(own, sample_rate)) } else { Ok(own == sample_rate) }
    }

    /// What it was made for.
    pub(crate) fn format(&self) -> Format {
        self.format
    }
}

/// Nothing is resampled between the two directions of a device.
pub(crate) fn other_rate(file: u32, hardware: u32) -> SoundError {
    SoundError::Wanted(format!(
        "the file has {file} Hz and the sound card beside it {hardware} Hz; expected the same: convert the file with `sox \
         in.wav -r {hardware} out.wav`, or set the card's rate"
    ))
}

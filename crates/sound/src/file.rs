//! WAV and FLAC files, read and written as they go by.
//!
//! What is written is a valid file at any moment, of all but the last fraction of a second: a program that is killed leaves
//! its recording behind.

mod flac;
mod stream;
#[cfg(test)]
mod tests;
mod wav;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_audio::format::Encoding;

use crate::error::SoundError;

pub(crate) use stream::{FileSink, FileSource};

/// A WAV file (integers of 16, 24 or 32 bits, or 32-bit floating point; RF64 too) or a FLAC file, told apart by what is in
/// it.
pub struct Reader {
    path: PathBuf,
    decoder: Box<dyn Decoder>,
}

/// The samples of a file, one piece after the other.
trait Decoder: Send {
    fn layout(&self) -> Layout;

    /// How many frames the file announces, and how many of them it has; `None` where its format does not tell.
    fn frames(&self) -> Option<(u64, u64)> {
        None
    }

    /// True if no sample changes in this encoding.
    fn fits(&self, encoding: Encoding) -> bool;

    /// Appends the next frames; says whether there were any. An error reads on after the file's name.
    fn read(&mut self, samples: &mut Vec<f32>) -> Result<bool, String>;
}

/// Channels and frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    channels: u16,
    sample_rate: u32,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Reader, SoundError> {
        let path = path.into();
        match decoder(&path) {
            Ok(decoder) => Ok(Reader { path, decoder }),
            Err(why) => Err(SoundError::Input { path, why }),
        }
    }

    /// How many channels it has.
    pub fn channels(&self) -> u16 {
        self.decoder.layout().channels
    }

    /// Its frames per second.
    pub fn sample_rate(&self) -> u32 {
        self.decoder.layout().sample_rate
    }

    /// True if its samples can be written in this encoding without being rounded.
    pub fn fits(&self, encoding: Encoding) -> bool {
        self.decoder.fits(encoding)
    }

    /// What to tell who plays a file that is cut short, in a sentence without its full stop; `None` of one that is whole.
    pub fn cut_short(&self) -> Option<String> {
        let (announced, present) =
            self.decoder.frames().filter(|(announced, present)| present < announced)?;
        let seconds = |frames: u64| frames as f64 / f64::from(self.sample_rate());
        Some(format!(
            "`{}` is cut short: it announces {:.3} s and has {:.3} s of them",
            self.path.display(),
            seconds(announced),
            seconds(present)
        ))
    }

    /// Appends the next frames to `samples`, interleaved; says whether there were any.
    ///
    /// # Errors
    /// If they cannot be read, or are damaged.
    pub fn read(&mut self, samples: &mut Vec<f32>) -> Result<bool, SoundError> {
        self.decoder.read(samples).map_err(|why| SoundError::Input { path: self.path.clone(), why })
    }

    /// Begins again.
    ///
    /// # Errors
    /// If the file is no longer what it was.
    pub fn rewind(&mut self) -> Result<(), SoundError> {
        let fresh = Reader::open(&self.path)?;
        if fresh.decoder.layout() != self.decoder.layout() {
            let why =
                "has changed since it was opened: its number of channels or its sample rate is different"
                    .to_owned();
            return Err(SoundError::Input { path: fresh.path, why });
        }
        *self = fresh;
        Ok(())
    }
}

fn decoder(path: &Path) -> Result<Box<dyn Decoder>, String> {
    let mut file = File::open(path).map_err(|error| cannot_read(&error))?;
    let mut start = [0; 4];
    match io::Read::read_exact(&mut file, &mut start) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err("is empty".to_owned()),
        Err(error) => return Err(cannot_read(&error)),
    }
    io::Seek::rewind(&mut file).map_err(|error| cannot_read(&error))?;
    match &start {
        b"RIFF" | b"RF64" => Ok(Box::new(wav::Wav::open(file)?)),
        b"fLaC" => Ok(Box::new(flac::Flac::open(file)?)),
        _ => Err("is neither a WAV nor a FLAC file".to_owned()),
    }
}

fn cannot_read(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}

fn cannot_write(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "exists already; remove it, or choose another name".to_owned(),
        _ => format!("cannot be written: {error}"),
    }
}

/// A WAV or FLAC file that is written, told apart by its name.
pub struct Writer {
    path: PathBuf,
    encoder: Box<dyn Encoder>,
}

/// Takes the samples of a file, one piece after the other. Errors read on after the file's name.
trait Encoder: Send {
    fn write(&mut self, samples: &[f32]) -> Result<(), String>;

    /// Completes the file.
    fn finish(&mut self) -> Result<(), String>;
}

impl Writer {
    /// Creates a file. One that is there is left alone unless it is empty: it may be an earlier recording, or the one that is being
    /// played.
    ///
    /// # Errors
    /// If there is one with content or it cannot be created, or if its format has no such audio.
    pub fn create(
        path: impl Into<PathBuf>,
        channels: u16,
        sample_rate: u32,
        encoding: Encoding,
    ) -> Result<Writer, SoundError> {
        let path = path.into();
        match encoder(&path, Layout { channels, sample_rate }, encoding) {
            Ok(encoder) => Ok(Writer { path, encoder }),
            Err(why) => Err(SoundError::File { path, why }),
        }
    }

    /// Appends whole frames, interleaved.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), SoundError> {
        self.encoder.write(samples).map_err(|why| SoundError::File { path: self.path.clone(), why })
    }

    /// Completes the file. One that is dropped without this is valid too, and lacks a fraction of a second.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn finish(mut self) -> Result<(), SoundError> {
        self.encoder.finish().map_err(|why| SoundError::File { path: self.path, why })
    }
}

fn has_content(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0)
}

fn encoder(path: &Path, layout: Layout, encoding: Encoding) -> Result<Box<dyn Encoder>, String> {
    let is_flac = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("flac"));
    let create = || {
        let created = match File::create_new(path) {
            // A device, a pipe, or a name that was reserved.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !has_content(path) => {
                File::options().write(true).open(path)
            }
            created => created,
        };
        created.map_err(|error| cannot_write(&error))
    };
    Ok(if is_flac {
        Box::new(flac::FlacWriter::create(create, layout, encoding)?)
    } else {
        Box::new(wav::WavWriter::create(create()?, layout, encoding)?)
    })
}

//! Files beside the audio thread: a ring, and at its other end a thread that may wait for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rtrb::{Consumer, Producer, RingBuffer};

use super::{Reader, Writer};
use crate::error::SoundError;
use crate::shared::Shared;
use crate::wanted::Format;

/// What a ring holds, in seconds: the disk may be busy for that long.
const SECONDS: usize = 2;
/// How often the threads look after their rings.
const PAUSE: Duration = Duration::from_millis(10);

/// What a ring holds at most, in samples: 64 MiB.
const MOST_SAMPLES: usize = 1 << 24;

/// Samples of a ring: always whole frames, so that what is in it always is.
fn capacity(sample_rate: u32, channels: u16, block_frames: u32) -> usize {
    let channels = usize::from(channels);
    let frames = (SECONDS * sample_rate as usize).min(MOST_SAMPLES / channels).max(2 * block_frames as usize);
    frames * channels
}

/// A file that is read ahead of the audio thread.
pub(crate) struct FileSource {
    ring: Consumer<f32>,
    /// Set when nothing more comes into the ring.
    is_read: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileSource {
    /// Starts to read; returns when the first samples are there.
    pub(crate) fn start(reader: Reader, repeat: bool, shared: Arc<Shared>) -> Result<FileSource, SoundError> {
        let capacity = capacity(reader.sample_rate(), reader.channels(), 0);
        let (producer, ring) = RingBuffer::new(capacity);
        let (is_read, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let task = ReadAhead { reader, repeat, ring: producer, stop: Arc::clone(&stop) };
        let done = Done { is_read: Arc::clone(&is_read), shared };
        let thread = std::thread::Builder::new()
            .name("sound-reader".to_owned())
            .spawn(move || {
                if let Err(error) = task.run() {
                    done.shared.fail(error.to_string());
                }
            })
            .map_err(|error| SoundError::Thread(error.to_string()))?;
        let source = FileSource { ring, is_read, stop, thread: Some(thread) };
        while source.ring.slots() < capacity / 2 && !source.is_read.load(Ordering::Acquire) {
            std::thread::sleep(PAUSE / 10);
        }
        Ok(source)
    }

    /// Fills the next frames; says how many samples there are, and 0 at the end and while it is held. Where the disk is too
    /// slow, there is silence.
    pub(crate) fn fill(&mut self, samples: &mut [f32], shared: &Shared) -> usize {
        if shared.is_held() {
            return 0;
        }
        // In this order: what came before the end is seen.
        let is_read = self.is_read.load(Ordering::Acquire);
        let count = self.ring.slots().min(samples.len());
        let Ok(chunk) = self.ring.read_chunk(count) else { return 0 };
        let (first, second) = chunk.as_slices();
        samples[..first.len()].copy_from_slice(first);
        samples[first.len()..count].copy_from_slice(second);
        chunk.commit_all();
        if is_read {
            if count == 0 {
                shared.finish();
            }
            return count;
        }
        if count < samples.len() {
            samples[count..].fill(0.0);
            shared.lose(1);
        }
        samples.len()
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it has panicked, that was its last word.
            let _ = thread.join();
        }
    }
}

/// Says that there is no more, however a thread ends.
struct Done {
    is_read: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Drop for Done {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail("the file is so damaged that reading it has failed".to_owned());
        }
        self.is_read.store(true, Ordering::Release);
    }
}

struct ReadAhead {
    reader: Reader,
    repeat: bool,
    ring: Producer<f32>,
    stop: Arc<AtomicBool>,
}

impl ReadAhead {
    fn run(mut self) -> Result<(), SoundError> {
        let mut samples = Vec::new();
        let mut is_fresh = true;
        loop {
            samples.clear();
            if self.reader.read(&mut samples)? {
                is_fresh = false;
            } else if self.repeat && !is_fresh {
                self.reader.rewind()?;
                is_fresh = true;
            } else {
                return Ok(());
            }
            let mut rest = samples.as_slice();
            while !rest.is_empty() {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let (_, left) = self.ring.push_partial_slice(rest);
                rest = left;
                if !rest.is_empty() {
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}

/// A file that is written behind the audio thread.
pub(crate) struct FileSink {
    ring: Option<Producer<f32>>,
    /// Samples that did not fit and are silence in the file, so that what follows stays at its time.
    owed: usize,
    thread: Option<JoinHandle<()>>,
}

impl FileSink {
    pub(crate) fn start(
        writer: Writer,
        format: &Format,
        shared: Arc<Shared>,
    ) -> Result<FileSink, SoundError> {
        let capacity = capacity(format.sample_rate, format.playback_channels, format.block_frames);
        let (ring, consumer) = RingBuffer::new(capacity);
        let thread = std::thread::Builder::new()
            .name("sound-writer".to_owned())
            .spawn(move || {
                if let Err(error) = write_behind(writer, consumer) {
                    shared.fail(error.to_string());
                }
            })
            .map_err(|error| SoundError::Thread(error.to_string()))?;
        Ok(FileSink { ring: Some(ring), owed: 0, thread: Some(thread) })
    }

    /// Takes the next frames.
    pub(crate) fn take(&mut self, samples: &[f32], shared: &Shared) {
        let Some(ring) = &mut self.ring else { return };
        let paid = self.owed.min(ring.slots());
        if let Ok(chunk) = ring.write_chunk(paid) {
            // A chunk is zeros until it is written.
            chunk.commit_all();
            self.owed -= paid;
        }
        if self.owed > 0 || ring.push_entire_slice(samples).is_err() {
            self.owed += samples.len();
            shared.lose(1);
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        self.ring = None;
        if let Some(thread) = self.thread.take() {
            // If it has panicked, that was its last word.
            let _ = thread.join();
        }
    }
}

fn write_behind(mut writer: Writer, mut ring: Consumer<f32>) -> Result<(), SoundError> {
    loop {
        // In this order: what came before the end is written.
        let is_over = ring.is_abandoned();
        let Ok(chunk) = ring.read_chunk(ring.slots()) else { continue };
        let (first, second) = chunk.as_slices();
        writer.write(first)?;
        writer.write(second)?;
        let count = first.len() + second.len();
        chunk.commit_all();
        if is_over && count == 0 {
            return writer.finish();
        }
        if count == 0 {
            std::thread::sleep(PAUSE);
        }
    }
}

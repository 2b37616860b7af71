//! Limits of what strangers have recorded here: a sender of silence would fill the disk.

use std::cell::{Cell, RefCell};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_core::{Bytes, Duration, Time};
use trunkline_io::machine::disk_free;
use trunkline_sound::{Place, SoundError};

use super::Event;

/// Limits of recordings. They hold for one call of a program, over all its senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimits {
    /// The longest recording.
    pub length: Duration,
    /// Bytes of all recordings.
    pub bytes: Bytes,
    /// The number of recordings.
    pub files: u64,
    /// Bytes that are left free on the disk.
    pub free: Bytes,
}

impl Default for RecordingLimits {
    /// 12 hours, 16 GiB, 1,000 recordings, 256 MiB left free.
    fn default() -> RecordingLimits {
        RecordingLimits {
            length: Duration::from_secs(12 * 3600),
            bytes: Bytes(16 << 30),
            files: 1000,
            free: Bytes(256 << 20),
        }
    }
}

/// The recordings of a program.
#[derive(Debug)]
pub(super) struct Recordings {
    limits: RecordingLimits,
    files: AtomicU64,
    bytes: AtomicU64,
    /// The number of the latest one, in its name.
    number: AtomicU64,
}

/// A recording that is being made.
pub(super) struct Recorded<'r> {
    recordings: &'r Recordings,
    path: PathBuf,
    began: Time,
    look: Cell<Time>,
    /// Bytes that are counted already.
    counted: Cell<u64>,
    over: RefCell<Option<String>>,
}

/// How often the file and its disk are looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Recordings {
    pub(super) fn new(limits: RecordingLimits) -> Recordings {
        Recordings { limits, files: AtomicU64::new(0), bytes: AtomicU64::new(0), number: AtomicU64::new(0) }
    }

    /// Creates the file of the next recording: `to`, then `to` with numbers. One that exists is never replaced: anybody who
    /// connects begins a recording. All sessions share a place that is not a file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn next(&self, to: &Place, tell: &mut dyn FnMut(Event<'_>)) -> Result<Place, SoundError> {
        let Place::File(path) = to else { return Ok(to.clone()) };
        let mut is_another = false;
        loop {
            let path = numbered(path, self.number.fetch_add(1, Ordering::Relaxed) + 1);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => {
                    if is_another {
                        let path = path.display();
                        tell(Event::Advice(&format!("earlier recordings are kept; this one is `{path}`")));
                    }
                    return Ok(Place::File(path));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => is_another = true,
                Err(error) => {
                    return Err(SoundError::File { path, why: format!("cannot be written: {error}") });
                }
            }
        }
    }

    /// Whether there may be another recording at `place`, which may be no file.
    ///
    /// # Errors
    /// Why not, in a sentence for the sender.
    pub(super) fn check(&self, place: &Place) -> Result<(), String> {
        let Place::File(path) = place else { return Ok(()) };
        let files = self.limits.files;
        if self.files.load(Ordering::Relaxed) >= files {
            return Err(format!(
                "it has reached its limit of {files} recordings, set by `--max-files` of `receive`"
            ));
        }
        self.over(path).map_or(Ok(()), Err)
    }

    /// Counts a recording in; `None` if the place is no file.
    pub(super) fn begin(&self, place: &Place) -> Option<Recorded<'_>> {
        let Place::File(path) = place else { return None };
        self.files.fetch_add(1, Ordering::Relaxed);
        let now = crate::now();
        Some(Recorded {
            recordings: self,
            path: path.clone(),
            began: now,
            look: Cell::new(now),
            counted: Cell::new(0),
            over: RefCell::default(),
        })
    }

    /// The limit of bytes or of the disk that is reached.
    fn over(&self, path: &Path) -> Option<String> {
        let RecordingLimits { bytes, free, .. } = self.limits;
        if self.bytes.load(Ordering::Relaxed) >= bytes.count() {
            return Some(format!(
                "its recordings have reached their limit of {bytes}, set by `--max-size` of `receive`"
            ));
        }
        let left = free_of(path)?;
        (left < free).then(|| {
            format!(
                "less than {free} are free on the disk of the recording; `--min-free` of `receive` sets this \
                limit"
            )
        })
    }
}

impl Recorded<'_> {
    /// Whether a limit is reached. Looks at the file from time to time.
    pub(super) fn is_over(&self) -> bool {
        let now = crate::now();
        if self.over.borrow().is_none() && now >= self.look.get() {
            let length = self.recordings.limits.length;
            self.look.set((now + LOOK).min((self.began + length).max(now)));
            self.count();
            let over = match now.since(self.began) >= length {
                true => Some(format!(
                    "the recording has reached its limit of {length}, set by `--max-length` of `receive`"
                )),
                false => self.recordings.over(&self.path),
            };
            *self.over.borrow_mut() = over;
        }
        self.over.borrow().is_some()
    }

    /// The limit that has ended it.
    pub(super) fn why(&self) -> Option<String> {
        self.over.borrow().clone()
    }

    fn count(&self) {
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        let more = length.saturating_sub(self.counted.get());
        self.counted.set(self.counted.get() + more);
        self.recordings.bytes.fetch_add(more, Ordering::Relaxed);
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

/// Free space on the disk of a file that need not exist; `None` if the system does not say.
fn free_of(path: &Path) -> Option<Bytes> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    disk_free(folder).ok()
}

/// The file of the recording with this number, from 1.
fn numbered(path: &Path, number: u64) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recordings(change: impl FnOnce(&mut RecordingLimits)) -> Recordings {
        let mut limits = RecordingLimits { free: Bytes::ZERO, ..RecordingLimits::default() };
        change(&mut limits);
        Recordings::new(limits)
    }

    #[test]
    fn every_limit_ends_a_recording_or_refuses_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("take.wav"));
        fs::write(folder.path().join("take.wav"), [0; 100]).unwrap();

        let one = recordings(|limits| limits.files = 1);
        one.check(&place).unwrap();
        let recorded = one.begin(&place).unwrap();
        assert!(!recorded.is_over());
        drop(recorded);
        assert!(one.check(&place).unwrap_err().contains("`--max-files`"));
        assert!(one.check(&Place::None).is_ok(), "nothing is recorded");

        let small = recordings(|limits| limits.bytes = Bytes(150));
        let first = small.begin(&place).unwrap();
        assert!(!first.is_over());
        drop(first);
        small.check(&place).unwrap();
        let second = small.begin(&place).unwrap();
        assert!(second.is_over() && second.why().unwrap().contains("`--max-size`"), "both together");
        assert!(small.check(&place).unwrap_err().contains("`--max-size`"));

        let short = recordings(|limits| limits.length = Duration::ZERO);
        let recorded = short.begin(&place).unwrap();
        assert!(recorded.is_over() && recorded.why().unwrap().contains("`--max-length`"));

        let full = recordings(|limits| limits.free = Bytes(u64::MAX));
        assert!(full.check(&place).unwrap_err().contains("`--min-free`"));
        assert!(full.begin(&place).unwrap().is_over());
    }

    #[test]
    fn every_session_has_a_recording_of_its_own() {
        assert_eq!(numbered(Path::new("a.b/take.wav"), 1), Path::new("a.b/take.wav"));
        assert_eq!(numbered(Path::new("a.b/take.one.wav"), 2), Path::new("a.b/take.one-2.wav"));
    }
}

//! Files that an experiment names: read once each, whatever number of points uses them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::problem::Remark;
use crate::quantity;
use crate::tree::{self, Table};
use trunkline_core::delivery_trace::{DeliveryTrace, DeliveryTraceError};
use trunkline_core::schema::Kind;
use trunkline_core::series::Step;

/// Reads the files that an experiment file names. A crate that may touch the file system implements it.
pub trait Files {
    /// The bytes of the file at `path`, which is relative to the experiment file.
    ///
    /// # Errors
    /// If it cannot be read, with the reason.
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError>;
}

/// Why a file cannot be read; the text continues "`speech.wav` ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilesError(String);

impl FilesError {
    /// A reason that continues the sentence "`speech.wav` ...": "does not exist".
    pub fn new(reason: impl Into<String>) -> FilesError {
        FilesError(reason.into())
    }
}

/// No files at all: every name is an error.
impl Files for () {
    fn read(&self, _: &str) -> Result<Vec<u8>, FilesError> {
        Err(FilesError::new("cannot be read here"))
    }
}

/// The files that an experiment file names: the bytes that were read, by the path that is written in it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NamedFiles(Arc<BTreeMap<String, Vec<u8>>>);

impl NamedFiles {
    /// Every path with its bytes.
    pub fn by_path(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.0
    }
}

impl From<BTreeMap<String, Vec<u8>>> for NamedFiles {
    fn from(files: BTreeMap<String, Vec<u8>>) -> NamedFiles {
        NamedFiles(Arc::new(files))
    }
}

impl Files for NamedFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        self.0.get(path).cloned().ok_or_else(|| FilesError::new("is not there"))
    }
}

impl core::fmt::Debug for NamedFiles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(path, bytes)| (path, bytes.len()))).finish()
    }
}

/// Mu-law bytes per channel of an audio file.
pub(crate) type Speech = Arc<[Vec<u8>]>;

/// Values of a trace file, in nanoseconds or bytes.
pub(crate) type Trace = Arc<[u64]>;

/// Steps of a series.
pub(crate) type Steps = Arc<[Step]>;

/// Values of a profile at most: several times those of all keys of a link.
const MOST_VALUES: u64 = 1000;

/// A profile of hosts or of links.
pub(crate) struct Profile {
    pub(crate) text: Arc<str>,
    /// Its content, or why it is not TOML.
    pub(crate) table: Result<Table, Vec<Remark>>,
    /// Its values, lists and tables.
    pub(crate) values: u64,
}

/// Reads files, each once. Errors continue the sentence "`name` ...".
pub(crate) struct Shelf<'f> {
    files: &'f dyn Files,
    read: RefCell<BTreeMap<String, Vec<u8>>>,
    shelved: Shelved,
}

/// The meaning of the files that were read.
#[derive(Clone, Default)]
pub(crate) struct Shelved {
    speech: RefCell<BTreeMap<String, Result<Speech, String>>>,
    /// By path, and whether it was read as durations.
    traces: RefCell<BTreeMap<(String, bool), Result<Trace, String>>>,
    /// By path, and the kind of their values.
    steps: RefCell<BTreeMap<(String, String), Result<Steps, String>>>,
    delivery_traces: RefCell<BTreeMap<String, Result<Arc<DeliveryTrace>, String>>>,
    profiles: RefCell<BTreeMap<String, Result<Arc<Profile>, String>>>,
}

impl<'f> Shelf<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Shelf<'f> {
        Shelf::of(files, Shelved::default())
    }

    /// With files whose meaning is known.
    pub(crate) fn of(files: &'f dyn Files, shelved: Shelved) -> Shelf<'f> {
        Shelf { files, read: RefCell::default(), shelved }
    }

    /// The meaning of what was read so far.
    pub(crate) fn shelved(&self) -> Shelved {
        self.shelved.clone()
    }

    /// The meaning of what was read.
    pub(crate) fn into_shelved(self) -> Shelved {
        self.shelved
    }

    /// Everything that was read.
    pub(crate) fn into_named(self) -> NamedFiles {
        self.read.into_inner().into()
    }

    /// A file's bytes, the same for every caller.
    fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        if let Some(bytes) = self.read.borrow().get(path) {
            return Ok(bytes.clone());
        }
        let bytes = self.files.read(path).map_err(|e| e.to_string())?;
        self.read.borrow_mut().insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// The channels of a WAV file.
    pub(crate) fn speech(&self, path: &str) -> Result<Speech, String> {
        let read = || {
            let bytes = self.bytes(path)?;
            crate::speech::channels(&bytes)
        };
        self.shelved.speech.borrow_mut().entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// The values of a trace, one per line, in nanoseconds or bytes as the parameter's kind wants.
    pub(crate) fn trace(&self, path: &str, kind: &Kind) -> Result<Trace, String> {
        let key = (path.to_owned(), matches!(kind, Kind::Durations { .. }));
        let read = || {
            let bytes = self.bytes(path)?;
            trace_of(&bytes, kind).map(Arc::from)
        };
        self.shelved.traces.borrow_mut().entry(key).or_insert_with(read).clone()
    }

    /// The steps of a series: rates, or durations.
    pub(crate) fn steps(&self, path: &str, kind: &Kind) -> Result<Steps, String> {
        // Two readers may allow different values.
        let key = (path.to_owned(), format!("{kind:?}"));
        let read = || quantity::steps_of_lines(&text_of(self.bytes(path)?)?, kind).map(Arc::from);
        self.shelved.steps.borrow_mut().entry(key).or_insert_with(read).clone()
    }

    /// A packet-delivery trace.
    pub(crate) fn delivery_trace(&self, path: &str) -> Result<Arc<DeliveryTrace>, String> {
        let read = || {
            let text = text_of(self.bytes(path)?)?;
            text.parse().map(Arc::new).map_err(|e: DeliveryTraceError| e.to_string())
        };
        self.shelved.delivery_traces.borrow_mut().entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// A profile of hosts or of links.
    pub(crate) fn profile(&self, path: &str) -> Result<Arc<Profile>, String> {
        let read = || {
            let text = text_of(self.bytes(path)?)?;
            let root = tree::parse(&text);
            let values = root.as_ref().map_or(0, tree::Node::values);
            if values > MOST_VALUES {
                return Err(format!("has {values} values; a profile has at most {MOST_VALUES}"));
            }
            let table = root.map(|root| root.table().cloned().unwrap_or_default());
            Ok(Arc::new(Profile { text: text.into(), table, values }))
        };
        self.shelved.profiles.borrow_mut().entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// The text of a profile that was read.
    pub(crate) fn profile_text(&self, path: &str) -> Arc<str> {
        self.profile(path).map_or_else(|_| "".into(), |profile| profile.text.clone())
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "is not text".to_owned())
}

/// One value per line; empty lines and what follows a `#` do not count. A bare number means microseconds or bytes.
fn trace_of(bytes: &[u8], kind: &Kind) -> Result<Vec<u64>, String> {
    let text = core::str::from_utf8(bytes).map_err(|_| "is not text".to_owned())?;
    let unit = if matches!(kind, Kind::Durations { .. }) { "us" } else { "B" };
    let mut values = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let bare = line.parse::<f64>().is_ok();
        let written = if bare { format!("{line} {unit}") } else { line.to_owned() };
        let value = quantity::fixed(&written, kind)
            .map_err(|e| format!("has an error in line {}: {e}", index + 1))?;
        values.push(value);
    }
    if values.is_empty() {
        return Err("holds no values; one per line is expected".to_owned());
    }
    Ok(values)
}

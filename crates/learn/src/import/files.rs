//! Learning from files: each is opened, recognised by its content and read, and the description is written.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use trunkline_core::Time;
use trunkline_metrics::{Fate, Record};

use super::capture::{self, Source};
use super::{Clocks, Format, ImportError, Learned, MAX_PACKETS, delivery, describe, iboxnet, recognise};
use crate::{Observations, ObservedFlow, Packet, Way};

/// Why nothing was learned from files, or why it was not written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file that cannot be read or learned from.
    #[error("`{}` {why}", .path.display())]
    File {
        /// The file as it was named.
        path: PathBuf,
        /// The rest of the sentence.
        why: ImportError,
    },
    /// Files that do not belong together.
    #[error("{0}")]
    Together(String),
    /// One clock was promised for other files than two captures.
    #[error("one clock is for captures of both ends: name two of them")]
    OneClock,
    /// A file that cannot be written.
    #[error("cannot write `{}`: {error}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
}

impl FilesError {
    fn of(path: &Path, why: ImportError) -> FilesError {
        FilesError::File { path: path.to_path_buf(), why }
    }
}

/// Reads a trace of a stored run, record by record: of the store, which this crate does not know.
pub type ReadTrace<'r> = &'r dyn Fn(&Path, &mut dyn FnMut(&Record)) -> Result<(), String>;

/// A recording to be read.
struct Recording<'p> {
    path: &'p Path,
    name: String,
    file: File,
    format: Format,
}

/// Learns from one file, or from two: captures of both ends, or delivery traces of both directions.
pub fn from_files(
    paths: &[PathBuf],
    clocks: Clocks,
    read_trace: ReadTrace<'_>,
) -> Result<Learned, FilesError> {
    if !(1..=2).contains(&paths.len()) {
        return Err(FilesError::Together(
            "at most two recordings describe a path: one of each end, or of each direction".to_owned(),
        ));
    }
    let mut recordings =
        paths.iter().map(|path| open(path)).collect::<Result<Vec<Recording<'_>>, FilesError>>()?;
    let formats: Vec<Format> = recordings.iter().map(|recording| recording.format).collect();
    if clocks == Clocks::Same && formats != [Format::Capture; 2] {
        return Err(FilesError::OneClock);
    }
    match &mut recordings[..] {
        [one] => read_one(one, read_trace),
        [first, second] if is_same(first.path, second.path) => Err(FilesError::Together(format!(
            "`{}` is named twice; a second recording is that of the other end or of the other direction",
            first.path.display()
        ))),
        [first, second] if formats == [Format::Capture; 2] => {
            let [mut one, mut two] = [BufReader::new(&first.file), BufReader::new(&second.file)];
            let sources =
                [Source { name: &first.name, from: &mut one }, Source { name: &second.name, from: &mut two }];
            let names = format!("`{}` and `{}`", first.path.display(), second.path.display());
            capture::both_ends(sources, clocks)
                .map_err(|error| FilesError::Together(format!("{names} {error}")))
        }
        [first, second] if formats == [Format::DeliveryTrace; 2] => {
            let (one, two) = (text(first, delivery::MAX_TRACE)?, text(second, delivery::MAX_TRACE)?);
            delivery::read_traces(&[&first.name, &second.name], &[&one, &two])
                .map_err(|(place, error)| FilesError::of([first.path, second.path][place], error))
        }
        _ => Err(FilesError::Together(format!(
            "two recordings must be two captures or two mahimahi traces; `{}` and `{}` are not",
            paths[0].display(),
            paths[1].display()
        ))),
    }
}

/// Opens a recording and recognises its format by its content.
fn open(path: &Path) -> Result<Recording<'_>, FilesError> {
    let unreadable = |error: std::io::Error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        FilesError::of(path, ImportError::new(why))
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut head = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut head).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let format = recognise(&head).ok_or_else(|| {
        FilesError::of(
            path,
            ImportError::new(if head.is_empty() {
                "is empty"
            } else {
                "is in no format that can be learned from: expected a capture (pcap, pcapng), a trace of a stored run \
                 (Parquet), a mahimahi trace or mm-link log, a Pantheon log or an iBoxNet profile (JSON)"
            }),
        )
    })?;
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
    Ok(Recording { path, name, file, format })
}

fn is_same(first: &Path, second: &Path) -> bool {
    let [first, second] = [first, second].map(std::fs::canonicalize);
    first.ok().zip(second.ok()).is_some_and(|(first, second)| first == second)
}

fn read_one(recording: &mut Recording<'_>, read_trace: ReadTrace<'_>) -> Result<Learned, FilesError> {
    let path = recording.path;
    let failed = |error: ImportError| FilesError::of(path, error);
    match recording.format {
        Format::Capture => {
            let mut from = BufReader::new(&recording.file);
            capture::one_end(Source { name: &recording.name, from: &mut from }).map_err(failed)
        }
        Format::StoredTrace => stored_trace(recording, read_trace).map_err(failed),
        Format::IBoxNet => {
            let text = text(recording, iboxnet::MAX_BYTES)?;
            iboxnet::read(&recording.name, text.as_bytes()).map_err(failed)
        }
        Format::DeliveryTrace => {
            let text = text(recording, delivery::MAX_TRACE)?;
            delivery::read_traces(&[&recording.name], &[&text]).map_err(|(_, error)| failed(error))
        }
        Format::DeliveryLog => {
            delivery::read_log(&recording.name, Way::Forward, BufReader::new(&recording.file)).map_err(failed)
        }
    }
}

/// The text of a file of at most `most` bytes.
fn text(recording: &mut Recording<'_>, most: usize) -> Result<String, FilesError> {
    let mut bytes = Vec::new();
    let read = recording.file.by_ref().take(most as u64 + 1).read_to_end(&mut bytes);
    let wrong = |why: String| FilesError::of(recording.path, ImportError::new(why));
    read.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() > most {
        return Err(wrong(format!("is longer than {most} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| wrong(format!("is not text: byte {}", error.utf8_error().valid_up_to())))
}

/// A trace of a stored run: the messages of one flow, as UDP over IPv4 carries them.
fn stored_trace(recording: &Recording<'_>, read_trace: ReadTrace<'_>) -> Result<Learned, ImportError> {
    const HEADERS: u32 = 28;
    // What an Ethernet packet has room for.
    const LARGEST: u32 = 1500 - HEADERS;
    let (mut packets, mut reflected, mut cut, mut largest) = (Vec::new(), false, false, 0);
    let read = read_trace(recording.path, &mut |record| {
        let Some(sent) = record.sent else { return };
        if record.fate == Fate::Duplicate {
            return;
        }
        if packets.len() >= MAX_PACKETS {
            cut = true;
            return;
        }
        reflected |= record.reflected.is_some();
        largest = largest.max(record.payload);
        let signed = |at: Time| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        let delay = record.received.map(|received| signed(received) - signed(sent));
        packets.push(Packet { sent, bytes: record.payload.saturating_add(HEADERS), delay });
    });
    read.map_err(|error| ImportError::new(format!("cannot be read: {error}")))?;
    if packets.is_empty() {
        return Err(ImportError::new("is a trace without messages that were sent"));
    }
    if largest > LARGEST {
        return Err(ImportError::new(format!(
            "has messages of up to {largest} B, which are not packets: their delays contain the send buffer of a transport, not only \
             the link; take the trace of a flow over UDP with messages of up to {LARGEST} B"
        )));
    }
    packets.sort_by_key(|packet| packet.sent);
    let flow = ObservedFlow { name: recording.name.clone(), way: Way::Forward, packets };
    let clocks = if reflected { Clocks::RoundTrip } else { Clocks::Same };
    let from = format!("the trace `{}` of a stored run", recording.name);
    let mut learned = describe(from, &Observations { flows: vec![flow], clock_error: None }, clocks);
    learned.remarks.push(
        "Messages count as UDP over IPv4, one packet each; on another transport the rate and the losses are those of the messages, and over one \
         that repeats what is lost their delays contain its send buffer, so that delay and queue may be far too large."
            .to_owned(),
    );
    if cut {
        learned.warnings.push(format!("Only the first {MAX_PACKETS} messages were read."));
    }
    Ok(learned)
}

impl Learned {
    /// Writes the description and the files beside it, none of which may exist. `when` is the time at which it was learned.
    pub fn write(&self, target: &Path, when: &str) -> Result<Vec<PathBuf>, FilesError> {
        let name = target.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let beside = |file: String| target.with_file_name(file);
        let mut files = vec![(target.to_path_buf(), self.to_toml(&name, when).into_bytes())];
        let attachments = self.attachments.iter().chain(self.others.iter().map(|others| &others.series));
        files.extend(attachments.map(|attachment| {
            (beside(Learned::file_name(&name, attachment)), attachment.text.clone().into_bytes())
        }));
        let experiment = self.to_experiment(&name);
        files.extend(experiment.map(|text| (beside(format!("{name}-experiment.toml")), text.into_bytes())));
        let unwritable = |path: &Path, error| FilesError::Unwritable { path: path.to_path_buf(), error };
        for (path, _) in &files {
            if path.exists() {
                return Err(unwritable(path, ErrorKind::AlreadyExists.into()));
            }
        }
        for (path, bytes) in &files {
            let written =
                File::create_new(path).and_then(|mut file| std::io::Write::write_all(&mut file, bytes));
            written.map_err(|error| unwritable(path, error))?;
        }
        Ok(files.into_iter().map(|(path, _)| path).collect())
    }
}

//! `trunkline learn --from FILE`: a link description out of a recording.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use trunkline_core::Time;
use trunkline_learn::import::capture::{self, Source};
use trunkline_learn::import::{self, Clocks, Format, ImportError, Learned, delivery, iboxnet};
use trunkline_learn::{Observations, ObservedFlow, Packet, Way};

use crate::args::Global;
use crate::args::learn::Learn;
use crate::json::{ImportedKey, LearnedOutput, UnknownKey};
use crate::output::{self, Failure};

/// A recording to be read.
struct Recording<'p> {
    path: &'p Path,
    name: String,
    file: File,
    format: Format,
}

pub(super) fn learn(global: &Global, arguments: &Learn) -> Result<u8, Failure> {
    let target = target(arguments)?;
    let recordings =
        arguments.from.iter().map(|path| open(path)).collect::<Result<Vec<Recording<'_>>, Failure>>()?;
    let learned = read(recordings, arguments)?;
    let written = write(&learned, &target)?;
    report(global, &learned, &target, &written);
    Ok(output::DONE)
}

/// Opens a recording and recognises its format by its content.
fn open(path: &Path) -> Result<Recording<'_>, Failure> {
    let unreadable = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        about(path, &ImportError::new(why))
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut head = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut head).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let format = import::recognise(&head).ok_or_else(|| {
        about(
            path,
            &ImportError::new(if head.is_empty() {
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

fn about(path: &Path, error: &ImportError) -> Failure {
    Failure::about(path, format_args!("`{}` {error}", path.display()))
}

/// The description to write.
fn target(arguments: &Learn) -> Result<PathBuf, Failure> {
    let target = match (&arguments.to, arguments.from.first()) {
        (Some(to), _) if to.extension().is_some_and(|extension| extension == "toml") => to.clone(),
        (Some(to), _) => {
            return Err(Failure::input(format_args!(
                "`{}` is not a name for a link description; it must end in `.toml`",
                to.display()
            )));
        }
        (None, first) => {
            let stem = first.and_then(|first| first.file_stem()).unwrap_or_default();
            PathBuf::from(stem).with_added_extension("toml")
        }
    };
    Ok(target)
}

fn read(mut recordings: Vec<Recording<'_>>, arguments: &Learn) -> Result<Learned, Failure> {
    if recordings.len() > 2 {
        return Err(Failure::input(
            "at most two recordings describe a path: one of each end, or of each direction",
        ));
    }
    let formats: Vec<Format> = recordings.iter().map(|recording| recording.format).collect();
    if arguments.same_clock && formats != [Format::Capture; 2] {
        return Err(Failure::input("`--same-clock` is for captures of both ends: name two of them"));
    }
    match &mut recordings[..] {
        [one] => read_one(one),
        [first, second] if is_same(first.path, second.path) => Err(Failure::input(format_args!(
            "`{}` is named twice; a second recording is that of the other end or of the other direction",
            first.path.display()
        ))),
        [first, second] if formats == [Format::Capture; 2] => {
            let [mut one, mut two] = [BufReader::new(&first.file), BufReader::new(&second.file)];
            let sources =
                [Source { name: &first.name, from: &mut one }, Source { name: &second.name, from: &mut two }];
            let clocks = if arguments.same_clock { Clocks::Same } else { Clocks::Apart };
            let names = format!("`{}` and `{}`", first.path.display(), second.path.display());
            capture::both_ends(sources, clocks)
                .map_err(|error| Failure::input(format_args!("{names} {error}")))
        }
        [first, second] if formats == [Format::DeliveryTrace; 2] => {
            let (one, two) = (text(first, delivery::MAX_TRACE)?, text(second, delivery::MAX_TRACE)?);
            delivery::read_traces(&[&first.name, &second.name], &[&one, &two])
                .map_err(|(place, error)| about([first.path, second.path][place], &error))
        }
        _ => Err(Failure::input(format_args!(
            "two recordings must be two captures or two mahimahi traces; `{}` and `{}` are not",
            arguments.from[0].display(),
            arguments.from[1].display()
        ))),
    }
}

fn is_same(first: &Path, second: &Path) -> bool {
    let [first, second] = [first, second].map(std::fs::canonicalize);
    first.ok().zip(second.ok()).is_some_and(|(first, second)| first == second)
}

fn read_one(recording: &mut Recording<'_>) -> Result<Learned, Failure> {
    let path = recording.path;
    let failed = |error: ImportError| about(path, &error);
    match recording.format {
        Format::Capture => {
            let mut from = BufReader::new(&recording.file);
            capture::one_end(Source { name: &recording.name, from: &mut from }).map_err(failed)
        }
        Format::StoredTrace => stored_trace(recording),
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
fn text(recording: &mut Recording<'_>, most: usize) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = recording.file.by_ref().take(most as u64 + 1).read_to_end(&mut bytes);
    let wrong = |why: String| about(recording.path, &ImportError::new(why));
    read.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() > most {
        return Err(wrong(format!("is longer than {most} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| wrong(format!("is not text: byte {}", error.utf8_error().valid_up_to())))
}

/// A trace of a stored run: the messages of one flow, as UDP over IPv4 carries them.
fn stored_trace(recording: &Recording<'_>) -> Result<Learned, Failure> {
    const HEADERS: u32 = 28;
    let (mut packets, mut reflected, mut cut) = (Vec::new(), false, false);
    let read = trunkline_store::read_trace(recording.path, &mut |record| {
        let Some(sent) = record.sent else { return };
        if record.fate == trunkline_metrics::Fate::Duplicate {
            return;
        }
        if packets.len() >= import::MAX_PACKETS {
            cut = true;
            return;
        }
        reflected |= record.reflected.is_some();
        let signed = |at: Time| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        let delay = record.received.map(|received| signed(received) - signed(sent));
        packets.push(Packet { sent, bytes: record.payload.saturating_add(HEADERS), delay });
    });
    read.map_err(|error| about(recording.path, &ImportError::new(format!("cannot be read: {error}"))))?;
    if packets.is_empty() {
        return Err(about(recording.path, &ImportError::new("is a trace without messages that were sent")));
    }
    packets.sort_by_key(|packet| packet.sent);
    let flow = ObservedFlow { name: recording.name.clone(), way: Way::Forward, packets };
    let clocks = if reflected { Clocks::RoundTrip } else { Clocks::Same };
    let from = format!("the trace `{}` of a stored run", recording.name);
    let mut learned = import::describe(from, &Observations { flows: vec![flow], clock_error: None }, clocks);
    learned.remarks.push(
        "Messages count as UDP over IPv4, one packet each; on another transport the rate and the losses are those of the messages."
            .to_owned(),
    );
    if cut {
        learned.warnings.push(format!("Only the first {} messages were read.", import::MAX_PACKETS));
    }
    Ok(learned)
}

/// Writes the description and the files beside it, none of which may exist.
fn write(learned: &Learned, target: &Path) -> Result<Vec<PathBuf>, Failure> {
    let name = target.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let when = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let beside = |file: String| target.with_file_name(file);
    let mut files = vec![(target.to_path_buf(), learned.to_toml(&name, &when).into_bytes())];
    let attachments = learned.attachments.iter().chain(learned.others.iter().map(|others| &others.series));
    files.extend(
        attachments
            .map(|attachment| (beside(Learned::file_name(&name, attachment)), attachment.bytes.clone())),
    );
    files.extend(
        learned
            .to_experiment(&name)
            .map(|text| (beside(format!("{name}-experiment.toml")), text.into_bytes())),
    );
    for (path, _) in &files {
        if path.exists() {
            return Err(Failure::unwritable(path, &std::io::ErrorKind::AlreadyExists.into()));
        }
    }
    for (path, bytes) in &files {
        let written = File::create_new(path).and_then(|mut file| std::io::Write::write_all(&mut file, bytes));
        written.map_err(|error| Failure::unwritable(path, &error))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn report(global: &Global, learned: &Learned, target: &Path, written: &[PathBuf]) {
    let sides =
        [(None, &learned.both), (Some("forward"), &learned.forward), (Some("backward"), &learned.backward)];
    if global.json {
        let name = target.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let known = sides.iter().flat_map(|(way, side)| {
            side.known.iter().map(|known| ImportedKey {
                direction: way.map(str::to_owned),
                key: known.key.to_owned(),
                value: known.value.text(&name),
                evidence: known.evidence.clone(),
            })
        });
        let unknown = sides.iter().flat_map(|(way, side)| {
            side.unknown.iter().map(|unknown| UnknownKey {
                direction: way.map(str::to_owned),
                key: unknown.key.to_owned(),
                why: unknown.why.clone(),
            })
        });
        learned.warnings.iter().for_each(output::add_to_json);
        output::print_json(&LearnedOutput {
            from: learned.from.clone(),
            known: known.collect(),
            unknown: unknown.collect(),
            files: written.iter().map(|path| path.display().to_string()).collect(),
        });
        return;
    }
    let text = std::fs::read_to_string(target).unwrap_or_default();
    learned.warnings.iter().for_each(output::warn);
    output::print(text.trim_end());
    let written: Vec<String> = written.iter().map(|path| format!("`{}`", path.display())).collect();
    output::note(format_args!("written: {}", written.join(", ")));
}

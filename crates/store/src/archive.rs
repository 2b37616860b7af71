//! A run in one file, to be taken from one store to another: a tar archive with the run as JSON and the files of its folder.
//!
//! ```text
//! run.json                    the run with its results; paths are relative to its folder
//! files/traces/...            what lies in its folder
//! ```

use std::cell::Cell;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::StoreError;
use crate::files;
use crate::model::StoredRun;

/// The first entry.
const RUN: &str = "run.json";
/// Where the run's files are.
const FILES: &str = "files";
/// The version of archives that this program writes, and the latest that it reads.
const FORMAT: u32 = 1;
/// Bytes of the longest description: that of a run of 100,000 points has some 100 MB.
const LONGEST: u64 = 256 << 20;
/// Bytes of the headers of an entry: a long name is held in memory.
const LONGEST_HEADERS: u64 = 1 << 20;

#[derive(Serialize)]
struct Description {
    trunkline: u32,
    run: StoredRun,
}

/// The run of a description, read without anything else that it may contain.
struct Described(StoredRun);

impl<'de> Deserialize<'de> for Described {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Described, D::Error> {
        from.deserialize_map(DescriptionVisitor)
    }
}

struct DescriptionVisitor;

impl<'de> Visitor<'de> for DescriptionVisitor {
    type Value = Described;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the description of a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Described, A::Error> {
        let (mut format, mut run) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "trunkline" => format = Some(map.next_value::<u64>()?),
                "run" if run.is_none() => run = Some(map.next_value()?),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
            if format.is_some_and(|format| format > u64::from(FORMAT)) {
                return Err(A::Error::custom(
                    "it was written by a later version of Trunkline: update Trunkline",
                ));
            }
        }
        match (format, run) {
            (Some(_), Some(run)) => Ok(Described(run)),
            (None, _) => Err(A::Error::missing_field("trunkline")),
            (Some(_), None) => Err(A::Error::missing_field("run")),
        }
    }
}

/// Writes a run, whose paths lie in its folder, and those of its files that `is_file` returns true for.
pub(crate) fn write(
    run: StoredRun,
    to: impl Write,
    is_file: impl Fn(&Path) -> bool,
) -> Result<(), StoreError> {
    let directory = &run.info.directory.clone();
    let failed = |source| StoreError::io("exported", directory)(source);
    let description = serde_json::to_vec(&Description { trunkline: FORMAT, run: relative(run) })?;
    let mut archive = tar::Builder::new(to);
    archive.mode(tar::HeaderMode::Deterministic);
    let mut header = tar::Header::new_ustar();
    header.set_size(description.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, RUN, description.as_slice()).map_err(failed)?;
    for path in files::list(directory).map_err(failed)? {
        let name = path.strip_prefix(directory).unwrap_or(&path);
        if !is_file(name) {
            continue;
        }
        let failed = |source| StoreError::io("exported", &path)(source);
        let mut file = File::open(&path).map_err(failed)?;
        archive.append_file(Path::new(FILES).join(name), &mut file).map_err(failed)?;
    }
    archive.into_inner().and_then(|mut to| to.flush()).map_err(failed)
}

/// Reads a run and puts its files into the folder that `place` names, given the run; `None` if it names none.
pub(crate) fn unpack<P>(
    from: impl Read,
    place: impl FnOnce(&StoredRun) -> Result<Option<(PathBuf, P)>, StoreError>,
) -> Result<Option<(StoredRun, P)>, StoreError> {
    let read = read(from, place, |(directory, _), inside, bytes| {
        let path = directory.join(inside);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            io::copy(bytes, &mut File::create(&path)?)?;
            Ok(())
        });
        written.map_err(StoreError::io("written", &path))
    })?;
    Ok(read.map(|(run, (directory, placed))| (absolute(run, &directory), placed)))
}

/// Reads a run, whose paths stay relative to its folder, and gives `file` its files one by one: the path in the folder, and the
/// bytes. They are not read if `begin`, which is given the run first, returns `None`.
pub(crate) fn read<B>(
    from: impl Read,
    begin: impl FnOnce(&StoredRun) -> Result<Option<B>, StoreError>,
    mut file: impl FnMut(&mut B, &Path, &mut dyn Read) -> Result<(), StoreError>,
) -> Result<Option<(StoredRun, B)>, StoreError> {
    let left = Rc::new(Cell::new(LONGEST_HEADERS));
    let mut archive = tar::Archive::new(Bounded { from, left: Rc::clone(&left) });
    let mut entries = archive.entries().map_err(no_archive)?;
    let mut first = entries.next().ok_or_else(|| no_archive("it is empty"))?.map_err(no_archive)?;
    if first.path().map_err(no_archive)? != Path::new(RUN) || first.size() > LONGEST {
        return Err(no_archive("it does not start with `run.json`"));
    }
    left.set(u64::MAX);
    // As a whole: byte by byte it would be read three times as slowly.
    let mut description = Vec::new();
    first.read_to_end(&mut description).map_err(no_archive)?;
    let Described(run) = serde_json::from_slice(&description)
        .map_err(|error| no_archive(format_args!("`run.json` does not describe a run: {error}")))?;
    drop(description);
    check(&run)?;
    let Some(mut begun) = begin(&run)? else { return Ok(None) };
    loop {
        left.set(LONGEST_HEADERS);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(no_archive)?;
        left.set(u64::MAX);
        let name = entry.path().map_err(no_archive)?.into_owned();
        let inside = name.strip_prefix(FILES).ok().filter(|name| is_inside(name));
        let Some(inside) = inside else {
            return Err(no_archive(format_args!("`{}` is not a file of a run", name.display())));
        };
        // Nothing but files: a link could lead elsewhere.
        if entry.header().entry_type().is_file() {
            file(&mut begun, inside, &mut entry)?;
        }
    }
    Ok(Some((run, begun)))
}

/// Reads no more than is allowed.
struct Bounded<R> {
    from: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 && !buffer.is_empty() {
            return Err(io::Error::other("the headers of an entry are longer than 1 MiB"));
        }
        let length = self.from.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - length as u64);
        Ok(length)
    }
}

/// What is read must fit together: it comes from elsewhere.
fn check(run: &StoredRun) -> Result<(), StoreError> {
    let axes = run.axes.len();
    let key = &run.info.key;
    let paths = run
        .points
        .iter()
        .flat_map(|point| &point.repetitions)
        .flat_map(|repetition| repetition.traces.iter().map(|(_, path)| path).chain(&repetition.audio));
    let problem = if key.len() != 32 || !key.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        "it has no key"
    } else if run.points.iter().any(|point| point.choice.len() != axes) {
        "a point does not match the sweep"
    } else if run.points.iter().flat_map(|point| &point.repetitions).any(|r| r.index >= run.info.repetitions)
    {
        "a point has more repetitions than the run"
    } else if paths.into_iter().any(|path| !is_inside(path)) {
        "a path points outside its folder"
    } else {
        return Ok(());
    };
    Err(no_archive(problem))
}

/// Refuses a run that does not have all of its points.
pub(crate) fn check_points(run: &StoredRun) -> Result<(), StoreError> {
    let mut indices: Vec<u32> = run.points.iter().map(|point| point.index).collect();
    indices.sort_unstable();
    match indices.iter().zip(0..).any(|(index, place)| *index != place) {
        true => Err(no_archive("its points are not numbered from 0")),
        false => Ok(()),
    }
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_))) && path != Path::new("")
}

fn relative(run: StoredRun) -> StoredRun {
    let directory = run.info.directory.clone();
    let mut run = with_paths(run, |path| path.strip_prefix(&directory).unwrap_or(path).to_path_buf());
    run.info.directory = PathBuf::new();
    run
}

fn absolute(run: StoredRun, directory: &Path) -> StoredRun {
    with_paths(run, |path| directory.join(path))
}

fn with_paths(mut run: StoredRun, changed: impl Fn(&Path) -> PathBuf) -> StoredRun {
    for repetition in run.points.iter_mut().flat_map(|point| &mut point.repetitions) {
        repetition.traces.iter_mut().for_each(|(_, path)| *path = changed(path));
        repetition.audio.iter_mut().for_each(|path| *path = changed(path));
    }
    run
}

/// The reason why a file is not an archive. If it is not a tar file either, the library's reason quotes its bytes.
fn no_archive(why: impl ToString) -> StoreError {
    let why = why.to_string();
    let quotes = why.contains(|c: char| c.is_control() || c == '\u{fffd}');
    StoreError::NoArchive { why: if quotes { "it is not a tar file".to_owned() } else { why } }
}

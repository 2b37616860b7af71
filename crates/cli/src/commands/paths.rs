//! `trunkline paths`: the library of learned paths, a folder of link profiles beside the store.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use toml::Table;
use trunkline_experiment::{Experiment, Files, FilesError, profile_of_draw};
use trunkline_learn::library::{self, Description, LearnedPath, LibraryError, is_name};

use crate::args::Global;
use crate::args::paths::{Paths, PathsAction};
use crate::json::{
    PathComparisonOutput, PathDifference, PathExportOutput, PathOutput, PathsOutput, PathsRemovedOutput,
};
use crate::output::{self, Failure};

/// The largest file of a path: a trace of an hour.
const MAX_BYTES: u64 = 256 << 20;

/// Files of a path at most, draws among them.
const MAX_FILES: usize = 1_100;

pub(super) fn paths(global: &Global, arguments: &Paths) -> Result<u8, Failure> {
    let folder = folder(global)?;
    match arguments.action.as_ref().unwrap_or(&PathsAction::List) {
        PathsAction::List => list(global, &folder),
        PathsAction::Show { name } => show(global, &folder, name),
        PathsAction::Compare { first, second } => compare(global, &folder, [first, second]),
        PathsAction::Import { files } => import(global, &folder, files),
        PathsAction::Export { name, to } => export(global, &folder, name, to.as_deref()),
        PathsAction::Remove { names } => remove(global, &folder, names),
    }
}

/// The folder of learned paths: `paths` in the store's folder, or in the user's if the store is a server.
pub(super) fn folder(global: &Global) -> Result<PathBuf, Failure> {
    let own = match &global.store {
        Some(place) if place.to_str().and_then(trunkline_store::server_name).is_none() => place.clone(),
        _ => super::data_directory()?,
    };
    Ok(own.join("paths"))
}

/// Characters of a path's name: those of its files are longer.
const LONGEST_NAME: usize = 80;

/// True for a file of a path: beside its description, or a draw of it.
fn is_file(file: &str) -> bool {
    is_name(file) || file.split_once('/').is_some_and(|(folder, draw)| is_name(folder) && is_name(draw))
}

/// The draws beside a description, as `home.draws/01.toml`.
fn draws(folder: &Path, name: &str) -> Vec<String> {
    (1..=1_000)
        .map(|number| profile_of_draw(name, number))
        .take_while(|draw| folder.join(draw).is_file())
        .collect()
}

fn failure(error: LibraryError) -> Failure {
    match &error {
        LibraryError::Unknown { .. } => Failure::input(error),
        LibraryError::Unreadable { .. } => Failure::environment(error),
        LibraryError::NotToml { path, .. } => Failure::about(&path.clone(), error),
    }
}

fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    library::names(folder).map_err(failure)
}

fn read(folder: &Path, name: &str) -> Result<Description, Failure> {
    Description::read(folder, name).map_err(failure)
}

fn list(global: &Global, folder: &Path) -> Result<u8, Failure> {
    let mut paths = Vec::new();
    for name in names(folder)? {
        match read(folder, &name) {
            Ok(path) => paths.push(path.summary()),
            // The others are listed all the same.
            Err(failure) => output::warn(failure.message),
        }
    }
    print_list(global, folder, paths);
    Ok(output::DONE)
}

fn print_list(global: &Global, folder: &Path, paths: Vec<LearnedPath>) {
    if global.json {
        output::print_json(&PathsOutput { paths });
        return;
    }
    if paths.is_empty() {
        output::note(format_args!("no paths are stored in {}", folder.display()));
        return;
    }
    let head = ["path", "direction", "rate", "delay", "queue", "learned", "description"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for path in paths {
        let learned =
            path.learned.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
        let mut first = [path.name, learned, path.from.unwrap_or_default()];
        for direction in path.directions {
            let [name, learned, from] = std::mem::take(&mut first);
            rows.push(vec![
                name,
                direction.direction,
                direction.rate,
                direction.delay,
                direction.queue,
                learned,
                from,
            ]);
        }
    }
    output::print(output::table_with_keys(2, &rows, output::screen()));
}

fn show(global: &Global, folder: &Path, name: &str) -> Result<u8, Failure> {
    let path = read(folder, name)?;
    if global.json {
        output::print_json(&PathOutput {
            path: path.summary(),
            description: path.text,
            files: path_files(folder, name)?,
        });
    } else {
        output::print(path.text.trim_end());
    }
    Ok(output::DONE)
}

fn path_files(folder: &Path, name: &str) -> Result<Vec<String>, Failure> {
    Ok(read(folder, name)?.files().iter().map(|file| folder.join(file).display().to_string()).collect())
}

fn compare(global: &Global, folder: &Path, names: [&str; 2]) -> Result<u8, Failure> {
    let [first, second] = [read(folder, names[0])?, read(folder, names[1])?];
    let mut differences = Vec::new();
    for direction in ["forward", "backward"] {
        let mut keys: Vec<&str> = first.keys(direction).chain(second.keys(direction)).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let values = [&first, &second].map(|path| match path.value(direction, key)? {
                (value, true) => Some(format!("{value} (a placeholder)")),
                (value, false) => Some(value),
            });
            if values[0] != values[1] {
                let (direction, key, [first, second]) = (direction.to_owned(), key.to_owned(), values);
                differences.push(PathDifference { direction, key, first, second });
            }
        }
    }
    if global.json {
        output::print_json(&PathComparisonOutput { first: first.name, second: second.name, differences });
        return Ok(output::DONE);
    }
    if differences.is_empty() {
        output::print(format_args!("`{}` and `{}` have the same keys", first.name, second.name));
        return Ok(output::DONE);
    }
    let mut rows = vec![vec!["direction".to_owned(), "key".to_owned(), first.name, second.name]];
    let value = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    rows.extend(differences.into_iter().map(|d| vec![d.direction, d.key, value(d.first), value(d.second)]));
    output::print(output::table_with_keys(2, &rows, output::screen()));
    Ok(output::DONE)
}

/// Files of a path by name, the description first.
struct Incoming {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Files for Incoming {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        self.files.get(path).cloned().ok_or_else(|| FilesError::new("is not there"))
    }
}

impl Incoming {
    /// Reads a description with the files beside it, or an exported path.
    fn read(path: &Path) -> Result<Incoming, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::about(path, format_args!("`{}` {error}", path.display()))
        };
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .filter(|name| is_name(name) && name.len() <= LONGEST_NAME)
            .ok_or_else(|| {
                failed(&format_args!(
                    "is not named like a path: use at most {LONGEST_NAME} letters, digits, `-`, `_` and `.`"
                ))
            })?;
        if trunkline_experiment::is_built_in_profile(name) {
            return Err(failed(
                &"has the name of a built-in profile, which `profile` would use instead; rename it",
            ));
        }
        let bytes = bounded(path).map_err(|error| failed(&error))?;
        if bytes.get(257..262) == Some(b"ustar") {
            return Incoming::unpack(&bytes).map_err(|error| failed(&error));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| failed(&"is neither TOML nor a file of `trunkline paths export`"))?;
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            failed(&format_args!(
                "is neither TOML nor a file of `trunkline paths export`: {}",
                error.message()
            ))
        })?;
        let described = Description { name: name.to_owned(), text: text.clone(), table, written: None };
        let mut files = BTreeMap::from([(format!("{name}.toml"), text.into_bytes())]);
        for file in described.files() {
            if !is_name(&file) {
                return Err(failed(&format_args!(
                    "names `{file}`, which is in another folder; put it beside the description"
                )));
            }
            let beside = path.with_file_name(&file);
            let bytes =
                bounded(&beside).map_err(|error| failed(&format_args!("names `{file}`, which {error}")))?;
            files.insert(file, bytes);
        }
        for draw in draws(path.parent().unwrap_or(Path::new("")), name) {
            let bytes = bounded(&path.with_file_name(&draw)).map_err(|error| failed(&error))?;
            files.insert(draw, bytes);
        }
        Ok(Incoming { name: name.to_owned(), files })
    }

    fn unpack(archive: &[u8]) -> Result<Incoming, String> {
        let mut files = BTreeMap::new();
        let mut name = None;
        let mut archive = tar::Archive::new(archive);
        let cut = |error: std::io::Error| format!("is a damaged archive: {error}");
        for entry in archive.entries().map_err(cut)? {
            let entry = entry.map_err(cut)?;
            let path = entry.path().map_err(cut)?.to_string_lossy().into_owned();
            if !is_file(&path) || !entry.header().entry_type().is_file() || files.len() >= MAX_FILES {
                return Err(format!("is not a file of `trunkline paths export`: it contains `{path}`"));
            }
            // The whole archive is in memory, so that no entry is longer than it.
            let mut bytes = Vec::new();
            entry.take(MAX_BYTES).read_to_end(&mut bytes).map_err(cut)?;
            if let Some(stem) = path.strip_suffix(".toml").filter(|stem| !stem.contains('/'))
                && name.replace(stem.to_owned()).is_some()
            {
                return Err("contains several paths".to_owned());
            }
            files.insert(path, bytes);
        }
        let incoming = Incoming { name: name.ok_or("contains no path")?, files };
        let folder = format!("{}.draws/", incoming.name);
        if let Some(other) = incoming.draws().find(|draw| !draw.starts_with(&folder)) {
            return Err(format!("is not a file of `trunkline paths export`: it contains `{other}`"));
        }
        Ok(incoming)
    }

    /// The draws of the path.
    fn draws(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter(|file| file.contains('/')).map(String::as_str)
    }

    /// Refuses a description that no link can have.
    fn check(&self) -> Result<(), Failure> {
        let draws = match self.draws().count() {
            0 => String::new(),
            count => format!("draws = {count}\n"),
        };
        let text = format!(
            "name = \"path\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.path]\nbetween = [\"a\", \"b\"]\n\
             profile = \"{0}.toml\"\n{draws}[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n",
            self.name
        );
        Experiment::parse(&text, "the library", self)
            .map(|_| ())
            .map_err(|problems| Failure::invalid(&problems))
    }

    /// Writes the files, unless others of these names are there.
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        for (file, bytes) in &self.files {
            let path = folder.join(file);
            if path.exists() && !std::fs::read(&path).is_ok_and(|known| known == *bytes) {
                return Err(Failure::unwritable(&path, &ErrorKind::AlreadyExists.into()));
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))?;
        for (file, bytes) in &self.files {
            let path = folder.join(file);
            if let Some((draws, _)) = file.split_once('/') {
                let draws = folder.join(draws);
                std::fs::create_dir_all(&draws).map_err(|error| Failure::unwritable(&draws, &error))?;
            }
            std::fs::write(&path, bytes).map_err(|error| Failure::unwritable(&path, &error))?;
        }
        Ok(())
    }
}

/// A file of at most [`MAX_BYTES`]; the error continues "`FILE` ...".
fn bounded(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err(format!("is longer than {MAX_BYTES} bytes")),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("does not exist".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn import(global: &Global, folder: &Path, files: &[PathBuf]) -> Result<u8, Failure> {
    let incoming = files.iter().map(|file| Incoming::read(file)).collect::<Result<Vec<_>, Failure>>()?;
    incoming.iter().try_for_each(Incoming::check)?;
    incoming.iter().try_for_each(|path| path.write(folder))?;
    let stored = incoming.iter().map(|path| Ok(read(folder, &path.name)?.summary()));
    print_list(global, folder, stored.collect::<Result<Vec<_>, Failure>>()?);
    Ok(output::DONE)
}

fn export(global: &Global, folder: &Path, name: &str, to: Option<&Path>) -> Result<u8, Failure> {
    let path = read(folder, name)?;
    let target = to.map_or_else(|| PathBuf::from(format!("{name}.tar")), Path::to_path_buf);
    let mut files = vec![format!("{name}.toml")];
    files.extend(path.files().into_iter().filter(|file| is_name(file)));
    files.extend(draws(folder, name));
    let mut contents = Vec::new();
    for file in files {
        let bytes = bounded(&folder.join(&file));
        let bytes = bytes.map_err(|error| {
            Failure::environment(format_args!("`{}` {error}", folder.join(&file).display()))
        })?;
        contents.push((file, bytes));
    }
    let cannot = |error: std::io::Error| Failure::unwritable(&target, &error);
    let mut archive = tar::Builder::new(File::create_new(&target).map_err(cannot)?);
    for (file, bytes) in &contents {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, file, bytes.as_slice()).map_err(cannot)?;
    }
    archive.finish().map_err(cannot)?;
    if global.json {
        output::print_json(&PathExportOutput { path: path.name, archive: target.display().to_string() });
    } else {
        output::print(format_args!("{}: {}", path.name, target.display()));
    }
    Ok(output::DONE)
}

fn remove(global: &Global, folder: &Path, names: &[String]) -> Result<u8, Failure> {
    // All must be there before any is gone.
    let paths = names.iter().map(|name| read(folder, name)).collect::<Result<Vec<_>, Failure>>()?;
    let done = |path: &Path, result: std::io::Result<()>| match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::unwritable(path, &error)),
        _ => Ok(()),
    };
    let gone = |path: &Path| done(path, std::fs::remove_file(path));
    for path in &paths {
        gone(&folder.join(format!("{}.toml", path.name)))?;
        let draws = folder.join(format!("{}.draws", path.name));
        done(&draws, std::fs::remove_dir_all(&draws))?;
    }
    // Files that another path names too stay.
    let mut used = Vec::new();
    for name in self::names(folder)? {
        used.extend(read(folder, &name).map(|path| path.files()).unwrap_or_default());
    }
    for file in paths.iter().flat_map(Description::files).filter(|file| is_name(file) && !used.contains(file))
    {
        gone(&folder.join(file))?;
    }
    let removed: Vec<String> = paths.into_iter().map(|path| path.name).collect();
    if global.json {
        output::print_json(&PathsRemovedOutput { removed });
    } else {
        output::print(format_args!("removed: {}", removed.join(", ")));
    }
    Ok(output::DONE)
}

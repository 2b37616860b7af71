//! `trunkline learn --from FILE`: a link description out of a recording.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use trunkline_learn::import::{self, Clocks, FilesError, Learned};

use crate::args::Global;
use crate::args::learn::Learn;
use crate::json::{ImportedKey, LearnedOutput, UnknownKey};
use crate::output::{self, Failure};

pub(super) fn learn(global: &Global, arguments: &Learn) -> Result<u8, Failure> {
    let target = target(arguments)?;
    let clocks = if arguments.same_clock { Clocks::Same } else { Clocks::Apart };
    let learned = import::from_files(&arguments.from, clocks, &|path, take| {
        trunkline_store::read_trace(path, take).map_err(|error| error.to_string())
    })
    .map_err(failure)?;
    let when = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let written = learned.write(&target, &when).map_err(failure)?;
    report(global, &learned, &target, &written);
    Ok(output::DONE)
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

fn failure(error: FilesError) -> Failure {
    match &error {
        FilesError::File { path, .. } => Failure::about(path, &error),
        FilesError::Together(_) => Failure::input(&error),
        FilesError::OneClock => {
            Failure::input("`--same-clock` is for captures of both ends: name two of them")
        }
        FilesError::Unwritable { path, error } => Failure::unwritable(path, error),
    }
}

fn report(global: &Global, learned: &Learned, target: &Path, written: &[PathBuf]) {
    let sides =
        [(None, &learned.both), (Some("forward"), &learned.forward), (Some("backward"), &learned.backward)];
    if global.json {
        let name = target.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let known = sides.iter().flat_map(|(way, side)| {
            side.known.iter().map(|known| ImportedKey {
                direction: way.map(str::to_owned),
                key: known.key.to_string(),
                value: known.value.text(&name),
                evidence: known.evidence.clone(),
            })
        });
        let unknown = sides.iter().flat_map(|(way, side)| {
            side.unknown.iter().map(|unknown| UnknownKey {
                direction: way.map(str::to_owned),
                key: unknown.key.to_string(),
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

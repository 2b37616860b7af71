//! Test programs, as Cargo has built them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::durations;
use crate::journal::Journal;

/// A test program.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The folder in which Cargo would run it: proptest looks for its regression files from there.
    folder: PathBuf,
    /// The root of its sources.
    source: PathBuf,
}

impl Program {
    /// The names of its tests.
    pub(crate) fn tests(&self) -> Result<Vec<String>, String> {
        let output = self.output(Command::new(&self.path).args(["--list", "--format", "terse"]))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// The program's name as the journal has it.
    pub(crate) fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name).to_owned()
    }

    /// Its name, and its sources below the crate: `src/lib.rs` is the same for every crate.
    fn label(&self) -> String {
        let source = self.source.strip_prefix(&self.folder).unwrap_or(&self.source);
        format!("{}: {}", self.stem(), source.display())
    }

    /// Runs this command to its end, as Cargo would run the program.
    pub(crate) fn output(&self, command: &mut Command) -> Result<Output, String> {
        self.set_up(command).output().map_err(|e| self.does_not_start(&e))
    }

    fn set_up<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder)
    }

    fn does_not_start(&self, error: &std::io::Error) -> String {
        format!("{}: does not start: {error}", self.name)
    }

    /// True if its sources name the watch over tests in real time.
    fn has_tests_in_real_time(&self) -> bool {
        let mut sources = vec![(self.source.clone(), true)];
        while let Some((file, is_root)) = sources.pop() {
            // A module that a build script writes, or a folder of the same name.
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            if text.contains("in_real_time") {
                return true;
            }
            sources.extend(modules(&file, is_root, &text).into_iter().map(|file| (file, false)));
        }
        false
    }

    /// Runs all of its tests. What it prints goes to the terminal as it comes, or in one piece at the end.
    fn run(&self, journal: &Journal, at_once: bool) -> Result<bool, String> {
        let title = format!("\n     Running {} ({})\n", self.label(), self.path.display());
        let mut command = Command::new(&self.path);
        let command = self.set_up(journal.of(&mut command));
        if at_once {
            anstream::print!("{title}");
            return command.status().map(|status| status.success()).map_err(|e| self.does_not_start(&e));
        }
        // A pipe would be kept open by a process that a test has left behind.
        let failed = |e: std::io::Error| format!("the output of {}: {e}", self.name);
        let path = self.path.with_extension("out");
        let file = File::create(&path).map_err(failed)?;
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
        let status = command.status().map_err(|e| self.does_not_start(&e))?;
        let printed = std::fs::read(&path).map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        std::io::stdout().lock().write_all(&[title.as_bytes(), &printed].concat()).map_err(failed)?;
        Ok(status.success())
    }
}

/// Runs all programs: those with tests in real time one at a time, so that nothing loads the machine beside them, and before
/// those the others, on every processor.
pub(crate) fn run(programs: &[Program], journal: &Journal) -> Result<(), String> {
    let (in_real_time, others): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.has_tests_in_real_time());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut failed = run_at_once(&others, workers, journal)?;
    let journaled = journal.read()?.in_real_time;
    let undeclared = others.iter().find(|program| journaled.keys().any(|(name, _)| *name == program.stem()));
    if let Some(program) = undeclared {
        return Err(format!(
            "{} has a test in real time, and nothing in its sources names `in_real_time`: call that where the test is",
            program.label()
        ));
    }
    failed.extend(run_at_once(&in_real_time, 1, journal)?);
    match &failed[..] {
        [] => Ok(()),
        failed => Err(format!("{} test programs failed: {}", failed.len(), failed.join(", "))),
    }
}

/// Runs these programs with this many workers. Returns those that failed.
fn run_at_once(programs: &[&Program], workers: usize, journal: &Journal) -> Result<Vec<String>, String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let held = program.run(journal, workers == 1)?;
            durations::note_program(program.label(), began.elapsed());
            if !held {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.label());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done =
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err("a worker panicked".to_owned())));
        done.collect::<Result<Vec<()>, String>>()
    })?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The files of the modules that a file declares, where they may be.
fn modules(file: &Path, is_root: bool, text: &str) -> Vec<PathBuf> {
    let (folder, stem) = (file.parent().unwrap_or(file), file.file_stem().unwrap_or_default());
    let below = if is_root || stem == "mod" { folder.to_owned() } else { folder.join(stem) };
    let (mut found, mut path) = (Vec::new(), None);
    for line in text.lines().map(str::trim) {
        let declared = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod ")).map(|(_, name)| name);
        if let Some(name) = line.strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next()) {
            path = Some(name);
        } else if let Some(name) = declared {
            match path.take() {
                Some(path) => found.push(folder.join(path)),
                None => found
                    .extend([format!("{name}.rs"), format!("{name}/mod.rs")].map(|file| below.join(file))),
            }
        }
    }
    found
}

/// Builds the test programs by a `cargo test --no-run`.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Program>, String> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let command = command.current_dir(crate::root()).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| program(&message)).collect())
}

/// The program of a message from Cargo, if it is about a test program.
fn program(message: &Value) -> Option<Program> {
    message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
    let path = message["executable"].as_str()?.into();
    let name = message["target"]["name"].as_str()?.to_owned();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let source = message["target"]["src_path"].as_str()?.into();
    Some(Program { name, path, folder, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_where_the_compiler_finds_them() {
        let text = "mod a;\n    pub(crate) mod b;\n#[path = \"../c.rs\"]\nmod c;\nmod d { }\n// The mod e.\n";
        let of = |file: &str, is_root| {
            let found = modules(Path::new(file), is_root, text).into_iter();
            found.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let root = ["t/a.rs", "t/a/mod.rs", "t/b.rs", "t/b/mod.rs", "t/../c.rs"];
        assert_eq!(of("t/x.rs", true), root);
        assert_eq!(of("t/mod.rs", false), root);
        assert_eq!(
            of("t/x.rs", false),
            ["t/x/a.rs", "t/x/a/mod.rs", "t/x/b.rs", "t/x/b/mod.rs", "t/../c.rs"]
        );
    }

    #[test]
    fn a_test_in_real_time_is_seen_in_a_module_below() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("quiet.rs", "mod support;\n");
        write("timed.rs", "mod support;\nmod by_clock;\n");
        write("support.rs", "pub fn help() {}\n");
        write("by_clock.rs", "fn test() { in_real_time(|| ()) }\n");
        let has = |root: &str| {
            let source = folder.path().join(root);
            let program =
                Program { name: String::new(), path: source.clone(), folder: source.clone(), source };
            program.has_tests_in_real_time()
        };
        assert!(!has("quiet.rs"));
        assert!(has("timed.rs"));
    }
}

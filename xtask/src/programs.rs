//! Test programs, as Cargo has built them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::durations;
use crate::jobs::Job;
use crate::journal::Journal;
use crate::log::Log;

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

    /// Runs all of its tests.
    fn run(&self, journal: &Journal, log: &Log) -> Result<(), String> {
        log.say(format_args!("\n     Running {} ({})", self.label(), self.path.display()));
        let mut command = Command::new(&self.path);
        let began = Instant::now();
        let status = log.status(self.set_up(journal.of(&mut command)));
        durations::note_program(self.label(), began.elapsed());
        match status.map_err(|e| self.does_not_start(&e))?.success() {
            true => Ok(()),
            false => Err(format!("a test program failed: {} of {}", self.label(), self.folder.display())),
        }
    }
}

/// The programs with tests in real time, and the others.
pub(crate) fn by_time(programs: &[Program]) -> (Vec<&Program>, Vec<&Program>) {
    programs.iter().partition(|program| program.has_tests_in_real_time())
}

/// A job for each program, those first that took longest the last time.
pub(crate) fn jobs<'a>(programs: &[&'a Program], journal: &'a Journal) -> Vec<Job<'a>> {
    let last = durations::of_last_suite();
    let mut programs = programs.to_vec();
    programs.sort_by_key(|program| std::cmp::Reverse(last.get(&program.label()).copied().unwrap_or(0)));
    let job = |program: &'a Program| Job::new(program.label(), move |log| program.run(journal, log));
    programs.into_iter().map(job).collect()
}

/// Fails if one of these has a test in real time, and nothing in its sources names the watch.
pub(crate) fn check_declared(programs: &[&Program], journal: &Journal) -> Result<(), String> {
    let journaled = journal.read()?.in_real_time;
    let undeclared =
        programs.iter().find(|program| journaled.keys().any(|(name, _)| *name == program.stem()));
    match undeclared {
        None => Ok(()),
        Some(program) => Err(format!(
            "{} has a test in real time, and nothing in its sources names `in_real_time`: call that where the test is",
            program.label()
        )),
    }
}

/// Runs programs with tests in real time one after the other, so that nothing loads the machine beside them. All run even if
/// one fails.
pub(crate) fn run_in_real_time(programs: &[&Program], journal: &Journal) -> Vec<String> {
    programs.iter().filter_map(|program| program.run(journal, &Log::TERMINAL).err()).collect()
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

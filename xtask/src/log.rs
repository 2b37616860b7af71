//! The output of a step: the terminal, or, beside other jobs, a file that is printed whole when the job has ended.

use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::durations;

/// The output of a step.
pub(crate) struct Log(Option<Kept>);

/// A file that keeps the output. A pipe would be kept open by a process that a test has left behind.
struct Kept {
    file: File,
    path: PathBuf,
}

impl Log {
    pub(crate) const TERMINAL: Log = Log(None);

    /// Output that a new file keeps.
    pub(crate) fn kept(path: &Path) -> Result<Log, String> {
        // Each write goes to the end, whichever process makes it.
        let open = || {
            File::create(path)?;
            File::options().append(true).open(path)
        };
        let file = open().map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Log(Some(Kept { file, path: path.to_owned() })))
    }

    /// Everything that was kept. The file is removed.
    pub(crate) fn take(self) -> Vec<u8> {
        let Some(Kept { path, .. }) = self.0 else { return Vec::new() };
        let printed = std::fs::read(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        printed
    }

    /// Writes a line.
    pub(crate) fn say(&self, text: impl Display) {
        match &self.0 {
            None => anstream::println!("{text}"),
            // Nothing better can be done with a log that cannot be written.
            Some(Kept { file, .. }) => drop(writeln!(&*file, "{text}")),
        }
    }

    /// Runs a command of which everything that it prints comes here.
    pub(crate) fn status(&self, command: &mut Command) -> std::io::Result<ExitStatus> {
        if let Some(Kept { file, .. }) = &self.0 {
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
        }
        command.status()
    }

    /// Runs a command as a step in the workspace's folder.
    pub(crate) fn step(&self, name: &str, command: &mut Command) -> Result<(), String> {
        self.timed(name, || {
            let status = self.status(command.current_dir(crate::root()));
            let status = status.map_err(|e| format!("{name}: does not start: {e}"))?;
            if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
        })
    }

    /// Announces a step and notes how long it took.
    pub(crate) fn timed<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        self.say(format_args!("\n==> {name}"));
        let started = Instant::now();
        let done = run();
        durations::note(name, started.elapsed());
        done
    }
}

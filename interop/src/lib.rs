//! Other programs as the other side of a conversation: started, waited for, and ended with the test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
pub mod kernel;
pub mod live;
pub mod tone;

pub use trunkline_testkit::programs::is_installed;
pub use trunkline_testkit::skips::skip;

/// Makes a program of `source`, which needs the C library `library`. Where there is no compiler or no such library, says
/// which Debian packages bring it.
///
/// # Panics
/// If it has mistakes, or something is missing although `CI` is set.
pub fn compile(source: &Path, library: &str, packages: &str, into: &Path) -> Option<PathBuf> {
    if !is_installed("cc", "the Debian package `gcc`") {
        return None;
    }
    let header = format!("{library}.h");
    let found = Command::new("cc").args(["-include", &header, "-E", "-x", "c", "/dev/null"]).output();
    if !found.expect("it is installed").status.success() {
        skip(&format!("the library `{library}` is not installed; install {packages}"));
        return None;
    }
    let program = into.join("peer");
    let library = format!("-l{library}");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source).arg(library);
    let output = compiler.output().expect("it is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// A program at work. It is killed when this is dropped.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Program {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(program: &str, arguments: &[&str]) -> Program {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("`{program}` cannot be run: {error}"));
        let (give, lines) = channel();
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let give = give.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // Nobody listens any more once the test has ended.
                    let _ = give.send(line);
                }
            });
        }
        Program { child, lines, said: Vec::new() }
    }

    /// Waits until it says a line with this text, and gives that line.
    ///
    /// # Panics
    /// If it does not within a minute; tells what it has said.
    pub fn wait_until_it_says(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.said.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said.push(line),
                Err(_) => panic!("it has not said `{text}`, but:\n{}", self.said.join("\n")),
            }
        }
    }

    /// Waits until it ends by itself.
    ///
    /// # Panics
    /// If it does not within a minute, or without success; tells what it has said.
    pub fn wait_until_it_ends(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it was started by us") {
                self.said.extend(self.lines.try_iter());
                assert!(status.success(), "{status}:\n{}", self.said.join("\n"));
                return;
            }
            self.said.extend(self.lines.try_iter());
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.said.join("\n"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    /// Asks it to end, as a user does: a JACK server that is killed keeps its place among the eight that a machine has.
    fn drop(&mut self) {
        // It may have ended already.
        let _ = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status();
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Programs start slowly on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

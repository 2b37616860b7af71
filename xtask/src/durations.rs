//! Durations of the suite's steps and of its test programs, printed at the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Test programs that are printed: the slowest.
const SLOWEST: usize = 15;

/// Interval at which the end of `cargo test` is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Steps that have ended, in their order.
static STEPS: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Notes how long a step took.
pub(crate) fn note(step: &str, took: Duration) {
    if let Ok(mut steps) = STEPS.lock() {
        steps.push((step.to_owned(), took));
    }
}

/// Prints all steps.
pub(crate) fn print_steps() {
    let steps = STEPS.lock().map(|steps| steps.clone()).unwrap_or_default();
    let total: Duration = steps.iter().map(|(_, took)| *took).sum();
    anstream::println!("\n==> duration of each step");
    for (name, took) in steps.iter().map(|(name, took)| (name.as_str(), took)).chain([("together", &total)]) {
        anstream::println!("    {:>6.0} s  {name}", took.as_secs_f64());
    }
}

/// The duration of each test program of a `cargo test`.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    ended: Vec<(String, Duration)>,
    running: Option<(String, Instant)>,
}

impl Programs {
    /// Runs the command and passes on all that it prints.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("cargo test: {e}");
        // One pipe for both, so that Cargo's lines and those of the tests stay in order.
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        command.current_dir(crate::root()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let mut child = command.spawn().map_err(failed)?;
        // The command has ends of the pipe too, which must be closed for the pipe to end.
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let (to_us, lines) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(reader).split(b'\n').map_while(Result::ok).all(|line| to_us.send(line).is_ok())
        });
        let (mut out, mut ended) = (std::io::stdout(), None);
        loop {
            match lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => {
                    self.see(&String::from_utf8_lossy(&line), Instant::now());
                    let _ = out.write_all(&[&line[..], b"\n"].concat());
                }
                // A process that a test has left behind may keep the pipe open.
                Err(RecvTimeoutError::Timeout) if ended.is_none() => {
                    ended = child.try_wait().map_err(failed)?
                }
                Err(_) => break,
            }
        }
        self.end(Instant::now());
        let status = child.wait().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(format!("tests failed ({status})")) }
    }

    /// Takes note of the lines by which Cargo announces a program.
    fn see(&mut self, line: &str, now: Instant) {
        let line = line.trim_start();
        let name = match (line.strip_prefix("Running "), line.strip_prefix("Doc-tests ")) {
            (Some(running), _) => running.split_once(" (").map(|(name, path)| of_path(name, path)),
            (None, Some(krate)) => Some(format!("{krate}: examples in the documentation")),
            (None, None) => None,
        };
        if let Some(name) = name {
            self.end(now);
            self.running = Some((name, now));
        }
    }

    fn end(&mut self, now: Instant) {
        if let Some((name, began)) = self.running.take() {
            self.ended.push((name, now - began));
        }
    }

    /// Prints the slowest.
    pub(crate) fn print(&self) {
        let mut slowest: Vec<_> = self.ended.iter().collect();
        slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        anstream::println!("\n==> slowest of {} test programs", slowest.len());
        for (name, took) in slowest.into_iter().take(SLOWEST) {
            anstream::println!("    {:>6.1} s  {name}", took.as_secs_f64());
        }
    }
}

/// `unittests src/lib.rs` is the same for every crate: the program's file names it.
fn of_path(name: &str, path: &str) -> String {
    let file = path.trim_end_matches(')').rsplit(['/', '\\']).next().unwrap_or(path);
    let program = file.rsplit_once('-').map_or(file, |(program, _)| program);
    format!("{program}: {}", name.trim_start_matches("unittests "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_lasts_until_the_next() {
        let (mut programs, began) = (Programs::default(), Instant::now());
        let lines = [
            (0, "     Running unittests src/lib.rs (target/debug/deps/trunkline_io-0123456789abcdef)"),
            (1, "running 3 tests"),
            (2, "     Running tests/wire.rs (target/debug/deps/wire-0123456789abcdef)"),
            (5, "   Doc-tests trunkline_io"),
        ];
        for (at, line) in lines {
            programs.see(line, began + Duration::from_secs(at));
        }
        programs.end(began + Duration::from_secs(9));
        let seconds = |n| Duration::from_secs(n);
        let expected = [
            ("trunkline_io: src/lib.rs".to_owned(), seconds(2)),
            ("wire: tests/wire.rs".to_owned(), seconds(3)),
            ("trunkline_io: examples in the documentation".to_owned(), seconds(4)),
        ];
        assert_eq!(programs.ended, expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_command_that_fails_is_told_from_one_that_does_not() {
        let run = |script: &str| Programs::default().run(Command::new("sh").args(["-c", script]));
        assert_eq!(run("true"), Ok(()));
        assert_eq!(run("sleep 60 & true"), Ok(()), "a process that stays behind is not waited for");
        assert!(run("exit 3").is_err());
    }
}

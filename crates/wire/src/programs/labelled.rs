//! The output of a program with a label before every line.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::pty::openpty;
use nix::sys::termios::{OutputFlags, SetArg, tcgetattr, tcsetattr};

use super::POLL_INTERVAL;

/// How long the last lines of a program that has ended may take. Longer, and something that it started holds its output.
const LAST_LINES: Duration = Duration::from_millis(200);

/// A thread that copies lines to standard error until nobody can write any more.
#[derive(Debug)]
pub(super) struct Labelled {
    thread: JoinHandle<()>,
}

impl Labelled {
    /// Starts it, with the descriptors for a program's standard output and standard error. Where our own standard error is a
    /// terminal, so are they: programs then print each line at once, as they do without a label.
    pub(super) fn start(label: String) -> io::Result<(Labelled, [OwnedFd; 2])> {
        let (from, to) = if io::stderr().is_terminal() { terminal()? } else { pipe()? };
        let copy = to.try_clone()?;
        let thread =
            std::thread::Builder::new().name("output".into()).spawn(move || label_lines(&label, from))?;
        Ok((Labelled { thread }, [to, copy]))
    }

    /// Waits for the last lines of a program that has ended.
    pub(super) fn wait(&self) {
        let until = Instant::now() + LAST_LINES;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (from, to) = io::pipe()?;
    Ok((from.into(), to.into()))
}

fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = openpty(None, None)?;
    let mut modes = tcgetattr(&pair.slave)?;
    // Lines end as they were printed.
    modes.output_flags.remove(OutputFlags::OPOST);
    tcsetattr(&pair.slave, SetArg::TCSANOW, &modes)?;
    Ok((pair.master, pair.slave))
}

fn label_lines(label: &str, from: OwnedFd) {
    let mut from = BufReader::new(File::from(from));
    let mut line = label.as_bytes().to_vec();
    // A terminal ends with an error.
    while let Ok(1..) = from.read_until(b'\n', &mut line) {
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        // Whoever no longer reads this does not keep the program from printing.
        let _ = io::stderr().write_all(&line);
        line.truncate(label.len());
    }
}

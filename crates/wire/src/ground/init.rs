//! The first process of a host: when it ends, the kernel ends all other processes of that host's process namespace. It ends
//! when the pipe from the wire's own process closes, which happens however that one ends.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::settings;

/// How to start a program that calls [`serve`].
#[derive(Clone, Debug)]
pub struct InitProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// How long it may take to end, with all the others.
const TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const READY: &[u8] = b"ready\n";

/// It runs while this lives.
#[derive(Debug)]
pub(super) struct Init {
    process: Child,
}

impl Init {
    /// Starts it and waits until it is ready. The calling thread has unshared its process namespace: this is the first
    /// process of the new one. It has the thread's other namespaces, and puts a `/proc` that shows the new process namespace
    /// into its mounts.
    pub(super) fn start(program: &InitProgram) -> io::Result<Init> {
        let mut process = Command::new(&program.program)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = [0; READY.len()];
        let stdout = process.stdout.take();
        // From here on it ends when this is dropped.
        let init = Init { process };
        stdout.map(|mut stdout| stdout.read_exact(&mut said)).transpose()?;
        if said != READY {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the first process does not report that it is ready",
            ));
        }
        Ok(init)
    }

    /// Gives it a setting of its network to write when its standard input is closed.
    pub(super) fn remember(&self, key: &str, value: &str) -> io::Result<()> {
        let Some(mut stdin) = self.process.stdin.as_ref() else { return Ok(()) };
        writeln!(stdin, "{key} {value}")
    }

    /// Its process number, as this process sees it.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Lets it end, without waiting for it.
    pub(super) fn release(&mut self) {
        drop(self.process.stdin.take());
        // It takes all others with it; if it hangs, the kernel does. An error means that it is gone.
        let _ = self.process.kill();
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.release();
        // The kernel keeps it until every program that we started has been waited for. They are dead by then, but whoever
        // started one may never ask.
        let until = Instant::now() + TIMEOUT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Runs as that process: reports that it is ready, collects processes that nobody waits for, and returns when standard input
/// is closed, after writing the settings that it was given there. The program must end then, and must not have started another thread before.
///
/// # Errors
/// If signals cannot be waited for or the standard streams are no pipes from a wire.
pub fn serve() -> io::Result<()> {
    // What a container shows of processes may be covered so that it cannot be shown anew; then it stays as it is.
    let hardened = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), hardened, None::<&str>);
    let mut ended = SigSet::empty();
    ended.add(Signal::SIGCHLD);
    ended.thread_block()?;
    std::thread::Builder::new().name("orphans".into()).spawn(move || {
        while ended.wait().is_ok() {
            while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive) {}
        }
    })?;
    let mut stdout = io::stdout();
    stdout.write_all(READY)?;
    stdout.flush()?;
    let lines: Vec<String> = io::stdin().lines().map_while(Result::ok).collect();
    for (key, value) in lines.iter().filter_map(|line| line.split_once(' ')) {
        // An interface may have gone.
        let _ = settings::set(key, value);
    }
    Ok(())
}

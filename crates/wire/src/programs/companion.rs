//! Programs beside the one in front.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::labelled::Labelled;
use super::{POLL_INTERVAL, ends_soon};
use crate::WireError;
use crate::ground::Namespace;

/// How long a program that is started beside another may take until it listens.
const LISTENING: Duration = Duration::from_secs(1);

/// A program that runs beside the one in front, `iperf3 -s` on the other host: a line for the shell.
#[derive(Debug)]
pub struct Companion {
    line: String,
    host: String,
    child: Child,
    output: Labelled,
    ended: bool,
}

impl Companion {
    /// Starts it, and waits until it listens on a port, has ended, or a second has passed. The lines that it prints go to
    /// standard error with `label` before each, and Ctrl-C does not reach it.
    ///
    /// # Errors
    /// If there is no shell, its namespaces cannot be entered, or the system has no descriptors left.
    pub fn start(host: &Namespace, line: &str, label: &str) -> Result<Companion, WireError> {
        let doing = || WireError::system(format!("reading the output of `{line}`"));
        let (output, [stdout, stderr]) = Labelled::start(format!("[{label}] ")).map_err(doing())?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        let child = host.spawn(command)?;
        let (line, host_name) = (line.to_owned(), host.name().to_owned());
        let mut companion = Companion { line, host: host_name, child, output, ended: false };
        let until = Instant::now() + LISTENING;
        while Instant::now() < until && !companion.has_ended() && !host.run(somebody_listens)? {
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(companion)
    }

    /// Asks it and what it has started to end, and waits a moment for it.
    pub fn end(mut self) {
        self.signal(Signal::SIGTERM);
        let _ = ends_soon(&mut self.child);
        self.output.wait();
    }

    /// To it and what it has started: it leads a group of its own.
    fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            // An error means that nobody is left in it.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Says so once, if it has ended.
    pub(super) fn tell_end(&mut self, tell: &mut dyn FnMut(&str)) {
        if !self.ended
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = true;
            self.output.wait();
            // An orderly end is no news.
            if status.success() {
                return;
            }
            tell(&format!("`{}` on `{}` has ended ({status})", self.line, self.host));
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Whether a socket waits for peers in the network of the calling thread (proc_pid_net(5)).
fn somebody_listens() -> bool {
    let any = |table: &str, wanted: &dyn Fn(&str) -> bool| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| line.split_ascii_whitespace().nth(3).is_some_and(wanted))
    };
    const LISTEN: &str = "0A";
    ["tcp", "tcp6"].iter().any(|table| any(table, &|state| state == LISTEN))
        || ["udp", "udp6"].iter().any(|table| any(table, &|_| true))
}

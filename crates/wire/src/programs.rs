//! Programs on the hosts of a wire: one in front that the user deals with, others beside it, and the signals that come in
//! the meantime.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use trunkline_io::{Interest, Poller};

use crate::WireError;
use crate::ground::Namespace;

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long a program that is started beside another may take until it listens.
const LISTENING: Duration = Duration::from_secs(1);
/// How often such things are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The signals that end a wire, and those of its programs that end. While this lives they wait to be taken from it;
/// threads that are started meanwhile do not get them either.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
}

/// What came.
enum Event {
    /// A program may have ended.
    Ended,
    /// From the terminal, which sent it to the program in front as well: it decides what Ctrl-C means.
    Terminal,
    /// From another process, to us alone.
    Sent(Signal),
}

impl Signals {
    /// Begins to keep them. Has to be done before other threads are started.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn keep() -> io::Result<Signals> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block()?;
        Ok(Signals { descriptor: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Whether somebody wants the wire to end, until now.
    ///
    /// # Errors
    /// If signals cannot be read.
    pub fn want_end(&self) -> io::Result<bool> {
        let mut poller = Poller::new([(self.descriptor.as_fd(), Interest::Read)]);
        while poller.wait(trunkline_core::Duration::ZERO)? > 0 {
            if !matches!(self.next()?, Event::Ended) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until the user or somebody else wants the wire to end.
    ///
    /// # Errors
    /// If signals cannot be read.
    pub fn wait_for_end(&self) -> io::Result<()> {
        while matches!(self.next()?, Event::Ended) {}
        Ok(())
    }

    fn next(&self) -> io::Result<Event> {
        /// `si_code` of what the kernel itself sends (sigaction(2)), as for a key at the terminal.
        const SI_KERNEL: i32 = 0x80;
        loop {
            let Some(info) = self.descriptor.read_signal()? else { continue };
            return Ok(match Signal::try_from(info.ssi_signo as i32)? {
                Signal::SIGCHLD => Event::Ended,
                Signal::SIGINT | Signal::SIGQUIT if info.ssi_code == SI_KERNEL => Event::Terminal,
                signal => Event::Sent(signal),
            });
        }
    }
}

/// A program that runs beside the one in front, `iperf3 -s` on the other host: a line for the shell.
#[derive(Debug)]
pub struct Companion {
    line: String,
    host: String,
    child: Child,
    ended: bool,
}

impl Companion {
    /// Starts it, and waits until it listens on a port, has ended, or a second has passed. What it prints goes to
    /// standard error, and Ctrl-C does not reach it.
    ///
    /// # Errors
    /// If there is no shell or its namespaces cannot be entered.
    pub fn start(host: &Namespace, line: &str) -> Result<Companion, WireError> {
        let output =
            io::stderr().as_fd().try_clone_to_owned().map_err(WireError::system("copying standard error"))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(output).process_group(0);
        let child = host.spawn(command)?;
        let mut companion =
            Companion { line: line.to_owned(), host: host.name().to_owned(), child, ended: false };
        let until = Instant::now() + LISTENING;
        while Instant::now() < until && !companion.has_ended() && !host.run(somebody_listens)? {
            std::thread::sleep(LOOK);
        }
        Ok(companion)
    }

    /// Asks it and what it has started to end, and waits a moment for it.
    pub fn end(mut self) {
        self.signal(Signal::SIGTERM);
        let _ = ends_soon(&mut self.child);
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
    fn tell_end(&mut self, tell: &mut dyn FnMut(&str)) {
        if !self.ended
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = true;
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

/// Waits for the program in front and says how it ended; `tell` is told of those beside it that end before. Signals sent
/// to this process are passed on to it; if it does not end then, it is killed.
///
/// # Errors
/// If signals cannot be read or the program cannot be waited for.
pub fn wait(
    signals: &Signals,
    mut front: Child,
    beside: &mut [Companion],
    tell: &mut dyn FnMut(&str),
) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = front.try_wait()? {
            return Ok(status);
        }
        for companion in &mut *beside {
            companion.tell_end(tell);
        }
        match signals.next()? {
            Event::Ended | Event::Terminal => {}
            Event::Sent(sent) => {
                signal(&front, sent);
                if matches!(sent, Signal::SIGTERM | Signal::SIGHUP) && ends_soon(&mut front)?.is_none() {
                    front.kill()?;
                }
            }
        }
    }
}

/// The exit code for a program that ended so, as a shell has it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn signal(child: &Child, signal: Signal) {
    // Not waited for yet, so the number is still its own; an error means that it has ended.
    let _ = kill(Pid::from_raw(child.id() as i32), signal);
}

fn ends_soon(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + GRACE;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > until {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
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

//! The program in front, and the terminal that it has meanwhile.
//!
//! At a terminal it gets a process group of its own, as a shell's job does: the number of ours means nothing in the process
//! namespace of its host, where a shell must be able to name its group.

use std::io;
use std::process::{Child, Command, ExitStatus};

use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};
use trunkline_io::process::start_in_foreground;

use crate::WireError;
use crate::ground::Namespace;

/// A program that the user deals with.
#[derive(Debug)]
pub struct Front {
    child: Child,
    /// Its process group, if it has one of its own.
    group: Option<Pid>,
}

impl Front {
    /// Starts it on a host. If standard input is a terminal and ours, the terminal is its until it ends.
    ///
    /// # Errors
    /// As [`Namespace::spawn`].
    pub fn start(host: &Namespace, mut command: Command) -> Result<Front, WireError> {
        if foreground() != Some(getpgrp()) {
            return Ok(Front { child: host.spawn(command)?, group: None });
        }
        start_in_foreground(&mut command);
        let child = host.spawn(command).inspect_err(|_| give_terminal(getpgrp()))?;
        let group = Pid::from_raw(child.id() as i32);
        Ok(Front { child, group: Some(group) })
    }

    /// How it has ended, if it has. Follows it when it is stopped (Ctrl-Z) and goes on with it.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if let (None, Some(group)) = (status, self.group) {
            let stopped = waitid(Id::Pid(group), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
            if let Ok(WaitStatus::Stopped(_, signal)) = stopped {
                stop_too(group, signal);
            }
        }
        Ok(status)
    }

    /// Sends it a signal, and to its group if that is its own.
    pub(super) fn signal(&self, signal: Signal) {
        // Not waited for yet, so the number is still its own; an error means that it has ended.
        let _ = match self.group {
            Some(group) => killpg(group, signal),
            None => kill(Pid::from_raw(self.child.id() as i32), signal),
        };
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if self.group.is_some() && foreground() == self.group {
            give_terminal(getpgrp());
        }
    }
}

/// Stops as the program has been stopped, if somebody is there who can let both go on, and lets it go on.
fn stop_too(group: Pid, signal: Signal) {
    let of_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
    match foreground() {
        // It asked for the terminal before it had it.
        Some(now) if now == group && of_terminal => {}
        Some(now) if now == group => {
            give_terminal(getpgrp());
            // Without a shell above us that could let us go on, the kernel ignores this.
            let _ = killpg(getpgrp(), Signal::SIGTSTP);
        }
        // The shell above us has given us the terminal back.
        Some(now) if now == getpgrp() => {}
        // In the background.
        _ => drop(killpg(getpgrp(), signal)),
    }
    if foreground() == Some(getpgrp()) {
        give_terminal(group);
    }
    let _ = killpg(group, Signal::SIGCONT);
}

/// The process group that has the terminal on standard input, if that is the terminal of this process.
pub(super) fn foreground() -> Option<Pid> {
    tcgetpgrp(io::stdin()).ok()
}

fn give_terminal(group: Pid) {
    // Whoever does not have it at the moment would be stopped.
    let background = SigSet::from(Signal::SIGTTOU);
    let before = background.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
    // An error means that the group has ended.
    let _ = tcsetpgrp(io::stdin(), group);
    let _ = before.map(|before| before.thread_set_mask());
}

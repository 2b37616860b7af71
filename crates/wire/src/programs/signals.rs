//! The signals that come while programs run.

use std::io;
use std::os::fd::AsFd as _;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use trunkline_io::{Interest, Poller};

/// The signals that end a wire, and those of its programs that end. While this lives they wait to be taken from it;
/// threads that are started meanwhile do not get them either.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
}

/// What came.
pub(super) enum Event {
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

    pub(super) fn next(&self) -> io::Result<Event> {
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

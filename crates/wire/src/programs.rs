//! Programs on the hosts of a wire: one in front that the user deals with, others beside it, and the signals that come in
//! the meantime.

mod companion;
mod front;
mod keys;
mod labelled;
mod signals;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

pub use companion::Companion;
pub use front::Front;
pub use keys::Keys;
use signals::Event;
pub use signals::Signals;

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is checked whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits for the program in front and says how it ended; `tell` is told of those beside it that end before. Signals sent
/// to this process are passed on to it; if it does not end then, it is killed.
///
/// # Errors
/// If signals cannot be read or the program cannot be waited for.
pub fn wait(
    signals: &Signals,
    mut front: Front,
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
                front.signal(sent);
                if matches!(sent, Signal::SIGTERM | Signal::SIGHUP) && ends_soon(front.child())?.is_none() {
                    front.signal(Signal::SIGKILL);
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

fn ends_soon(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + GRACE;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > until {
            return Ok(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

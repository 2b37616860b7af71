//! Keys at the terminal, one at a time, for a program that shows something until a key is pressed.

use std::io;
use std::os::fd::AsFd as _;

use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, read};
use trunkline_io::{Interest, Poller};

use super::front::foreground;

/// The keys of the terminal on standard input. While this lives they come without Enter and are not shown; Ctrl-C sends
/// SIGINT as usual, and Ctrl-Z does nothing.
#[derive(Debug)]
pub struct Keys {
    /// The terminal's modes before; `None` if standard input is not a terminal of ours.
    before: Option<Termios>,
}

impl Keys {
    /// Takes them. In the background, or without a terminal, there are none.
    pub fn take() -> Keys {
        let before = (foreground() == Some(getpgrp())).then(|| tcgetattr(io::stdin()).ok()).flatten();
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
            modes.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
            modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
            // A stopped program would leave the shell with these modes. Zero is no character (termios(3)).
            modes.control_chars[SpecialCharacterIndices::VSUSP as usize] = 0;
            // An error means that the terminal has gone.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &modes);
        }
        Keys { before }
    }

    /// The next key, if one is pressed within `timeout`.
    ///
    /// # Errors
    /// If the terminal cannot be read, or has gone.
    pub fn next(&mut self, timeout: trunkline_core::Duration) -> io::Result<Option<u8>> {
        let stdin = io::stdin();
        let watched = self.before.is_some().then(|| (stdin.as_fd(), Interest::Read));
        if Poller::new(watched).wait(timeout)? == 0 {
            return Ok(None);
        }
        let mut key = [0];
        match read(stdin.as_fd(), &mut key)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(Some(key[0])),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
    }
}

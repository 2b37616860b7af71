//! Programs at a pseudo-terminal, as a user has them.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A terminal with a program at it. The program is killed when this is dropped.
pub struct Terminal {
    keys: File,
    shown: Receiver<Vec<u8>>,
    seen: String,
    /// The program's side, for its modes.
    line: File,
    child: Child,
}

impl Terminal {
    /// Starts a program with this as its controlling terminal, 120 columns wide.
    pub fn start(command: &Command) -> Terminal {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal can be opened");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be unlocked");
        let path = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("of ASCII");
        // Without NOCTTY it could become that of the tests.
        let slave = rustix::fs::open(&path, rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY, 0.into());
        let line = File::from(slave.expect("its other side can be opened"));
        tcsetwinsize(&line, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })
            .expect("its size can be set");
        let end = || line.try_clone().expect("a descriptor can be copied");
        // A session of its own, whose controlling terminal this is (setsid(1)).
        // Signals that whoever runs the tests ignores, as a shell does for its background jobs, are not ignored there.
        let mut outer = Command::new("env");
        outer
            .args(["--default-signal", "setsid", "--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => outer.env(key, value),
                None => outer.env_remove(key),
            };
        }
        outer.env("TERM", "xterm").env_remove("PS1").env_remove("PROMPT_COMMAND");
        if let Some(folder) = command.get_current_dir() {
            outer.current_dir(folder);
        }
        let child = outer.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid is there");
        let (sender, shown) = channel();
        let mut screen = File::from(master);
        let keys = screen.try_clone().expect("a descriptor can be copied");
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when the last program has gone.
            while let Ok(count) = screen.read(&mut bytes)
                && count > 0
                && sender.send(bytes[..count].to_vec()).is_ok()
            {}
        });
        Terminal { keys, shown, seen: String::new(), line, child }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits, at most a minute, until this is shown; what was shown up to there is then behind us.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return core::mem::replace(&mut self.seen, rest);
            }
            match self.shown.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("`{text}` is not shown, but: {}", self.seen)
                }
            }
        }
    }

    /// Whether keys are shown as they are pressed, and given to the program line by line.
    pub fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("the terminal has modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits, at most a minute, until the program has ended, and says with which code.
    #[track_caller]
    pub fn end(&mut self) -> Option<i32> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

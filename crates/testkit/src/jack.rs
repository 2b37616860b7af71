//! JACK servers without a sound card, each of a name that no other has.
//!
//! libjack keeps a list of eight servers per machine in `/dev/shm`. Who ends in order leaves it; the place of one that was
//! killed, with its test, stays taken until somebody gives it back, and then no server starts any more.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::programs::is_installed;

/// How the names of ours begin.
const PREFIX: &str = "trunkline-";
/// libjack's list.
const REGISTRY: &str = "/dev/shm/jack-shm-registry";
/// A busy machine takes its time.
const PATIENCE: u32 = 300;
const STEP: Duration = Duration::from_millis(100);

/// A server that runs, and ends in order when this is dropped.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
}

impl Server {
    /// Starts one with two channels in each direction, whose clients it waits for (synchronous): a machine that is late
    /// changes nothing of what is heard. `None` where `jackd` is not installed.
    ///
    /// # Panics
    /// If it does not start within half a minute; where `CI` is set also if it is not installed.
    pub fn start(rate: u32, period: u32) -> Option<Server> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !is_installed("jackd", "the Debian package `jackd2`") {
            return None;
        }
        give_back_places(Path::new(REGISTRY));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Some(Server::named(&format!("{PREFIX}test-{}-{number}", std::process::id()), rate, period))
    }

    /// Starts another of the same name, after a crash. It finds the place of the crashed one, and clears it up.
    ///
    /// # Panics
    /// If it does not start within half a minute.
    pub fn again(&mut self, rate: u32, period: u32) {
        let name = std::mem::take(&mut self.name);
        *self = Server::named(&name, rate, period);
    }

    fn named(name: &str, rate: u32, period: u32) -> Server {
        let mut server = Server { child: spawn(name, rate, period), name: name.to_owned() };
        for _ in 0..PATIENCE {
            if server.ports().iter().any(|port| port == "system:playback_1") {
                return server;
            }
            // All places may be taken by the servers of others.
            if matches!(server.child.try_wait(), Ok(Some(_))) {
                server.child = spawn(name, rate, period);
            }
            std::thread::sleep(STEP);
        }
        panic!("the JACK server {name} does not start within half a minute");
    }

    /// Its name, by which clients find it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of all ports there are.
    pub fn ports(&self) -> Vec<String> {
        // Its option for the server's name writes beyond its memory for names of some lengths (jackd2 1.9.21).
        let mut list = Command::new("jack_lsp");
        list.env("JACK_DEFAULT_SERVER", &self.name).env("JACK_NO_START_SERVER", "1").stderr(Stdio::null());
        let listed = list.output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect()
    }

    /// Waits until there is a port of this name.
    ///
    /// # Panics
    /// If there is none within half a minute.
    pub fn until_there_is(&self, port: &str) {
        let found = (0..PATIENCE).any(|_| {
            let found = self.ports().iter().any(|name| name == port);
            if !found {
                std::thread::sleep(STEP);
            }
            found
        });
        assert!(found, "the JACK server {} has no port {port} after half a minute", self.name);
    }

    /// Ends it as a crash would.
    pub fn crash(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let _ = self.child.wait();
        }
    }
}

fn spawn(name: &str, rate: u32, period: u32) -> Child {
    // Longer than a busy machine is late. A synchronous server sometimes loses the wake-up of a client while another one
    // closes, and then stands still for ten times this long (jackd2 1.9.21).
    const TIMEOUT_MS: &str = "1000";
    Command::new("jackd")
        .args(["--no-realtime", "--no-mlock", "--sync", "--timeout", TIMEOUT_MS, "-n", name, "-d", "dummy"])
        .args(["-r", &rate.to_string(), "-p", &period.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("jackd has just been found")
}

/// Gives back the places of our servers whose processes are gone, and their tests too: one that has crashed its server starts
/// it again, which clears up behind the crashed one. An entry is the process's number and `jack-USER:NAME`.
fn give_back_places(registry: &Path) {
    let Ok(file) = File::options().read(true).write(true).open(registry) else { return };
    let mut list = Vec::new();
    if (&file).read_to_end(&mut list).is_err() {
        return;
    }
    let ours = format!(":{PREFIX}test-");
    let is_gone = |process: i32| !Path::new(&format!("/proc/{process}")).exists();
    for found in list.windows(ours.len()).enumerate().filter(|(_, bytes)| *bytes == ours.as_bytes()) {
        let Some(name) = list[..found.0].windows(5).rposition(|bytes| bytes == b"jack-") else { continue };
        let Some(number) = name.checked_sub(4).and_then(|start| list[start..name].first_chunk()) else {
            continue;
        };
        let process = i32::from_ne_bytes(*number);
        let digits = list[found.0 + ours.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let test =
            digits.fold(0_i32, |test, digit| test.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
        if process > 0 && is_gone(process) && is_gone(test) {
            // Free is a place without a process.
            let _ = file.write_all_at(&[0; 4], (name - 4) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_of_ours_that_are_dead_are_given_back() {
        let path = std::env::temp_dir().join(format!("trunkline-registry-{}", std::process::id()));
        let (dead, alive) = (i32::MAX, std::process::id() as i32);
        let entry = |process: i32, name: &str| {
            let mut entry = process.to_ne_bytes().to_vec();
            entry.extend_from_slice(name.as_bytes());
            entry.resize(261, 0);
            entry
        };
        let entries = [
            entry(dead, &format!("jack-0:trunkline-test-{dead}-0")),
            entry(alive, &format!("jack-1000:trunkline-test-{dead}-0")),
            entry(dead, &format!("jack-0:trunkline-test-{alive}-0")),
            entry(dead, "jack-0:default"),
        ];
        let list = [&b"KCAJ-header"[..], &entries.concat()].concat();
        std::fs::write(&path, &list).unwrap();
        give_back_places(&path);
        let mut expected = list.clone();
        expected[11..15].fill(0);
        let left = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(left == expected);
        give_back_places(Path::new("/nowhere"));
    }
}

//! What is written down about a running wire, so that others find it and what a crash left can be removed: a folder of the
//! wire's name with `state.json`, and the socket on which it listens.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::namespace::Held;
use crate::WireError;

const STATE: &str = "state.json";
/// How long a wire may take to end before it is ended the hard way.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A process, told from a later one of the same number by when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// The process namespace in which it has that number. Hosts of wires see another one than their wire's owner.
    namespace: u64,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
}

impl ProcessId {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<ProcessId> {
        let started = start_of_living(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        Some(ProcessId { pid, namespace: own_namespace()?, started })
    }

    /// Whether it still runs, as far as it can be seen from here.
    pub fn is_alive(&self) -> bool {
        ProcessId::of(self.pid) == Some(*self)
    }

    /// Whether it can be seen from here if it runs.
    fn is_within_sight(&self) -> bool {
        own_namespace() == Some(self.namespace)
    }

    fn signal(&self, signal: Signal) {
        if self.is_alive() {
            // If it ended in between, that is what was wanted.
            let _ = kill(Pid::from_raw(self.pid as i32), signal);
        }
    }

    /// Waits until it has ended; says whether it has.
    fn wait(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while self.is_alive() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

/// The process namespace of this process.
fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// When a process started that has not ended, by its line in `/proc` (proc_pid_stat(5)).
fn start_of_living(stat: &str) -> Option<u64> {
    // The second field is the program's name, with anything in it but the last parenthesis.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(started)
}

/// A wire as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireState {
    /// Its name.
    pub name: String,
    /// The experiment file.
    pub file: PathBuf,
    /// The process that drives it.
    pub owner: ProcessId,
    /// Whether everything is there.
    pub ready: bool,
    /// Its hosts.
    pub hosts: Vec<HostState>,
}

/// A host as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostState {
    /// Its name.
    pub name: String,
    /// Its interfaces.
    pub interfaces: Vec<InterfaceState>,
    /// Numbers of the owner's descriptors for its namespaces.
    pub(super) held: Held,
    /// The first process of its process namespace.
    pub first: Option<ProcessId>,
}

impl HostState {
    /// Whether programs can run there: its first process lives, as far as can be seen from here.
    pub fn is_alive(&self) -> bool {
        self.first.is_none_or(|first| !first.is_within_sight() || first.is_alive())
    }
}

/// An interface as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceState {
    /// Its name.
    pub name: String,
    /// The link behind it.
    pub link: String,
    /// Its addresses.
    pub addresses: Vec<std::net::IpAddr>,
}

/// The folder of a wire of this process; removed when dropped.
#[derive(Debug)]
pub(super) struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// Makes the folder of a wire that has just begun. What a crash left under the same name is removed.
    pub(super) fn claim(wires: &Path, state: &WireState) -> Result<StateFolder, WireError> {
        let path = wires.join(&state.name);
        // It appears with its content, so that nobody takes it for a stale one.
        let new = wires.join(format!(".{}-{}", state.owner.pid, state.name));
        // Whatever is there is of an earlier process of our number.
        remove(&new);
        let made = fs::create_dir(&new).and_then(|()| write(&new, state));
        let made = made.and_then(|()| {
            if FoundWire::in_folder(path.clone()).is_none_or(|known| !known.is_running()) {
                remove(&path);
            }
            fs::rename(&new, &path)
        });
        made.map_err(|e| {
            let _ = fs::remove_dir_all(&new);
            match e.kind() {
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => WireError::Which(format!(
                    "wire `{}` is up already: end it with `trunkline wire down`, or give this one another `--name`",
                    state.name
                )),
                _ => WireError::State { path: path.clone(), problem: format!("cannot be made: {e}") },
            }
        })?;
        Ok(StateFolder { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn update(&self, state: &WireState) -> Result<(), WireError> {
        write(&self.path, state).map_err(|e| WireError::State {
            path: self.path.join(STATE),
            problem: format!("cannot be written: {e}"),
        })
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        // What cannot be removed now is found by `down --stale`.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn write(folder: &Path, state: &WireState) -> io::Result<()> {
    let new = folder.join("state.new");
    fs::write(&new, serde_json::to_vec_pretty(state)?)?;
    fs::rename(&new, folder.join(STATE))
}

fn read(folder: &Path) -> Option<WireState> {
    let text = fs::read(folder.join(STATE)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Removes a folder that is nobody's any more, and nothing that we did not put there.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// A wire of this user that is written down.
#[derive(Clone, Debug)]
pub struct FoundWire {
    /// Its folder.
    pub folder: PathBuf,
    /// What is written there.
    pub state: WireState,
}

impl FoundWire {
    /// All of them in the order of their names, those whose process has died too.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(wires: &Path) -> Result<Vec<FoundWire>, WireError> {
        let unreadable = |e: io::Error| WireError::State {
            path: wires.to_path_buf(),
            problem: format!("cannot be read: {e}"),
        };
        let folders = fs::read_dir(wires).map_err(unreadable)?.map(|entry| entry.map(|entry| entry.path()));
        let mut folders: Vec<PathBuf> = folders.collect::<io::Result<_>>().map_err(unreadable)?;
        folders.sort();
        Ok(folders.into_iter().filter_map(FoundWire::in_folder).collect())
    }

    fn in_folder(folder: PathBuf) -> Option<FoundWire> {
        Some(FoundWire { state: read(&folder)?, folder })
    }

    /// The running wire of that name, or the only one.
    ///
    /// # Errors
    /// If there is none, or no name is given and there are several.
    pub fn find(wires: &Path, name: Option<&str>) -> Result<FoundWire, WireError> {
        let mut found = FoundWire::all(wires)?;
        found.retain(|wire| wire.is_running() && name.is_none_or(|name| wire.state.name == name));
        match (found.len(), name) {
            (1, _) => Ok(found.remove(0)),
            (0, Some(name)) => Err(WireError::Which(format!(
                "no wire `{name}` is up; `trunkline wire status` lists those that are"
            ))),
            (0, None) => {
                Err(WireError::Which("no wire is running; start one with `trunkline wire up FILE`".into()))
            }
            _ => {
                let names: Vec<String> = found.iter().map(|wire| format!("`{}`", wire.state.name)).collect();
                Err(WireError::Which(format!(
                    "several wires are running ({}); select one with `--wire NAME`",
                    names.join(", ")
                )))
            }
        }
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> bool {
        match self.state.owner.is_within_sight() {
            true => self.state.owner.is_alive(),
            false => UnixStream::connect(self.socket()).is_ok(),
        }
    }

    /// Refuses what needs its process, if that is out of sight: a wire is not entered or ended from one of its own hosts.
    ///
    /// # Errors
    /// If so.
    pub(super) fn within_sight(&self) -> Result<(), WireError> {
        if self.state.owner.is_within_sight() {
            return Ok(());
        }
        Err(WireError::Refused(format!(
            "wire `{}` can be entered and ended only where it was started, not from a host of a wire",
            self.state.name
        )))
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> PathBuf {
        socket(&self.folder)
    }

    /// Ends it and waits until it has gone; what remains after a crash is removed.
    ///
    /// # Errors
    /// If something of it does not go.
    pub fn take_down(&self) -> Result<(), WireError> {
        if self.is_running() {
            self.within_sight()?;
        }
        let owner = &self.state.owner;
        owner.signal(Signal::SIGTERM);
        if !owner.wait(TIMEOUT) {
            owner.signal(Signal::SIGKILL);
        }
        let stuck = |process: &ProcessId| WireError::State {
            path: self.folder.clone(),
            problem: format!("process {} cannot be ended", process.pid),
        };
        // These have ended by themselves when the owner did, unless they hang.
        for first in self.state.hosts.iter().filter_map(|host| host.first) {
            if !first.wait(Duration::from_secs(1)) {
                first.signal(Signal::SIGKILL);
                if !first.wait(TIMEOUT) {
                    return Err(stuck(&first));
                }
            }
        }
        if !owner.wait(TIMEOUT) {
            return Err(stuck(owner));
        }
        remove(&self.folder);
        Ok(())
    }
}

/// The socket on which a wire listens.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("control")
}

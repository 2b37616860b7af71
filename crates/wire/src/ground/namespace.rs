//! One host's namespaces, and the programs that run in them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use nix::fcntl::{OFlag, openat};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::sethostname;

use super::init::{Init, InitProgram};
use crate::WireError;

/// The longest name that Linux gives a host (`HOST_NAME_MAX`, gethostname(2)).
const LONGEST_HOST_NAME: usize = 64;

/// A network namespace, held by a descriptor alone: when the last one and the last program are gone, the kernel forgets it.
#[derive(Debug)]
pub(super) struct Network {
    name: String,
    descriptor: OwnedFd,
}

impl Network {
    /// Makes one, and calls `prepare` in it before anything else happens there.
    pub(super) fn make(
        name: &str,
        prepare: impl FnOnce() -> io::Result<()> + Send,
    ) -> Result<Network, WireError> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            prepare()?;
            File::open("/proc/thread-self/ns/net")
        };
        let made: io::Result<File> = on_a_thread(make);
        made.map(|made| Network { name: name.to_owned(), descriptor: made.into() })
            .map_err(WireError::system(format!("making a network namespace for {name}")))
    }

    /// Calls `work` on a thread in this network. Sockets that it opens, and threads that it starts, stay there.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, WireError> {
        on_a_thread(|| setns(&self.descriptor, CloneFlags::CLONE_NEWNET).map(|()| work()))
            .map_err(WireError::system(format!("entering the network of `{}`", self.name)))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A host of a running wire: a network, a host name, a view of the file system, and a process namespace, with which all its
/// programs end. Held by descriptors alone.
#[derive(Debug)]
pub struct Namespace {
    /// The first process of its process namespace, if it is ours. Ends before the rest.
    init: Option<Init>,
    network: Network,
    /// Its file system and its host name; the machine's own if `None`.
    mounts: Option<OwnedFd>,
    names: Option<OwnedFd>,
    processes: OwnedFd,
}

impl Namespace {
    /// Makes one. `prepare` is called in it before anything else happens there.
    pub(super) fn make<F>(name: &str, init: &InitProgram, prepare: F) -> Result<Namespace, WireError>
    where
        F: FnOnce() -> io::Result<()> + Send,
    {
        let made = on_a_thread(|| -> io::Result<_> {
            // Once the mounts are others, /proc is too.
            let own = File::open("/proc/thread-self/ns")?;
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS)?;
            unshare_mounts_and_processes()?;
            sethostname(&name[..name.len().min(LONGEST_HOST_NAME)])?;
            prepare()?;
            let init = Init::start(init)?;
            let open = |kind: &str| openat(&own, kind, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
            Ok((init, open("net")?, open("mnt")?, open("uts")?, open("pid_for_children")?))
        });
        let (init, network, mounts, names, processes) =
            made.map_err(WireError::system(format!("making the namespaces of `{name}`")))?;
        Ok(Namespace {
            init: Some(init),
            network: Network { name: name.to_owned(), descriptor: network },
            mounts: Some(mounts),
            names: Some(names),
            processes,
        })
    }

    /// The machine's own network, host name and file system, as this process has them, in place of such of its own.
    pub(super) fn outside(name: &str, init: &InitProgram) -> Result<Namespace, WireError> {
        let made = on_a_thread(|| -> io::Result<_> {
            let own = File::open("/proc/thread-self/ns")?;
            // Mounts for the first process alone, which covers `/proc`.
            unshare_mounts_and_processes()?;
            let init = Init::start(init)?;
            let open = |kind: &str| openat(&own, kind, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
            Ok((init, open("net")?, open("pid_for_children")?))
        });
        let (init, network, processes) =
            made.map_err(WireError::system(format!("making a process namespace for `{name}`")))?;
        let network = Network { name: name.to_owned(), descriptor: network };
        Ok(Namespace { init: Some(init), network, mounts: None, names: None, processes })
    }

    /// One that another process holds, by that process and its descriptors' numbers.
    pub(super) fn of_process(name: &str, pid: u32, held: Held) -> Result<Namespace, WireError> {
        let open = |number: RawFd| {
            File::open(format!("/proc/{pid}/fd/{number}")).map(OwnedFd::from).map_err(WireError::system(
                format!("opening the namespaces of `{name}`, which process {pid} holds"),
            ))
        };
        Ok(Namespace {
            init: None,
            network: Network { name: name.to_owned(), descriptor: open(held.network)? },
            mounts: held.mounts.map(open).transpose()?,
            names: held.names.map(open).transpose()?,
            processes: open(held.processes)?,
        })
    }

    /// The numbers of its descriptors in this process.
    pub(super) fn held(&self) -> Held {
        let number = |descriptor: &Option<OwnedFd>| descriptor.as_ref().map(OwnedFd::as_raw_fd);
        Held {
            network: self.network.descriptor.as_raw_fd(),
            mounts: number(&self.mounts),
            names: number(&self.names),
            processes: self.processes.as_raw_fd(),
        }
    }

    /// The first process of its process namespace; `None` if another process has started it.
    pub(super) fn first_process(&self) -> Option<u32> {
        self.init.as_ref().map(Init::pid)
    }

    /// Gives its first process a setting of its network to write when this process ends.
    pub(super) fn remember(&self, key: &str, value: &str) -> io::Result<()> {
        self.init.as_ref().map_or(Ok(()), |init| init.remember(key, value))
    }

    /// Lets its programs end, without waiting for them.
    pub(super) fn release(&mut self) {
        self.init.iter_mut().for_each(Init::release);
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.network.name
    }

    /// Whether it is the machine itself, with the machine's own network.
    pub fn is_outside(&self) -> bool {
        self.mounts.is_none()
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Calls `work` on a thread in this network. Sockets that it opens, and threads that it starts, stay there.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, WireError> {
        self.network.run(work)
    }

    /// Starts a program on this host, in the present folder unless the command names one. It ends with the wire at the
    /// latest, and all that it starts with it; who has waited for it by then spares the wire a wait when it goes down.
    ///
    /// # Errors
    /// If the namespaces cannot be entered, or with [`WireError::Program`] if the program cannot be started.
    pub fn spawn(&self, mut command: Command) -> Result<Child, WireError> {
        let program = Path::new(command.get_program()).display().to_string();
        let folder = std::env::current_dir().ok();
        let enter = || -> io::Result<()> {
            // Those that we wait for are blocked; whoever is started must not inherit that.
            SigSet::empty().thread_set_mask()?;
            unshare(CloneFlags::CLONE_FS)?;
            setns(&self.network.descriptor, CloneFlags::CLONE_NEWNET)?;
            if let Some(names) = &self.names {
                setns(names, CloneFlags::CLONE_NEWUTS)?;
            }
            if let Some(mounts) = &self.mounts {
                setns(mounts, CloneFlags::CLONE_NEWNS)?;
                // Other mounts, another root: the folder has to be looked up again.
                folder.iter().try_for_each(std::env::set_current_dir)?;
            }
            setns(&self.processes, CloneFlags::CLONE_NEWPID)?;
            Ok(())
        };
        let host = self.name();
        on_a_thread(|| {
            enter().map_err(WireError::system(format!("entering `{host}` to start `{program}`")))?;
            command.spawn().map_err(|source| WireError::Program {
                program: program.clone(),
                host: host.to_owned(),
                source,
            })
        })
    }
}

/// Gives the calling thread mounts of its own, in which what the machine mounts later appears and from which nothing gets
/// out, and those whom it starts from now on a process namespace of their own.
fn unshare_mounts_and_processes() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
    Ok(())
}

/// Numbers of the descriptors that hold a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Held {
    pub(super) network: RawFd,
    pub(super) mounts: Option<RawFd>,
    pub(super) names: Option<RawFd>,
    pub(super) processes: RawFd,
}

/// What a thread enters is its own; it is not used for anything else after that.
pub(super) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! One host's namespaces, and the programs that run in them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use nix::fcntl::{OFlag, openat};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;

use crate::WireError;

/// A host of a running wire: a network namespace, what its programs see of the file system, and the process namespace of
/// the wire, with which they all end. Held by descriptors alone: when the last one and the last program are gone, the
/// kernel forgets it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    network: OwnedFd,
    mounts: Option<OwnedFd>,
    processes: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes one whose mounts are a copy of `mounts`. `prepare` is called in it before anything else happens there.
    pub(super) fn make<F>(
        name: &str,
        mounts: &OwnedFd,
        processes: Arc<OwnedFd>,
        prepare: F,
    ) -> Result<Namespace, WireError>
    where
        F: FnOnce() -> io::Result<()> + Send,
    {
        let make = || {
            // Once the mounts are others, /proc is too.
            let own = File::open("/proc/thread-self/ns")?;
            unshare(CloneFlags::CLONE_FS)?;
            setns(mounts, CloneFlags::CLONE_NEWNS)?;
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
            prepare()?;
            let open = |kind: &str| openat(&own, kind, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
            Ok((open("net")?, open("mnt")?))
        };
        let made: io::Result<_> = on_a_thread(make);
        let (network, mounts) =
            made.map_err(WireError::system(format!("making a network namespace for `{name}`")))?;
        Ok(Namespace { name: name.to_owned(), network, mounts: Some(mounts), processes })
    }

    /// The machine's own network, as this process has it, in place of one of its own.
    pub(super) fn outside(name: &str, processes: Arc<OwnedFd>) -> Result<Namespace, WireError> {
        let network = File::open("/proc/self/ns/net")
            .map_err(WireError::system("opening the machine's own network namespace"))?;
        Ok(Namespace { name: name.to_owned(), network: network.into(), mounts: None, processes })
    }

    /// One that another process holds, by that process and its descriptors' numbers.
    pub(super) fn of_process(name: &str, pid: u32, held: Held) -> Result<Namespace, WireError> {
        let open = |number: RawFd| {
            File::open(format!("/proc/{pid}/fd/{number}")).map(OwnedFd::from).map_err(WireError::system(
                format!("opening the namespaces of `{name}`, which process {pid} holds"),
            ))
        };
        Ok(Namespace {
            name: name.to_owned(),
            network: open(held.network)?,
            mounts: held.mounts.map(open).transpose()?,
            processes: Arc::new(open(held.processes)?),
        })
    }

    /// The numbers of its descriptors in this process.
    pub(super) fn held(&self) -> Held {
        Held {
            network: self.network.as_raw_fd(),
            mounts: self.mounts.as_ref().map(OwnedFd::as_raw_fd),
            processes: self.processes.as_raw_fd(),
        }
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn network(&self) -> BorrowedFd<'_> {
        self.network.as_fd()
    }

    /// Calls `work` on a thread in this network. Sockets that it opens, and threads that it starts, stay there.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, WireError> {
        on_a_thread(|| setns(&self.network, CloneFlags::CLONE_NEWNET).map(|()| work()))
            .map_err(WireError::system(format!("entering the network of `{}`", self.name)))
    }

    /// Starts a program on this host, in the present folder unless the command names one. It ends with the wire at the
    /// latest, and all that it starts with it; who has waited for it by then spares the wire a wait when it goes down.
    ///
    /// # Errors
    /// If the namespaces cannot be entered or the program cannot be started.
    pub fn spawn(&self, mut command: Command) -> Result<Child, WireError> {
        let program = Path::new(command.get_program()).display().to_string();
        let folder = std::env::current_dir().ok();
        let spawn = || -> io::Result<Child> {
            // Those that we wait for are blocked; whoever is started must not inherit that.
            SigSet::empty().thread_set_mask()?;
            unshare(CloneFlags::CLONE_FS)?;
            setns(&self.network, CloneFlags::CLONE_NEWNET)?;
            if let Some(mounts) = &self.mounts {
                setns(mounts, CloneFlags::CLONE_NEWNS)?;
                // Other mounts, another root: the folder has to be looked up again.
                folder.iter().try_for_each(std::env::set_current_dir)?;
            }
            setns(&*self.processes, CloneFlags::CLONE_NEWPID)?;
            command.spawn()
        };
        on_a_thread(spawn).map_err(|source| WireError::System {
            doing: format!("starting `{program}` on `{}`", self.name),
            source,
        })
    }
}

/// Numbers of the descriptors that hold a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Held {
    pub(super) network: RawFd,
    pub(super) mounts: Option<RawFd>,
    pub(super) processes: RawFd,
}

/// What a thread enters is its own; it is not used for anything else after that.
pub(super) fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

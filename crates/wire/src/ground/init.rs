//! The first process of a wire's process namespace: when it ends, the kernel ends all others in there. It ends when the
//! pipe from the wire's own process closes, which happens however that one ends.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::namespace::on_a_thread;
use crate::WireError;

/// How to start a program that calls [`serve`].
#[derive(Clone, Debug)]
pub struct InitProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// How long it may take to end, with all the others.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);
const READY: &[u8] = b"ready\n";

/// It runs while this lives.
#[derive(Debug)]
pub(super) struct Init {
    process: Child,
    /// The file system as hosts find it, with a `/proc` that shows the wire's processes.
    pub(super) mounts: OwnedFd,
    pub(super) processes: Arc<OwnedFd>,
}

impl Init {
    /// Starts it in a new process namespace.
    pub(super) fn start(program: &InitProgram) -> Result<Init, WireError> {
        let start = || -> io::Result<Child> {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)?;
            // What is mounted in here stays in here; what the machine mounts later appears.
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
            Command::new(&program.program)
                .args(&program.arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
        };
        let failed = "starting the first process of the wire's process namespace";
        let mut process = on_a_thread(start).map_err(WireError::system(failed))?;
        let mut ready = || -> io::Result<_> {
            let mut said = [0; READY.len()];
            process.stdout.take().map(|mut stdout| stdout.read_exact(&mut said)).transpose()?;
            if said != READY {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not say that it is ready"));
            }
            let open =
                |kind: &str| File::open(format!("/proc/{}/ns/{kind}", process.id())).map(OwnedFd::from);
            Ok((open("mnt")?, open("pid")?))
        };
        match ready() {
            Ok((mounts, processes)) => Ok(Init { process, mounts, processes: Arc::new(processes) }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(WireError::system(failed)(error))
            }
        }
    }

    /// Its process number, as this process sees it.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It takes all others with it; if it hangs, the kernel does. An error means that it is gone.
        let _ = self.process.kill();
        // The kernel keeps it until every program that we started has been waited for. They are dead by then, but whoever
        // started one may never ask.
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

/// Is that process: says that it is ready, collects processes that nobody waits for, and returns when standard input is
/// closed. The program must end then, and must not have started another thread before.
///
/// # Errors
/// If signals cannot be waited for or the standard streams are no pipes from a wire.
pub fn serve() -> io::Result<()> {
    // What a container shows of processes may be covered so that it cannot be shown anew; then it stays as it is.
    let hardened = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), hardened, None::<&str>);
    let mut ended = SigSet::empty();
    ended.add(Signal::SIGCHLD);
    ended.thread_block()?;
    std::thread::Builder::new().name("orphans".into()).spawn(move || {
        while ended.wait().is_ok() {
            while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive) {}
        }
    })?;
    let mut stdout = io::stdout();
    stdout.write_all(READY)?;
    stdout.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(|_| ())
}

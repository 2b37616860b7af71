//! May this user make namespaces? As root at once; otherwise in a user namespace of its own.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Uid, getegid, geteuid};

use crate::WireError;

/// Bits of the capability sets in `/proc/self/status` (capabilities(7)).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// The right to make namespaces, and where running wires are written down.
#[derive(Clone, Debug)]
pub struct Access {
    root: PathBuf,
    in_user_namespace: bool,
}

impl Access {
    /// Gains it. Without the capabilities it needs, the whole process enters a user namespace in which its user is root: it
    /// keeps its own files and loses nothing, but no other users exist for it.
    ///
    /// # Errors
    /// If the system forbids that, with the setting that does; if this process already has a second thread, since only a
    /// single thread may enter a user namespace.
    pub fn enter() -> Result<Access, WireError> {
        let root = Access::root()?;
        if has_capabilities() {
            return Ok(Access { root, in_user_namespace: false });
        }
        let (user, group) = (geteuid(), getegid());
        unshare(CloneFlags::CLONE_NEWUSER).map_err(forbidden)?;
        let map = |file: &str, text: String| {
            fs::write(format!("/proc/self/{file}"), text)
                .map_err(|e| forbidden(e.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)))
        };
        // Without this an unprivileged user may not map a group (user_namespaces(7)).
        map("setgroups", "deny".into())?;
        map("uid_map", format!("0 {user} 1"))?;
        map("gid_map", format!("0 {group} 1"))?;
        Ok(Access { root, in_user_namespace: true })
    }

    /// The folder of running wires, which is this user's alone; made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made, or others may write to it.
    pub fn root() -> Result<PathBuf, WireError> {
        let user = geteuid();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // That of somebody else is left alone: `sudo` may keep the variable.
        let runtime = runtime.filter(|path| path.is_absolute() && is_of(path, user));
        let root = match runtime {
            Some(runtime) => runtime.join("trunkline"),
            None if user.is_root() => PathBuf::from("/run/trunkline"),
            None => std::env::temp_dir().join(format!("trunkline-{user}")),
        };
        let wires = root.join("wires");
        let unusable = |problem: String| WireError::State { path: root.clone(), problem };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&wires).map_err(|e| {
            unusable(format!("cannot be made: {e}; set XDG_RUNTIME_DIR to a folder of yours"))
        })?;
        // In a folder that everybody may write to somebody else may have been there first.
        match is_of(&root, user) && is_of(&wires, user) {
            true => Ok(wires),
            false => {
                Err(unusable("belongs to another user, or other users can write to it; remove it".into()))
            }
        }
    }

    /// The folder of running wires.
    pub fn wires(&self) -> &Path {
        &self.root
    }

    /// Whether this process is in a user namespace that it made: then the machine's own network is out of its reach.
    pub fn is_unprivileged(&self) -> bool {
        self.in_user_namespace
    }
}

/// Whether a path is a folder of that user, to which nobody else may write.
fn is_of(path: &Path, user: Uid) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == user.as_raw() && m.mode() & 0o022 == 0)
}

/// Enters the user namespace of a process, if it has one of its own.
pub(super) fn enter_that_of(pid: u32) -> Result<(), WireError> {
    let open = |pid: &str| fs::File::open(format!("/proc/{pid}/ns/user"));
    let same =
        |a: &fs::File, b: &fs::File| Ok::<_, std::io::Error>(a.metadata()?.ino() == b.metadata()?.ino());
    let enter = || {
        let theirs = open(&pid.to_string())?;
        if same(&theirs, &open("self")?)? {
            return Ok(());
        }
        setns(&theirs, CloneFlags::CLONE_NEWUSER).map_err(std::io::Error::from)
    };
    enter().map_err(WireError::system(format!("entering the user namespace of process {pid}")))
}

fn has_capabilities() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    [CAP_NET_ADMIN, CAP_SYS_ADMIN].iter().all(|bit| effective & (1 << bit) != 0)
}

/// What forbids it, as far as that can be seen.
fn forbidden(error: Errno) -> WireError {
    let set = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok();
    let is = |name: &str, value: &str| set(name).is_some_and(|text| text.trim() == value);
    let cause = if error == Errno::EINVAL {
        "this process already has several threads: it must create namespaces before it starts a second thread"
            .to_owned()
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "ask the administrator for `sysctl kernel.unprivileged_userns_clone=1`, or run it as root".to_owned()
    } else if error == Errno::ENOSPC || is("user/max_user_namespaces", "0") {
        "ask the administrator for a larger `sysctl user.max_user_namespaces`, or run it as root".to_owned()
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "ask the administrator for `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run it as root"
            .to_owned()
    } else {
        format!(
            "no sysctl forbids it, so a security module or the container's system call filter does ({error}); run it \
             as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
        )
    };
    WireError::Forbidden(format!("this system does not allow you to create network namespaces: {cause}"))
}

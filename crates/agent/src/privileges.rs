//! What the daemon may not do any more once it has begun.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User};
use trunkline_core::Bytes;

use crate::error::AgentError;

/// Keeps this process within so much memory (`RLIMIT_DATA`): what would need more fails. Stacks of threads count.
///
/// # Errors
/// If the system sets no such limit, or has a lower one already that may not be raised.
pub fn limit_memory(most: Bytes) -> Result<(), AgentError> {
    let set = || {
        let (_, hard) = getrlimit(Resource::RLIMIT_DATA)?;
        let most = most.count().min(hard);
        setrlimit(Resource::RLIMIT_DATA, most, most)
    };
    set().map_err(|error| AgentError::system("the limit on memory cannot be set")(error.into()))
}

/// Turns this process, which root has started, into one of an ordinary user: the agent's folder is given to that user, and
/// of root's rights only those are kept that measuring needs, to open raw sockets (`CAP_NET_RAW`) and to send on time
/// (`CAP_SYS_NICE`). No program that it starts can gain any (`no_new_privs`).
///
/// Rights belong to threads: call this before any other is started.
///
/// # Errors
/// If there is no such user, if this process is not root's, or something of that is refused. The process must end then: it
/// may have given up some of its rights.
pub fn become_user(name: &str, state: &Path) -> Result<(), AgentError> {
    let lookup = User::from_name(name)
        .map_err(|error| AgentError::system("users cannot be looked up")(error.into()))?;
    let user = lookup.ok_or_else(|| AgentError::User {
        name: name.to_owned(),
        reason: "there is no such user on this host; make one with `useradd --system`, or leave `--user` out"
            .to_owned(),
    })?;
    if !Uid::effective().is_root() {
        if Uid::effective() == user.uid {
            return Ok(());
        }
        let reason =
            "only root can become another user; start the agent as that user, without `--user`".to_owned();
        return Err(AgentError::User { name: name.to_owned(), reason });
    }
    give_to(state, user.uid.as_raw(), user.gid.as_raw()).map_err(AgentError::folder(state))?;
    drop_to(&user).map_err(AgentError::system(format!("the agent cannot become the user {name}")))
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Leaves what root has made in an agent's folder to the user to whom the folder belongs.
///
/// # Errors
/// If the system does not let us.
pub fn leave_to_owner(state: &Path) -> Result<(), AgentError> {
    if !is_root() {
        return Ok(());
    }
    let leave = || {
        let about = fs::metadata(state)?;
        give_to(state, about.uid(), about.gid())
    };
    leave().map_err(AgentError::folder(state))
}

/// Gives a folder and all in it to a user. Links are given, not followed.
fn give_to(path: &Path, user: u32, group: u32) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if (about.uid(), about.gid()) != (user, group) {
        lchown(path, Some(user), Some(group))?;
    }
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            give_to(&entry?.path(), user, group)?;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn drop_to(user: &User) -> io::Result<()> {
    use nix::unistd::{initgroups, setresgid, setresuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
        set_no_new_privs,
    };

    let name = CString::new(user.name.as_str())?;
    initgroups(&name, user.gid)?;
    setresgid(user.gid, user.gid, user.gid)?;
    // The permitted ones outlive the change of the user; the effective ones do not.
    set_keep_capabilities(true)?;
    setresuid(user.uid, user.uid, user.uid)?;
    set_keep_capabilities(false)?;
    let wanted = CapabilitySet::NET_RAW | CapabilitySet::SYS_NICE;
    // A container may have taken some of them from root.
    let kept = capabilities(None)?.permitted & wanted;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    // Nothing of root's comes back.
    match setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)) {
        Err(_) => Ok(()),
        Ok(()) => Err(io::Error::other("the rights of root are still there")),
    }
}

#[cfg(not(target_os = "linux"))]
fn drop_to(_: &User) -> io::Result<()> {
    let _ = CString::default();
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "rights are dropped on Linux only; start the agent as that user",
    ))
}

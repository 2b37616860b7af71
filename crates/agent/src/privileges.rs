//! What the daemon may not do any more once it has begun.

use std::io;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User};
use trunkline_core::Bytes;
use trunkline_io::beneath::{Owner, Place};

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
    set().map_err(|error| AgentError::system("cannot set the memory limit")(error.into()))
}

/// Turns this process, which root has started, into one of an ordinary user. Of root's rights only those are kept that
/// measuring needs: raw sockets (`CAP_NET_RAW`) and sending on time (`CAP_SYS_NICE`). No program that it starts can gain any
/// (`no_new_privs`). The agent's folder is made for that user if there is none; nothing in it is touched before the
/// process is that user's.
///
/// Rights belong to threads: call this before any other is started.
///
/// # Errors
/// If there is no such user, if this process is not root's, if the folder belongs to somebody else, or if the system
/// refuses. The process must end then: it may have given up some of its rights.
pub fn become_user(name: &str, state: &Path) -> Result<(), AgentError> {
    let lookup =
        User::from_name(name).map_err(|error| AgentError::system("cannot look up users")(error.into()))?;
    let user = lookup.ok_or_else(|| AgentError::User {
        name: name.to_owned(),
        reason: "this user does not exist on this host; create it with `useradd --system`, or omit `--user`"
            .to_owned(),
    })?;
    if !Uid::effective().is_root() {
        if Uid::effective() == user.uid {
            return Ok(());
        }
        let reason = "only root can switch users; start the agent as that user, without `--user`".to_owned();
        return Err(AgentError::User { name: name.to_owned(), reason });
    }
    let owner = Owner { user: user.uid.as_raw(), group: user.gid.as_raw() };
    make_folder_for(state, owner, name)?;
    drop_to(&user.name, owner, Kept::Measuring)
        .map_err(AgentError::system(format!("the agent cannot switch to the user {name}")))
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Turns a process of root into one of the user to whom the agent's folder belongs, without any rights of root, so that
/// nothing that root does in the folder can be led astray by that user. Without a folder, and in one of root's own, it
/// stays root's.
///
/// Call this before any other thread is started, and before anything in the folder is looked at.
///
/// # Errors
/// If a user who is not the folder's owner decides where its path leads, or the system refuses. The process must end then.
pub fn act_as_owner(state: &Path) -> Result<(), AgentError> {
    if !is_root() {
        return Ok(());
    }
    let Some(place) = Place::find(state).map_err(AgentError::folder(state))? else { return Ok(()) };
    let owner = place.owner();
    if owner.user == 0 {
        return Ok(());
    }
    // A folder may belong to a number without a user.
    let known = User::from_uid(Uid::from_raw(owner.user)).ok().flatten();
    let (name, group) = known.map_or((String::new(), owner.group), |user| (user.name, user.gid.as_raw()));
    drop_to(&name, Owner { user: owner.user, group }, Kept::Nothing)
        .map_err(AgentError::system(format!("root cannot act as the user {}", owner.user)))
}

/// Makes the folder of an agent that will run as this user.
fn make_folder_for(state: &Path, owner: Owner, name: &str) -> Result<(), AgentError> {
    let failed = AgentError::folder(state);
    let found = match Place::find(state) {
        Ok(found) => found,
        Err(error) => return Err(failed(error)),
    };
    let Some(place) = found else {
        let parent = state.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = Place::find(parent.unwrap_or(Path::new("."))).map_err(AgentError::folder(state))?;
        let (Some(parent), Some(folder)) = (parent, state.file_name()) else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        // In a folder of the user's own it makes its own.
        return if parent.owner().user == 0 { parent.make(folder, owner).map_err(failed) } else { Ok(()) };
    };
    let of = place.owner().user;
    if of == owner.user {
        return Ok(());
    }
    if of == 0 && place.is_empty().map_err(AgentError::folder(state))? {
        return place.give(owner).map_err(failed);
    }
    let whose = if of == 0 { "root".to_owned() } else { format!("the user {of}") };
    Err(AgentError::User {
        name: name.to_owned(),
        reason: format!(
            "its folder {} belongs to {whose}; give it to {name} with `chown -R {name}: {}` while no agent uses it, or name \
             another with `--state`",
            state.display(),
            state.display()
        ),
    })
}

/// The rights of root that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Raw sockets and real-time scheduling.
    Measuring,
    Nothing,
}

#[cfg(target_os = "linux")]
fn drop_to(name: &str, owner: Owner, kept: Kept) -> io::Result<()> {
    use std::ffi::CString;

    use nix::unistd::{Gid, initgroups, setgroups, setresgid, setresuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
        set_no_new_privs,
    };

    let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
    match name {
        "" => setgroups(&[group])?,
        name => initgroups(&CString::new(name)?, group)?,
    }
    setresgid(group, group, group)?;
    // The permitted ones outlive the change of the user; the effective ones do not.
    set_keep_capabilities(true)?;
    setresuid(user, user, user)?;
    set_keep_capabilities(false)?;
    let wanted = match kept {
        Kept::Measuring => CapabilitySet::NET_RAW | CapabilitySet::SYS_NICE,
        Kept::Nothing => CapabilitySet::empty(),
    };
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
        Ok(()) => Err(io::Error::other("root's privileges could not be dropped")),
    }
}

#[cfg(not(target_os = "linux"))]
fn drop_to(_: &str, _: Owner, _: Kept) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "privileges can be dropped on Linux only; start the agent as that user",
    ))
}

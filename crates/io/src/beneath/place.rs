//! Whose a folder is.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

use super::is_link;

/// A user and a group, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

impl Owner {
    /// Root's own.
    pub const ROOT: Owner = Owner { user: 0, group: 0 };

    fn of(about: &Stat) -> Owner {
        Owner { user: about.st_uid, group: about.st_gid }
    }
}

/// A folder that was found by a way which only root and the folder's own owner can bend.
#[derive(Debug)]
pub struct Place {
    folder: OwnedFd,
    about: Stat,
}

/// More links than any path has.
const LINKS: u32 = 40;

impl Place {
    /// Finds the folder at a path, component by component; `None` if there is none. A relative path begins at the present
    /// folder.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if a user who is neither root nor the owner of what follows decides where the
    /// path leads; [`io::ErrorKind::NotADirectory`] if something else than a folder is there.
    pub fn find(path: &Path) -> io::Result<Option<Place>> {
        let mut walk = Walk { at: Place::open(CWD, Path::new("."))?, links: 0 };
        match walk.follow(path) {
            Ok(()) => Ok(Some(walk.at)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whose it is.
    pub fn owner(&self) -> Owner {
        Owner::of(&self.about)
    }

    /// Whether there is nothing in it.
    ///
    /// # Errors
    /// If it may not be read.
    pub fn is_empty(&self) -> io::Result<bool> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.folder, ".", flags, Mode::empty())?;
        for entry in rustix::fs::Dir::new(folder)? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the folder itself, and nothing in it, to somebody.
    ///
    /// # Errors
    /// If this process may not.
    pub fn give(&self, to: Owner) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(to.user), Gid::from_raw(to.group));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.folder, ".", flags, Mode::empty())?;
        Ok(rustix::fs::fchown(&folder, Some(user), Some(group))?)
    }

    /// Makes a folder (0700) in it that belongs to somebody. The name is one component.
    ///
    /// # Errors
    /// If it exists, or this process may not.
    pub fn make(&self, name: &std::ffi::OsStr, to: Owner) -> io::Result<()> {
        mkdirat(&self.folder, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.folder, name, flags, Mode::empty())?;
        fchmod(&made, Mode::RWXU)?;
        let made = Place { about: fstat(&made)?, folder: made };
        made.give(to)
    }

    fn open(folder: impl std::os::fd::AsFd, path: &Path) -> io::Result<Place> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(folder, path, flags, Mode::empty())?;
        Ok(Place { about: fstat(&folder)?, folder })
    }
}

/// On the way along a path.
struct Walk {
    at: Place,
    links: u32,
}

impl Walk {
    fn follow(&mut self, path: &Path) -> io::Result<()> {
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => self.at = Place::open(CWD, Path::new("/"))?,
                Component::ParentDir => self.at = Place::open(&self.at.folder, Path::new(".."))?,
                Component::Normal(name) => self.step(Path::new(name))?,
            }
        }
        Ok(())
    }

    fn step(&mut self, name: &Path) -> io::Result<()> {
        let about = rustix::fs::statat(&self.at.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_link(about.st_mode) {
            self.may_pass(&about, name)?;
            if about.st_uid != 0 {
                return Err(bent(about.st_uid, name));
            }
            self.links += 1;
            if self.links > LINKS {
                return Err(Errno::LOOP.into());
            }
            let to = readlinkat(&self.at.folder, name, Vec::new())?.into_bytes();
            return self.follow(&PathBuf::from(std::ffi::OsString::from_vec(to)));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.at.folder, name, flags, Mode::empty())?;
        // Of what was opened, whatever was there a moment ago.
        let about = fstat(&folder)?;
        self.may_pass(&about, name)?;
        self.at = Place { folder, about };
        Ok(())
    }

    /// Whoever may put entries into a folder decides where a path through it leads: nobody but root may, or the owner of
    /// what follows.
    fn may_pass(&self, next: &Stat, name: &Path) -> io::Result<()> {
        let owner = self.at.about.st_uid;
        if owner != 0 && owner != next.st_uid {
            return Err(bent(owner, name));
        }
        let mode = Mode::from_raw_mode(self.at.about.st_mode);
        if next.st_uid == 0 && mode.contains(Mode::WOTH) && !mode.contains(Mode::SVTX) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("any user can replace `{}` in its folder", name.display()),
            ));
        }
        Ok(())
    }
}

fn bent(user: u32, name: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "its path contains `{}`, which belongs to the user {user}; use a path that only root controls",
            name.display()
        ),
    )
}
